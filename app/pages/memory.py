"""Answers that are kept: read again when they are a second and a half old, by one thread at a time.

While one thread reads, the others get the last answer, and only wait for it if that is too old
to show a change in time, or if something was written in this process since. If nothing can be
read, or not promptly, all get the last answer, which then says so.
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

# A reader sees a change of another process at most TOLERATED_SECONDS later, and a browser's copy is
# older by its max-age.
FRESH_SECONDS = 1.5
TOLERATED_SECONDS = 2.0
# For a reading. SQLite waits ten seconds for locks of its WAL, whatever its timeout says.
PROMPT_SECONDS = 1.0
WAIT_SECONDS = 5.0  # if nothing is kept, or what is kept is older than a change made here
NOT_YET = N_("The database does not answer, and nothing is known yet.")

READER = "status page"  # the name of a thread that reads

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class MemoryEntry(Generic[V]):
    """``value`` is what was read last. ``away``: since then, reading has failed, or takes long.
    ``version``: what was written before the reading began. ``read_at``: when the last reading that
    succeeded began; ``tried_at``: when the last reading ended.
    """

    __slots__ = ("away", "read_at", "reading", "tried_at", "value", "version")

    def __init__(self) -> None:
        self.value: V | None = None
        self.away = False
        self.read_at = self.tried_at = float("-inf")
        self.version = 0
        self.reading: Future[None] | None = None


class Memory(Generic[K, V]):
    """At most ``limit`` values, the least used forgotten first.

    ``read(key, before)`` returns the present value and may return ``before``, if nothing has
    changed. It raises NotFound, and Unavailable; then ``copied`` may have an older value. It is
    called in a thread of its own, because nobody waits for it as long as a database may be silent.
    """

    def __init__(
        self,
        read: Callable[[K, V | None], V],
        limit: int,
        copied: Callable[[K], V | None] = lambda _key: None,
        clock: Callable[[], float] = time.monotonic,
        prompt: float = PROMPT_SECONDS,
    ) -> None:
        self._read, self._copied, self._clock = read, copied, clock
        self._prompt = prompt
        self._entries: LRUCache[K, MemoryEntry[V]] = LRUCache(limit)
        self._guard = threading.Lock()
        self._versions = count(1)
        self._version = 0

    def __len__(self) -> int:
        return len(self._entries)

    def cached(self, key: K) -> V | None:
        """The cached value, whatever its age."""
        with self._guard:
            entry = self._entries.get(key)
        return entry.value if entry else None

    def expire(self) -> None:
        """Something was written: what was read before is given only if reading takes too long."""
        self._version = next(self._versions)

    def get(self, key: K) -> tuple[V, bool]:
        """The value, and whether it cannot be read now. Raises NotFound and Unavailable."""
        entry = self._entry(key)
        for _reading in range(2):  # the one that is under way may have begun before a change
            with self._guard:
                current = entry.version == self._version
                now = self._clock()
                if current and now - entry.tried_at < FRESH_SECONDS:
                    break
                under_way = entry.reading
                reading = under_way or self._start(key, entry)
            recent = current and now - entry.read_at < TOLERATED_SECONDS
            if under_way and entry.value is not None and (entry.away or recent):
                break
            # A person sees a change that was made here at once, even if reading takes long.
            outdated = entry.value is not None and not current
            patience = WAIT_SECONDS if outdated else self._prompt
            if not self._await(key, entry, reading, patience):
                break
        if entry.value is None:
            raise Unavailable(_(NOT_YET))
        return entry.value, entry.away

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
        """Wait for a reading, ``patience`` in seconds; longer, if there is no value and no copy.
        Returns whether it has ended. Raises what it raises.
        """
        with suppress(TimeoutError):
            reading.result(patience)
            return True
        copy = self._copied(key) if entry.value is None else None
        if entry.value is None and copy is None:
            with suppress(TimeoutError):
                reading.result(WAIT_SECONDS)
        with self._guard:
            if entry.value is None:
                entry.value = copy
            entry.away = entry.away or entry.reading is reading
        return reading.done()

    def _refresh(self, key: K, entry: MemoryEntry[V], reading: Future[None]) -> None:
        version, began = self._version, self._clock()
        value = entry.value
        fault: Exception | None = None
        try:
            value = self._read(key, value)
        except Unavailable as away:
            fault = away
            value = self._copied(key) if value is None else value
        except Exception as other:
            fault = other
        with self._guard:
            entry.value, entry.version, entry.reading = value, version, None
            entry.tried_at = self._clock()
            if fault is None:
                entry.away, entry.read_at = False, began
            elif isinstance(fault, Unavailable):
                entry.away = True
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
