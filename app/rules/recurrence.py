"""When maintenance takes place: windows that occur once, repeat, or follow a cron line. Pure.

Moments are in UTC; repeats follow the clocks of the window's zone. The first occurrence is the
window as typed, from ``start_at`` to ``end_at``. Every later one is as long as the first:

    daily, weekly    at the same time of day
    monthly          on the same day; in a shorter month on its last day, so that none is skipped
    a cron line      whenever the line matches, after ``start_at``

A time of day that the clocks skip becomes the moment of the skip; of one that occurs twice, the
first counts. So the order on the clocks is the order in time.

No occurrence starts after ``repeat_until``. An occurrence includes its start but not its end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import count, islice, takewhile

from cronsim import CronSim, CronSimError
from dateutil.relativedelta import relativedelta

from app.i18n import _
from app.records import MaintenanceWindow
from app.rules.time import is_zone, zone_of

ONCE = "none"
STEPS = {"daily": timedelta(days=1), "weekly": timedelta(weeks=1)}
MONTHLY = "monthly"
WORDS = (ONCE, *STEPS, MONTHLY)

Span = tuple[datetime, datetime]


def repeat_fault(repeat: str) -> str | None:
    """Why ``repeat`` is not valid (neither a word nor a cron line), or None."""
    if _is_repeat(repeat):
        return None
    return _(
        "Choose one of %(words)s, or send a cron expression such as 0 3 * * 1 (minute, "
        "hour, day, month, day of the week).",
        words=", ".join(WORDS),
    )


@lru_cache(maxsize=256)  # asked for each result of a check
def _is_repeat(repeat: str) -> bool:
    if repeat in WORDS:
        return True
    try:
        next(CronSim(repeat, datetime(2026, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration, ValueError, OverflowError):
        return False
    return len(repeat.split()) == 5


def repeat_faults(repeat: str, zone: str) -> tuple[str, ...]:
    """Which of a stored window's ``repeat`` and ``zone`` cannot be read."""
    return (
        *([] if _is_repeat(repeat) else ["repeat"]),
        *([] if is_zone(zone) else ["zone"]),
    )


def explain(repeat: str, zone: str = "UTC") -> str:
    """Say in words when ``repeat`` occurs; a cron line's times are in the time zone ``zone``."""
    if repeat in WORDS:
        return {ONCE: _("Once"), "daily": _("Every day"), "weekly": _("Every week")}.get(
            repeat, _("Every month")
        )
    try:
        return f"{CronSim(repeat, datetime(2026, 1, 1, tzinfo=UTC)).explain()} ({zone})"
    except CronSimError:  # another server may have repeats that this version does not know
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


def occurrences_between(
    window: MaintenanceWindow, start: datetime, end: datetime, most: int | None = None
) -> list[Span]:
    """The occurrences that touch the time from ``start`` to ``end``, in order; the first ``most``
    of them.
    """
    touching = takewhile(lambda span: span[0] < end, _spans(window, start))
    return list(islice(touching, most))


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


def for_all(window: MaintenanceWindow) -> bool:
    """A window without monitors and tags is for all monitors."""
    return not window.monitors and not window.tags


def applies_to(window: MaintenanceWindow, monitor_id: int, tags: Collection[str]) -> bool:
    """``tags``: those that the monitor has now."""
    return (
        for_all(window) or monitor_id in window.monitors or any(tag in window.tags for tag in tags)
    )


def _applies(window: MaintenanceWindow) -> bool:
    """Whether it can be said when it is."""
    return not window.unreadable and _is_repeat(window.repeat)


def _length(window: MaintenanceWindow) -> timedelta:
    return window.end_at - window.start_at


