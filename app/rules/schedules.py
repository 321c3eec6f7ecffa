"""When the next ping of a heartbeat is due: by cron lines and by OnCalendar lines (as in timers of
systemd), in a zone (decision 18). Pure.

OnCalendar lines are parsed here, because the library for them has no wheel, and Wakeful is
installed from wheels alone.

A time that the clocks skip is due as soon as they have skipped it. A time that occurs twice is due
the first time, whether the machine runs the job once or twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import product

from cronsim import CronSim, CronSimError

from app.i18n import N_, _
from app.rules.time import first_moment, is_zone, zone_of

MAX_LINE = 100
BAD_LINE = N_(
    "%(line)s is no schedule: write a cron line of five fields, such as 30 2 * * *, or an"
    " OnCalendar line, such as Mon..Fri 02:30."
)
NEVER = N_("%(line)s never comes.")
_SOME_TIME = datetime(2024, 1, 1, tzinfo=UTC)


def check_line(line: str) -> str:
    """The line without white space around it. Raises ValueError with a sentence."""
    line = " ".join(line.split())
    beginning = line[:MAX_LINE]
    if not line or len(line) > MAX_LINE:
        raise ValueError(_(BAD_LINE, line=beginning))
    try:
        due = _due(line, "UTC", _SOME_TIME)
    except (CronSimError, ValueError, OverflowError):
        raise ValueError(_(BAD_LINE, line=beginning)) from None
    if due is None:
        raise ValueError(_(NEVER, line=beginning))
    return line


def next_due(lines: Sequence[str], zone: str, after: datetime) -> datetime | None:
    """The first moment after ``after`` that one of the lines names; None if there is none."""
    return min((due for line in lines if (due := _due(line, zone, after))), default=None)


@lru_cache(maxsize=1_000)
def _due(line: str, zone: str, after: datetime) -> datetime | None:
    if not _is_cron(line):
        head, _space, last = line.rpartition(" ")
        if head and not last[0].isdigit() and last[0] != "*" and is_zone(last):
            line, zone = head, last
    tz = zone_of(zone)
    wall = after.astimezone(tz).replace(tzinfo=None)
    moments = (first_moment(due_wall, tz) for due_wall in _walls(line, wall))
    return next((moment for moment in moments if moment > after), None)


def _walls(line: str, after: datetime) -> Iterator[datetime]:
    """The times on the clocks that a line names."""
    return CronSim(line, after) if _is_cron(line) else _calendar_line(line).times_after(after)


def _is_cron(line: str) -> bool:
    return len(line.split()) == 5


# --- OnCalendar lines: ``Mon..Fri 02:30``, ``*-*-01 04:00:00``, ``daily``

SHORTHANDS = {
    "minutely": "*-*-* *:*:00", "hourly": "*-*-* *:00:00", "daily": "*-*-* 00:00:00",
    "weekly": "Mon *-*-* 00:00:00", "monthly": "*-*-01 00:00:00",
    "quarterly": "*-01,04,07,10-01 00:00:00", "semiannually": "*-01,07-01 00:00:00",
    "yearly": "*-01-01 00:00:00", "annually": "*-01-01 00:00:00",
}  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
YEARS = (1970, 2199)
SEARCHED_YEARS = 30  # longer than from one 29 February on a Monday to the next
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _CalendarLine:
    """The allowed values of each part. ``from_end``: ``days`` are counted from the month's end."""

    weekdays: frozenset[int]
    years: frozenset[int]
    months: frozenset[int]
    days: frozenset[int]
    from_end: bool
    hours: Sequence[int]
    minutes: Sequence[int]
    seconds: Sequence[int]

    def times_after(self, wall: datetime) -> Iterator[datetime]:
        """The times after ``wall`` in order, on the same clocks."""
        day, end = wall.date(), wall.date() + 366 * SEARCHED_YEARS * DAY
        while day < end:
            if self._has(day):
                for hour, minute, second in product(self.hours, self.minutes, self.seconds):
                    moment = datetime.combine(day, time(hour, minute, second))
                    if moment > wall:
                        yield moment
            day += DAY

    def _has(self, day: date) -> bool:
        return (
            day.year in self.years
            and day.month in self.months
            and day.weekday() in self.weekdays
            and (self._days_left(day) if self.from_end else day.day) in self.days
        )

    @staticmethod
    def _days_left(day: date) -> int:
        """1 on the last day of the month."""
        following = day.replace(day=1) + 32 * DAY
        return (following.replace(day=1) - day).days


def _calendar_line(line: str) -> _CalendarLine:
    """Parse an OnCalendar line. Raises ValueError for any other line. The line may still name a day
    that never comes.
    """
    parts = SHORTHANDS.get(line.lower(), line).split()
    if not parts:
        raise ValueError(line)
    clock = parts.pop().split(":") if ":" in parts[-1] else ["0", "0"]
    if len(clock) == 2:
        clock.append("0")
    hours, minutes, seconds = clock  # ValueError for another number of parts
    day = parts.pop() if parts and parts[-1][0] in "0123456789*" else "*-*"
    from_end = "~" in day
    numbers = day.replace("~", "-").split("-")
    if len(numbers) == 2:
        numbers.insert(0, "*")
    year, month, month_day = numbers
    weekdays = _weekdays(parts.pop()) if parts else frozenset(range(7))
    if parts:
        raise ValueError(line)
    return _CalendarLine(
        weekdays,
        frozenset(_numbers(year, *YEARS)),
        frozenset(_numbers(month, 1, 12)),
        frozenset(_numbers(month_day, 1, 28 if from_end and month_day != "*" else 31)),
        from_end,
        sorted(_numbers(hours, 0, 23)),
        sorted(_numbers(minutes, 0, 59)),
        sorted(_numbers(seconds, 0, 59)),
    )


def _numbers(text: str, low: int, high: int) -> set[int]:
    allowed: set[int] = set()
    for term in text.split(","):
        span, slash, step = term.partition("/")
        first, dots, last = span.partition("..")
        start = low if first == "*" and not dots else _number(first, low, high)
        open_ended = first == "*" or bool(slash)
        stop = _number(last, low, high) if dots else (high if open_ended else start)
        if stop < start:
            raise ValueError(text)
        allowed.update(range(start, stop + 1, _number(step, 1, high) if slash else 1))
    return allowed


def _number(text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        raise ValueError(text)
    value = int(text)
    if low == YEARS[0] and value < 100:
        value += 2000 if value < 70 else 1900
    if not low <= value <= high:
        raise ValueError(text)
    return value


def _weekdays(text: str) -> frozenset[int]:
    allowed: set[int] = set()
    for term in text.rstrip(",").lower().replace("-", "..").split(","):
        first, dots, last = term.partition("..")
        start = _weekday(first)
        stop = _weekday(last) if dots else start
        if stop < start:
            raise ValueError(text)
        allowed.update(range(start, stop + 1))
    return frozenset(allowed)


def _weekday(text: str) -> int:
    names = (*WEEKDAYS, *(name[:3] for name in WEEKDAYS))
    return names.index(text) % 7  # ValueError for another word
