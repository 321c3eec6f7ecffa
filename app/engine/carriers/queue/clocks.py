"""How far the clocks of probers are ahead of ours, by the times in their messages."""

from __future__ import annotations

from collections import deque
from datetime import timedelta

# Of the last messages of a prober, the one that took least time measures the difference best: one
# that was held back on its way seems to come from a slower clock.
MEASURED = 20
MOST_PROBERS = 1_000


class Clocks:
    """Not safe from several threads."""

    def __init__(self) -> None:
        self._lately: dict[str, deque[timedelta]] = {}  # who spoke last is last

    def ahead(self, prober: str, said: timedelta) -> timedelta:
        """How far the clock of this prober is ahead. ``said``: how far the time in a message was
        ahead of the moment when it came.
        """
        lately = self._lately.pop(prober, None) or deque(maxlen=MEASURED)
        lately.append(said)
        self._lately[prober] = lately
        if len(self._lately) > MOST_PROBERS:
            del self._lately[next(iter(self._lately))]
        return max(lately)
