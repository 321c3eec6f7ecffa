"""Statements in the dialect of the database: inserts of rows that may exist already, and many rows
in one statement.

``bulk_insert`` and ``bulk_update`` use the driver's own parameters: for the rows of every check,
SQLAlchemy's work on each value would cost more than the database. Their values are as the columns
store them: times in ms. On PostgreSQL the rows are sent as one array for each column.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache, partial
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Delete,
    Integer,
    Select,
    String,
    Update,
    any_,
    case,
    cast,
    delete,
    func,
    literal,
    literal_column,
    or_,
    select,
    tuple_,
    update,
    values,
)
from sqlalchemy import column as sql_column
from sqlalchemy.dialects import postgresql, sqlite

from app.db import AnySession, db, writing
from app.rules.clocks import believable

_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]

K = TypeVar("K")
T = TypeVar("T")
Rows = Sequence[Sequence[Any]]


def inserting(table: type[Any]) -> Any:
    """An insert that has ``on_conflict_do_update`` and ``on_conflict_do_nothing``."""
    dialect: Any = postgresql if db.engine.dialect.name == "postgresql" else sqlite
    return dialect.insert(table.__table__)


def constant(value: StrEnum | int) -> ColumnElement[Any]:
    """A constant that is written into the SQL. To bind it as a parameter would take as long as
    reading a row; and if the value of a parameter decides which partial index can be used, SQLite
    plans the statement again each time.
    """
    if isinstance(value, StrEnum):
        return literal_column(f"'{value}'", String)
    return literal_column(str(value), Integer)


def select_fresh(table: type[T]) -> Select[T]:
    """A select of rows as they are stored now, whatever the session has loaded."""
    return select(table).execution_options(populate_existing=True)


def locked(table: type[T]) -> Select[T]:
    """``select_fresh``, locked: nobody else changes the rows until the transaction ends."""
    return select_fresh(table).with_for_update()


def updating(table: Any) -> Update:
    """An update that does not change the objects that the session has loaded."""
    return update(table).execution_options(synchronize_session=False)


def deleting(table: Any) -> Delete:
    """A deletion that does not change the objects that the session has loaded."""
    return delete(table).execution_options(synchronize_session=False)


def is_among(column: Any, ids: Collection[int]) -> ColumnElement[bool]:
    """``column.in_(ids)`` for any number of ids, which are one parameter. A statement may have
    65,535 parameters on PostgreSQL, and 32,766 on SQLite.
    """
    if db.engine.dialect.name == "postgresql":
        is_equal: ColumnElement[bool] = column == any_(
            literal(list(ids), postgresql.ARRAY(BigInteger))
        )
        return is_equal
    listed = func.json_each(json.dumps(list(ids))).table_valued("value")
    is_in: ColumnElement[bool] = column.in_(select(listed.c.value))
    return is_in


def are_among(
    columns: Sequence[ColumnElement[int]], keys: Iterable[Sequence[int]]
) -> ColumnElement[bool]:
    """The condition that these columns of whole numbers are one of ``keys``, read by an index.

    With ``tuple_(...).in_(keys)``, the numbers would have no type for SQLite, which would use no
    index and read the whole table.
    """
    names = [column.name for column in columns]
    listed = values(*(sql_column(name, BigInteger) for name in names), name="keys")
    table = listed.data([tuple(key) for key in keys]).cte("keys")
    return tuple_(*columns).in_(select(*(cast(table.c[name], BigInteger) for name in names)))


def insert_new(table: type[Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows except those that exist already. In the caller's transaction."""
    db.session.execute(inserting(table).on_conflict_do_nothing(), rows)


def delete_all_but_newest(
    session: AnySession, key: Any, whose: ColumnElement[bool], used_at: Any, limit: int
) -> None:
    """Delete all rows for which ``whose`` is true, except the ``limit`` last used ones."""
    newest = select(key).where(whose).order_by(used_at.desc(), key.desc()).limit(limit)
    newest_keys = session.scalars(newest).all()
    session.execute(delete(key.class_).where(whose, key.not_in(newest_keys)))


