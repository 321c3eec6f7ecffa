"""How many requests may do something slow at once. The web server has few threads: when all of them
wait for slow targets, nobody gets a page.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Slots:
    """``most`` at once; who finds none free waits up to ``patience`` seconds for one."""

    def __init__(self, most: int, patience: float = 0.0) -> None:
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


# Of the web server's 16 threads (app/commands/webserver.py), two are left for other requests when
# both are used up.
LONG_WAITS = Slots(6)  # checks on request, and answers of services to test alerts
REMOTE_ANSWERS = Slots(8, patience=0.5)  # of the servers behind a dashboard
BUSY_SECONDS = 5  # who finds none free is asked to come again after these
