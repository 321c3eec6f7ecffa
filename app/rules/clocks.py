"""Clocks that are wrong: the tolerance for times that one wrote, and how far another machine's is
ahead.

A stored time that is further in the future than its kind allows was written before the clock was
set back. Waiting for it would take as long as the clock was wrong, so such a time counts as past:
``moment > now + longest + SKEW``.
"""

import math
from collections import deque
from datetime import timedelta

# How far the clocks of two machines may differ before one treats the other's times as wrong.
SKEW = timedelta(seconds=10)

# Of so many messages, those that took least time measure a clock best.
MEASURED = 20
# In seconds. A difference that is smaller is noise of the network.
LEAST = 0.1


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
            if least - LEAST <= high and low <= most + LEAST
        ]
        self._measured = deque([*fitting, (low, high)], maxlen=MEASURED)
        return max(least for least, _most in self._measured), min(
            most for _least, most in self._measured
        )
