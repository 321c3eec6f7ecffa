"""Results as runs: what covers the time since the last summed hour, without reading all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import BigInteger, Select, bindparam, case, cast, func, literal, or_, select

from app.db import db
from app.db.journal import VERDICT_NUMBERS
from app.db.tables import MonitorRow, ResultRow
from app.db.types import Bounded
from app.records import Verdict
from app.stats.tally import GOOD, HOUR_MS, Check, cover_limit_ms

_MONITOR: Any = MonitorRow.__table__
_KNOWN = [number for verdict, number in VERDICT_NUMBERS.items() if verdict != Verdict.UNKNOWN]
# Kinds of results: one of these, and in maintenance more by _MAINTENANCE.
_WATCHED, _DEGRADED, _UNKNOWN, _MAINTENANCE = range(4)
_VERDICT_OF = {_WATCHED: Verdict.UP, _DEGRADED: Verdict.DEGRADED, _UNKNOWN: Verdict.UNKNOWN}


def runs(ids: Sequence[int], start: int, end: int) -> dict[int, list[Check]]:
    """The runs of each monitor between two times (ms), oldest first, each as one check that covers
    as much time: results of one kind that follow each other without a gap. Most monitors have one
    run, so this takes a fifth of the time of ``checks``, and ``tally`` makes the same seconds of
    it.

    Results in maintenance stay single: what they cover depends on the windows.
    """
    found: dict[int, list[Check]] = {id: [] for id in ids}
    span = {"start": start, "end": end}
    for id, first, last, cover, kind in db.session.execute(_DENSE, {"ids": ids, **span}):
        found[id].append(Check(first, _VERDICT_OF[kind], covers=last + cover - first))
    rest = [id for id in ids if not found[id]]
    rows = db.session.execute(_RUNS, {"ids": rest, **span}).all() if rest else []
    begin = 0
    for id, at, kind, stop, begins, ends in rows:
        if begins:
            begin = at
        if ends:
            maintenance = kind >= _MAINTENANCE
            verdict = _VERDICT_OF[kind - _MAINTENANCE * maintenance]
            found[id].append(Check(begin, verdict, maintenance, covers=stop - begin))
    return found


def _results() -> tuple[Any, Any, Any]:
    """The kind of a result, how long it covers, and its monitor's present limit of that (ms)."""
    results = ResultRow.__table__.c
    limit = cover_limit_ms(_readable(_MONITOR.c.interval), _readable(_MONITOR.c.timeout))
    kind = case(
        (results.verdict == VERDICT_NUMBERS[Verdict.DEGRADED], _DEGRADED),
        (results.verdict.in_(_KNOWN), _WATCHED),
        else_=_UNKNOWN,
    ) + case((results.maintenance, _MAINTENANCE), else_=0)
    cover = func.coalesce(results.covers_s * literal(1000, BigInteger), limit)
    return kind, cover, limit


def _readable(column: Any) -> Any:
    """The number that Python reads from a ``Bounded`` column, also where the stored one is damaged.
    In wide numbers: milliseconds of a day do not fit into the column's own type on PostgreSQL.
    """
    kind: Bounded = column.type
    is_good = column.between(literal(kind.least, BigInteger), literal(kind.most, BigInteger))
    return case((is_good, cast(column, BigInteger)), else_=literal(kind.instead, BigInteger))


def _read(*columns: Any) -> Select[Any]:
    results = ResultRow.__table__.c
    return (
        select(results.monitor_id, *columns)
        .join(_MONITOR, _MONITOR.c.id == results.monitor_id)
        .where(
            results.monitor_id.in_(bindparam("ids", expanding=True)),
            results.at >= bindparam("start"),
            results.at < bindparam("end"),
        )
    )


def _dense() -> Select[Any]:
    """Monitors that surely have one run, which is quick to tell: there is a result in each piece of
    time half as long as a result covers, so nowhere is a gap.
    """
    at = ResultRow.__table__.c.at
    kind, cover, limit = _results()
    half = (limit // 2).label("half")
    first, last = func.min(at), func.max(at)
    return (
        _read(first, last, func.max(cover), func.max(kind))
        .group_by(ResultRow.__table__.c.monitor_id, half)
        .having(
            func.min(kind) == func.max(kind),
            func.max(kind) < _MAINTENANCE,
            func.min(cover) == func.max(cover),
            func.min(cover) >= func.max(limit),
            func.count((at // half).distinct()) == last // half - first // half + 1,
        )
    )


def _every() -> Select[Any]:
    results = ResultRow.__table__.c
    kind, cover, _ = _results()
    stop = (results.at + cover).label("stop")
    seen = _read(results.at, results.location_id, kind.label("kind"), stop).subquery().c
    along: Any = {"partition_by": seen.monitor_id, "order_by": (seen.at, seen.location_id)}
    kind_before, stop_before, kind_after, at_after = (
        func.lag(seen.kind).over(**along),
        func.lag(seen.stop).over(**along),
        func.lead(seen.kind).over(**along),
        func.lead(seen.at).over(**along),
    )
    single = seen.kind >= _MAINTENANCE
    begins = or_(single, kind_before.is_distinct_from(seen.kind), stop_before < seen.at)
    ends = or_(single, kind_after.is_distinct_from(seen.kind), at_after > seen.stop)
    every = select(
        seen.monitor_id,
        seen.at,
        seen.kind,
        seen.stop,
        begins.label("begins"),
        ends.label("ends"),
        seen.location_id,
    ).subquery()
    columns = [column for column in every.c if column.name != "location_id"]
    return (
        select(*columns)
        .where(or_(every.c.begins, every.c.ends))
        .order_by(every.c.monitor_id, every.c.at, every.c.location_id)
    )


def _hourly() -> Select[Any]:
    """The response times that count (``Check.response_counts``), by monitor and hour."""
    results = ResultRow.__table__.c
    hour = results.at // HOUR_MS * HOUR_MS
    return (
        select(
            results.monitor_id,
            hour.label("hour"),
            func.count(results.response_time),
            func.sum(results.response_time),
        )
        .where(
            results.monitor_id.in_(bindparam("ids", expanding=True)),
            results.at >= bindparam("start"),
            results.at < bindparam("end"),
            results.response_time.is_not(None),
            results.verdict.in_([VERDICT_NUMBERS[verdict] for verdict in GOOD]),
            results.maintenance.is_(False),
            or_(results.covers_s.is_(None), results.covers_s > 0),
        )
        .group_by(results.monitor_id, "hour")
    )


_DENSE, _RUNS, _HOURLY = _dense(), _every(), _hourly()


def responses(ids: Sequence[int], start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Of each monitor and hour between two times (ms): the monitor, the start of the hour (ms), how
    many response times count, and their sum (ms).
    """
    for id, hour, count, total in db.session.execute(
        _HOURLY, {"ids": ids, "start": start, "end": end}
    ):
        yield id, int(hour), int(count), int(total)
