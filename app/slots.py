"""How many requests may do something slow at once. The web server has few threads: when all of them
wait, nobody gets a page. All such bounds stand here, because they add up.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Slots:
    """``most`` at once; who finds none free waits up to ``patience`` seconds for one."""

    def __init__(self, most: int, patience: float = 0.0) -> None:
        self.most = most
        self._free = threading.BoundedSemaphore(most)
        self._patience = patience

    @contextmanager
    def taken(self) -> Iterator[bool]:
        """Take a slot. Yields whether one was free."""
        free = self._free.acquire(timeout=self._patience)
        try:
            yield free
        finally:
            if free:
                self._free.release()


class SharedSlots:
    """``most`` at once, and ``each`` of them for one thing: many requests for the same thing leave
    slots for others.
    """

    def __init__(self, most: int, each: int) -> None:
        self.most, self.each = most, each
        self._taken: Counter[int] = Counter()
        self._lock = threading.Lock()

    @property
    def in_use(self) -> int:
        return self._taken.total()

    def is_free_for(self, id: int) -> bool:
        """Whether the thing with this id holds less than it may."""
        return self._taken[id] < self.each

    @contextmanager
    def taken(self, id: int) -> Iterator[bool]:
        """Take a slot for the thing with this id. Yields whether one was free."""
        with self._lock:
            free = self._taken.total() < self.most and self._taken[id] < self.each
            self._taken[id] += free
        try:
            yield free
        finally:
            with self._lock:
                self._taken[id] -= free
                self._taken += Counter()  # drops what is at zero


THREADS = 32  # of the web server
PING_THREADS = 64  # of the web server, for pings alone: stored together, and all wait for that
LEFT = 2  # of them, for all other requests, when everything below is used up at once

LONG_WAITS = Slots(5)  # checks on request, and answers of services to test alerts
ONE_DOWNLOAD = Slots(1)  # of a backup; it takes a slot of LONG_WAITS too
REMOTE_ANSWERS = Slots(5, patience=0.5)  # of the servers behind a dashboard
# Being hashed, and waiting for that: app/access/passwords.py. An office logs in at nine o'clock.
PASSWORDS = Slots(18)
TRUSTED_PASSWORDS = Slots(2)  # more, for people whom we know: strangers cannot use them up
# How many threads may wait for checks that other places make. They may bring nothing for over a
# minute.
WAITS_ELSEWHERE = SharedSlots(3, each=2)  # a double click on a monitor is two
# How many may wait for the same form sent before. The rest is left to what that form waits for.
REPEATED_FORMS = Slots(2)
assert REPEATED_FORMS.most < LONG_WAITS.most  # noqa: S101 - of constants
assert WAITS_ELSEWHERE.each < WAITS_ELSEWHERE.most < LONG_WAITS.most  # noqa: S101 - of constants
_taken = LONG_WAITS.most + REMOTE_ANSWERS.most + PASSWORDS.most + TRUSTED_PASSWORDS.most
assert _taken <= THREADS - LEFT  # noqa: S101 - of constants

BUSY_SECONDS = 5  # who finds none free is asked to come again after these
