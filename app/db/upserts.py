"""Inserts that say what happens where the row is there already, in the dialect of the database."""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects import postgresql, sqlite

from app.db import db


def inserting(table: type[Any]) -> Any:
    """An insert that has ``on_conflict_do_update`` and ``on_conflict_do_nothing``."""
    dialect: Any = postgresql if db.engine.dialect.name == "postgresql" else sqlite
    return dialect.insert(table.__table__)
