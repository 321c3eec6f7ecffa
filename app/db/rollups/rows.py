"""Read results and incidents to sum them, and convert sums to rows and back. Times are ms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import BindParameter, and_, bindparam, func, literal, or_, select, union_all

from app.db import cached, db, packed, windows
from app.db.journal import KEY, RAW
from app.db.statements import grouped
from app.db.tables import (
    IncidentRow,
    MonitorRow,
    MonitorStateRow,
    ResultRow,
    RollupRow,
    UnreachableRow,
)
from app.db.tags import tags_of
from app.db.types import VERDICTS, Moment, checked_numbers, from_ms, to_ms
from app.db.windows import own_window
from app.judge.verdict import PastResult
from app.records import CONFIRMATIONS, PHASES, IncidentSeverity, MaintenanceWindow
from app.rules.recurrence import is_for_all, occurrences_between
from app.stats.cover import Span, cover_limit_ms, of_several_places
from app.stats.tally import (
    BEHIND,
    DAY_MS,
    HOUR_MS,
    MAX_COVER_MS,
    IncidentSpan,
    OutageTimes,
    Sums,
    outage_times,
    tally,
)

_RESULTS = ResultRow.__table__
_MONITORS, _STATES = MonitorRow.__table__, MonitorStateRow.__table__
_INCIDENT = IncidentRow.__table__
ROLLUPS = RollupRow.__table__
HOUR_S, DAY_S = HOUR_MS // 1000, DAY_MS // 1000

# Statements are built once: for a list of monitors, building them would cost more than running
# them. They use columns of tables, not of classes: the ORM's loading would double their cost.
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_COLUMNS = ("verdict", "maintenance", "covers_s", "response_time")
# The columns of monitors that summing needs, also for ``limit_of`` and ``planned``.
SUMMED = (
    *(_STATES.c[name] for name in ("monitor_id", "rolled_until", "sums_version")),
    *(
        _MONITORS.c[name]
        for name in (
            "interval", "timeout", "confirmations", "tags", "updated_at", "maintenance_start_at",
            "maintenance_end_at",
        )
    ),
)  # fmt: skip
MONITORS = (
    select(*SUMMED)
    .join(_MONITORS, _MONITORS.c.id == _STATES.c.monitor_id)
    .where(_STATES.c.monitor_id.in_(_IDS))
    .order_by(_STATES.c.monitor_id)
)
# When an incident became down. The time before, in which it was degraded, is no downtime.
DOWN_SINCE = func.coalesce(_INCIDENT.c.down_since, _INCIDENT.c.started_at, type_=Moment)
_BEHIND: Any = UnreachableRow.__table__


def _within(table: Any) -> Any:
    return and_(
        table.c.monitor_id.in_(_IDS),
        table.c.started_at < bindparam("end"),  # which an index has
        or_(table.c.ended_at.is_(None), table.c.ended_at > bindparam("start")),
    )


_INCIDENTS = union_all(
    select(
        _INCIDENT.c.monitor_id,
        DOWN_SINCE.label("since"),
        _INCIDENT.c.ended_at,
        _INCIDENT.c.classification,
    ).where(
        _within(_INCIDENT),
        _INCIDENT.c.severity == IncidentSeverity.DOWN,
        bindparam("end") > DOWN_SINCE,
    ),
    select(_BEHIND.c.monitor_id, _BEHIND.c.started_at, _BEHIND.c.ended_at, literal(BEHIND)).where(
        _within(_BEHIND)
    ),
).order_by("since")


def _reading(*names: str) -> Any:
    # The driver's values are not converted: a day of a monitor has 16,000.
    return (
        select(*(RAW[name] for name in (*KEY, *names)))
        .where(
            _RESULTS.c.monitor_id.in_(_IDS),
            _RESULTS.c.at >= bindparam("start"),
            _RESULTS.c.at < bindparam("end"),
        )
        .order_by(_RESULTS.c.monitor_id, _RESULTS.c.at, _RESULTS.c.location_id)
    )


_CHECKS = _reading(*_COLUMNS)
_CHECKS_AND_PHASES = _reading(*_COLUMNS, *PHASES)


def checks(
    ids: Sequence[int], start: int, end: int, *, phases: bool = True, recent: bool = False
) -> dict[int, list[PastResult]]:
    """The results of each monitor between two times (ms), oldest first. Without ``phases``, reading
    takes a quarter less time. ``recent``: they are of the last day, so none is packed.
    """
    by_monitor: dict[int, list[PastResult]] = {id: [] for id in ids}
    statement = _CHECKS_AND_PHASES if phases else _CHECKS
    rows = checked_numbers(
        db.session.execute(statement, {"ids": ids, "start": start, "end": end}).all()
    )
    if not recent:
        names = (*_COLUMNS, *PHASES) if phases else _COLUMNS
        rows = packed.with_packed(rows, packed.rows(ids, start, end, names))
    new = partial(tuple.__new__, PastResult)  # half the time of calling it
    verdicts = VERDICTS
    for id, at, place, verdict, maintenance, covers_s, response_time, *spent in rows:
        by_monitor[id].append(
            new(
                (
                    at,
                    verdicts[verdict],
                    bool(maintenance),
                    response_time,
                    tuple(spent),
                    None if covers_s is None else covers_s * 1000,
                    place,
                )
            )
        )
    return by_monitor


def checks_and_before(
    monitors: Sequence[Any], start: int, end: int, *, phases: bool = True, recent: bool = False
) -> dict[int, list[PastResult]]:
    """The results of each monitor between two times (ms), oldest first, with the earlier ones that
    count for this time. ``monitors`` have the columns of ``MONITORS``.

    Usually only the result just before counts. Without it, an older one may count for longer,
    because the interval was longer then. With several places, the failures in a row before this
    time count too.
    """
    by_monitor: dict[int, list[PastResult]] = {}
    # Monitors with long intervals are read apart: otherwise one that is checked once a day would
    # make the statement read a day of results of all others.
    by_length = grouped((limit_of(monitor) // HOUR_MS, monitor) for monitor in monitors)
    for alike in by_length.values():
        longest = max(map(limit_of, alike))
        ids = [monitor.monitor_id for monitor in alike]
        by_monitor |= checks(ids, start - longest, end, phases=phases, recent=recent)
        early = {
            id: start - (1 + CONFIRMATIONS[1]) * longest
            for id in ids
            if not (results := by_monitor[id])
            or results[0].at_ms >= start
            or of_several_places(results)
        }
        for monitor in alike:
            # Its interval may have been longer before it was changed.
            if monitor.monitor_id in early and to_ms(monitor.updated_at) >= start - MAX_COVER_MS:
                early[monitor.monitor_id] -= MAX_COVER_MS
        for first in set(early.values()):
            some = [id for id, begin in early.items() if begin == first]
            none_packed = recent and start - first < packed.SINGLE_MS
            earlier = checks(some, first, start - longest, phases=False, recent=none_packed)
            for id, older in earlier.items():
                by_monitor[id] = older + by_monitor[id]
    return by_monitor


def sums_of_results(
    monitors: Sequence[Any],
    trouble: Mapping[int, OutageTimes],
    period: int,
    start: int,
    end: int,
    *,
    phases: bool = True,
    recent: bool = False,
) -> dict[int, dict[int, Sums]]:
    """The sums of each monitor for each ``period`` (ms), computed from its results between two
    times. ``trouble``: the result of ``outage_times_of``. ``phases`` and ``recent``: as for
    ``checks``.
    """
    results = checks_and_before(monitors, start, end, phases=phases, recent=recent)
    sums = {}
    for monitor in monitors:
        id = monitor.monitor_id
        inputs = results.pop(id), trouble[id], limit_of(monitor), period, start, end
        sums[id] = tally(*inputs, monitor.confirmations)
    return sums


def incidents_between(ids: Sequence[int], start: int, end: int) -> dict[int, list[IncidentSpan]]:
    """The outages of each monitor that overlap this time (ms), oldest first: incidents from the
    time on at which they became down, and the times ``BEHIND`` a parent.
    """
    by_monitor: dict[int, list[IncidentSpan]] = {id: [] for id in ids}
    span = {"ids": ids, "start": from_ms(start), "end": from_ms(end)}
    for monitor_id, started, ended, classification in db.session.execute(_INCIDENTS, span):
        stop = None if ended is None else to_ms(ended)
        by_monitor[monitor_id].append((to_ms(started), stop, classification))
    return by_monitor


def monitor_of(id: int) -> Any:
    """The row of a monitor in ``MONITORS``; None if there is no such monitor."""
    cache = cached.of_transaction()
    name = f"monitor {id}"
    if name not in cache:
        cache[name] = db.session.execute(MONITORS, {"ids": [id]}).one_or_none()
    return cache[name]


def outage_times_of(
    monitors: Sequence[Any],
    start: int,
    end: int,
    incidents: Mapping[int, Sequence[IncidentSpan]] | None = None,
) -> dict[int, OutageTimes]:
    """The outages and maintenance windows of each monitor between two times (ms). ``monitors`` have
    the columns of ``MONITORS``. ``incidents``: those of this time, if the caller has read them.
    """
    ids = [monitor.monitor_id for monitor in monitors]
    by_monitor = incidents_between(ids, start, end) if incidents is None else incidents
    # A check before the start may have been in a window, and may count for time after the start.
    maintenance = planned(monitors, start - MAX_COVER_MS, end)
    return {id: outage_times(by_monitor[id], end, maintenance[id]) for id in ids}


def limit_of(monitor: Any) -> int:
    return cover_limit_ms(monitor.interval, monitor.timeout)


def columns_of(id: int, period: int, begin: int, sums: Sums) -> dict[str, Any]:
    return {
        "monitor_id": id,
        "period": period,
        "start": begin // 1000,
        "checks": sums.checks,
        "up_s": round(sums.up / 1000),
        "down_s": round(sums.down / 1000),
        "unknown_s": round(sums.unknown / 1000),
        "maintenance_s": round(sums.maintenance / 1000),
        "degraded_s": -(-sums.degraded // 1000),
        "response_count": sums.response_count,
        "response_sum": sums.response_sum,
        "response_max": sums.response_max,
        "histogram": {str(bucket): number for bucket, number in sorted(sums.histogram.items())},
        "phases": sums.phases,
    }


def sums_of(row: Any) -> Sums:
    """``row`` has the columns of ``RollupRow``."""
    histogram = row.histogram or {}
    return Sums(
        checks=row.checks,
        up=row.up_s * 1000,
        down=row.down_s * 1000,
        unknown=row.unknown_s * 1000,
        maintenance=row.maintenance_s * 1000,
        degraded=row.degraded_s * 1000,
        response_count=row.response_count,
        response_sum=row.response_sum,
        response_max=row.response_max,
        histogram=dict(zip(map(int, histogram), histogram.values(), strict=True)),
        phases=list(row.phases or [0] * len(PHASES)),
    )


def floor_to(ms: int, unit: int) -> int:
    return ms - ms % unit


# --- Maintenance windows as exact times: they begin and end between checks


def planned(monitors: Sequence[Any], start: int, end: int) -> dict[int, list[Span]]:
    """The windows of each monitor that overlap this time (ms), in no order. ``monitors`` have the
    columns of ``MONITORS``.

    A window counts only from its last change on: maintenance that is entered afterwards was not
    planned, and the windows before the change are stored with the results
    (``PastResult.maintenance``). A window that applies to a monitor by a tag counts only from the
    last change of the monitor on, too.
    """
    by_monitor: dict[int, list[Span]] = {monitor.monitor_id: [] for monitor in monitors}
    first, last = from_ms(start), from_ms(end)
    for window in windows.between(first, last):
        counts_from = max(first, window.updated_at or first)
        spans = [
            (to_ms(max(begin, counts_from)), to_ms(stop))
            for begin, stop in occurrences_between(window, counts_from, last)
        ]
        for id in by_monitor if is_for_all(window) else window.monitors:
            if id in by_monitor:
                by_monitor[id] += spans
        for id, since in _tagged(monitors, window):
            by_monitor[id] += [(max(begin, since), stop) for begin, stop in spans if stop > since]
    for monitor in monitors:
        begin, stop = own_window(monitor)
        if begin and stop and begin <= last and stop > max(first, monitor.updated_at):
            by_monitor[monitor.monitor_id].append(
                (to_ms(max(begin, monitor.updated_at)), to_ms(stop))
            )
    return by_monitor


def _tagged(monitors: Sequence[Any], window: MaintenanceWindow) -> Iterator[tuple[int, int]]:
    """The monitors that have a tag of the window, and when they were changed (ms)."""
    for monitor in monitors if window.tags else ():
        has_tag = any(tag in window.tags for tag in tags_of(monitor.tags))
        if has_tag and monitor.monitor_id not in window.monitors:
            yield monitor.monitor_id, to_ms(monitor.updated_at)
