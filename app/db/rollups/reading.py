"""Read sums for lists and charts: from the rollups, and for the last hours from the results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from statistics import median
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Select,
    bindparam,
    case,
    func,
    literal_column,
    null,
    select,
    union_all,
)

from app.db import cached, db, packed
from app.db.cached import Cached
from app.db.rollups.rows import (
    DAY_S,
    HOUR_S,
    MONITORS,
    ROLLUPS,
    floor_to,
    incidents_between,
    limit_of,
    outage_times_of,
    sums_of,
    sums_of_results,
)
from app.db.statements import pieces
from app.db.tables import MonitorStateRow, RollupRow
from app.db.types import from_ms, to_ms
from app.records import PHASES, UPTIME_RANGES
from app.stats import report
from app.stats.cover import Span
from app.stats.series import (
    MINUTE_MS,
    ChartSpan,
    ChartSums,
    LastHours,
    StripHour,
    start_of,
    start_of_strip,
    strips_since,
    with_hours,
)
from app.stats.tally import DAY_MS, HOUR_MS, IncidentSpan, Sums, merged, percent

SAME_MOMENT_MS = 1_000  # between the parts of one page
MONITORS_IN_MEMORY = 100  # with their results

# Milliseconds up and down in each of some ranges.
UpDown = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a list, by monitor: its uptime in percent for each range (None without data),
    and the entries of its strip (``app.stats.series``), if they were requested.
    """

    uptimes: Mapping[int, Mapping[str, float | None]]
    hours: Mapping[int, Sequence[Mapping[str, Any]]]


NO_FIGURES = Figures({}, {})


