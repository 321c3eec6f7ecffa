"""The server's time, by which an agent schedules checks and dates results."""

from __future__ import annotations

import threading
import time
from collections import deque
from datetime import UTC, datetime, timedelta

# Of the last requests, the one that took least time measures the difference best.
MEASURED = 20
# A difference that is smaller is noise of the network.
LEAST = timedelta(milliseconds=100)


class Clock:
    """Safe from any thread. Until a request was answered, this machine's own time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._measured: deque[tuple[float, timedelta]] = deque(maxlen=MEASURED)
        self._ahead = _ahead()
        self.offset = timedelta()

    def now(self) -> datetime:
        return self.corrected(datetime.now(UTC))

    def corrected(self, moment: datetime) -> datetime:
        """A time of this machine as the server would say it."""
        return moment + self.offset

    def measure(
        self, sent: datetime, seconds: float, received: datetime, answered: datetime
    ) -> None:
        """The answer to a request came ``seconds`` after ``sent``; by the server's clock, it was
        ``received`` and ``answered`` then.
        """
        took = max(0.0, (answered - received).total_seconds())
        middle = sent + timedelta(seconds=seconds / 2)
        with self._lock:
            ahead = _ahead()
            if abs(ahead - self._ahead) > 1.0:  # this machine's clock was set
                self._measured.clear()
                self._ahead = ahead
            offset = received + timedelta(seconds=took / 2) - middle
            self._measured.append((max(0.0, seconds - took), offset))
            on_the_way, best = min(self._measured)
            # A request may have waited anywhere on its way: what fits is left as it is.
            if abs(best - self.offset) > LEAST + timedelta(seconds=on_the_way / 2):
                self.offset = best


def _ahead() -> float:
    """Changes when the clock is set."""
    return time.time() - time.monotonic()
