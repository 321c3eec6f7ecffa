"""Results as runs: what covers the time since the last summed hour, without reading all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, Select, bindparam, case, cast, func, literal, or_, select

from app.db import db
from app.db.journal import VERDICT_NUMBERS
from app.db.tables import MonitorRow, ResultRow
from app.records import Verdict
from app.stats.tally import Check, cover_limit_ms

_KNOWN = [number for verdict, number in VERDICT_NUMBERS.items() if verdict != Verdict.UNKNOWN]
# Kinds of results: one of these, and in maintenance more by _MAINTENANCE.
_WATCHED, _UNKNOWN, _MAINTENANCE = range(3)


def runs(ids: Sequence[int], start: int, end: int) -> dict[int, list[Check]]:
    """The runs of each monitor between two times (ms), oldest first, each as one check that covers
    as much time: results of one kind that follow each other without a gap. Most monitors have one
    run, so this takes a fifth of the time of ``checks``, and ``tally`` makes the same seconds of
    it.

    Results in maintenance stay single: what they cover depends on the windows.
    """
    found: dict[int, list[Check]] = {id: [] for id in ids}
    span = {"start": start, "end": end}
    for id, first, last, cover in db.session.execute(_DENSE, {"ids": ids, **span}):
        found[id].append(Check(first, Verdict.UP, covers=last + cover - first))
    rest = [id for id in ids if not found[id]]
    rows = db.session.execute(_RUNS, {"ids": rest, **span}).all() if rest else []
    begin = 0
    for id, at, kind, stop, begins, ends in rows:
        if begins:
            begin = at
        if ends:
            maintenance = kind >= _MAINTENANCE
            unknown = kind - _MAINTENANCE * maintenance == _UNKNOWN
            verdict = Verdict.UNKNOWN if unknown else Verdict.UP
            found[id].append(Check(begin, verdict, maintenance, covers=stop - begin))
    return found


def _results() -> tuple[Any, Any, Any]:
    """The kind of a result, how long it covers, and its monitor's present limit of that (ms)."""
    results = ResultRow.__table__.c
    # Milliseconds of a day do not fit into the columns' own type on PostgreSQL.
    interval: Any = cast(MonitorRow.interval, BigInteger)
    timeout: Any = cast(MonitorRow.timeout, BigInteger)
    limit = cover_limit_ms(interval, timeout)
    kind = case((results.verdict.in_(_KNOWN), _WATCHED), else_=_UNKNOWN) + case(
        (results.maintenance, _MAINTENANCE), else_=0
    )
    cover = func.coalesce(results.covers_s * literal(1000, BigInteger), limit)
    return kind, cover, limit


def _read(*columns: Any) -> Select[Any]:
    results = ResultRow.__table__.c
    return (
        select(results.monitor_id, *columns)
        .join(MonitorRow, MonitorRow.id == results.monitor_id)
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
        _read(first, last, func.max(cover))
        .group_by(ResultRow.__table__.c.monitor_id, half)
        .having(
            func.max(kind) == _WATCHED,
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


_DENSE, _RUNS = _dense(), _every()