class ListFigures:
    """Reads the figures of lists, and caches those of rollups until these change (``Cached``).

    The cache is bounded: a monitor's uptimes take some 300 bytes, its strip some 7 KB.
    """

    def __init__(self) -> None:
        self._uptimes: Cached[UpDown] = Cached(20_000)
        self._strips: Cached[LastHours] = Cached(1_000)
        self._shown: Cached[tuple[Mapping[str, float | None], Sequence[Mapping[str, Any]]]] = (
            Cached(1_000)
        )

    def read(
        self,
        monitors: Sequence[Any],
        now: datetime,
        ranges: Collection[str],
        *,
        hours: bool,
        change: int,
    ) -> Figures:
        """The figures of ``monitors``, which have the columns of ``MONITORS``, and ``newest_at``,
        the time of their newest result. ``ranges``: some of ``UPTIME_RANGES``. ``hours``: whether
        to read the strips. ``change``: the number of the newest change.

        Figures change with results, with changes, and as time passes. They are cached for a minute
        at most: lists are shown again and again, and most of their monitors have no new result.
        """
        minute = to_ms(now) // MINUTE_MS
        versions = {
            row.monitor_id: (minute, change, row.newest_at, row.sums_version, row.rolled_until)
            for row in monitors
        }

        def fetch(missing: Sequence[int]) -> dict[int, Any]:
            missing_ids = {*missing}
            some = [monitor for monitor in monitors if monitor.monitor_id in missing_ids]
            figures = self._read(some, now, ranges, hours=hours)
            return {id: (figures.uptimes[id], figures.hours.get(id, ())) for id in missing}

        shown = self._shown.read(versions, (*ranges, hours), fetch)
        return Figures(
            {id: uptimes for id, (uptimes, _hours) in shown.items()},
            {id: entries for id, (_uptimes, entries) in shown.items()} if hours else {},
        )

    def _read(
        self, monitors: Sequence[Any], now: datetime, ranges: Collection[str], *, hours: bool
    ) -> Figures:
        """Read uptimes and strips together: both need the results that are not summed yet, which
        take the longest to read.
        """
        now_ms = to_ms(now)
        starts = {name: start_of(name, now_ms) for name in UPTIME_RANGES if name in ranges}
        since = [*starts.values(), *([start_of_strip(now_ms)] if hours else [])]
        versions = {monitor.monitor_id: monitor.sums_version for monitor in monitors}
        latest = unsummed_hours(monitors, min(since), now_ms) if since else {}
        uptimes: dict[int, dict[str, float | None]] = {id: {} for id in versions}
        if starts:
            what = (tuple(starts.items()), -(-now_ms // HOUR_MS))  # hours are read up to now
            today = whole_days_until(monitors, now_ms)
            up_down = self._uptimes.read(
                versions, what, lambda missing: _summed(missing, now_ms, today, starts)
            )
            uptimes = _uptimes(up_down, starts, latest)
        strips: dict[int, Sequence[Mapping[str, Any]]] = {}
        if hours:
            start = start_of_strip(now_ms)
            summed = self._strips.read(versions, start, lambda missing: _strips(missing, start))
            for id, hours_of in latest.items():
                unsummed = {begin: strip_hour(sums) for begin, sums in hours_of.items()}
                strips[id] = with_hours(summed[id], start, unsummed)
        return Figures(uptimes, strips)


def _uptimes(
    summed: Mapping[int, UpDown],
    starts: Mapping[str, int],
    unsummed: Mapping[int, Mapping[int, Sums]],
) -> dict[int, dict[str, float | None]]:
    uptimes: dict[int, dict[str, float | None]] = {}
    for id, sums in summed.items():
        uptimes[id] = {}
        for (name, start), (up, down) in zip(starts.items(), sums, strict=True):
            for begin, hour in unsummed[id].items():
                if begin >= start:
                    up += hour.up
                    down += hour.down
            uptimes[id][name] = percent(up, down)
    return uptimes


def _summed(
    ids: Sequence[int], now_ms: int, today: int, starts: Mapping[str, int]
) -> dict[int, UpDown]:
    """The milliseconds up and down of each monitor by the rollups, for each range of ``starts`` in
    its order. ``today``: see ``whole_days_until``.
    """
    statement, columns = _summing(tuple(starts))
    sums = {id: dict.fromkeys(columns, 0) for id in ids}
    for id, *row in db.session.execute(statement, {"ids": ids, **_bounds(starts, now_ms, today)}):
        for column, seconds in zip(columns, row, strict=True):
            if seconds:  # most columns are zero: most parts belong to one range only
                sums[id][column] += int(seconds) * 1000
    return {
        id: tuple((totals[name, 0], totals[name, 1]) for name in starts)
        for id, totals in sums.items()
    }


def sums_between(
    ids: Sequence[int], start_ms: int, end_ms: int, now: datetime, *, days: bool = True
) -> dict[int, list[tuple[int, Sums]]]:
    """The start (ms) and sums of each monitor's hours from ``start_ms`` to ``end_ms`` (full hours)
    or to ``now``, in no order. With ``days``, a whole UTC day takes the place of its hours.
    """
    last = min(end_ms, to_ms(now))
    if start_ms >= last:
        return {id: [] for id in ids}
    monitors = db.session.execute(MONITORS, {"ids": ids}).all()
    today = whole_days_until(monitors, last) if days else None
    sums = _rows_between(ids, start_ms, last, today)
    for id, hours in unsummed_hours(monitors, start_ms, last, phases=True).items():
        sums[id] += hours.items()
    return sums


class ChartFigures:
    """Reads the sums of charts, and caches those of rollups until these change (``Cached``):
    otherwise a page that refreshes itself would read and merge 720 hours each time. A chart takes
    some 200 KB, without response times 50.

    Buckets narrower than an hour are summed from the results. Those before the end of the rollups
    are cached until the rollups change, because late results change both.
    """

    def __init__(self) -> None:
        self._summed: Cached[ChartSums] = Cached(16)

    def read(
        self,
        monitor: Any,
        span: ChartSpan,
        incidents: Sequence[IncidentSpan],
        now: datetime,
        *,
        response: bool = True,
    ) -> tuple[ChartSums | None, Iterable[tuple[int, Sums]]]:
        """The cached sums of the monitor's buckets, and the start (ms) and sums of the rest of the
        time. ``monitor`` has the columns of ``MONITORS``; ``incidents`` are those of this time.
        ``response``: with the response times.
        """
        id, last = monitor.monitor_id, min(span.end, to_ms(now))
        if span.start >= last:
            return None, ()
        if span.width < HOUR_MS:
            return self._of_results(monitor, span, incidents, last)

        def merge(ids: Sequence[int]) -> dict[int, ChartSums]:
            today = whole_days_until([monitor], last) if span.width == DAY_MS else None
            rows = _rows_between(ids, span.start, last, today, response=response)
            return {id: ChartSums(rows[id], span.width) for id in ids}

        what = (span.start, -(-last // HOUR_MS), span.width, response)  # hours are read up to last
        summed = self._summed.read({id: monitor.sums_version}, what, merge)[id]
        hours = unsummed_hours([monitor], span.start, last, {id: incidents}, phases=response)
        return summed, hours[id].items()

    def _of_results(
        self, monitor: Any, span: ChartSpan, incidents: Sequence[IncidentSpan], last: int
    ) -> tuple[ChartSums, Iterable[tuple[int, Sums]]]:
        id, rolled, width = monitor.monitor_id, monitor.rolled_until, span.width
        until = span.start if rolled is None else min(last, max(span.start, to_ms(rolled)))
        trouble = outage_times_of([monitor], span.start, until, {id: incidents})
        what = (trouble[id], limit_of(monitor), width, span.start, until, monitor.confirmations)

        def sum_up(_ids: Sequence[int]) -> dict[int, ChartSums]:
            sums = sums_of_results([monitor], trouble, width, span.start, until)
            return {id: ChartSums(sums[id].items(), width)}

        summed = self._summed.read({id: monitor.sums_version}, what, sum_up)[id]
        recent = (
            sums_by_period(monitor, incidents, until, width, from_ms(last)) if until < last else {}
        )
        return summed, recent.items()


def _rows_between(
    ids: Sequence[int], start_ms: int, last_ms: int, today: int | None, *, response: bool = True
) -> dict[int, list[tuple[int, Sums]]]:
    """The start (ms) and sums of each monitor's rollups between two times. ``today``: see
    ``whole_days_until``; None to read hours only. ``response``: with response times.
    """
    sums: dict[int, list[tuple[int, Sums]]] = {id: [] for id in ids}
    end = -(-last_ms // 1000)
    span = {"ids": ids, "start": start_ms // 1000, "end": end}
    if today is not None:
        midnights = (min(midnight, end) for midnight in _whole_days(start_ms, today))
        span |= zip(("midnight", "today"), midnights, strict=True)
    for row in db.session.execute(_rows(days=today is not None, response=response), span):
        sums[row.monitor_id].append((row.start * 1000, sums_of(row)))
    return sums


def report_figures(
    ids: Sequence[int], start_ms: int, end_ms: int, now: datetime, *, days: bool = False
) -> dict[int, dict[str, Any]]:
    """The figures of a report (``app.stats.report``). All monitors of ``ids`` must exist."""
    last = min(end_ms, to_ms(now))
    incidents = incidents_between(ids, start_ms, max(start_ms, last))
    return report.figures(
        start_ms, last, sums_between(ids, start_ms, last, now), incidents, days=days
    )


def only_summed(monitor_id: int, start_ms: int, end_ms: int) -> bool:
    """Whether this time has summed hours whose results are deleted already."""
    first_hour = db.session.scalar(
        select(func.min(RollupRow.start)).where(
            RollupRow.monitor_id == monitor_id,
            RollupRow.period == HOUR_S,
            RollupRow.start >= start_ms // 1000,
            RollupRow.start < end_ms // 1000,
            RollupRow.checks > 0,
        )
    )
    if first_hour is None:
        return False
    first_result = packed.first_at(monitor_id, start_ms)
    return first_result is None or first_result >= first_hour * 1000 + HOUR_MS


def sums_by_period(
    monitor: Any, incidents: Sequence[IncidentSpan], start_ms: int, width_ms: int, now: datetime
) -> dict[int, Sums]:
    """The sums of periods of ``width_ms``, by their start, computed from the results. ``monitor``:
    see ``monitor_of``. ``incidents``: those of this time.
    """
    end, id = to_ms(now), monitor.monitor_id
    trouble = outage_times_of([monitor], start_ms, end, {id: incidents})
    return sums_of_results([monitor], trouble, width_ms, start_ms, end)[id]


def slow_spans(monitor_id: int, start: int, end: int, limit: int, reach: int) -> Sequence[Span]:
    """The parts of this time (ms) in which a check may have taken longer than ``limit`` ms, each
    with ``reach`` ms before and after it. An hour whose slowest check was faster is left out.
    """
    hours = db.session.execute(
        select(ROLLUPS.c.start).where(
            ROLLUPS.c.monitor_id == monitor_id,
            ROLLUPS.c.period == HOUR_S,
            ROLLUPS.c.start >= start // 1000 - HOUR_S,
            ROLLUPS.c.response_max > limit,
        )
    )
    until = db.session.scalar(
        select(MonitorStateRow.rolled_until).where(MonitorStateRow.monitor_id == monitor_id)
    )
    unsummed = start if until is None else to_ms(until) - reach
    slow = [(begin * 1000 - reach, begin * 1000 + HOUR_MS + reach) for (begin,) in hours]
    spans = merged([*slow, (unsummed, end)])
    return [(max(begin, start), min(stop, end)) for begin, stop in spans if stop > start]


def usual_times(spans: Mapping[int, tuple[int, int]]) -> dict[int, list[int | None]]:
    """The usual response time and phases (ms) of each monitor between two times (ms): the medians
    of the averages of its whole hours. Monitors without such an hour are left out.
    """
    first = min(begin for begin, _end in spans.values()) // 1000
    hours: dict[int, list[list[float]]] = {}
    for row in db.session.execute(_AVERAGES, {"ids": list(spans), "start": first}):
        begin, end = spans[row.monitor_id]
        if begin <= row.start * 1000 and (row.start + HOUR_S) * 1000 <= end:
            sums = [row.response_sum, *(row.phases or [0] * len(PHASES))]
            averages = [spent / row.response_count for spent in sums]
            hours.setdefault(row.monitor_id, []).append(averages)
    return {
        id: [round(median(column)) for column in zip(*averages, strict=True)]
        for id, averages in hours.items()
    }


def _hours_since_start(*names: str) -> Select[Any]:
    return select(*(ROLLUPS.c[name] for name in ("monitor_id", "start", *names))).where(
        _OF_MONITORS, ROLLUPS.c.period == HOUR_S, ROLLUPS.c.start >= bindparam("start")
    )


_OF_MONITORS = ROLLUPS.c.monitor_id.in_(bindparam("ids", expanding=True))
_AVERAGES = _hours_since_start("response_count", "response_sum", "phases").where(
    ROLLUPS.c.response_count > 0
)
_STRIPS = _hours_since_start(  # in the order of ``StripHour``
    "up_s", "down_s", "unknown_s", "maintenance_s", "response_count", "response_sum", "degraded_s"
)


def _strips(ids: Sequence[int], start: int) -> dict[int, LastHours]:
    """The strips since ``start`` (ms) from the rollups."""
    hours: dict[int, dict[int, StripHour]] = {id: {} for id in ids}
    for id, begin, *figures in db.session.execute(_STRIPS, {"ids": ids, "start": start // 1000}):
        hours[id][begin * 1000] = StripHour(*figures)
    return strips_since(start, hours)


def strip_hour(sums: Sums) -> StripHour:
    return StripHour(
        sums.up // 1000,
        -(-sums.down // 1000),  # rounded up: a second of downtime must not vanish
        sums.unknown // 1000,
        sums.maintenance // 1000,
        sums.response_count,
        sums.response_sum,
        -(-sums.degraded // 1000),
    )


def unsummed_hours(
    monitors: Sequence[Any],
    since: int,
    now: int,
    incidents: Mapping[int, Sequence[IncidentSpan]] | None = None,
    *,
    phases: bool = False,
) -> dict[int, dict[int, Sums]]:
    """The sums of each monitor since ``since`` (ms) that are not in rollups yet, by the start of
    the hour, computed from its results. ``monitors``: rows of ``MONITORS``; ``incidents``: those
    since ``since``, if the caller has read them.

    Monitors that are summed until the same time, as almost all are, share a statement. One for all
    of them would read all results if a monitor was never summed.
    """
    hours: dict[int, dict[int, Sums]] = {monitor.monitor_id: {} for monitor in monitors}
    by_start: dict[int, list[Any]] = {}
    for monitor in monitors:
        rolled = monitor.rolled_until
        start = since if rolled is None else max(since, to_ms(rolled))
        by_start.setdefault(start, []).append(monitor)
    for start, alike in by_start.items():
        # In pieces: tens of thousands of tuples keep the garbage collector busy.
        for part in pieces(alike if start < now else [], MONITORS_IN_MEMORY):
            hours |= _unsummed_since(start, part, now, incidents, phases=phases)
    return hours


def _unsummed_since(
    start: int,
    monitors: Sequence[Any],
    now: int,
    incidents: Mapping[int, Sequence[IncidentSpan]] | None,
    *,
    phases: bool,
) -> dict[int, dict[int, Sums]]:
    # The page of a monitor reads its uptimes, its chart and its days in one transaction.
    of_page = cached.of_transaction() if len(monitors) == 1 else {}
    name = f"tail {monitors[0].monitor_id} {start}"
    if name in of_page:
        until, has_phases, hours = of_page[name]
        if 0 <= now - until < SAME_MOMENT_MS and (has_phases or not phases):
            return hours  # type: ignore[no-any-return]
    trouble = outage_times_of(monitors, start, now, incidents)
    # Only summed hours are packed, a day later.
    hours = sums_of_results(monitors, trouble, HOUR_MS, start, now, phases=phases, recent=True)
    of_page[name] = now, phases, hours
    return hours


def whole_days_until(monitors: Iterable[Any], now: int) -> int:
    """The midnight (ms) before which the rows of days are complete for these monitors, which have
    the columns of ``MONITORS``. Just after midnight, the last hour of yesterday is not summed in
    full, and the row of the day lacks it.
    """
    rolled = [monitor.rolled_until for monitor in monitors if monitor.rolled_until is not None]
    return floor_to(min(now, to_ms(min(rolled))) if rolled else now, DAY_MS)


def _whole_days(start: int, today: int) -> tuple[int, int]:
    """The midnights (seconds) between which rows of days are read for a range from ``start`` (ms).

    The time after ``today`` (``whole_days_until``) is read by hours. So is the first day, because
    the range may begin within it.
    """
    first_midnight = -(-start // DAY_MS) * DAY_S
    return first_midnight, max(first_midnight, today // 1000)


def _bound(name: str) -> Any:
    return bindparam(name, type_=BigInteger)


def _rollups(period: int, begin: str, end: str, *, response: bool) -> Select[Any]:
    """The rows from ``begin`` to ``end``, the names of two parameters. ``response``: with
    histograms and phases, which take longest to read.
    """
    columns = [
        column if response or column.name not in _DETAILS else null().label(column.name)
        for column in ROLLUPS.c
    ]
    return select(*columns).where(*_between(period, begin, end))


def _between(period: int, begin: str, end: str) -> tuple[ColumnElement[bool], ...]:
    is_within = ROLLUPS.c.start >= _bound(begin), ROLLUPS.c.start < _bound(end)
    return _OF_MONITORS, ROLLUPS.c.period == period, *is_within


_DETAILS = ("histogram", "phases")


@cache
def _rows(*, days: bool, response: bool) -> Any:
    """The statement for the rows of a time, built once: building takes longer than running. Each
    part is a scan, because a condition with OR would read all hours.
    """
    if not days:
        return _rollups(HOUR_S, "start", "end", response=response)
    return union_all(
        _rollups(HOUR_S, "start", "midnight", response=response),
        _rollups(DAY_S, "midnight", "today", response=response),
        _rollups(HOUR_S, "today", "end", response=response),
    )


@cache
def _summing(ranges: tuple[str, ...]) -> tuple[CompoundSelect[Any], list[tuple[str, int]]]:
    """The statement that sums the uptime of ``ranges``, and what its columns after the monitor's id
    are: (range, 0 for up or 1 for down), in seconds.

    Each part is a short scan, because a condition with OR would read all hours of 90 days. Today
    and the whole days are read once for all ranges, the hours before the first midnight for each
    range.
    """
    columns = [(name, index) for name in ranges for index in (0, 1)]

    def part(
        period: int, begin: str, end: str, counting: Collection[str], since: str = "start"
    ) -> Select[Any]:
        """The rows from ``begin`` to ``end``, which count for the ranges ``counting``: for each
        from ``since`` of the range on. All three are names of ``_bounds``.
        """
        seconds = (ROLLUPS.c.up_s, ROLLUPS.c.down_s)
        return (
            select(
                ROLLUPS.c.monitor_id,
                *(
                    func.sum(
                        case(
                            (ROLLUPS.c.start >= _bound(f"{since}_{name}"), seconds[index]), else_=0
                        )
                    )
                    if name in counting
                    else literal_column("0")
                    for name, index in columns
                ),
            )
            .where(*_between(period, begin, end))
            .group_by(ROLLUPS.c.monitor_id)
        )

    whole = union_all(
        part(HOUR_S, "today", "now", ranges),
        part(DAY_S, "first", "today", ranges, since="midnight"),
        *(part(HOUR_S, f"start_{name}", f"midnight_{name}", (name,)) for name in ranges),
    )
    return whole, columns


def _bounds(starts: Mapping[str, int], now: int, today: int) -> dict[str, int]:
    """The parameters of ``_summing``, in seconds. ``midnight_*``: the start of a range's first
    whole day.
    """
    midnights = {
        f"midnight_{name}": min(_whole_days(start, today)[0], today // 1000)
        for name, start in starts.items()
    }
    return {
        "now": now // 1000,
        "today": today // 1000,
        "first": min(midnights.values()),
        **{f"start_{name}": start // 1000 for name, start in starts.items()},
        **midnights,
    }
