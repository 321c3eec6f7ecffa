"""Make and read backups (decision 16)."""
