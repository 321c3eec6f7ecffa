"""Caches of values from the database: until their version changes, until their stored values
change, until the transaction ends, or for some seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

from cachetools import LRUCache, TTLCache
from flask import current_app
from sqlalchemy import Column, ColumnElement, Dialect, type_coerce
from sqlalchemy.types import NullType

from app.db import db, is_writing

T = TypeVar("T")
Values = tuple[Any, ...]
_ONCE = "once"


def cached_for(seconds: float, name: str, read: Callable[[], T]) -> T:
    """The value that ``read`` returns, cached for ``seconds`` in this application under ``name``.
    While one thread reads, others wait for its value.
    """
    fresh: tuple[TTLCache[str, T], threading.Lock] = TTLCache(1, seconds), threading.Lock()
    cache, guard = current_app.extensions.setdefault(name, fresh)
    with guard:
        value: T | None = cache.get(name)
        if value is None:
            value = cache[name] = read()
        return value


class Cached(Generic[T]):
    """A cache of at most ``max_monitors`` values of monitors, which several threads may use; the
    least recently used are dropped first.

    A value is cached until its version changes. The version of a monitor's sums is
    ``sums_version``, which each write of sums raises. Callers read the version before the sums:
    sums that are newer than their version are only read again, but older ones would stay in the
    cache.
    """

    def __init__(self, max_monitors: int) -> None:
        self._cache: LRUCache[tuple[int, Hashable], tuple[Hashable, T]] = LRUCache(max_monitors)
        self._guard = threading.Lock()

    def read(
        self,
        versions: Mapping[int, Hashable],
        what: Hashable,
        fetch: Callable[[Sequence[int]], Mapping[int, T]],
    ) -> dict[int, T]:
        """The value of each monitor in ``versions``. ``what``: which of a monitor's values, such as
        a range of time. ``fetch`` reads the values that are not cached.
        """
        with self._guard:
            entries = {id: self._cache.get((id, what)) for id in versions}
        values = {
            id: entry[1]
            for id, entry in entries.items()
            if entry is not None and entry[0] == versions[id]
        }
        missing = [id for id in versions if id not in values]
        if not missing:
            return values
        fresh = fetch(missing)
        with self._guard:
            for id, value in fresh.items():
                self._cache[id, what] = versions[id], value
        return {**values, **fresh}


def stored(columns: Sequence[Column[Any]]) -> tuple[ColumnElement[Any], ...]:
    """The columns without the conversion by their types, with other names.

    A list reads the same thirty columns of a hundred monitors again and again. A converted value
    depends only on the stored one, so it may be cached under that.
    """
    return tuple(
        type_coerce(column, NullType()).label(f"stored_{column.name}") for column in columns
    )


@lru_cache(maxsize=8)
def reading(columns: tuple[Column[Any], ...], dialect: Dialect) -> Callable[[Values], Values]:
    """A function that converts stored values to those that a statement of the columns returns."""
    types = [column.type.dialect_impl(dialect) for column in columns]
    readers = [type_.result_processor(dialect, None) for type_ in types]

    def read(values: Values) -> Values:
        return tuple(
            value if read_one is None else read_one(value)
            for read_one, value in zip(readers, values, strict=True)
        )

    return read


def of_transaction() -> dict[str, Any]:
    """The cache of the present transaction, by name: several parts of the store serve one page, and
    each needs the maintenance windows and the row of the monitor. The next transaction gets an
    empty cache, so that it sees the writes of others. Inside ``writing()`` each call returns a new
    one, because the transaction may change what it has read.
    """
    if is_writing():
        return {}
    session = db.session()
    transaction = session.get_transaction() or session.begin()
    owner, cache = session.info.get(_ONCE, (None, {}))
    if owner is not transaction:
        cache = {}
        session.info[_ONCE] = transaction, cache
    return cache  # type: ignore[no-any-return]
