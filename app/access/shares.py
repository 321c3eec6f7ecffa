"""Counts of many requests: a process counts some at once, and hands their numbers out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import chain, islice

from app.access.counters import Counters, add
from app.db import best_effort, writing


class Shares:
    """Counts of ``counters``, of which this process has taken a share.

    Each number is handed out once, by whichever process. Those that a process has left count too:
    so a count is never too low, and it is too high by less than a share for each process, and for
    each start of one.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._guard = threading.Lock()
        # Of each name: the window, and the numbers that are left.
        self._left: dict[str, tuple[int, Iterator[int]]] = {}

    def count(self, name: str, window_seconds: int, share: int, number: int = 1) -> int:
        """Count ``number`` more of ``name``; returns the last one's number in the present window,
        or 0 if the database cannot be written. One in ``share`` writes.
        """
        window = self._counters.window(window_seconds)
        with self._guard:
            taken = list(islice(self._of(name, window), number))
        missing = number - len(taken)
        return self._more(name, window, share, missing) if missing else taken[-1]

    def _more(self, name: str, window: int, share: int, missing: int) -> int:
        at_once = max(share, missing)

        def take() -> int:
            with writing() as session:
                return add(session, name, window, at_once)

        last = best_effort("The count of requests", take)
        if last is None:
            return 0
        numbers = range(last - at_once + 1, last + 1)
        with self._guard:
            # Another thread may have taken a share meanwhile.
            left = chain(self._of(name, window), numbers[missing:])
            self._left = {one: its for one, its in self._left.items() if its[0] == window}
            self._left[name] = window, left
        return numbers[missing - 1]

    def _of(self, name: str, window: int) -> Iterator[int]:
        of, numbers = self._left.get(name, (None, iter(())))
        return numbers if of == window else iter(())
