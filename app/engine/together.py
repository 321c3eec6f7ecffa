"""Let those who ask for the same at the same time share one answer. Threads of one process only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Together(Generic[T]):
    """What is being made for somebody is not made twice."""

    def __init__(self) -> None:
        self._running: dict[Hashable, Future[T]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` returns or raises, called here or by who came first with this key."""
        with self._lock:
            running = self._running.get(key)
            if running is None:
                mine = self._running[key] = Future()
        if running is not None:
            return running.result()
        try:
            made = make()
        except BaseException as fault:
            self._end(key)
            mine.set_exception(fault)
            raise
        self._end(key)
        mine.set_result(made)
        return made

    def _end(self, key: Hashable) -> None:
        with self._lock:
            del self._running[key]
