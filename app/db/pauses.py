"""Pauses of a process that writes one transaction after another to SQLite.

Whoever waits for SQLite's lock looks again after up to 0.1 s. Between two transactions of a busy
process, as when thousands of monitors fail at once, the lock is free for some milliseconds, so
others looked in vain for ten seconds, and failed: "The database is busy".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HELD_SECONDS = 0.5  # how long a process holds the lock, in all, before it pauses
PAUSE_SECONDS = 0.12  # longer than the longest wait between two looks


class Pauses:
    """Those of one process, whose threads share them. ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._inside = 0  # threads that hold the database's lock, or wait for it
        self._held = 0.0  # seconds since the last pause
        self._ended = float("-inf")

    @contextmanager
    def around(self, take: Callable[[], object]) -> Iterator[None]:
        """Pause if others are to have their turn, then ``take`` the lock, which is held within."""
        self._begin()
        held_since = None
        try:
            take()
            held_since = self._clock()
            yield
        finally:
            self._end(held_since)

    def _begin(self) -> None:
        with self._lock:  # also during the pause: this process's other threads must not go on
            if self._inside == 0 and self._clock() - self._ended >= PAUSE_SECONDS:
                self._held = 0.0  # the lock has been free for as long
            elif self._held >= HELD_SECONDS:
                self._sleep(PAUSE_SECONDS)
                self._held = 0.0
            self._inside += 1

    def _end(self, held_since: float | None) -> None:
        with self._lock:
            self._inside -= 1
            if held_since is not None:
                self._ended = self._clock()
                self._held += self._ended - held_since
