"""Sums for lists and charts: from the rollups, and for the last hours from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, func, literal, or_, select, union_all

from app.db import db
from app.db.rollups.rows import (
    DAY_S,
    HOUR_S,
    ROLLUPS,
    checks,
    limit_of,
    monitors,
    sums_of,
    troubles,
    verdicts,
)
from app.db.tables import RollupRow
from app.db.types import to_ms
from app.stats import UPTIME_RANGES
from app.stats.series import start_of
from app.stats.strip import start_of_strip
from app.stats.tally import DAY_MS, HOUR_MS, Sums, percent, tally


def uptimes(ids: Sequence[int], now: datetime) -> dict[int, dict[str, float | None]]:
    """Uptime in percent of each monitor over ``UPTIME_RANGES``; None without data."""
    now_ms = to_ms(now)
    starts = {name: start_of(name, now_ms) for name in UPTIME_RANGES}
    sums = {id: {name: [0, 0] for name in UPTIME_RANGES} for id in ids}
    for name, id, up, down in db.session.execute(_summed(ids, starts, now_ms)):
        sums[id][name][0] += int(up) * 1000
        sums[id][name][1] += int(down) * 1000
    for id, hours in _tails(ids, min(starts.values()), now_ms, verdicts).items():
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
    rows = db.session.execute(
        select(ROLLUPS)
        .where(RollupRow.monitor_id == monitor_id, RollupRow.start >= start_ms // 1000, period)
        .order_by(RollupRow.start)
    )
    found = [(row.start * 1000, sums_of(row)) for row in rows]
    return found + list(_tails([monitor_id], start_ms, now_ms, checks)[monitor_id].items())


def between(
    ids: Sequence[int], start_ms: int, end_ms: int, now: datetime
) -> dict[int, list[tuple[int, Sums]]]:
    """Start and sums of each monitor's hours from ``start_ms`` to ``end_ms``, both on the hour,
    or to ``now``; whole UTC days as one.
    """
    last = min(end_ms, to_ms(now))
    found: dict[int, list[tuple[int, Sums]]] = {id: [] for id in ids}
    if start_ms >= last:
        return found
    rows = db.session.execute(
        select(ROLLUPS).where(
            RollupRow.monitor_id.in_(ids),
            RollupRow.start >= start_ms // 1000,
            RollupRow.start < -(-last // 1000),
            _edges_and_days(start_ms, last),
        )
    )
    for row in rows:
        found[row.monitor_id].append((row.start * 1000, sums_of(row)))
    behind = [
        monitor.monitor_id
        for monitor in db.session.execute(monitors(ids))
        if monitor.rolled_until is None or to_ms(monitor.rolled_until) < last
    ]
    for id, hours in _tails(behind, start_ms, last, checks).items():
        found[id] += hours.items()
    return found


def single(
    monitor_id: int, start_ms: int, width_ms: int, now: datetime
) -> tuple[dict[int, Sums], list[int]]:
    """Sums by periods of ``width_ms`` straight from the results, and each response time that
    counts.
    """
    end = to_ms(now)
    monitor = db.session.execute(monitors([monitor_id])).one()
    limit = limit_of(monitor)
    seen = checks(monitor_id, start_ms - limit, end)
    trouble = troubles([monitor_id], start_ms, end)[monitor_id]
    times = [
        check.response_time
        for check in seen
        if check.at >= start_ms and check.response_time is not None and check.response_counts
    ]
    return tally(seen, trouble, limit, width_ms, start_ms, end), times


def strips(ids: Sequence[int], now: datetime) -> dict[int, list[tuple[int, Sums]]]:
    """Start and sums of the last hours of many monitors, for lists; without histograms."""
    now_ms = to_ms(now)
    start = start_of_strip(now_ms)
    found: dict[int, list[tuple[int, Sums]]] = {id: [] for id in ids}
    rows = db.session.execute(
        select(
            RollupRow.monitor_id,
            RollupRow.start,
            RollupRow.up_s,
            RollupRow.down_s,
            RollupRow.unknown_s,
            RollupRow.maintenance_s,
            RollupRow.response_count,
            RollupRow.response_sum,
        ).where(
            RollupRow.monitor_id.in_(ids),
            RollupRow.period == HOUR_S,
            RollupRow.start >= start // 1000,
        )
    )
    for id, begin, up, down, unknown, maintenance, count, total in rows:
        sums = Sums(0, up * 1000, down * 1000, unknown * 1000, maintenance * 1000, count, total)
        found[id].append((begin * 1000, sums))
    for id, hours in _tails(ids, start, now_ms, checks).items():
        found[id] += hours.items()
    return found


def _tails(ids: Sequence[int], since: int, now: int, read: Any) -> dict[int, dict[int, Sums]]:
    """The hours that are not summed yet, of each monitor, from its results; none before ``since``.

    ``read`` is ``checks``, or ``verdicts`` where nobody asks for response times.
    """
    tails: dict[int, dict[int, Sums]] = {id: {} for id in ids}
    known = db.session.execute(monitors(ids)).all()
    starts = {
        monitor.monitor_id: since
        if monitor.rolled_until is None
        else max(since, to_ms(monitor.rolled_until))
        for monitor in known
    }
    trouble = troubles(list(starts), min(starts.values(), default=now), now)
    for monitor in known:
        id, limit = monitor.monitor_id, limit_of(monitor)
        seen = read(id, starts[id] - limit, now)
        tails[id] = tally(seen, trouble[id], limit, HOUR_MS, starts[id], now)
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
                parts.append(_part(name, ids, period, begin, end))
    return union_all(*parts)


def _part(name: str, ids: Sequence[int], period: int, begin: int, end: int) -> Any:
    return (
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
