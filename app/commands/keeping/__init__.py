"""Backups: ``wakeful backup`` and ``wakeful restore`` (decision 16)."""
