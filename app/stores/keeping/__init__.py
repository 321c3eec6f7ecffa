"""Backups: what is in one, and how one is made (decision 16)."""
