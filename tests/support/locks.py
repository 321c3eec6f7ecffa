"""Locks of PostgreSQL that somebody waits for."""

from __future__ import annotations

import time

from sqlalchemy import text

from app.db import db

WAITING = text(
    "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
    " WHERE NOT granted AND datname = current_database()"
)


def until_somebody_waits() -> None:
    """Return when another connection to the application's database waits for a lock."""
    until = time.monotonic() + 30
    with db.engine.connect() as beside:
        while not beside.scalar(WAITING):
            assert time.monotonic() < until, "nobody waits for a lock"
            beside.rollback()
