"""A cache that reads a value again when it is a second and a half old, in one thread at a time.

While one thread reads, the others get the cached value. They wait for the new value only if the
cached one is too old to show a change in time, or if this process has written to the database
since. If a value cannot be read, or not promptly, all get the cached one, marked as ``stale``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

from app.errors import NotFound, Unavailable
from app.i18n import N_, _

# While reading works, readers see a change of another process after at most TOLERATED_SECONDS and
# the max-age of the browser's copy.
FRESH_SECONDS = 1.5
TOLERATED_SECONDS = 2.0
# How long callers wait before they get the cached value. SQLite waits ten seconds for locks of its
# WAL, whatever its timeout is.
PROMPT_SECONDS = 1.0
WAIT_SECONDS = 5.0  # if there is no cached value, or it is older than a change of this process
NOT_YET = N_("The database does not answer, and nothing is known yet.")

READER = "status page"  # the name of a thread that reads

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class MemoryEntry(Generic[V]):
    """``value``: the last one that was read. ``stale``: reading it again has failed, or takes long.
    ``version``: ``Memory._version`` when the last reading began. ``read_at``: when the last
    successful reading began. ``tried_at``: when the last reading ended. ``reading``: the reading
    that is under way.
    """

    __slots__ = ("read_at", "reading", "stale", "tried_at", "value", "version")

    def __init__(self) -> None:
        self.value: V | None = None
        self.stale = False
        self.read_at = self.tried_at = float("-inf")
        self.version = 0
        self.reading: Future[None] | None = None


class Memory(Generic[K, V]):
    """At most ``limit`` values; the least recently used go first.

    ``read(key, cached)`` returns the present value; it may return ``cached``, if nothing has
    changed. It raises NotFound or Unavailable. If nothing is cached then, ``read_copy(key)`` may
    return an older value. ``read`` runs in a thread of its own, because a database may be silent
    for longer than a reader should wait.
    """

    def __init__(
        self,
        read: Callable[[K, V | None], V],
        limit: int,
        read_copy: Callable[[K], V | None] = lambda _key: None,
        clock: Callable[[], float] = time.monotonic,
        prompt: float = PROMPT_SECONDS,
    ) -> None:
        self._read, self._read_copy, self._clock = read, read_copy, clock
        self._prompt = prompt
        self._entries: LRUCache[K, MemoryEntry[V]] = LRUCache(limit)
        self._guard = threading.Lock()
        self._versions = count(1)
        self._version = 0

    def cached(self, key: K) -> V | None:
        """The cached value, whatever its age."""
        with self._guard:
            entry = self._entries.get(key)
        return entry.value if entry else None

    def expire(self) -> None:
        """Mark all values as outdated, because this process has written to the database. ``get``
        returns an outdated value only if reading it again fails or takes too long.
        """
        self._version = next(self._versions)

    def get(self, key: K) -> tuple[V, bool]:
        """The value, and whether it is ``stale``. Raises NotFound and Unavailable."""
        entry = self._entry(key)
        for _attempt in range(2):  # a running read may have begun before a change
            with self._guard:
                current = entry.version == self._version
                now = self._clock()
                if current and now - entry.tried_at < FRESH_SECONDS:
                    break
                running = entry.reading
                reading = running or self._start(key, entry)
            recent = current and now - entry.read_at < TOLERATED_SECONDS
            if running and entry.value is not None and (entry.stale or recent):
                break
            # A person must see their change at once, even if reading takes long.
            outdated = entry.value is not None and not current
            patience = WAIT_SECONDS if outdated else self._prompt
            if not self._await(key, entry, reading, patience):
                break
        if entry.value is None:
            raise Unavailable(_(NOT_YET))
        return entry.value, entry.stale

    def _entry(self, key: K) -> MemoryEntry[V]:
        with self._guard:
            entry: MemoryEntry[V] = self._entries.setdefault(key, MemoryEntry())
            return entry

    def _start(self, key: K, entry: MemoryEntry[V]) -> Future[None]:
        reading = entry.reading = Future()
        arguments = (key, entry, reading)
        threading.Thread(target=self._refresh, args=arguments, name=READER, daemon=True).start()
        return reading

    def _await(self, key: K, entry: MemoryEntry[V], reading: Future[None], patience: float) -> bool:
        """Wait for a reading for ``patience`` seconds; longer, if there is no value and no copy.
        Return whether it has ended. Raises its exception.
        """
        with suppress(TimeoutError):
            reading.result(patience)
            return True
        copy = self._read_copy(key) if entry.value is None else None
        if entry.value is None and copy is None:
            with suppress(TimeoutError):
                reading.result(WAIT_SECONDS)
        with self._guard:
            if entry.value is None:
                entry.value = copy
            entry.stale = entry.stale or entry.reading is reading
        return reading.done()

    def _refresh(self, key: K, entry: MemoryEntry[V], reading: Future[None]) -> None:
        version, started_at = self._version, self._clock()
        value = entry.value
        fault: Exception | None = None
        try:
            value = self._read(key, value)
        except Unavailable as unavailable:
            fault = unavailable
            value = self._read_copy(key) if value is None else value
        except Exception as other:
            fault = other
        with self._guard:
            entry.value, entry.version, entry.reading = value, version, None
            entry.tried_at = self._clock()
            if fault is None:
                entry.stale, entry.read_at = False, started_at
            elif isinstance(fault, Unavailable):
                entry.stale = True
            elif isinstance(fault, NotFound):
                self._entries.pop(key, None)
        if fault is None or isinstance(fault, Unavailable):
            reading.set_result(None)
        else:
            reading.set_exception(fault)


class CachedValue:
    """A value, and the answers rendered from it, by a key. One thread renders at a time."""

    MAX = 64  # answers from one value: a page has a badge for each of its monitors

    def __init__(self, value: Any) -> None:
        self.value = value
        self._answers: dict[Hashable, Any] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        value: V | None = self._answers.get(key)
        if value is not None:
            return value
        with self._lock:
            value = self._answers.get(key)
            if value is None:
                value = self._answers[key] = make()
                while len(self._answers) > self.MAX:
                    del self._answers[next(iter(self._answers))]
            return value
