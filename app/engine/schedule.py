"""When a monitor's next check is due. Pure.

Each monitor has a fixed place within its interval, taken from its id. Checks fall on a grid: place,
place + interval, place + 2 intervals and so on, counted from 1970. So nothing drifts, a restart
changes no place, and a thousand monitors that were made at once are spread over the interval.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from hashlib import blake2b

# How many checks start in a second when more are due than usual (after a pause of the service, or
# when many monitors were added at once): twice what the schedule needs, so that they catch up
# within one interval, and never fewer than this.
MINIMUM_PACE = 20.0
CATCH_UP = 2.0


def place(monitor_id: int, interval: int) -> float:
    """Where in its interval a monitor is checked, in seconds: 0 <= place < interval."""
    number = int.from_bytes(blake2b(str(monitor_id).encode(), digest_size=8).digest(), "big")
    return number / 2**64 * interval


def next_check(monitor_id: int, interval: int, now: datetime) -> datetime:
    """The next moment after ``now`` on the monitor's grid; ``interval`` in seconds."""
    offset = place(monitor_id, interval)
    turn = math.floor((now.timestamp() - offset) / interval) + 1
    moment = datetime.fromtimestamp(round(turn * interval + offset, 3), UTC)
    # Rounded to the millisecond that the database keeps, the moment may be the present one again.
    return moment if moment > now else next_check(monitor_id, interval, _after(now))


def _after(now: datetime) -> datetime:
    return datetime.fromtimestamp(now.timestamp() + 0.002, UTC)


def pace(checks_per_second: float) -> float:
    """How many checks may start in a second, given how many the schedule needs on average."""
    return max(MINIMUM_PACE, CATCH_UP * checks_per_second)


class Bucket:
    """Lets through ``pace`` starts a second, and a quarter of a second's worth at once.

    Times are of the monotonic clock, given by the caller.
    """

    def __init__(self, pace: float, now: float) -> None:
        self.pace = pace
        self._tokens = self._room
        self._filled = now

    @property
    def _room(self) -> float:
        return max(5.0, self.pace / 4)

    def available(self, now: float) -> int:
        """How many may start now."""
        self._tokens = min(self._room, self._tokens + (now - self._filled) * self.pace)
        self._filled = now
        return int(self._tokens)

    def take(self, count: int) -> None:
        self._tokens -= count
