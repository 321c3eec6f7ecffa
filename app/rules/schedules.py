"""When the next ping of a heartbeat is due: by cron and OnCalendar lines in a zone (decision 18).
Pure.

A time that the clocks skip is due as soon as they have skipped it. One that they show twice is due
the first time: a job that a machine runs twice, or once, is expected once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from cronsim import CronSim, CronSimError

from app.i18n import N_, _
from app.rules import oncalendar
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
    shown = line[:MAX_LINE]
    if not line or len(line) > MAX_LINE:
        raise ValueError(_(BAD_LINE, line=shown))
    try:
        due = _due(line, "UTC", _SOME_TIME)
    except (CronSimError, ValueError, OverflowError):
        raise ValueError(_(BAD_LINE, line=shown)) from None
    if due is None:
        raise ValueError(_(NEVER, line=shown))
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
    there = zone_of(zone)
    wall = after.astimezone(there).replace(tzinfo=None)
    moments = (first_moment(shown, there) for shown in _walls(line, wall))
    return next((moment for moment in moments if moment > after), None)


def _walls(line: str, after: datetime) -> Iterator[datetime]:
    """The times on the clocks that a line names."""
    return CronSim(line, after) if _is_cron(line) else oncalendar.parse(line).after(after)


def _is_cron(line: str) -> bool:
    return len(line.split()) == 5
