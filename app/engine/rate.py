"""How many checks were made in the last minute."""

from __future__ import annotations

from collections import deque

WINDOW_SECONDS = 60.0


class Rate:
    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()

    def per_minute(self, clock: float, count: int) -> int:
        """The rate, now that there have been ``count`` checks in all. ``clock``: monotonic, in
        seconds. Less than a minute after the start it is the checks until now: first checks come
        together, and the next ones an interval later.
        """
        self._counts.append((clock, count))
        while len(self._counts) > 1 and self._counts[1][0] <= clock - WINDOW_SECONDS:
            self._counts.popleft()
        since, before = self._counts[0]
        return round((count - before) * 60 / max(WINDOW_SECONDS, clock - since))
