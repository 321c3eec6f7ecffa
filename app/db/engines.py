"""Prepare the engine of a database of either kind."""

from __future__ import annotations

from sqlalchemy import Engine, event

from app.db.connections import CACHE_KB, prepare_sqlite, throw_away


def prepare_engine(engine: Engine, cache_kb: int = CACHE_KB) -> None:
    """Bound all waits, and throw away connections that cannot recover. ``cache_kb``: of SQLite's
    pages, for each connection.
    """
    if engine.dialect.name == "sqlite":
        prepare_sqlite(engine, cache_kb)
    else:
        from app.db import postgres  # psycopg takes 9 MB, which users of SQLite need not have

        postgres.prepare(engine)
    event.listen(engine, "handle_error", throw_away)
