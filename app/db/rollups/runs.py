"""Results as runs: what covers the time since the last summed hour, without reading all of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import sub
from typing import Any

from sqlalchemy import BigInteger, Select, String, bindparam, case, cast, func, literal, or_, select

from app.db import db
from app.db.journal import VERDICT_NUMBERS, VERDICTS
from app.db.rollups.rows import confirming_ms
from app.db.tables import MonitorRow, ResultRow
from app.db.types import Bounded
from app.judge.verdict import Check
from app.records import CONFIRMATIONS, Verdict
from app.stats.cover import cover_limit_ms
from app.stats.tally import GOOD, HOUR_MS

_MONITOR: Any = MonitorRow.__table__
_KNOWN = [number for verdict, number in VERDICT_NUMBERS.items() if verdict != Verdict.UNKNOWN]
# Kinds of results: one of these, and in maintenance more by _MAINTENANCE.
_WATCHED, _DEGRADED, _UNKNOWN, _MAINTENANCE = range(4)
# Failures in a row that make a difference: those that confirm one, and one that lasts.
_COUNTED = CONFIRMATIONS[1] + 1
_VERDICT_OF = {_WATCHED: Verdict.UP, _DEGRADED: Verdict.DEGRADED, _UNKNOWN: Verdict.UNKNOWN}


# Of a monitor and an hour: its start (ms), how many response times count, and their sum (ms).
Responses = tuple[int, int, int, int]


def runs(limits: Mapping[int, int], start: int, end: int) -> dict[int, list[Check]]:
    """The runs of each monitor between two times (ms), oldest first, each as one check that covers
    as much time: results of one kind that follow each other without a gap. Most monitors have one
    run, so this takes a tenth of the time of ``checks``, and ``tally`` makes the same seconds of
    it. ``limits``: how long a result of each monitor counts that does not say so itself (ms).

    Those of several places overlap: each is of one place. Results in maintenance stay single: what
    they cover depends on the windows.
    """
    return _read(limits, start, end, by_hour=False)[0]


def runs_and_responses(
    limits: Mapping[int, int], start: int, end: int
) -> tuple[dict[int, list[Check]], list[Responses]]:
    """``runs``, and the response times that count by hour."""
    found, responses, uneven = _read(limits, start, end, by_hour=True)
    span = {"ids": uneven, "start": start, "end": end}
    rows = db.session.execute(_HOURLY, span) if uneven else ()
    return found, [*responses, *((id, int(h), int(n), int(total)) for id, h, n, total in rows)]


def _read(
    limits: Mapping[int, int], start: int, end: int, *, by_hour: bool
) -> tuple[dict[int, list[Check]], list[Responses], list[int]]:
    """The runs; of the monitors whose results are even, the response times; and the others' ids.

    Even are results that all have one verdict and cover as much, without maintenance. Of most
    monitors they are, and then their times are enough: one text of them is read much faster than
    a row for each result. Those of several places may be even by place.
    """
    parts = _parts(_EVEN[by_hour, False], limits, start, end)
    even = {id: [rows] for id, rows in parts.items() if _is_even(rows)}
    several = {id for id in parts.keys() - even.keys() if _is_of_several_places(parts[id])}
    earlier = start - confirming_ms(limits[id] for id in several) if several else start
    for id, rows in _parts(_EVEN[by_hour, True], several, earlier, end).items():
        places = _by_place(rows)
        if all(map(_is_even, places)):
            even[id] = places
    found: dict[int, list[Check]] = {id: [] for id in limits}
    responses: list[Responses] = []
    for id, groups in even.items():
        for group in groups:
            found[id] += _even_runs(group, limits[id])
            if by_hour:
                responses += _even_responses(id, group)
        found[id].sort()
    uneven = parts.keys() - even.keys()
    _add_uneven(found, list(uneven - several), start, end)
    _add_single(found, list(uneven & several), earlier, end)
    return found, responses, list(uneven)


def _parts(
    statement: Select[Any], ids: Collection[int], start: int, end: int
) -> dict[int, list[Any]]:
    parts: dict[int, list[Any]] = {}
    if ids:
        for row in db.session.execute(statement, {"ids": list(ids), "start": start, "end": end}):
            parts.setdefault(row.monitor_id, []).append(row)
    return parts


def _by_place(rows: Sequence[Any]) -> list[list[Any]]:
    places: dict[int, list[Any]] = {}
    for row in rows:
        places.setdefault(row.place, []).append(row)
    return list(places.values())


def _is_of_several_places(rows: Sequence[Any]) -> bool:
    return any(rows[0].place != place for row in rows for place in (row.place, row.place_most))


def _even_runs(rows: Sequence[Any], limit: int) -> Iterator[Check]:
    verdict, covers_s = VERDICTS[rows[0].verdict], rows[0].covers_s
    cover = limit if covers_s is None else covers_s * 1000
    times = sorted(map(int, ",".join(row.times for row in rows).split(",")))
    for first, last in _unbroken(times, cover):
        begins = [first]
        if verdict is Verdict.DOWN:  # counted one by one until they are confirmed
            index = bisect_left(times, first)
            begins = [at for at in times[index : index + _COUNTED] if at <= last]
        for begin, stop in pairwise([*begins, last + cover]):
            yield Check(begin, verdict, covers=stop - begin, place=rows[0].place)


def _even_responses(id: int, rows: Sequence[Any]) -> Iterator[Responses]:
    if VERDICTS[rows[0].verdict] in GOOD and rows[0].covers_s != 0:
        for row in rows:
            if row.responses:
                yield id, row.hour, row.responses, int(row.response_sum)


def _is_even(rows: Sequence[Any]) -> bool:
    first = rows[0]
    return all(
        row.verdict == first.verdict == row.verdict_most
        and not row.maintenance
        and row.covers_s == first.covers_s == row.covers_most
        # None of them says how long it covers, or all do.
        and row.covering == (0 if row.covers_s is None else row.checks)
        for row in rows
    )


def _unbroken(times: Sequence[int], cover: int) -> Iterator[tuple[int, int]]:
    """The first and the last of the times (in order) that follow each other within ``cover``."""
    if max(map(sub, times[1:], times), default=0) <= cover:
        yield times[0], times[-1]
        return
    first = before = times[0]
    for at in times[1:]:
        if at - before > cover:
            yield first, before
            first = at
        before = at
    yield first, before


def _add_uneven(found: dict[int, list[Check]], ids: Sequence[int], start: int, end: int) -> None:
    rows = db.session.execute(_RUNS, {"ids": ids, "start": start, "end": end}) if ids else ()
    begin = 0
    for id, at, kind, stop, begins, ends in rows:
        if begins:
            begin = at
        if ends:
            maintenance = kind >= _MAINTENANCE
            verdict = _VERDICT_OF[kind - _MAINTENANCE * maintenance]
            found[id].append(Check(begin, verdict, maintenance, covers=stop - begin))


def _add_single(found: dict[int, list[Check]], ids: Sequence[int], start: int, end: int) -> None:
    """Of several places, what the monitor is changes with any of their results."""
    rows = db.session.execute(_SINGLE, {"ids": ids, "start": start, "end": end}) if ids else ()
    for id, at, verdict, maintenance, covers_s, place in rows:
        covers = None if covers_s is None else covers_s * 1000
        found[id].append(Check(at, VERDICTS[verdict], maintenance, covers=covers, place=place))


def _results() -> tuple[Any, Any]:
    """The kind of a result, and how long it covers (ms)."""
    results = ResultRow.__table__.c
    limit = cover_limit_ms(_readable(_MONITOR.c.interval), _readable(_MONITOR.c.timeout))
    kind = case(
        (results.verdict == VERDICT_NUMBERS[Verdict.DEGRADED], _DEGRADED),
        (results.verdict.in_(_KNOWN), _WATCHED),
        else_=_UNKNOWN,
    ) + case((results.maintenance, _MAINTENANCE), else_=0)
    cover = func.coalesce(results.covers_s * literal(1000, BigInteger), limit)
    return kind, cover


def _readable(column: Any) -> Any:
    """The number that Python reads from a ``Bounded`` column, also where the stored one is damaged.
    In wide numbers: milliseconds of a day do not fit into the column's own type on PostgreSQL.
    """
    kind: Bounded = column.type
    is_good = column.between(literal(kind.least, BigInteger), literal(kind.most, BigInteger))
    return case((is_good, cast(column, BigInteger)), else_=literal(kind.instead, BigInteger))


def _within(statement: Select[Any]) -> Select[Any]:
    results = ResultRow.__table__.c
    return statement.where(
        results.monitor_id.in_(bindparam("ids", expanding=True)),
        results.at >= bindparam("start"),
        results.at < bindparam("end"),
    )


def _even(*, by_hour: bool, by_place: bool) -> Select[Any]:
    """What tells whether results are even, their times, and their response times."""
    results = ResultRow.__table__.c
    hour = (results.at // HOUR_MS * HOUR_MS).label("hour")
    responses = (
        hour,
        func.count(results.response_time).label("responses"),
        func.sum(results.response_time).label("response_sum"),
    )
    statement = select(
        results.monitor_id,
        func.min(results.location_id).label("place"),
        func.max(results.location_id).label("place_most"),
        func.aggregate_strings(cast(results.at, String), ",").label("times"),
        func.count().label("checks"),
        func.min(results.verdict).label("verdict"),
        func.max(results.verdict).label("verdict_most"),
        func.max(case((results.maintenance, 1), else_=0)).label("maintenance"),
        func.min(results.covers_s).label("covers_s"),
        func.max(results.covers_s).label("covers_most"),
        func.count(results.covers_s).label("covering"),
        *(responses if by_hour else ()),
    )
    # By the monitor alone, no database has to sort.
    return _within(statement).group_by(
        results.monitor_id,
        *((results.location_id,) if by_place else ()),
        *((hour,) if by_hour else ()),
    )


def _every() -> Select[Any]:
    results = ResultRow.__table__.c
    kind, cover = _results()
    stop = (results.at + cover).label("stop")
    columns = results.monitor_id, results.at, results.location_id, kind.label("kind"), stop
    joined = select(*columns).join(_MONITOR, _MONITOR.c.id == results.monitor_id)
    seen = _within(joined).subquery().c
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
    return (
        select(*(column for column in every.c if column.name != "location_id"))
        .where(or_(every.c.begins, every.c.ends))
        .order_by(every.c.monitor_id, every.c.at, every.c.location_id)
    )


def _single() -> Select[Any]:
    results = ResultRow.__table__.c
    columns = (results.at, results.verdict, results.maintenance, results.covers_s)
    statement = _within(select(results.monitor_id, *columns, results.location_id))
    return statement.order_by(results.monitor_id, results.at, results.location_id)


def _hourly() -> Select[Any]:
    """The response times that count, by monitor and hour."""
    results = ResultRow.__table__.c
    hour = results.at // HOUR_MS * HOUR_MS
    statement = select(
        results.monitor_id,
        hour.label("hour"),
        func.count(results.response_time),
        func.sum(results.response_time),
    )
    return (
        _within(statement)
        .where(
            results.response_time.is_not(None),
            results.verdict.in_([VERDICT_NUMBERS[verdict] for verdict in GOOD]),
            results.maintenance.is_(False),
            or_(results.covers_s.is_(None), results.covers_s > 0),
        )
        .group_by(results.monitor_id, "hour")
    )


_EVEN = {
    (by_hour, by_place): _even(by_hour=by_hour, by_place=by_place)
    for by_hour in (False, True)
    for by_place in (False, True)
}
_RUNS, _SINGLE, _HOURLY = _every(), _single(), _hourly()
