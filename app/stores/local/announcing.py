"""Telling subscribers of a post: ``announce``, in the transaction that writes an update."""

from app.alerts.announcing import announce

__all__ = ["announce"]
