"""Backups: ``wakeful backup`` and ``wakeful restore`` (decisions.md 16)."""
