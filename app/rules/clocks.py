"""Clocks that are wrong: which times are believed, and how far another clock is ahead.

A clock that was ahead leaves times in the future in the database. Waiting for them would take as
long as it was wrong. Such times are not repaired at one moment, for more of them follow it: checks
that are running, good results that are written within a minute, and every other machine whose clock
is still ahead. So whoever reads such a time asks here:

- ``believable(now)``: the latest time that can be in a row by now. A later one counts as past.
- ``runs(began, now, lasts)``: what lasts for a time since it began. From the future, it is over.
- ``is_due(last, now, every)``: what is done again and again.

What a checker or an agent keeps in memory is put right where the step is noticed, in
``PlannedLoop.notice_step``; the times of a worker's lanes have an upper bound. Everything else is
monotonic.
"""

from __future__ import annotations

import math
from collections import deque
from datetime import datetime, timedelta

# How far the clocks of two machines may differ before one treats the other's times as wrong.
SKEW = timedelta(seconds=10)

# From so many messages, those that took least time measure a clock best.
MEASURED = 20
# In seconds. A difference that is smaller is noise of the network.
MIN = 0.1


def believable(now: datetime, lasts: timedelta = timedelta()) -> datetime:
    """The latest time that can be stored by now. ``lasts``: how far ahead such a time is set on
    purpose, as a lease is.
    """
    return now + lasts + SKEW


def runs(began: datetime, now: datetime, lasts: timedelta) -> bool:
    """Whether what began then and lasts so long is not over."""
    return now - lasts < began <= believable(now)


def is_due(last: datetime | None, now: datetime, every: timedelta) -> bool:
    """Whether what was done ``last`` is to be done again; also after the clock was set back."""
    return last is None or abs(now - last) >= every


class Offset:
    """How far another clock is ahead of ours, in seconds, from messages that say its time. None
    leaves before it is sent and none comes before it has left, so each bounds the offset.
    """

    def __init__(self) -> None:
        self._measured: deque[tuple[float, float]] = deque(maxlen=MEASURED)

    def bounds(self, low: float, high: float = math.inf) -> tuple[float, float]:
        """The bounds by the last messages, of which the newest gave ``low`` and ``high``."""
        # What this one contradicts was measured before a clock was set.
        fitting = [
            (least, most)
            for least, most in self._measured
            if least - MIN <= high and low <= most + MIN
        ]
        self._measured = deque([*fitting, (low, high)], maxlen=MEASURED)
        return max(least for least, _most in self._measured), min(
            most for _least, most in self._measured
        )
