"""Columns that several tables share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, Text, text
from sqlalchemy.orm import Mapped, MappedColumn, mapped_column

from app.db import db
from app.db.contents import is_clock
from app.db.types import Word

# SQLite only makes rowid aliases, and so autoincrement, out of INTEGER; PostgreSQL needs the 64
# bits said.
Id = BigInteger().with_variant(db.Integer(), "sqlite")
# A damaged time of day counts as none: an alert in quiet hours is better than no alert.
Clock = Word(5, is_clock, "")
NEVER_REUSED = {"sqlite_autoincrement": True}
# The mark of a column that the audit log does not show: it follows from others, or is Wakeful's
# own.
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
    """An index of some rows, so a small one. ``where``: the condition; ``postgresql``: its words
    there, if they differ. A statement must have the same words, or the index is not used.
    """
    there = text(postgresql or where)
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=there)


def belongs_to(table: str, *, fk: str | None = None, **more: Any) -> MappedColumn[Any]:
    """The id of a row of another table, with which this row is deleted. ``fk``: the name of the
    constraint if it is not as ``db`` names them.
    """
    return mapped_column(Id, ForeignKey(f"{table}.id", name=fk, ondelete="CASCADE"), **more)
