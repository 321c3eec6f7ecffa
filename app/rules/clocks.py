"""Clocks that are wrong: which stored times count, and how far another clock is ahead.

A clock that was ahead leaves times in the future in the database. Code that waited for them would
wait as long as the clock was ahead. They cannot be repaired once, because more of them follow: from
running checks, from good results that are written within a minute, and from other machines whose
clocks are still ahead. So code that reads such a time calls one of these:

- ``believable(now)``: the latest time that a row can have now. A later time counts as past.
- ``runs(began, now, lasts)``: whether a span is not over. A start in the future counts as over.
- ``is_due(last, now, every)``: whether a repeated task is due.

``PlannedLoop.notice_step`` corrects the times in the memory of a checker or an agent; the times of
a worker's lanes have an upper bound. All other code uses monotonic time.
"""

from __future__ import annotations

import math
from collections import deque
from datetime import datetime, timedelta

# How far the clocks of two machines may differ before one treats the other's times as wrong.
SKEW = timedelta(seconds=10)

MEASURED = 20  # the last messages that count
MIN = 0.1  # seconds: a smaller offset may be a delay of the network


def believable(now: datetime, lasts: timedelta = timedelta()) -> datetime:
    """The latest time that can be stored now. ``lasts``: how far in the future it may be on
    purpose, as the end of a lease is.
    """
    return now + lasts + SKEW


def runs(began: datetime, now: datetime, lasts: timedelta) -> bool:
    """Whether a span that began at ``began`` and ``lasts`` so long is not over. One that would
    begin in the future counts as over.
    """
    return now - lasts < began <= believable(now)


def is_due(last: datetime | None, now: datetime, every: timedelta) -> bool:
    """Whether a task that ran at ``last`` is due again; also after the clock was set back."""
    return last is None or abs(now - last) >= every


class Offset:
    """How far another clock is ahead of ours, in seconds, from messages with its time. A message
    arrives after it was sent, so each one gives a lower or an upper bound.
    """

    def __init__(self) -> None:
        self._measured: deque[tuple[float, float]] = deque(maxlen=MEASURED)

    def add(self, low: float, high: float = math.inf) -> tuple[float, float]:
        """Add the bounds of a new message. Returns the bounds by all messages."""
        # Earlier messages that contradict it are from before a clock was set.
        consistent = [
            (lower, upper)
            for lower, upper in self._measured
            if lower - MIN <= high and low <= upper + MIN
        ]
        self._measured = deque([*consistent, (low, high)], maxlen=MEASURED)
        lowers, uppers = zip(*self._measured, strict=True)
        return max(lowers), min(uppers)
