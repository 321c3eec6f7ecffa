"""Columns that several tables share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, Text, text
from sqlalchemy.orm import Mapped, MappedColumn, mapped_column

from app.db import db
from app.db.contents import is_clock
from app.db.types import Word

# On SQLite only INTEGER becomes a rowid alias, which autoincrement needs; on PostgreSQL, INTEGER
# would have 32 bits.
Id = BigInteger().with_variant(db.Integer(), "sqlite")
# A damaged time of day counts as none: an alert in quiet hours is better than no alert.
Clock = Word(5, is_clock, "")
NEVER_REUSED = {"sqlite_autoincrement": True}
# The mark of a column that the audit log does not show: it follows from others, or Wakeful sets it.
UNSEEN: dict[str, Any] = {"audit": "unseen"}
# Byte order in PostgreSQL too: its locale would sort names otherwise than SQLite does.
Folded = Text().with_variant(Text(collation="C"), "postgresql")


class Numbered:
    """A row with an id that is never given out twice (decision 1)."""

    __table_args__: Any = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True, sort_order=-1)


def secret(name: str) -> dict[str, Any]:
    """The mark of a column that the audit log never shows, but names if it has changed."""
    return {"audit": "secret", "audit_name": name}


def partial_index(
    name: str, *columns: str, where: str, postgresql: str = "", unique: bool = False
) -> Index:
    """A small index of some of the rows. ``where``: the condition; ``postgresql``: the condition
    for PostgreSQL, if it differs. The index is used only by statements with the same text.
    """
    there = text(postgresql or where)
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=there)


def belongs_to(table: str, *, fk: str | None = None, **more: Any) -> MappedColumn[Any]:
    """The id of a row of another table; this row is deleted with it. ``fk``: the name of the
    constraint, if it is not that of the naming convention.
    """
    return mapped_column(Id, ForeignKey(f"{table}.id", name=fk, ondelete="CASCADE"), **more)
