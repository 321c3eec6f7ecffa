"""Search, order and page in SQL, the same way for every list (decision 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, true
from sqlalchemy.orm import InstrumentedAttribute

from app.db import db
from app.records import MAX_ID, Sort

Order = ColumnElement[Any] | InstrumentedAttribute[Any]


def fits(id: int) -> bool:
    """Whether a database can store this id. A query with a larger one fails instead of finding
    nothing.
    """
    return -MAX_ID <= id <= MAX_ID


def fitting(id: int) -> int:
    """The id; one that no row has if a database cannot store it."""
    return id if fits(id) else -1


def contains(column: Order, text: str) -> ColumnElement[bool]:
    """Whether a folded column contains ``text``, ignoring case; ``%``, ``_`` and ``\\`` are
    ordinary.
    """
    return column.contains(text.casefold(), autoescape=True)


def has_words(search: str, *columns: Order, tags: Order | None = None) -> ColumnElement[bool]:
    """Whether each word of ``search`` is in one of these folded columns, or in ``tags``, which no
    column has folded.
    """
    by_word = []
    for word in search.split():
        matches = [contains(column, word) for column in columns]
        by_word.append(or_(*matches, *([] if tags is None else [in_tags(word, tags)])))
    return and_(true(), *by_word)


def in_tags(word: str, tags: Order) -> ColumnElement[bool]:
    """Whether ``word`` is in these tags, ignoring case. A word of ASCII does not need the function
    that folds all letters, which SQLite calls for each row. PostgreSQL has no such function, and
    with some locales its own folds ASCII alone: the letters of ``word`` are folded besides.
    """
    if word.isascii():
        return contains(func.lower(tags), word)
    if db.engine.dialect.name == "sqlite":
        return contains(func.casefold(tags), word)
    small = word.lower()
    letters = "".join(letter for letter in small if len(letter.upper()) == 1)  # "ß" has two
    folded = func.translate(func.lower(tags), letters.upper(), letters)
    return folded.contains(small, autoescape=True)


def ordered(sort: str, *columns: Order) -> list[ColumnElement[Any]]:
    """Order by all columns in one direction. The last one, an id, breaks ties."""
    return [column.asc() if sort == Sort.ASC else column.desc() for column in columns]


@dataclass(frozen=True, slots=True)
class PageStatements:
    """The statements that find the ids on one page of a list. Building them takes longer than
    running them, so lists that are read often cache them.
    """

    page: Select[Any]
    counted: Select[Any]
    offset: int
    per_page: int
    has_total: bool = False  # as the second column of ``page``

    def rows(
        self, total: int | None = None, values: Mapping[str, Any] | None = None
    ) -> tuple[Sequence[Any], int]:
        """The rows of the page, in order, and how many match in all; ``total``, if it is given.
        ``values``: those of the parameters.
        """
        rows: Sequence[Any] = []
        if fits(self.offset):  # a larger offset would fail, and there is no row so far out
            rows = db.session.execute(self.page, values).all()
            if rows and self.has_total:
                return rows, rows[0][1]
        if self.offset == 0 and len(rows) < self.per_page:
            return rows, len(rows)
        if total is not None:
            return rows, total
        return rows, db.session.execute(self.counted, values).scalar_one()

    def read(
        self, total: int | None = None, values: Mapping[str, Any] | None = None
    ) -> tuple[list[int], int]:
        """The ids on the page, as in ``rows``."""
        rows, total = self.rows(total, values)
        return [row[0] for row in rows], total


def page_statements(
    matching: Select[Any],
    order: Sequence[Any],
    number: int,
    per_page: int,
    *,
    reading: Select[Any] | None = None,
) -> PageStatements:
    """For page ``number`` of the ids that ``matching`` selects. Only ids are ordered and counted.
    The caller then reads the rows of one page; or ``reading``, a statement without conditions,
    reads them in place of the ids. Without filters, counting ids is cheap: then it is part of the
    same statement.
    """
    offset = (number - 1) * per_page
    counted = matching.with_only_columns(func.count(), maintain_column_froms=True)
    page = matching.order_by(*order).limit(per_page).offset(offset)
    if reading is not None:
        page = reading.where(matching.selected_columns[0].in_(page)).order_by(*order)
    has_total = reading is None and matching.whereclause is None
    if has_total:
        page = page.add_columns(counted.correlate(None).scalar_subquery())
    return PageStatements(page, counted, offset, per_page, has_total)


def ids_of_page(
    matching: Select[Any], order: Sequence[Any], number: int, per_page: int
) -> tuple[list[int], int]:
    """The ids on one page, in order, and how many match in all."""
    return page_statements(matching, order, number, per_page).read()
