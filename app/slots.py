"""How many requests may do something slow at once. The web server has few threads: when all of them
wait, nobody gets a page. All such bounds stand here, because they add up.
"""

from __future__ import annotations

import threading
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
        """Hold a slot; whether there was one."""
        free = self._free.acquire(timeout=self._patience)
        try:
            yield free
        finally:
            if free:
                self._free.release()


THREADS = 16  # of the web server
LEFT = 2  # of them, for all other requests, when everything below is used up at once

LONG_WAITS = Slots(5)  # checks on request, and answers of services to test alerts
REMOTE_ANSWERS = Slots(5, patience=0.5)  # of the servers behind a dashboard
PASSWORDS = Slots(3)  # being hashed, and waiting for that: app/access/passwords.py
KNOWN_PASSWORDS = Slots(1)  # one more, for people whom we know: strangers cannot use it up
_taken = LONG_WAITS.most + REMOTE_ANSWERS.most + PASSWORDS.most + KNOWN_PASSWORDS.most
assert _taken <= THREADS - LEFT  # noqa: S101 - of constants

BUSY_SECONDS = 5  # who finds none free is asked to come again after these