def pieces(ids: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Divide the ids into pieces of this size, for a statement or a transaction each."""
    return (ids[start : start + size] for start in range(0, len(ids), size))


def grouped(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """The second parts of these pairs by the first ones, in the order of the pairs."""
    groups: dict[K, list[T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def delete_rows(table: type[Any], *conditions: ColumnElement[bool]) -> None:
    """Delete the rows for which all conditions are true."""
    with writing() as session:
        session.execute(delete(table).where(*conditions))


def rows_changed(session: AnySession, statement: Any, parameters: Any = None) -> int:
    """Execute an UPDATE or a DELETE; returns the number of rows that it changed."""
    return int(session.execute(statement, parameters).rowcount)  # type: ignore[attr-defined]


def count_of(session: AnySession, table: Any, *conditions: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(table).where(*conditions)
    return session.scalar(query) or 0


def newest_time(column: Any, at: datetime | None, now: datetime) -> ColumnElement[Any]:
    """The new value of a column to which several processes write times in any order, and which has
    the newest: ``at``, or the stored time if that is newer or ``at`` is None. A stored time from
    the future was written before the clock was set back, and is replaced.
    """
    return newest_time_sql(column, literal(at, column.type), believable(now))


def newest_time_sql(column: Any, written: Any, latest: Any) -> ColumnElement[Any]:
    """``newest_time`` for SQL expressions. ``written``: the new time; ``latest``: the latest
    believable one.
    """
    return case((or_(column < written, column.is_(None), column > latest), written), else_=column)


def bulk_insert(session: AnySession, table: type[Any], columns: Sequence[str], rows: Rows) -> None:
    """Insert rows except those that exist already."""
    _execute(session, _insert, table, tuple(columns), (), rows)


def bulk_update(
    session: AnySession,
    table: type[Any],
    key: Sequence[str],
    columns: Sequence[str],
    rows: Rows,
    *,
    rising: str | None = None,
) -> None:
    """Set ``columns`` of the rows with these keys. A row of ``rows`` is a key, then the values.

    ``rising``: a column whose value must not become lower. On PostgreSQL this may wait for another
    transaction, which sets a higher value than the caller has read.
    """
    write = partial(_update, rising=rising)
    _execute(session, write, table, tuple(key), tuple(columns), rows)


def _execute(
    session: AnySession,
    write: Any,
    table: type[Any],
    first: tuple[str, ...],
    second: tuple[str, ...],
    rows: Rows,
) -> None:
    if not rows:
        return
    connection = session.connection()
    is_postgres = connection.dialect.name == "postgresql"
    statement = write(table, first, second, is_postgres)
    if is_postgres:
        arrays = tuple(list(column) for column in zip(*rows, strict=True))
        connection.exec_driver_sql(statement, arrays)
    else:  # SQLite: its statement names the key last
        keys = len(first) if second else 0
        values = [(*row[keys:], *row[:keys]) for row in rows]
        connection.exec_driver_sql(statement, values)


@cache
def _insert(table: type[Any], names: tuple[str, ...], _: tuple[str, ...], arrays: bool) -> str:
    into = f"INSERT INTO {table.__tablename__} ({_listed(names)})"
    if arrays:
        return f"{into} SELECT * FROM {_arrays(table, names)} ON CONFLICT DO NOTHING"  # noqa: S608
    return f"{into} VALUES ({', '.join('?' * len(names))}) ON CONFLICT DO NOTHING"


@cache
def _update(
    table: type[Any],
    key: tuple[str, ...],
    names: tuple[str, ...],
    arrays: bool,
    *,
    rising: str | None = None,
) -> str:
    name = table.__tablename__
    if arrays:
        sets = ", ".join(f'"{column}" = new."{column}"' for column in names)
        where = " AND ".join(f'{name}."{column}" = new."{column}"' for column in key)
        if rising:
            old = f'{name}."{rising}"'
            where += f' AND ({old} IS NULL OR {old} < new."{rising}")'
        rows = _arrays(table, key + names)
        new = f"{rows} AS new ({_listed(key + names)})"
        return f"UPDATE {name} SET {sets} FROM {new} WHERE {where}"  # noqa: S608 - names of ours
    sets = ", ".join(f'"{column}" = ?' for column in names)
    where = " AND ".join(f'"{column}" = ?' for column in key)
    return f"UPDATE {name} SET {sets} WHERE {where}"  # noqa: S608


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _arrays(table: type[Any], names: tuple[str, ...]) -> str:
    types = (table.__table__.c[name].type.compile(_POSTGRESQL) for name in names)
    return f"unnest({', '.join(f'%s::{name}[]' for name in types)})"