def _latest_start(window: MaintenanceWindow, moment: datetime) -> datetime | None:
    """The start of the last occurrence that began at ``moment`` or before.

    All have the same length, so if any contains the moment, the last one does.
    """
    if moment < window.start_at or not _applies(window):
        return None
    latest = moment if window.repeat_until is None else min(moment, window.repeat_until)
    if latest < window.start_at or window.repeat == ONCE:
        return window.start_at
    if window.repeat not in (*STEPS, MONTHLY):
        return max(window.start_at, _latest_tick(window, latest) or window.start_at)
    number = _number_before(window, _wall_before(window, latest))
    while number > 0 and _repeat(window, number) > latest:
        number -= 1
    return _repeat(window, number)


def _number_before(window: MaintenanceWindow, wall: datetime) -> int:
    """How many repeats begin before a time on the clocks; may be one too many."""
    first = _wall(window, window.start_at)
    if window.repeat in STEPS:
        return max(0, (wall - first) // STEPS[window.repeat])
    return max(0, (wall.year - first.year) * 12 + wall.month - first.month)


def _repeat(window: MaintenanceWindow, number: int) -> datetime:
    """The start of an occurrence; number 0 is the window as typed."""
    if number == 0:
        return window.start_at
    first = _wall(window, window.start_at)
    if window.repeat in STEPS:
        return _moment(window, first + number * STEPS[window.repeat])
    return _moment(window, first + relativedelta(months=number))


def _latest_tick(window: MaintenanceWindow, latest: datetime) -> datetime | None:
    # Reverse search looks before the given moment, and a tick at the moment itself counts.
    beyond = _wall_before(window, latest).replace(second=0, microsecond=0) + timedelta(minutes=1)
    ticks = (_moment(window, tick) for tick in CronSim(window.repeat, beyond, reverse=True))
    return next((tick for tick in ticks if tick <= latest), None)


# Clocks ---------------------------------------------------------------------------------------

# No zone has set its clocks back by more than this in our time.
SET_BACK = timedelta(hours=3)


def _wall(window: MaintenanceWindow, moment: datetime) -> datetime:
    return moment.astimezone(zone_of(window.zone)).replace(tzinfo=None)


def _wall_before(window: MaintenanceWindow, moment: datetime) -> datetime:
    """The latest time that the clocks have shown up to ``moment``. After they are set back, it is
    later than the time that they show.
    """
    return max(_wall(window, moment), _wall(window, moment - SET_BACK) + SET_BACK)


def _moment(window: MaintenanceWindow, wall: datetime) -> datetime:
    zone = zone_of(window.zone)
    found = wall.replace(tzinfo=zone).astimezone(UTC)
    if found.astimezone(zone).replace(tzinfo=None) == wall:
        return found
    # The clocks skip this time: the skip lies between the moments that the two offsets give.
    early, late = wall.replace(tzinfo=zone, fold=1).astimezone(UTC), found
    before = early.astimezone(zone).utcoffset()
    while late - early > timedelta(seconds=1):
        middle = (early + (late - early) / 2).replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == before:
            early = middle
        else:
            late = middle
    return late


def _spans(window: MaintenanceWindow, after: datetime) -> Iterator[Span]:
    """Occurrences in order, from the first that is not over at ``after``."""
    length = _length(window)
    if not _applies(window):
        return
    try:
        for start in _starts(window, after - length):
            if window.repeat_until is not None and start > max(
                window.repeat_until, window.start_at
            ):
                return
            if start + length > after:
                yield start, start + length
    except (OverflowError, ValueError):  # the calendar ends with the year 9999
        return


def _starts(window: MaintenanceWindow, since: datetime) -> Iterator[datetime]:
    """Starts in order, from the last one at ``since`` or before."""
    start = _latest_start(window, since) or window.start_at
    yield start
    if window.repeat in (*STEPS, MONTHLY):
        number = _number_before(window, _wall(window, start))
        later = (_repeat(window, repeat) for repeat in count(number))
    elif window.repeat != ONCE:
        ticks = CronSim(window.repeat, _wall(window, start))
        later = (_moment(window, tick) for tick in ticks)
    else:
        return
    last = start
    for moment in later:
        if moment > last:  # several skipped times of day are one moment
            yield moment
            last = moment
