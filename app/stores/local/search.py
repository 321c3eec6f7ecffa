"""Searching, ordering and paging in SQL, the same way for every list (decisions.md 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import InstrumentedAttribute

from app.db import db
from app.records import MAX_ID, Sort

Order = ColumnElement[Any] | InstrumentedAttribute[Any]


def fits(id: int) -> bool:
    """Whether a database can hold this id; asked for a larger one, it fails instead of finding
    nothing.
    """
    return -MAX_ID <= id <= MAX_ID


def contains(column: Order, text: str) -> ColumnElement[bool]:
    """Whether a folded column holds ``text``, ignoring case; ``%``, ``_`` and ``\\`` are
    ordinary.
    """
    return column.contains(text.casefold(), autoescape=True)


def ordered(sort: str, *columns: Order) -> list[ColumnElement[Any]]:
    """All columns in one direction: the last, an id, settles ties the same way round."""
    return [column.asc() if sort == Sort.ASC else column.desc() for column in columns]


def ids_of_page(
    matching: Select[Any], order: Sequence[Any], number: int, per_page: int
) -> tuple[list[int], int]:
    """The ids on one page, in order, and how many match in all.

    Only ids are ordered and counted; what else a row has is then read for one page.
    """
    offset = (number - 1) * per_page
    ids: list[int] = []
    if fits(offset):  # no database counts further, and there is nothing so far out
        ids = list(db.session.scalars(matching.order_by(*order).limit(per_page).offset(offset)))
    if number == 1 and len(ids) < per_page:
        return ids, len(ids)
    counted = select(func.count()).select_from(matching.order_by(None).subquery())
    return ids, db.session.execute(counted).scalar_one()
