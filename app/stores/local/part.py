"""The base class of the local store's collections: rows as records, and search, order and page in
SQL, the same way for every list (decision 1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, true
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import InstrumentedAttribute

from app.db import DbSession, Model, db, rollups, writing
from app.db.statements import select_fresh
from app.db.tables import MonitorRow
from app.db.types import record_of
from app.errors import Invalid, NotFound, existing
from app.i18n import _
from app.records import MAX_ID, Page, Resource, Sort
from app.rules.text import TAKEN
from app.stores import base
from app.stores.base import Fields, Query, Record

R = TypeVar("R", bound=Model)
Order = ColumnElement[Any] | InstrumentedAttribute[Any]


def fits(id: int) -> bool:
    """Whether a database can store this id. A query with a larger one fails instead of finding
    nothing.
    """
    return -MAX_ID <= id <= MAX_ID


def fitting(id: int) -> int:
    """The id, or -1, which no row has, if a database cannot store it."""
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
    """Whether ``word`` is in these tags, ignoring case. A word of ASCII does not need Python's
    folding of all letters, which SQLite calls for each row. PostgreSQL cannot call it, and with
    some locales its ``lower`` folds only ASCII. Therefore the other letters of ``word`` are folded
    in addition.
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
        """The rows of the page, in order, and the number of all matching rows. ``total``: this
        number, if the caller knows it. ``values``: the values of the parameters.
        """
        rows: Sequence[Any] = []
        if fits(self.offset):  # a larger offset would raise, and no list has so many rows
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
        """The ids on the page, and the number of all matching rows, as ``rows`` does."""
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
    """The statements for page ``number`` of the ids that ``matching`` selects. Only ids are ordered
    and counted; the caller reads the rows of the page. ``reading``: a statement without conditions
    that reads these rows in place of their ids. Without filters, counting is cheap, and is part of
    the statement of the page.
    """
    offset = (number - 1) * per_page
    count = matching.with_only_columns(func.count(), maintain_column_froms=True)
    page = matching.order_by(*order).limit(per_page).offset(offset)
    if reading is not None:
        page = reading.where(matching.selected_columns[0].in_(page)).order_by(*order)
    has_total = reading is None and matching.whereclause is None
    if has_total:
        page = page.add_columns(count.correlate(None).scalar_subquery())
    return PageStatements(page, count, offset, per_page, has_total)


def ids_of_page(
    matching: Select[Any], order: Sequence[Any], number: int, per_page: int
) -> tuple[list[int], int]:
    """The ids on one page, in order, and the number of all matching rows."""
    return page_statements(matching, order, number, per_page).read()


# --- Records --------------------------------------------------------------------------------------


class LocalPart:
    """``store``: the store that the collection belongs to, whose clock it uses."""

    def __init__(self, store: base.Store) -> None:
        self.store = store

    def now(self) -> datetime:
        return self.store.now()


class Rows(LocalPart, base.Readable[Record, Query]):
    """Records that are rows of a table, read by their ids. ``order``: the order of the list.
    ``only``: conditions that a row must meet to be a record.
    """

    order: ClassVar[Sequence[Any]]
    only: ClassVar[Sequence[Any]] = ()

    def __init__(self, store: base.Store, resource: Resource, row: type[Any]) -> None:
        super().__init__(store)
        self.resource, self.row = resource, row

    def matching(self, query: Query) -> Select[Any]:
        """A selection of the ids of the records that match a query."""
        return select(self.row.id).where(*self.only)

    def rows(self, ids: Sequence[int]) -> Sequence[Any]:
        """The rows with these ids, in the order of the list, as they are now."""
        statement = select_fresh(self.row).where(self.row.id.in_(ids), *self.only)
        return db.session.scalars(statement.order_by(*self.order)).all()

    def records(self, ids: Sequence[int]) -> Sequence[Record]:
        """The records with these ids, in the order of the list."""
        return [self.record(row) for row in self.rows(ids)]

    def record(self, row: Any) -> Record:
        record_type: Any = self.resource.record
        record: Record = record_of(record_type, row)
        return record

    def list(self, query: Query) -> Page[Record]:
        number, per_page = query.page, query.per_page  # type: ignore[attr-defined]
        ids, total = ids_of_page(self.matching(query), self.order, number, per_page)
        return Page(self.records(ids) if ids else [], number, per_page, total)

    def get(self, id: int) -> Record:
        records = self.records([id]) if fits(id) else []
        if not records:
            raise NotFound(self.resource.singular, id)
        return records[0]


