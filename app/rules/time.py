"""Times: ISO timestamps, days until an expiry and its warning, time zones, pauses before another
attempt, durations. ``clocks`` is about clocks that are wrong.

Checks, lists, pages and alerts count the days of a certificate here, so that they agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo

from app.i18n import _, _n
from app.records import AUTO

# Times of people and of other servers are limited to these years: near the ends of Python's
# calendar, another zone or a sum would be beyond it.
FIRST_YEAR, LAST_YEAR = 1970, 9000


def to_ms(moment: datetime) -> int:
    """Milliseconds since 1970 of an aware datetime."""
    return round(moment.timestamp() * 1000)


def from_ms(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def iso(moment: datetime) -> str:
    """``2026-11-21T08:00:00Z``."""
    return moment.astimezone(UTC).isoformat()[:19] + "Z"  # 19: down to the seconds


def in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    """The moment in this zone; unchanged if Python's calendar does not have it there. A certificate
    without an expiry ends in the last hours of the year 9999.
    """
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def days_left(expires: datetime, now: datetime) -> int:
    """Calendar days (UTC) until the day of expiry: 0 on that day, negative after it."""
    return (expires.astimezone(UTC).date() - now.astimezone(UTC).date()).days


def expiry(expires: datetime, now: datetime) -> str:
    """``expires tomorrow``, ``expires in 5 days``, ``expired today``."""
    days = days_left(expires, now)
    return _expired(-days) if expires <= now else _expires(days)


def is_zone(name: str) -> bool:
    """Whether this is the name of a time zone, such as ``Europe/Berlin``."""
    return _zone(name) is not None


def zone_of(name: str | None) -> tzinfo:
    """The zone of this name; UTC for an unknown one, which other servers may name."""
    return _zone(name or "UTC") or UTC


def clock_moment(wall: datetime, zone: tzinfo, *, second: bool) -> datetime:
    """When the clocks of ``zone`` show ``wall``, in UTC. A time that they skip becomes later by the
    length of the skip. ``second``: of a time that they show twice, take the second moment.
    """
    first = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    # For a skipped time, fold=1 gives an earlier moment, so the maximum is the first.
    return max(first, wall.replace(tzinfo=zone, fold=1).astimezone(UTC)) if second else first


def first_moment(wall: datetime, zone: tzinfo) -> datetime:
    """When the clocks of ``zone`` first show ``wall``, in UTC. A time that they skip becomes the
    moment of the skip.
    """
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    # The skip lies between the moments that the two offsets give.
    low, high = wall.replace(tzinfo=zone, fold=1).astimezone(UTC), moment
    offset = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = (low + (high - low) / 2).replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return high


def next_change(zone: tzinfo, after: datetime, within: timedelta) -> datetime | None:
    """The next change of the clocks of ``zone`` after ``after``, to the minute. None if there is
    none ``within`` this time.
    """
    low, offset = after.replace(second=0, microsecond=0), after.astimezone(zone).utcoffset()
    end = low + within
    while low < end:
        high = low + timedelta(days=1)
        if high.astimezone(zone).utcoffset() == offset:
            low = high
            continue
        while high - low > timedelta(minutes=1):
            middle = low + (high - low) // 2
            if middle.astimezone(zone).utcoffset() == offset:
                low = middle
            else:
                high = middle
        return high.replace(second=0, microsecond=0)
    return None


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # OSError: a folder's name, such as "Europe"
        return None


def _expires(days: int) -> str:
    if days == 0:
        return _("expires today")
    if days == 1:
        return _("expires tomorrow")
    return _n("expires in %(num)s day", "expires in %(num)s days", days)


def _expired(days: int) -> str:
    if days == 0:
        return _("expired today")
    if days == 1:
        return _("expired yesterday")
    return _n("expired %(num)s day ago", "expired %(num)s days ago", days)


class Backoff:
    """The pauses between failed attempts, in seconds: each is twice as long as the last."""

    def __init__(self, first: float, longest: float) -> None:
        self._first, self._longest = first, longest
        self.reset()

    def reset(self) -> None:
        self.pause = self._first  # the next one

    def next(self) -> float:
        pause, self.pause = self.pause, min(self._longest, 2 * self.pause)
        return pause


def pause_of(header: str | None, now: datetime, longest: float) -> float | None:
    """The pause in seconds that a Retry-After header asks for, in seconds or by a date; at most
    ``longest``. None if the header has neither, or a date that has passed.
    """
    text = (header or "").strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():  # Discord's has a fraction
        return min(float(text[:9]), longest)  # a very long number overflows a float
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # OverflowError: an offset of twenty digits
        return None
    seconds = (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
    return min(seconds, longest) if seconds > 0 else None


UNIT_SECONDS = {
    "ms": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60,
    "minute": 60, "h": 3600, "hr": 3600, "hour": 3600, "d": 86_400, "day": 86_400,
}  # fmt: skip
MAX_DURATION = 100  # characters
_AMOUNT = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+) ?([a-zµ]+)[ ,]*")


def duration_seconds(text: str, units: Mapping[str, float] = UNIT_SECONDS) -> float | None:
    """The seconds of ``5m``, ``1h30m`` or ``1 hour, 5 minutes``; None for any other text, also for
    a number without a unit.
    """
    words = text.strip().lower()
    if len(words) > MAX_DURATION:
        return None
    amounts = _AMOUNT.findall(words)
    factors = [units.get(unit, units.get(unit.removesuffix("s"))) for _amount, unit in amounts]
    if not amounts or None in factors or _AMOUNT.sub("", words):
        return None
    return sum(
        float(amount) * (factor or 0)
        for (amount, _unit), factor in zip(amounts, factors, strict=True)
    )


SHORT_LIFE = timedelta(days=10)
_LAST_SECOND = timedelta(seconds=1)  # 90 days end at 23:59:59: the last second counts


def warning_days(
    setting: int | str | None, issued: datetime | None, expires: datetime | None
) -> int | None:
    """How many days before the expiry of a certificate its warning starts; None for no warning.

    ``auto`` is a third of the certificate's lifetime, or half of a lifetime of 10 days or less: by
    then, automatic renewal has renewed it. None for ``auto`` while the lifetime is not known.
    """
    if isinstance(setting, int) or setting is None:
        return setting
    if setting != AUTO or issued is None or expires is None:
        return None
    life = expires - issued + _LAST_SECOND
    return (life / (2 if life <= SHORT_LIFE else 3)).days


def warns(
    setting: int | str | None, issued: datetime | None, expires: datetime, now: datetime
) -> bool:
    """Whether the warning of an expiry has started."""
    days = warning_days(setting, issued, expires)
    return days is not None and days_left(expires, now) <= days
