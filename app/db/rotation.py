"""Encrypt every stored secret with the first of the secret keys, so that the others can go: in
batches, while Wakeful runs with all keys. Needs an application context.

Each value is replaced only if it is still the one that was read: what a process writes meanwhile
has the first key already. Nothing is remembered in between: after a kill, the next run finds what
is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cryptography.fernet import InvalidToken
from sqlalchemy import Column, Table, Text, bindparam, select, type_coerce, update

from app.db import db, unreadable, writing
from app.db.statements import rows_changed
from app.db.types import Why, cipher_of_database

BATCH = 200  # rows in one transaction: on SQLite, checks wait for its lock
PASSES = 5  # while a process still writes with an old key, a pass leaves something to the next

Value = tuple[Any, Any]  # the row's primary key and the encrypted text


@dataclass(slots=True)
class Counted:
    """The values of one table. ``current``: the first key reads them. ``old``: only another key
    does. ``lost``: none does.
    """

    table: str
    current: int = 0
    old: int = 0
    lost: int = 0
    reencrypted: int = 0


def rotate() -> list[Counted]:
    """Encrypt everything with the first key, and count what was found in the end, in each table.
    ``old`` is above 0 if a process goes on writing with an old key.
    """
    reencrypted: dict[str, int] = {}
    for _pass in range(PASSES):
        tables = list(count(reencrypt=True))
        for table in tables:
            before = reencrypted.get(table.table, 0)
            reencrypted[table.table] = before + table.reencrypted
        if not any(table.old for table in tables):
            break
    last = list(count())
    for table in last:
        table.reencrypted = reencrypted.get(table.table, 0)
    return last


def count(*, reencrypt: bool = False) -> Iterator[Counted]:
    """Look at every encrypted value; ``reencrypt``: encrypt again what only an old key reads."""
    for table, columns in unreadable.encrypted():
        counted = Counted(table.name)
        for column in columns:
            for batch in _batches(table, column):
                olds = _count_batch(batch, counted)
                if reencrypt and olds:
                    counted.reencrypted += _replace(table, column, olds)
        yield counted


def old_values() -> Iterator[unreadable.UnreadableValue]:
    """The values that only an old key reads, which nobody can read once it is removed."""
    for table, columns in unreadable.encrypted():
        for column in columns:
            for batch in _batches(table, column):
                for id, _text in _count_batch(batch, Counted(table.name)):
                    yield unreadable.UnreadableValue(table.name, id, column.name, Why.OTHER_KEY)


def lost_values() -> Iterator[unreadable.UnreadableValue]:
    """The encrypted values that no key reads."""
    of = {
        table.name: {column.name for column in columns} for table, columns in unreadable.encrypted()
    }
    for broken in unreadable.scan(of):
        if broken.field in of[broken.table]:
            yield broken


def _batches(table: Table, column: Column[Any]) -> Iterator[list[Value]]:
    """The encrypted texts of a column, in the order of the rows."""
    (key,) = table.primary_key.columns
    query = select(key, type_coerce(column, Text)).where(column.is_not(None)).order_by(key)
    after = None
    while True:
        following = query if after is None else query.where(key > after)
        batch = [(id, text) for id, text in db.session.execute(following.limit(BATCH))]
        db.session.rollback()  # no snapshot stays open for as long as all of it takes
        if not batch:
            return
        yield batch
        after = batch[-1][0]


def _count_batch(batch: list[Value], counted: Counted) -> list[Value]:
    """Count the values; returns those that only an old key reads."""
    olds = []
    for id, text in batch:
        if not isinstance(text, str):
            counted.lost += 1
        elif cipher_of_database().is_current(text.encode()):
            counted.current += 1
        elif _again(text) is None:
            counted.lost += 1
        else:
            counted.old += 1
            olds.append((id, text))
    return olds


def _again(text: str) -> str | None:
    """The same value, encrypted with the first key; None if no key reads it."""
    try:
        return cipher_of_database().rotate(text.encode()).decode()
    except InvalidToken:
        return None


def _replace(table: Table, column: Column[Any], olds: list[Value]) -> int:
    (key,), replaced = table.primary_key.columns, 0
    statement = (
        update(table)
        .where(key == bindparam("of"), type_coerce(column, Text) == bindparam("before", type_=Text))
        .values({column.name: bindparam("after", type_=Text)})
    )
    with writing() as session:
        for id, text in olds:
            texts = {"of": id, "before": text, "after": _again(text)}
            replaced += rows_changed(session, statement, texts)
    return replaced