class LocalCollection(Rows[Record, Query], base.Collection[Record, Query]):
    """Records that are one row each."""

    def columns(self, session: DbSession, id: int | None, fields: Fields) -> dict[str, Any]:
        """The fields as columns of a new row, or of the row with this ``id``. Raises Invalid for
        faults that only the stored data shows.
        """
        return dict(fields)

    def check(self, session: DbSession, row: Any) -> None:
        """Raise Invalid if this row may not be stored."""

    def finish(self, session: DbSession, row: Any, fields: Fields) -> None:
        """Store the parts of the record in other tables, after its row. Raises Invalid."""

    def create(self, fields: Fields) -> Record:
        now = self.now()
        with writing() as session:
            row = self.row(**self.columns(session, None, fields), created_at=now, updated_at=now)
            self.check(session, row)
            session.add(row)
            session.flush()
            self.finish(session, row, fields)
            id = row.id
        return self.get(id)

    def update(self, id: int, fields: Fields) -> Record:
        with writing() as session:
            columns = self.columns(session, id, fields)
            row = lock_row(session, self.row, self.resource.singular, id)
            for name, value in columns.items():
                setattr(row, name, value)
            self.check(session, row)
            row.updated_at = self.now()
            session.flush()
            self.finish(session, row, fields)
        return self.get(id)

    def delete(self, id: int) -> None:
        with writing() as session:
            session.delete(get_row(session, self.row, self.resource.singular, id))


def names_in(record: type[Any], row: type[Any], without: Iterable[str] = ()) -> Sequence[str]:
    """The fields of ``record`` that are columns of ``row`` too."""
    columns = set(row.__table__.columns.keys()) - set(without)
    return [field.name for field in fields(record) if field.name in columns]


def copier(
    record: type, row: type[Any], without: Iterable[str] = ()
) -> Callable[[Any], dict[str, Any]]:
    """A function that copies the columns of a row whose names are also fields of ``record``."""
    names = names_in(record, row, without)
    values = attrgetter(*names)
    return lambda row: dict(zip(names, values(row), strict=True))


def get_row(session: DbSession, row_type: type[R], noun: str, id: int, *, reload: bool = True) -> R:
    """The row with this id. Raises NotFound. ``reload``: read it again, even if the session has
    loaded it before. ``noun``: the word for the record in NotFound.
    """
    row = session.get(row_type, id, populate_existing=reload) if fits(id) else None
    return existing(row, noun, id)


def lock_row(
    session: DbSession, row_type: type[R], noun: str, id: int, *, key_share: bool = False
) -> R:
    """Lock the row with this id, and return it as it is now. Until the transaction ends, nobody
    else changes it. Nobody else refers to it either, unless ``key_share``. Raises NotFound.
    """
    row = None
    if fits(id):
        columns: Any = row_type
        query = select_fresh(row_type).where(columns.id == id)
        row = session.scalar(query.with_for_update(key_share=key_share))
    return existing(row, noun, id)


@contextmanager
def refusing_taken_name() -> Iterator[None]:
    """Raise Invalid if another record has the name that is written inside."""
    try:
        yield
    except IntegrityError:
        db.session.rollback()
        raise Invalid({"name": [_(TAKEN)]}) from None


def counted_by(column: Any, ids: Collection[int], *conditions: Any) -> Mapping[int, int]:
    """The number of rows with each of these ids in ``column``."""
    statement = select(column, func.count()).where(column.in_(ids), *conditions).group_by(column)
    return defaultdict(int, {row[0]: row[1] for row in db.session.execute(statement)})


def require_monitor(id: int) -> Any:
    """Raise NotFound if there is no such monitor. Returns the row that statistics need."""
    return existing(rollups.monitor_of(id) if fits(id) else None, "monitor", id)


def get_monitor(session: DbSession, id: int) -> MonitorRow:
    """The monitor with this id. Raises NotFound."""
    return get_row(session, MonitorRow, "monitor", id, reload=False)


def locked_monitors(session: DbSession, ids: Iterable[int]) -> set[int]:
    """The monitors among these ids that exist. They are locked: none of them is deleted before the
    transaction ends.
    """
    existing = select(MonitorRow.id).where(MonitorRow.id.in_([id for id in ids if fits(id)]))
    existing = existing.order_by(MonitorRow.id)  # every transaction locks in this order
    return set(session.scalars(existing.with_for_update(read=True, key_share=True)))


def lock_monitor(session: DbSession, id: int) -> MonitorRow:
    """Lock a monitor, and return it as it is now: nobody else changes it until the transaction
    ends. Raises NotFound.

    A change or deletion of a monitor locks its row before its state: in another order, two changes
    would wait for each other. Others may refer to the monitor meanwhile, because the engine does so
    while it has the state locked.
    """
    return lock_row(session, MonitorRow, "monitor", id, key_share=True)
