"""Limits of slow requests at the same time. The web server has few threads: when all of them wait,
nobody gets a page. All these limits are here, because they add up.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Slots:
    """``size`` slots. If none is free, a request waits up to ``patience`` seconds for one."""

    def __init__(self, size: int, patience: float = 0.0) -> None:
        self.size = size
        self._free = threading.BoundedSemaphore(size)
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
    """``size`` slots, of which one object may take ``max_each``: many requests for the same object
    leave slots for others.
    """

    def __init__(self, size: int, max_each: int) -> None:
        self.size, self.max_each = size, max_each
        self._taken: Counter[int] = Counter()
        self._lock = threading.Lock()

    @property
    def in_use(self) -> int:
        return self._taken.total()

    def is_below_limit(self, id: int) -> bool:
        """Whether the object with this id has fewer slots than one object may take. All slots may
        still be taken by others.
        """
        return self._taken[id] < self.max_each

    @contextmanager
    def taken(self, id: int) -> Iterator[bool]:
        """Take a slot for the object with this id. Yields whether one was free."""
        with self._lock:
            free = self._taken.total() < self.size and self._taken[id] < self.max_each
            self._taken[id] += free
        try:
            yield free
        finally:
            with self._lock:
                self._taken[id] -= free
                self._taken += Counter()  # drops ids without slots


THREADS = 32  # of the web server
PING_THREADS = 64  # of the web server, for pings alone: each waits until its batch is stored
RESERVED = 2  # threads for all other requests if all slots below are taken

LONG_WAITS = Slots(5)  # checks on request, and answers of services to test alerts
ONE_DOWNLOAD = Slots(1)  # of a backup; it takes a slot of LONG_WAITS too
REMOTE_ANSWERS = Slots(5, patience=0.5)  # of the servers behind a dashboard
# Passwords that are hashed or wait for it (app/access/passwords.py), as when an office logs in.
PASSWORDS = Slots(18)
TRUSTED_PASSWORDS = Slots(2)  # for browsers with an earlier login: strangers cannot use them up
# Requests that wait for checks from other places, which may take over a minute.
WAITS_ELSEWHERE = SharedSlots(3, max_each=2)  # a double click on a monitor is two
# Requests with a form that an earlier request has sent already: they wait for its answer. That
# request may need a slot of LONG_WAITS, so there must be more of those.
REPEATED_FORMS = Slots(2)
assert REPEATED_FORMS.size < LONG_WAITS.size  # noqa: S101 - of constants
assert WAITS_ELSEWHERE.max_each < WAITS_ELSEWHERE.size < LONG_WAITS.size  # noqa: S101 - of constants
_taken = LONG_WAITS.size + REMOTE_ANSWERS.size + PASSWORDS.size + TRUSTED_PASSWORDS.size
assert _taken <= THREADS - RESERVED  # noqa: S101 - of constants

BUSY_SECONDS = 5  # the Retry-After of a request that found no slot
