"""Search, order and page in SQL, the same way for every list (decisions.md 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import InstrumentedAttribute

from app.db import db
from app.records import MAX_ID, Sort

Order = ColumnElement[Any] | InstrumentedAttribute[Any]


def fits(id: int) -> bool:
    """Whether a database can store this id. A query with a larger one fails instead of finding
    nothing.
    """
    return -MAX_ID <= id <= MAX_ID


def contains(column: Order, text: str) -> ColumnElement[bool]:
    """Whether a folded column holds ``text``, ignoring case; ``%``, ``_`` and ``\\`` are
    ordinary.
    """
    return column.contains(text.casefold(), autoescape=True)


def ordered(sort: str, *columns: Order) -> list[ColumnElement[Any]]:
    """Order by all columns in one direction. The last one, an id, breaks ties."""
    return [column.asc() if sort == Sort.ASC else column.desc() for column in columns]


def ids_of_page(
    matching: Select[Any],
    order: Sequence[Any],
    number: int,
    per_page: int,
    total: int | None = None,
) -> tuple[list[int], int]:
    """The ids on one page, in order, and how many match in all; ``total``, if that is known.

    Only ids are ordered and counted; the caller then reads the rows of one page.
    """
    offset = (number - 1) * per_page
    ids: list[int] = []
    if fits(offset):  # a larger offset would fail, and there is no row so far out
        ids = list(db.session.scalars(matching.order_by(*order).limit(per_page).offset(offset)))
    if number == 1 and len(ids) < per_page:
        return ids, len(ids)
    if total is not None:
        return ids, total
    counted = select(func.count()).select_from(matching.order_by(None).subquery())
    return ids, db.session.execute(counted).scalar_one()
