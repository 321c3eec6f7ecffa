"""The stored values that cannot be read, each by its table, row and field.

Whoever reads such a value gets ``app.db.types.Unreadable`` and goes on without it. Here they are
looked for: at the start, by ``wakeful doctor`` and for ``/readyz``. Needs an application context.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Table, or_, select

from app.db import db
from app.db.types import Encrypted, Unreadable, Why
from app.records import SECRET_FIELDS

AT_ONCE = 500  # rows in the memory at a time
SAMPLED = 20  # rows of a table from which the key is judged


# How pages call the rows and the columns. Those of monitors: ``SECRET_FIELDS``.
_NAMES: Mapping[str, Mapping[str, str]] = {
    "monitors": {name: f"{words} of monitor" for name, words in SECRET_FIELDS.items()},
    "monitor_evidence": {
        "last_good": "last good check kept of monitor",
        "failing": "failing checks kept of monitor",
    },
    "incidents": {"evidence": "evidence of incident"},
    "deliveries": {"value": "target of delivery", "facts": "message of delivery"},
    "settings": {"value": "setting"},
}


@dataclass(frozen=True, slots=True)
class Broken:
    """A value that cannot be read."""

    table: str
    id: Any  # of the row
    field: str
    why: Why

    def __str__(self) -> str:
        return f"The {_NAMES[self.table][self.field]} {self.id} cannot be read, because {self.why}"


def scan(only: Iterable[str] = ()) -> Iterator[Broken]:
    """Read every row of every encrypted column, or those of the tables in ``only``."""
    for table, columns in _encrypted():
        if not only or table.name in only:
            yield from _broken(table, columns)


def key_is_wrong() -> bool:
    """Whether SECRET_KEY is not the one of this database: of some rows of each table, none was
    written with it and at least one with another. A single broken row says nothing about the key.
    """
    found = [value for table, columns in _encrypted() for value in _sample(table, columns)]
    whys = [value.why if isinstance(value, Unreadable) else None for value in found]
    return Why.OTHER_KEY in whys and not {None, Why.ODD} & set(whys)


def _encrypted() -> Iterator[tuple[Table, list[Column[Any]]]]:
    for table in db.metadata.sorted_tables:
        columns = [column for column in table.c if isinstance(column.type, Encrypted)]
        if columns:
            yield table, columns


def _broken(table: Table, columns: list[Column[Any]]) -> Iterator[Broken]:
    (key,) = table.primary_key.columns
    rows = db.session.execute(
        select(key, *columns)
        .where(or_(*(column.is_not(None) for column in columns)))
        .order_by(key)
        .execution_options(yield_per=AT_ONCE)
    )
    for id, *values in rows:
        for column, value in zip(columns, values, strict=True):
            if isinstance(value, Unreadable):
                yield Broken(table.name, id, column.name, value.why)


def _sample(table: Table, columns: list[Column[Any]]) -> Iterator[Any]:
    (key,) = table.primary_key.columns
    for column in columns:
        rows = select(column).where(column.is_not(None)).order_by(key.desc()).limit(SAMPLED)
        yield from db.session.scalars(rows)
