"""Telling a page's subscribers of what is written on it."""

from __future__ import annotations

from datetime import datetime

from app.db import DbSession
from app.db.tables import PostUpdateRow


def announce(session: DbSession, update: PostUpdateRow, now: datetime) -> None:
    """Replaced by the outbox of subscribers"""
