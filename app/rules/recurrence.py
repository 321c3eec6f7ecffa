"""The occurrences of maintenance windows, which occur once, repeat, or follow a cron line. Pure.

Moments are in UTC; repeats follow the clocks of the window's zone. The first occurrence is from
``start_at`` to ``end_at``. Later occurrences start:

    daily, weekly    at the same time of day
    monthly          on the same day; in a shorter month on its last day, so that none is skipped
    a cron line      whenever the line matches, after ``start_at``

If the clocks skip a start, it becomes the moment of the skip. If a start occurs twice, the first
counts. So the order on the clocks is the order in time. An end is read like the end of quiet hours:
22:00 to 06:00 ends at 06:00, however long that night was. An occurrence within an hour that is
skipped or repeated is as long as the clocks say: it neither vanishes nor lasts for both hours.

No occurrence starts after ``repeat_until``. An occurrence includes its start but not its end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import count, groupby, islice, takewhile

from cronsim import CronSim, CronSimError
from dateutil.relativedelta import relativedelta

from app.i18n import N_, _
from app.records import MaintenanceWindow
from app.rules.time import clock_moment, first_moment, zone_of

ONCE = "none"
STEPS = {"daily": timedelta(days=1), "weekly": timedelta(weeks=1)}
MONTHLY = "monthly"
WORDS = (ONCE, *STEPS, MONTHLY)

Occurrence = tuple[datetime, datetime]


def check_repeat(repeat: str) -> None:
    """Raise ValueError with a sentence unless ``repeat`` is a word or a cron line."""
    if not is_repeat(repeat):
        sentence = N_(
            "Choose one of %(words)s, or send a cron expression such as 0 3 * * 1 (minute, "
            "hour, day, month, day of the week)."
        )
        raise ValueError(_(sentence, words=", ".join(WORDS)))


@lru_cache(maxsize=256)  # called for each result of a check
def is_repeat(repeat: str) -> bool:
    if repeat in WORDS:
        return True
    try:
        next(CronSim(repeat, datetime(2026, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration, ValueError, OverflowError):
        return False
    return len(repeat.split()) == 5


def explain(repeat: str, zone: str = "UTC") -> str:
    """``repeat`` in words; the times of a cron line are in the time zone ``zone``."""
    if repeat in WORDS:
        return {ONCE: _("Once"), "daily": _("Every day"), "weekly": _("Every week")}.get(
            repeat, _("Every month")
        )
    try:
        return f"{CronSim(repeat, datetime(2026, 1, 1, tzinfo=UTC)).explain()} ({zone})"
    except CronSimError:  # another server may have repeats that this version does not know
        return repeat


_EACH_DAY_OF_THE_WEEK = (
    N_("and each Monday"), N_("and each Tuesday"), N_("and each Wednesday"),
    N_("and each Thursday"), N_("and each Friday"), N_("and each Saturday"), N_("and each Sunday"),
)  # fmt: skip


def repeated(window: MaintenanceWindow, begin: datetime) -> str:
    """The later occurrences of a window in words: ``and each Sunday``. ``begin``: the start of any
    occurrence.
    """
    if window.repeat == "weekly":
        return _(_EACH_DAY_OF_THE_WEEK[begin.astimezone(zone_of(window.zone)).weekday()])
    if window.repeat in WORDS:
        return _("and each day") if window.repeat == "daily" else _("and each month")
    return explain(window.repeat, window.zone)


def covers(window: MaintenanceWindow, moment: datetime) -> bool:
    """Whether ``moment`` is in an occurrence of ``window``."""
    span = _first(window, moment.replace(second=0, microsecond=0))
    if span is not None and span[1] <= moment:
        span = next(_spans(window, moment), None)
    return span is not None and span[0] <= moment


@lru_cache(maxsize=256)  # called for each result of a check: many times with the same minute
def _first(window: MaintenanceWindow, after: datetime) -> Occurrence | None:
    return next(_spans(window, after), None)


def next_occurrences(window: MaintenanceWindow, n: int, after: datetime) -> list[Occurrence]:
    """The first ``n`` occurrences that are not over at ``after``, in order, or fewer."""
    return list(islice(_spans(window, after), n))


def occurrences_between(
    window: MaintenanceWindow, start: datetime, end: datetime, limit: int | None = None
) -> list[Occurrence]:
    """The first ``limit`` occurrences that overlap the time from ``start`` to ``end``, in order."""
    overlapping = takewhile(lambda span: span[0] < end, _spans(window, start))
    return list(islice(overlapping, limit))


def in_maintenance(
    moment: datetime,
    monitor_window: tuple[datetime | None, datetime | None],
    windows: Iterable[MaintenanceWindow],
) -> bool:
    """Whether a monitor is in maintenance at ``moment``. ``monitor_window``: the times that are set
    on the monitor itself.
    """
    start, end = monitor_window
    if start is not None and end is not None and start <= moment < end:
        return True
    return any(covers(window, moment) for window in windows)


def is_for_all(window: MaintenanceWindow) -> bool:
    """Whether a window is for all monitors, because it names neither monitors nor tags."""
    return not window.monitors and not window.tags


def applies_to(window: MaintenanceWindow, monitor_id: int, tags: Collection[str]) -> bool:
    """Whether a window is for a monitor. ``tags``: the present tags of the monitor."""
    return (
        is_for_all(window)
        or monitor_id in window.monitors
        or any(tag in window.tags for tag in tags)
    )


def _spans(window: MaintenanceWindow, after: datetime) -> Iterator[Occurrence]:
    """Occurrences in order, from the first that is not over at ``after``."""
    if window.unreadable or not is_repeat(window.repeat):  # its times cannot be computed
        return
    until = window.repeat_until
    try:
        for start, wall in _starts(window, _since(window, after)):
            if until is not None and start > max(until, window.start_at):
                return
            end = _end(window, start, wall)
            if end > after:
                yield start, end
    except (OverflowError, ValueError):  # the calendar ends with the year 9999
        return


def _since(window: MaintenanceWindow, after: datetime) -> datetime:
    """A time from which to search: every occurrence that starts before it is over at ``after``."""
    longest = max(_length(window), window.end_at - window.start_at)
    if after - window.start_at <= longest + SET_BACK:
        return window.start_at
    since = after - longest
    # If the clocks are set back during an occurrence, it takes longer than they say.
    offsets = {
        moment.astimezone(zone_of(window.zone)).utcoffset()
        for moment in (since - SET_BACK, since, after)
    }
    return since if len(offsets) == 1 else since - SET_BACK


def _starts(window: MaintenanceWindow, since: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Starts in order, each with its time on the clocks. Starts before ``since`` may be missing."""
    if since <= window.start_at:
        yield window.start_at, _wall(window, window.start_at)
    if window.repeat == ONCE:
        return
    # All times within a skip become the moment of the skip, which counts once.
    for start, walls in groupby(_walls(window, since), lambda wall: _moment(window, wall)):
        if start > window.start_at:
            yield start, max(walls)


