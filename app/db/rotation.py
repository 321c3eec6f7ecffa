"""Encrypt every stored secret with the first of the secret keys, so that the other keys can be
removed: in batches, while Wakeful runs with all keys. Needs an application context.

A value is replaced only if it was not changed since it was read: a process that changes it uses the
first key already. A run stores no progress: after a kill, the next run finds the values that are
not replaced yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cryptography.fernet import InvalidToken
from sqlalchemy import Column, Table, Text, bindparam, select, type_coerce, update

from app.db import db, unreadable, writing
from app.db.statements import rows_changed
from app.db.types import Why, cipher_of_database

BATCH = 200  # rows in one transaction: on SQLite, checks wait for its lock
PASSES = 5  # a process with another first key may write values during a pass

Value = tuple[Any, Any]  # the row's primary key and the encrypted text


@dataclass(slots=True)
class TableCount:
    """The numbers of values in one table. ``current``: the first key decrypts them; ``old``: only
    another key does; ``undecryptable``: no key does.
    """

    table: str
    current: int = 0
    old: int = 0
    undecryptable: int = 0
    reencrypted: int = 0


def rotate() -> list[TableCount]:
    """Encrypt everything with the first key. Returns the counts of each table after that: ``old``
    is above 0 if a process goes on writing with an old key.
    """
    reencrypted: Counter[str] = Counter()
    for _pass in range(PASSES):
        tables = list(count(reencrypt=True))
        reencrypted.update({table.table: table.reencrypted for table in tables})
        if not any(table.old for table in tables):
            break
    tables = list(count())
    for table in tables:
        table.reencrypted = reencrypted[table.table]
    return tables


def count(*, reencrypt: bool = False) -> Iterator[TableCount]:
    """Count the encrypted values of each table; ``reencrypt``: encrypt the old ones again."""
    for table, columns in unreadable.encrypted():
        table_count = TableCount(table.name)
        for column in columns:
            for batch in _batches(table, column):
                old_ones = _count_batch(batch, table_count)
                if reencrypt and old_ones:
                    table_count.reencrypted += _replace(table, column, old_ones)
        yield table_count


def old_values() -> Iterator[unreadable.UnreadableValue]:
    """The values that only an old key decrypts. They are lost if it is removed."""
    for table, columns in unreadable.encrypted():
        for column in columns:
            for batch in _batches(table, column):
                for id, _text in _count_batch(batch, TableCount(table.name)):
                    yield unreadable.UnreadableValue(table.name, id, column.name, Why.OTHER_KEY)


def undecryptable_values() -> Iterator[unreadable.UnreadableValue]:
    """The encrypted values that no key decrypts."""
    encrypted = {
        table.name: {column.name for column in columns} for table, columns in unreadable.encrypted()
    }
    for broken in unreadable.scan(encrypted):
        if broken.field in encrypted[broken.table]:
            yield broken


def _batches(table: Table, column: Column[Any]) -> Iterator[list[Value]]:
    """The encrypted texts of a column, in the order of the rows."""
    (key,) = table.primary_key.columns
    query = select(key, type_coerce(column, Text)).where(column.is_not(None)).order_by(key)
    last_id = None
    while True:
        following = query if last_id is None else query.where(key > last_id)
        batch = [(id, text) for id, text in db.session.execute(following.limit(BATCH))]
        db.session.rollback()  # no snapshot stays open until the last batch
        if not batch:
            return
        yield batch
        last_id = batch[-1][0]


def _count_batch(batch: list[Value], table_count: TableCount) -> list[Value]:
    """Add the values to ``table_count``; returns those that only an old key decrypts."""
    old_values = []
    for id, text in batch:
        if not isinstance(text, str):
            table_count.undecryptable += 1
        elif cipher_of_database().is_current(text.encode()):
            table_count.current += 1
        elif _reencrypted(text) is None:
            table_count.undecryptable += 1
        else:
            table_count.old += 1
            old_values.append((id, text))
    return old_values


def _reencrypted(text: str) -> str | None:
    """The same value, encrypted with the first key; None if no key decrypts it."""
    try:
        return cipher_of_database().rotate(text.encode()).decode()
    except InvalidToken:
        return None


def _replace(table: Table, column: Column[Any], values: list[Value]) -> int:
    """Encrypt these values again, if they are unchanged; returns how many were."""
    (key,) = table.primary_key.columns
    is_unchanged = type_coerce(column, Text) == bindparam("old", type_=Text)
    statement = (
        update(table)
        .where(key == bindparam("of"), is_unchanged)
        .values({column.name: bindparam("new", type_=Text)})
    )
    with writing() as session:
        parameters = ({"of": id, "old": text, "new": _reencrypted(text)} for id, text in values)
        return sum(rows_changed(session, statement, values) for values in parameters)
