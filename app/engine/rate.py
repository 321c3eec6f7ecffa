"""How many checks a minute were made lately."""

from __future__ import annotations

from collections import deque

WINDOW_SECONDS = 60.0
LEAST_SECONDS = 10.0  # of less, a rate says nothing


class Rate:
    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()

    def per_minute(self, clock: float, count: int) -> int | None:
        """The rate, now that there have been ``count`` checks in all; None at the start. ``clock``:
        monotonic, in seconds.
        """
        self._counts.append((clock, count))
        while len(self._counts) > 1 and self._counts[1][0] <= clock - WINDOW_SECONDS:
            self._counts.popleft()
        since, before = self._counts[0]
        if clock - since < LEAST_SECONDS:
            return None
        return round((count - before) * 60 / (clock - since))