def _walls(window: MaintenanceWindow, since: datetime) -> Iterator[datetime]:
    first, last = _wall(window, window.start_at), _wall_before(window, since)
    if window.repeat == MONTHLY:
        months = (last.year - first.year) * 12 + last.month - first.month
        return (first + relativedelta(months=n) for n in count(max(0, months - 1)))
    if window.repeat in STEPS:
        step = STEPS[window.repeat]
        return (first + n * step for n in count(max(0, (last - first) // step - 1)))
    # CronSim's reverse search begins before the given moment. A tick at ``last`` itself counts.
    search_end = last.replace(second=0, microsecond=0) + timedelta(minutes=1)
    ticks = CronSim(window.repeat, search_end, reverse=True)
    tick = next((tick for tick in ticks if _moment(window, tick) <= since), first)
    return CronSim(window.repeat, max(first, tick - timedelta(minutes=1)))


# Clocks ---------------------------------------------------------------------------------------

# Since 1970, no zone has set its clocks back by more than this.
SET_BACK = timedelta(hours=3)


def _wall(window: MaintenanceWindow, moment: datetime) -> datetime:
    return moment.astimezone(zone_of(window.zone)).replace(tzinfo=None)


def _wall_before(window: MaintenanceWindow, moment: datetime) -> datetime:
    """The latest time that the clocks have shown up to ``moment``. After they are set back, it is
    later than the time that they show.
    """
    return max(_wall(window, moment), _wall(window, moment - SET_BACK) + SET_BACK)


def _length(window: MaintenanceWindow) -> timedelta:
    """The length of the window on the clocks, which may show an earlier time at its end."""
    on_clocks = _wall(window, window.end_at) - _wall(window, window.start_at)
    return on_clocks if on_clocks > timedelta() else window.end_at - window.start_at


def _end(window: MaintenanceWindow, start: datetime, wall: datetime) -> datetime:
    """The end of the occurrence that starts at ``start``; ``wall`` is the start on the clocks."""
    if start == window.start_at:
        return window.end_at
    length, zone = _length(window), zone_of(window.zone)
    end = clock_moment(wall + length, zone, second=True)
    changes = (_change(window, wall), _change(window, wall + length))
    is_in_change = changes[0] == changes[1] is not None
    return start + length if is_in_change or end <= start else end


def _change(window: MaintenanceWindow, wall: datetime) -> tuple[object, object] | None:
    """The change of the clocks that skips ``wall`` or repeats it; None if there is none."""
    in_zone = wall.replace(tzinfo=zone_of(window.zone))
    offsets = (in_zone.utcoffset(), in_zone.replace(fold=1).utcoffset())
    return None if offsets[0] == offsets[1] else offsets


def _moment(window: MaintenanceWindow, wall: datetime) -> datetime:
    return first_moment(wall, zone_of(window.zone))
