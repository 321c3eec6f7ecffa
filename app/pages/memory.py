"""Answers that are kept: read again at most every two seconds, by one thread at a time.

While one thread reads, the others get the last answer, and only wait for it where that is too old
to show a change in time. Where nothing can be read, all get the last answer, which then says so.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from app.errors import NotFound, Unavailable
from app.i18n import N_, _

# From a change to a reader: TOLERATED_SECONDS, and max-age of what browsers keep.
FRESH_SECONDS = 2.0
TOLERATED_SECONDS = 4.0
WAIT_SECONDS = 5.0  # for another thread's reading, where nothing good enough is kept
NOT_YET = N_("The database does not answer, and nothing is known yet.")

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Entry(Generic[V]):
    """``value`` is what was read last. ``away``: since then, reading has failed."""

    __slots__ = ("away", "lock", "read_at", "tried_at", "value")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.value: V | None = None
        self.away = False
        self.read_at = self.tried_at = float("-inf")


class Memory(Generic[K, V]):
    """At most ``most`` values, the least used forgotten first.

    ``read(key, before)`` returns the present value and may return ``before``, where nothing has
    changed. It raises NotFound, and Unavailable; then ``found`` may know an older value.
    """

    def __init__(
        self,
        read: Callable[[K, V | None], V],
        most: int,
        found: Callable[[K], V | None] = lambda _key: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._found, self._most, self._clock = read, found, most, clock
        self._entries: OrderedDict[K, Entry[V]] = OrderedDict()
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def known(self, key: K) -> V | None:
        """What is kept, whatever its age."""
        entry = self._entries.get(key)
        return entry.value if entry else None

    def get(self, key: K) -> tuple[V, bool]:
        """The value, and whether it cannot be read now. Raises NotFound and Unavailable."""
        entry = self._entry(key)
        value, now = entry.value, self._clock()
        if value is not None and now - entry.tried_at < FRESH_SECONDS:
            return value, entry.away
        good_enough = entry.away or now - entry.read_at < TOLERATED_SECONDS
        if value is not None and good_enough:
            if not entry.lock.acquire(blocking=False):
                return value, entry.away
        elif not entry.lock.acquire(timeout=WAIT_SECONDS):
            return self._last(entry)
        try:
            # Another thread may have read it while this one waited.
            if self._clock() - entry.tried_at >= FRESH_SECONDS:
                self._refresh(key, entry)
            return self._last(entry)
        finally:
            entry.lock.release()

    def _entry(self, key: K) -> Entry[V]:
        entry = self._entries.get(key)
        with self._guard:
            if entry is None:
                entry = self._entries.setdefault(key, Entry())
            if key in self._entries:
                self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
        return entry

    def _refresh(self, key: K, entry: Entry[V]) -> None:
        try:
            entry.value = self._read(key, entry.value)
            entry.away, entry.read_at = False, self._clock()
        except NotFound:
            with self._guard:
                self._entries.pop(key, None)
            raise
        except Unavailable:
            entry.away = True
            if entry.value is None:
                entry.value = self._found(key)
        finally:
            entry.tried_at = self._clock()

    def _last(self, entry: Entry[V]) -> tuple[V, bool]:
        if entry.value is None:
            raise Unavailable(_(NOT_YET))
        return entry.value, entry.away


class Made:
    """What was made of one value, by what it was made for. One thread makes it."""

    MOST = 64  # of one value: a page has a badge for each of its monitors

    def __init__(self, value: Any) -> None:
        self.value = value
        self._made: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def advance(self, value: Any) -> None:
        """An equal value, read later: what was made of the earlier one is as good."""
        self.value = value

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        found: V | None = self._made.get(key)
        if found is not None:
            return found
        with self._lock:
            found = self._made.get(key)
            if found is None:
                found = self._made[key] = make()
                while len(self._made) > self.MOST:
                    self._made.popitem(last=False)
            return found
