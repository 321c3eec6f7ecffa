"""Pauses of a process that writes one transaction after another to SQLite.

Whoever waits for SQLite's lock looks again after up to 0.1 s. Between two transactions of a busy
process, as when thousands of monitors fail at once, the lock is free for some milliseconds, so
others looked in vain for ten seconds, and failed: "The database is busy".

The lock is free in a pause only if no thread of the process holds it. So a pause begins when the
last of them has left, and none enters before its end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

RUN_SECONDS = 0.5  # how long a process writes before it is judged
MOST_HELD = 0.8  # the share of that time for which it may hold the lock: looks find it free then
PAUSE_SECONDS = 0.12  # longer than the longest wait between two looks
# How long a pause waits for the other threads to leave. One that stays longer waits for another
# process, which has its turn then, or writes much at once, where a pause would not help.
LONGEST_WAIT = 1.0


class Pauses:
    """Those of one process, whose threads share them. ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._changed = threading.Condition()
        self._inside = 0  # threads that hold the database's lock, or wait for it
        self._pausing = False  # a thread pauses, or waits for the others to leave
        self._since = self._ended = float("-inf")
        self._held = 0.0  # seconds since ``_since``

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
        with self._changed:
            self._changed.wait_for(lambda: not self._pausing)
            now = self._clock()
            was_free = self._inside == 0 and now - self._ended >= PAUSE_SECONDS
            if was_free or now - self._since >= RUN_SECONDS:
                if not was_free and self._held > MOST_HELD * (now - self._since):
                    self._pause()
                self._since, self._held = self._clock(), 0.0
            self._inside += 1

    def _pause(self) -> None:
        self._pausing = True
        try:
            if self._changed.wait_for(lambda: self._inside == 0, LONGEST_WAIT):
                self._sleep(PAUSE_SECONDS)
        finally:
            self._pausing = False
            self._changed.notify_all()

    def _end(self, held_since: float | None) -> None:
        with self._changed:
            self._inside -= 1
            if held_since is not None:
                self._ended = self._clock()
                self._held += self._ended - held_since
            self._changed.notify_all()
