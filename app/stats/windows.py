"""When maintenance is: windows that happen once, repeat, or follow a cron line. Pure; all in UTC.

The first occurrence is the window as typed, from ``start_at`` to ``end_at``. Every later one is as
long as the first:

    daily, weekly    at the same time of day
    monthly          on the same day; in a shorter month on its last day, so that none is left out
    a cron line      whenever the line says, after ``start_at``

None starts after ``repeat_until``. An occurrence includes its start and not its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

from cronsim import CronSim, CronSimError
from dateutil.relativedelta import relativedelta

from app.records import MaintenanceWindow

ONCE = "none"
STEPS = {"daily": timedelta(days=1), "weekly": timedelta(weeks=1)}
MONTHLY = "monthly"
WORDS = (ONCE, *STEPS, MONTHLY)

Span = tuple[datetime, datetime]


def repeat_fault(repeat: str) -> str | None:
    """Why ``repeat`` is neither a word nor a cron line, or None."""
    if repeat in WORDS:
        return None
    try:
        if len(repeat.split()) != 5:
            raise CronSimError("Wrong number of fields")
        next(CronSim(repeat, datetime(2026, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration):
        return (
            f"Choose one of {', '.join(WORDS)}, or write a cron line such as 0 3 * * 1 "
            "(minute, hour, day, month, day of the week)."
        )
    return None


def explain(repeat: str) -> str:
    """When ``repeat`` comes, in words; a cron line's times are in UTC."""
    if repeat in WORDS:
        return {ONCE: "Once", "daily": "Every day", "weekly": "Every week"}.get(
            repeat, "Every month"
        )
    try:
        return f"{CronSim(repeat, datetime(2026, 1, 1, tzinfo=UTC)).explain()} (UTC)"
    except CronSimError:  # another server may repeat in ways that we do not know
        return repeat


def covers(window: MaintenanceWindow, moment: datetime) -> bool:
    """Whether ``moment`` is in an occurrence of ``window``."""
    start = _latest_start(window, moment)
    return start is not None and moment < start + _length(window)


def ends_at(window: MaintenanceWindow, moment: datetime) -> datetime | None:
    """The end of the occurrence that ``moment`` is in; None when it is in none."""
    start = _latest_start(window, moment)
    end = None if start is None else start + _length(window)
    return end if end is not None and moment < end else None


def next_occurrences(window: MaintenanceWindow, n: int, after: datetime) -> list[Span]:
    """The next ``n`` occurrences that are not over at ``after``, in order; fewer when it ends."""
    return list(islice(_spans(window, after), n))


def occurrences_between(window: MaintenanceWindow, start: datetime, end: datetime) -> list[Span]:
    """The occurrences that touch the time from ``start`` to ``end``, in order."""
    found = []
    for span in _spans(window, start):
        if span[0] >= end:
            break
        found.append(span)
    return found


def in_maintenance(
    moment: datetime,
    own: tuple[datetime | None, datetime | None],
    windows: Iterable[MaintenanceWindow],
) -> bool:
    """Whether a monitor with its ``own`` window and these others is in maintenance at
    ``moment``.
    """
    start, end = own
    if start is not None and end is not None and start <= moment < end:
        return True
    return any(covers(window, moment) for window in windows)


def applies_to(window: MaintenanceWindow, monitor_id: int) -> bool:
    """A window without monitors is for all of them."""
    return not window.monitors or monitor_id in window.monitors


def _length(window: MaintenanceWindow) -> timedelta:
    return window.end_at - window.start_at


def _latest_start(window: MaintenanceWindow, moment: datetime) -> datetime | None:
    """The start of the last occurrence that began at ``moment`` or before.

    All are of one length, so if any covers the moment, the last one does.
    """
    if moment < window.start_at:
        return None
    latest = moment if window.repeat_until is None else min(moment, window.repeat_until)
    if latest < window.start_at or window.repeat == ONCE:
        return window.start_at
    if window.repeat in STEPS:
        step = STEPS[window.repeat]
        return window.start_at + (latest - window.start_at) // step * step
    if window.repeat == MONTHLY:
        return _latest_month(window.start_at, latest)
    return max(window.start_at, _latest_tick(window.repeat, latest) or window.start_at)


def _latest_month(start: datetime, latest: datetime) -> datetime:
    months = (latest.year - start.year) * 12 + latest.month - start.month
    found = start + relativedelta(months=months)
    return found if found <= latest else start + relativedelta(months=months - 1)


def _latest_tick(line: str, latest: datetime) -> datetime | None:
    # Reverse search looks before the given moment, and a tick at the moment itself counts.
    beyond = latest.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return next(CronSim(line, beyond, reverse=True), None)


def _spans(window: MaintenanceWindow, after: datetime) -> Iterator[Span]:
    """Occurrences in order, from the first that is not over at ``after``."""
    length = _length(window)
    for start in _starts(window, after - length):
        if window.repeat_until is not None and start > max(window.repeat_until, window.start_at):
            return
        if start + length > after:
            yield start, start + length


def _starts(window: MaintenanceWindow, since: datetime) -> Iterator[datetime]:
    """Starts in order, from the last one at ``since`` or before."""
    start = _latest_start(window, since) or window.start_at
    yield start
    if window.repeat in STEPS:
        while True:
            start += STEPS[window.repeat]
            yield start
    elif window.repeat == MONTHLY:
        first = window.start_at
        months = (start.year - first.year) * 12 + start.month - first.month
        while True:
            months += 1
            yield first + relativedelta(months=months)
    elif window.repeat != ONCE:
        yield from CronSim(window.repeat, start)
