"""The server's time, by which an agent schedules checks and dates results.

Once it is measured, it follows this machine's uptime, so setting this machine's clock has no
effect, not even while the server is away.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

from app.rules.clocks import MIN, Offset


class Clock:
    """The server's time; this machine's time until the first answer. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._measured = Offset()  # the server's clock by this machine's uptime
        self._base: float | None = None

    @property
    def base(self) -> float:
        """The server's time when this machine's uptime was 0 (Unix seconds). It changes when the
        server's clock is set; before the first answer, when this machine's clock is set.
        """
        return _started() if self._base is None else self._base

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.base + uptime(), UTC)

    @property
    def offset(self) -> timedelta:
        """How far the server's clock is ahead of this machine's."""
        return timedelta() if self._base is None else timedelta(seconds=self._base - _started())

    def corrected(self, moment: datetime) -> datetime:
        """A time of this machine's clock by the server's clock."""
        return moment + self.offset

    def measure(self, sent: float, took: float, received: datetime, answered: datetime) -> None:
        """Measure by a request that was sent at ``sent`` (``uptime``) and whose answer came
        ``took`` seconds later. ``received`` and ``answered``: the server's clock at both moments.
        """
        inside = max(0.0, (answered - received).total_seconds())
        high = received.timestamp() - sent
        with self._lock:
            low, high = self._measured.bounds(high - max(0.0, took - inside), high)
            # The request or the answer may have been delayed, so a time within the bounds stays.
            if not low - MIN <= self.base <= high + MIN:
                self._base = (low + high) / 2
            else:
                self._base = self.base


def uptime() -> float:
    """Seconds since this machine started, with those during which it was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _started() -> float:
    """When this machine started, by its clock (Unix seconds)."""
    return time.time() - uptime()
