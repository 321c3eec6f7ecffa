"""Results summed by hour and UTC day: written by ``roll`` and ``reroll``, read by lists and charts.

Two things always hold, so that readers need no case distinctions: rows of hours exist only before
``MonitorStateRow.rolled_until``, from where on the results themselves are read; and the row of a
day is the sum of its hours' rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, literal, or_, select, union_all, update
from sqlalchemy.dialects import postgresql, sqlite

from app.db import DbSession, db, writing
from app.db.journal import VERDICTS
from app.db.tables import IncidentRow, MonitorRow, MonitorStateRow, ResultRow, RollupRow
from app.db.types import from_ms, to_ms
from app.stats import UPTIME_RANGES
from app.stats.series import start_of
from app.stats.tally import (
    DAY_MS,
    HOUR_MS,
    Check,
    Sums,
    Trouble,
    cover_limit_ms,
    percent,
    tally,
    trouble,
)

HOUR_S, DAY_S = HOUR_MS // 1000, DAY_MS // 1000

# An hour is summed this long after its end: the checks that began in it are then recorded, and the
# failures in it confirmed. What comes later still calls ``reroll``.
GRACE = timedelta(minutes=10)
# Monitors summed in one transaction: some 20 ms, so that a check's result never waits for long.
CHUNK = 25
NEVER = 2**62  # ms; later than any time that is asked for
Incident = tuple[int, int | None, str | None]


def roll(now: datetime, limit: int = 1000) -> int:
    """Sum the hours that are complete, for ``limit`` monitors at most; how many there were.

    The engine calls this every minute. Monitors that are farthest behind come first.
    """
    done_until = from_ms(_floor(to_ms(now - GRACE), HOUR_MS))
    rolled = MonitorStateRow.rolled_until
    behind = (
        select(MonitorStateRow.monitor_id)
        .where(or_(rolled.is_(None), rolled < done_until))
        .order_by(rolled.is_not(None), rolled, MonitorStateRow.monitor_id)
        .limit(limit)
    )
    ids = list(db.session.scalars(behind))
    for place in range(0, len(ids), CHUNK):
        with writing() as session:
            for monitor in _locked(session, ids[place : place + CHUNK]):
                _roll_one(session, monitor, to_ms(done_until))
    return len(ids)


def reroll(monitor_id: int, from_: datetime, to: datetime | None = None) -> None:
    """Sum again what was summed between two times, because an incident in it has changed.

    ``to`` defaults to now. It joins the caller's transaction, and costs nothing where these hours
    are not summed yet. Hours whose results have been deleted by age stay as they are.
    """
    with writing() as session:
        for monitor in _locked(session, [monitor_id]):
            if monitor.rolled_until is None or from_ms(_floor(to_ms(from_), HOUR_MS)) >= (
                monitor.rolled_until
            ):
                return
            until = to_ms(monitor.rolled_until)
            end = until if to is None else min(until, _floor(to_ms(to) - 1, HOUR_MS) + HOUR_MS)
            start = max(_floor(to_ms(from_), HOUR_MS), _first_whole_hour(monitor_id))
            _write_hours(session, monitor, start, end)


def uptimes(ids: Sequence[int], now: datetime) -> dict[int, dict[str, float | None]]:
    """Uptime in percent of each monitor over ``UPTIME_RANGES``; None without data."""
    now_ms = to_ms(now)
    starts = {name: start_of(name, now_ms) for name in UPTIME_RANGES}
    sums = {id: {name: [0, 0] for name in UPTIME_RANGES} for id in ids}
    for name, id, up, down in db.session.execute(_summed(ids, starts, now_ms)):
        sums[id][name][0] += (up or 0) * 1000
        sums[id][name][1] += (down or 0) * 1000
    for id, hours in _tails(ids, min(starts.values()), now_ms).items():
        for begin, hour in hours.items():
            for name, start in starts.items():
                if begin >= start:
                    sums[id][name][0] += hour.up
                    sums[id][name][1] += hour.down
    return {
        id: {name: percent(up, down) for name, (up, down) in ranges.items()}
        for id, ranges in sums.items()
    }


def pieces(monitor_id: int, start_ms: int, now: datetime, *, days: bool) -> list[tuple[int, Sums]]:
    """Start and sums of the hours since ``start_ms`` (on the hour); with ``days``, whole days as
    one.
    """
    now_ms = to_ms(now)
    period = _edges_and_days(start_ms, now_ms) if days else RollupRow.period == HOUR_S
    rows = db.session.scalars(
        select(RollupRow)
        .where(RollupRow.monitor_id == monitor_id, RollupRow.start >= start_ms // 1000, period)
        .order_by(RollupRow.start)
    )
    found = [(row.start * 1000, _sums(row)) for row in rows]
    return found + list(_tails([monitor_id], start_ms, now_ms)[monitor_id].items())


def single(
    monitor_id: int, start_ms: int, width_ms: int, now: datetime
) -> tuple[dict[int, Sums], list[int]]:
    """Sums by periods of ``width_ms`` straight from the results, and each response time that
    counts.
    """
    end = to_ms(now)
    monitor = db.session.execute(_monitors([monitor_id])).one()
    checks = _checks(monitor_id, start_ms - _limit(monitor), end)
    incidents = _troubles([monitor_id], start_ms, end)[monitor_id]
    sums = tally(checks, incidents, _limit(monitor), width_ms, start_ms, end)
    times = [
        check.response_time
        for check in checks
        if check.at >= start_ms and check.response_time is not None and check.response_counts
    ]
    return sums, times


def incidents_between(ids: Sequence[int], start: int, end: int) -> dict[int, list[Incident]]:
    """Start, end and classification (ms) of the incidents that touch this time, oldest first."""
    found: dict[int, list[Incident]] = {id: [] for id in ids}
    rows = db.session.execute(
        select(
            IncidentRow.monitor_id,
            IncidentRow.started_at,
            IncidentRow.ended_at,
            IncidentRow.classification,
        )
        .where(
            IncidentRow.monitor_id.in_(ids),
            IncidentRow.started_at < from_ms(end),
            or_(IncidentRow.ended_at.is_(None), IncidentRow.ended_at > from_ms(start)),
        )
        .order_by(IncidentRow.started_at)
    )
    for monitor_id, started, ended, classification in rows:
        stop = None if ended is None else to_ms(ended)
        found[monitor_id].append((to_ms(started), stop, classification))
    return found


def _monitors(ids: Sequence[int]) -> Any:
    return (
        select(
            MonitorStateRow.monitor_id,
            MonitorStateRow.rolled_until,
            MonitorRow.interval,
            MonitorRow.timeout,
        )
        .join(MonitorRow, MonitorRow.id == MonitorStateRow.monitor_id)
        .where(MonitorStateRow.monitor_id.in_(ids))
        .order_by(MonitorStateRow.monitor_id)
    )


def _locked(session: DbSession, ids: Sequence[int]) -> Sequence[Any]:
    # The recorder writes the same rows when an incident begins or ends, so on PostgreSQL too it
    # either sees these hours as summed or we see its incident.
    return session.execute(_monitors(ids).with_for_update(of=MonitorStateRow)).all()


def _limit(monitor: Any) -> int:
    return cover_limit_ms(monitor.interval, monitor.timeout)


def _roll_one(session: DbSession, monitor: Any, until: int) -> None:
    id = monitor.monitor_id
    if monitor.rolled_until is None:
        first = _first_result(id)
        start = until if first is None else _floor(first, HOUR_MS)
    else:
        start = to_ms(monitor.rolled_until)
    if start < until:
        _write_hours(session, monitor, start, until)
    session.execute(
        update(MonitorStateRow)
        .where(MonitorStateRow.monitor_id == id)
        .values(rolled_until=from_ms(max(start, until)))
        .execution_options(synchronize_session=False)
    )


def _write_hours(session: DbSession, monitor: Any, start: int, end: int) -> None:
    """Replace the hours from ``start`` to ``end``, and the days that they are part of."""
    if start >= end:
        return
    id, limit = monitor.monitor_id, _limit(monitor)
    checks = _checks(id, start - limit, end)
    sums = tally(checks, _troubles([id], start, end)[id], limit, HOUR_MS, start, end)
    _replace(session, id, HOUR_S, start, end, sums)
    first_day, last_day = _floor(start, DAY_MS), _floor(end - 1, DAY_MS) + DAY_MS
    days: dict[int, Sums] = {}
    hours = session.scalars(
        select(RollupRow).where(
            RollupRow.monitor_id == id,
            RollupRow.period == HOUR_S,
            RollupRow.start >= first_day // 1000,
            RollupRow.start < last_day // 1000,
        )
    )
    for row in hours:
        days.setdefault(_floor(row.start * 1000, DAY_MS), Sums()).add(_sums(row))
    _replace(session, id, DAY_S, first_day, last_day, days)


def _replace(
    session: DbSession, id: int, period: int, start: int, end: int, sums: Mapping[int, Sums]
) -> None:
    """Make these the only rows of the monitor and period between two times (ms)."""
    stale = (
        RollupRow.monitor_id == id,
        RollupRow.period == period,
        RollupRow.start >= start // 1000,
        RollupRow.start < end // 1000,
    )
    session.execute(
        delete(RollupRow)
        .where(*stale, RollupRow.start.not_in([begin // 1000 for begin in sums]))
        .execution_options(synchronize_session=False)
    )
    if not sums:
        return
    insert: Any = sqlite.insert if db.engine.dialect.name == "sqlite" else postgresql.insert
    statement = insert(RollupRow)
    keys = {"monitor_id", "period", "start"}
    changes = {c.name: statement.excluded[c.name] for c in RollupRow.__table__.columns}
    statement = statement.on_conflict_do_update(
        index_elements=sorted(keys),
        set_={name: value for name, value in changes.items() if name not in keys},
    )
    rows = [_columns(id, period, begin, one) for begin, one in sums.items()]
    session.execute(statement, rows, execution_options={"synchronize_session": False})


def _columns(id: int, period: int, begin: int, sums: Sums) -> dict[str, Any]:
    return {
        "monitor_id": id,
        "period": period,
        "start": begin // 1000,
        "checks": sums.checks,
        "up_s": round(sums.up / 1000),
        "down_s": round(sums.down / 1000),
        "unknown_s": round(sums.unknown / 1000),
        "maintenance_s": round(sums.maintenance / 1000),
        "response_count": sums.response_count,
        "response_sum": sums.response_sum,
        "response_max": sums.response_max,
        "histogram": {str(place): number for place, number in sorted(sums.histogram.items())},
        "phases": sums.phases,
    }


def _sums(row: RollupRow) -> Sums:
    return Sums(
        checks=row.checks,
        up=row.up_s * 1000,
        down=row.down_s * 1000,
        unknown=row.unknown_s * 1000,
        maintenance=row.maintenance_s * 1000,
        response_count=row.response_count,
        response_sum=row.response_sum,
        response_max=row.response_max,
        histogram={int(place): number for place, number in (row.histogram or {}).items()},
        phases=list(row.phases or [0] * 5),
    )


def _checks(id: int, start: int, end: int) -> list[Check]:
    """The results of a monitor between two times (ms), as far as they count."""
    rows = db.session.execute(
        select(
            ResultRow.at,
            ResultRow.verdict,
            ResultRow.maintenance,
            ResultRow.response_time,
            ResultRow.dns,
            ResultRow.connect,
            ResultRow.tls,
            ResultRow.ttfb,
            ResultRow.download,
        )
        .where(ResultRow.monitor_id == id, ResultRow.at >= start, ResultRow.at < end)
        .order_by(ResultRow.at)
    )
    return [Check(row[0], VERDICTS[row[1]], row[2], row[3], tuple(row[4:])) for row in rows]


def _troubles(ids: Sequence[int], start: int, end: int) -> dict[int, Trouble]:
    found = incidents_between(ids, start, end)
    return {id: trouble(incidents, end) for id, incidents in found.items()}


def _tails(ids: Sequence[int], since: int, now: int) -> dict[int, dict[int, Sums]]:
    """The hours that are not summed yet, of each monitor, from its results; none before
    ``since``.
    """
    tails: dict[int, dict[int, Sums]] = {id: {} for id in ids}
    groups: dict[int, list[Any]] = {}
    for monitor in db.session.execute(_monitors(ids)).all():
        known = since if monitor.rolled_until is None else to_ms(monitor.rolled_until)
        groups.setdefault(max(since, known), []).append(monitor)
    for start, monitors in groups.items():
        members = [monitor.monitor_id for monitor in monitors]
        earliest = start - max(_limit(monitor) for monitor in monitors)
        checks = {id: _checks(id, earliest, now) for id in members}
        troubles = _troubles(members, start, now)
        for monitor in monitors:
            id, limit = monitor.monitor_id, _limit(monitor)
            tails[id] = tally(checks[id], troubles[id], limit, HOUR_MS, start, now)
    return tails


def _whole_days(start: int, now: int) -> tuple[int, int]:
    """Between which midnights (seconds) whole days stand for their hours, from ``start`` ms on.

    Today counts by hours, because its day is not over; the first day because the range may begin
    within it.
    """
    first_midnight = -(-start // DAY_MS) * DAY_S
    return first_midnight, max(first_midnight, now // DAY_MS * DAY_S)


def _edges_and_days(start: int, now: int) -> ColumnElement[bool]:
    first_midnight, today = _whole_days(start, now)
    is_edge = or_(RollupRow.start < first_midnight, RollupRow.start >= today)
    return or_(and_(RollupRow.period == HOUR_S, is_edge), and_(RollupRow.period == DAY_S, ~is_edge))


def _summed(ids: Sequence[int], starts: Mapping[str, int], now: int) -> Any:
    """Rows of range, monitor id, up and down seconds, to be added up. The database sums.

    One short scan for each part of each range: a condition with OR would read all hours of 90 days.
    """
    parts = []
    for name, start in starts.items():
        first_midnight, today = _whole_days(start, now)
        for period, begin, end in (
            (HOUR_S, start // 1000, first_midnight),
            (DAY_S, first_midnight, today),
            (HOUR_S, today, now // 1000),
        ):
            if begin < end:
                parts.append(
                    select(
                        literal(name),
                        RollupRow.monitor_id,
                        func.sum(RollupRow.up_s),
                        func.sum(RollupRow.down_s),
                    )
                    .where(
                        RollupRow.monitor_id.in_(ids),
                        RollupRow.period == period,
                        RollupRow.start >= begin,
                        RollupRow.start < end,
                    )
                    .group_by(RollupRow.monitor_id)
                )
    return union_all(*parts)


def _first_result(id: int) -> int | None:
    return db.session.execute(
        select(func.min(ResultRow.at)).where(ResultRow.monitor_id == id)
    ).scalar_one()


def _first_whole_hour(id: int) -> int:
    """The first hour (ms) that can be summed again in full; in older ones results were deleted."""
    first = _first_result(id)
    if first is None:
        return NEVER
    hour = _floor(first, HOUR_MS)
    older = select(RollupRow.start).where(
        RollupRow.monitor_id == id, RollupRow.period == HOUR_S, RollupRow.start < hour // 1000
    )
    # Where older hours are known whose results are gone, this one's may be gone in part.
    return hour if db.session.execute(older.limit(1)).first() is None else hour + HOUR_MS


def _floor(ms: int, step: int) -> int:
    return ms - ms % step
