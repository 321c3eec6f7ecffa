"""The times of a monitor's checks. The functions are pure.

Each monitor has a fixed offset within its interval, computed from its id. Its scheduled times are
offset, offset + interval, offset + 2 intervals and so on, counted from 1970. Therefore nothing
drifts, a restart changes no offset, and a thousand monitors created together are spread over the
interval.

The time of the next check is not stored: it follows from the scheduled time of the last check,
which is stored (``Standing``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b

from app.rules.clocks import believable

# The checks that may start in a second when more are due than usual (after a stop of the service,
# or when many monitors were added together): twice the average of the schedule, so that they catch
# up within one interval, but at least MINIMUM_PACE.
MINIMUM_PACE = 20.0
CATCH_UP = 2.0
MIN_BURST_SECONDS, MAX_BURST_SECONDS = 0.25, 2.0


@lru_cache(maxsize=100_000)
def offset_of(monitor_id: int, interval: int) -> float:
    """The offset of a monitor's checks in its interval, in seconds: 0 <= offset < interval."""
    number = int.from_bytes(blake2b(str(monitor_id).encode(), digest_size=8).digest(), "big")
    return number / 2**64 * interval


def next_check(monitor_id: int, interval: int, now: datetime) -> datetime:
    """The next scheduled time after ``now``; ``interval`` in seconds."""
    return last_scheduled(monitor_id, interval, now, later=1)


def last_scheduled(monitor_id: int, interval: int, now: datetime, later: int = 0) -> datetime:
    """The last scheduled time that is not after ``now``, or so many scheduled times ``later``."""
    offset, at = offset_of(monitor_id, interval), now.timestamp()
    number = math.floor((at - offset) / interval) + 1
    while (scheduled := _scheduled(offset, interval, number)) > at:
        number -= 1
    if later:
        scheduled = _scheduled(offset, interval, number + later)
    return datetime.fromtimestamp(scheduled, UTC)


def done_until(
    monitor_id: int, interval: int, scheduled_at: datetime | None, checked_at: datetime | None
) -> datetime | None:
    """The scheduled time of the last check: the stored one, or that of a newer check which is not
    stored in the assignment yet. None if a check is due at once.
    """
    if scheduled_at is None or checked_at is None:
        return scheduled_at
    return max(scheduled_at, last_scheduled(monitor_id, interval, checked_at))


def _scheduled(offset: float, interval: int, number: int) -> float:
    """A scheduled time in seconds since 1970, rounded to the millisecond as in the database."""
    return round(number * interval + offset, 3)


# A check that failed because of our own network is repeated when the network is back, after this
# pause: it may fail for the same reason again.
BLIND_PAUSE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a monitor that the schedule of one place needs (``AssignmentRow``).

    ``generation`` fences results: only a check that was started at the present generation is
    recorded. ``scheduled_at``: the scheduled time of the last check; None if a check is due at
    once. ``checked_at``: the start of the last check. ``unconfirmed_at``: since when a result of
    any place waits to be repeated. ``blind``: the last check in this place failed because of our
    own network. ``asked_at``: the time of the last request for a check in this place.
    """

    generation: int
    scheduled_at: datetime | None = None
    checked_at: datetime | None = None
    unconfirmed_at: datetime | None = None
    blind: bool = False
    asked_at: datetime | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether the next result is urgent: the monitor is new or has changed, somebody asks for a
        check, or a result waits to be repeated.
        """
        return (
            self.scheduled_at is None
            or self.unconfirmed_at is not None
            or self.blind
            or self.is_asked
        )

    @property
    def is_asked(self) -> bool:
        """Whether the last request for a check in this place is not answered yet."""
        if self.asked_at is None:
            return False
        return self.checked_at is None or self.checked_at < self.asked_at


@dataclass(frozen=True, slots=True)
class Claim:
    """The monitor of a check, with the token of its shard and its generation at the start of the
    check. The recorder drops results with an old token or generation. Claims of the same monitor
    are equal, whatever their tokens.
    """

    monitor_id: int
    shard: int = field(default=0, compare=False)
    token: int = field(default=0, compare=False)
    generation: int = field(default=0, compare=False)


def due(
    monitor_id: int,
    interval: int,
    standing: Standing,
    now: datetime,
    pause: timedelta,
    *,
    network: bool = True,
) -> datetime:
    """The time of the next check, in the past if it is overdue. ``interval`` in seconds.

    ``pause`` is the pause before a check is repeated, ``network`` whether our own network works.
    """
    scheduled_at, checked = standing.scheduled_at, standing.checked_at
    if scheduled_at is None or scheduled_at > believable(now):
        return now  # a time in the future was stored before the clock was set back
    moments = [next_check(monitor_id, interval, scheduled_at)]
    if standing.unconfirmed_at is not None:
        moments.append(_repeat_at(standing.unconfirmed_at, checked, now, pause))
    if standing.blind and network:
        moments.append(_not_ahead(checked, now) + BLIND_PAUSE)
    if standing.asked_at is not None and standing.is_asked and is_fresh(standing.asked_at, now):
        moments.append(standing.asked_at)
    return min(moments)


# An older request for a check is not carried out, because nobody waits for it any more. A person
# waits for up to 70 s (``app/engine/elsewhere.py``), and others may join the request in that time.
REQUEST_LASTS = timedelta(seconds=120)


def is_fresh(asked_at: datetime, now: datetime) -> bool:
    return now - REQUEST_LASTS <= asked_at <= believable(now)


def _repeat_at(
    since: datetime, checked: datetime | None, now: datetime, pause: timedelta
) -> datetime:
    """When a place repeats a check whose result is unconfirmed ``since`` a time."""
    if since > believable(now):  # from a clock that was ahead: count from the last check here
        return _not_ahead(checked, now) + pause
    if checked is not None and checked <= believable(now) and is_repeat(since, checked, pause):
        return NEVER  # this place has repeated it already
    return since + pause


NEVER = datetime.max.replace(tzinfo=UTC)


def is_repeat(since: datetime, checked: datetime, pause: timedelta) -> bool:
    """Whether a check that started at ``checked`` repeats a result that is unconfirmed ``since``.

    A check that started in the first half of the pause does not. All places check at the same time,
    and the first failure is recorded at once. A queue starts its check of the same round a quarter
    of a second later: counted as a repeat, it would keep its place from repeating.
    """
    return checked > since + pause / 2


def _not_ahead(moment: datetime | None, now: datetime) -> datetime:
    return now if moment is None or moment > believable(now) else moment


def pace(checks_per_second: float) -> float:
    """How many checks may start in a second, given how many the schedule needs on average."""
    return max(MINIMUM_PACE, CATCH_UP * checks_per_second)


class Bucket:
    """A token bucket: allows ``pace`` starts a second, and in one burst the starts of a quarter of
    a second (MIN_BURST_SECONDS). If the first check is overdue, it allows in one burst the starts
    of the time since then, because a turn takes a second with a distant database. All times are
    monotonic.
    """

    def __init__(self, pace: float, now: float) -> None:
        self.pace = pace
        self._tokens = self._room(0.0)
        self._filled = now

    def _room(self, overdue: float) -> float:
        return max(5.0, self.pace * min(max(MIN_BURST_SECONDS, overdue), MAX_BURST_SECONDS))

    def available(self, now: float, overdue: float = 0.0) -> int:
        """The number of checks that may start now. ``overdue``: of the first check, in seconds."""
        self._tokens = min(self._room(overdue), self._tokens + (now - self._filled) * self.pace)
        self._filled = now
        return int(self._tokens)

    def spend(self, count: int) -> None:
        self._tokens -= count
