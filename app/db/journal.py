"""Store results as narrow rows, and read them. Values that repeat from check to check (cause codes,
places, contexts) are stored once, under a number.

All functions need an application context.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any

from flask import current_app
from sqlalchemy import bindparam, select, type_coerce
from sqlalchemy.types import NullType

from app.db import db, writing
from app.db.latest import last_moment
from app.db.statements import are_among, bulk_insert, insert_new, inserting
from app.db.tables import CauseCodeRow, MonitorEvidenceRow, PlaceRow, ResultContextRow, ResultRow
from app.db.types import VERDICT_NUMBERS, VERDICTS, checked_numbers, from_ms, to_ms
from app.judge.verdict import MIN_COVER_S
from app.records import DELETED_LOCATION, Result, Timings
from app.stats.tally import MAX_COVER_MS

# Reached only if the addresses of targets change with each check.
MAX_CACHED_CONTEXTS = 20_000

# The context of a result, stored once for all results that share it: address, HTTP version,
# redirects, warnings.
Context = tuple[str | None, str | None, tuple[str, ...], tuple[str, ...]]


# The key of results, and all columns. Values are not converted, except the text of causes.
KEY = ("monitor_id", "at", "location_id")
RAW: Mapping[str, Any] = {
    column.name: column if column.name == "cause" else type_coerce(column, NullType())
    for column in ResultRow.__table__.columns
}
COLUMNS = tuple(RAW)


@dataclass(slots=True)
class _Numbers:
    """A cache of stored numbers, which never change."""

    codes: dict[str, int] = field(default_factory=dict)
    contexts: dict[Context, int] = field(default_factory=dict)
    locations: dict[str, int] = field(default_factory=dict)


def result_id(monitor_id: int, at_ms: int, location_id: int) -> str:
    return f"{monitor_id}-{at_ms}-{location_id}"


def assign_numbers(results: Sequence[Result]) -> None:
    """Give numbers to the contexts and cause codes of these results that have none yet. ``row_of``
    needs them.

    It must be called before the recorder's transaction: if a failed batch rolled a number back, the
    cache would still have it, and the number would later stand for something else.
    """
    numbers = _numbers()
    # The cache is cleared only here: ``row_of`` needs the numbers that are cached below.
    if len(numbers.contexts) > MAX_CACHED_CONTEXTS:
        numbers.contexts.clear()
    contexts = {context for context in map(_context, results) if context}
    codes = {result.cause_code for result in results if result.cause_code}
    missing = {_digest(context): context for context in contexts - numbers.contexts.keys()}
    unknown = sorted(codes - numbers.codes.keys())
    if not missing and not unknown:
        return
    with writing():
        if missing:
            # In order: two recorders that insert in different orders could deadlock.
            rows = [
                {"digest": digest, "data": _data(missing[digest])} for digest in sorted(missing)
            ]
            insert_new(ResultContextRow, rows)
        if unknown:
            insert_new(CauseCodeRow, [{"code": code} for code in unknown])
        for digest, id in db.session.execute(
            select(ResultContextRow.digest, ResultContextRow.id).where(
                ResultContextRow.digest.in_(missing)
            )
        ):
            numbers.contexts[missing[digest]] = id
        for code, id in db.session.execute(
            select(CauseCodeRow.code, CauseCodeRow.id).where(CauseCodeRow.code.in_(unknown))
        ):
            numbers.codes[code] = id


def place_id(name: str) -> int:
    """The row id of a location, which is created if it is missing."""
    numbers = _numbers()
    if name not in numbers.locations:
        with writing() as session:
            insert_new(
                PlaceRow, [{"name": name, "carrier": "local", "created_at": datetime.now(UTC)}]
            )
            query = select(PlaceRow.id).where(PlaceRow.name == name)
            numbers.locations[name] = session.execute(query).scalar_one()
    return numbers.locations[name]


def cache_place_id(name: str, id: int) -> None:
    """Cache the row id of a location that was just read. Another process may have deleted the
    location and created one with the same name: results with the old id would belong to no place.
    """
    _numbers().locations[name] = id


def row_of(result: Result, location: int, covers_s: int | None = None) -> dict[str, Any]:
    """The columns of a monitor's result. ``assign_numbers`` must have been called with it.

    ``covers_s``: the most seconds for which it counts (``app/stats/cover.py``).
    """
    numbers = _numbers()
    context = _context(result)
    timings = result.timings
    return {
        "monitor_id": result.monitor_id,
        "at": to_ms(result.checked_at),
        "location_id": location,
        "verdict": VERDICT_NUMBERS[result.verdict],
        "maintenance": result.maintenance,
        "covers_s": covers_s,
        "status_code": result.status_code,
        "response_time": result.response_time,
        "dns": timings.dns,
        "connect": timings.connect,
        "tls": timings.tls,
        "ttfb": timings.ttfb,
        "download": timings.download,
        "context_id": numbers.contexts[context] if context else None,
        "cause_code_id": numbers.codes[result.cause_code] if result.cause_code else None,
        "cause": result.cause,
    }


def insert_results(rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert results, many at once, in the caller's transaction.

    A result with the same monitor, location and millisecond as a stored one is left out.
    """
    bulk_insert(db.session, ResultRow, COLUMNS, [[row.get(c) for c in COLUMNS] for row in rows])


def stored_times(times: Collection[tuple[int, int]], location: int) -> set[tuple[int, int]]:
    """The pairs of a monitor and a time (ms) for which a result of this location is stored."""
    if not times:
        return set()
    results: Any = ResultRow.__table__
    key = results.c.monitor_id, results.c.at
    rows = db.session.execute(
        select(*key).where(are_among(key, sorted(times)), results.c.location_id == location)
    )
    return {(monitor_id, at) for monitor_id, at in rows}


def decode(rows: Sequence[Sequence[Any]]) -> list[Result]:
    """The records of rows of results, whose values are not converted and in the order of COLUMNS.
    Makes at most three queries.
    """
    results = [
        SimpleNamespace(**dict(zip(COLUMNS, row, strict=True)))
        for row in checked_numbers(rows, texts=1)
    ]
    by_id = contexts({result.context_id for result in results})
    codes = _by_id(CauseCodeRow, "code", {result.cause_code_id for result in results})
    places = _by_id(PlaceRow, "name", {result.location_id for result in results})
    return [
        _decoded(
            result,
            by_id.get(result.context_id) or {},
            codes.get(result.cause_code_id),
            places.get(result.location_id, DELETED_LOCATION),
        )
        for result in results
    ]


def first_since(monitor_id: int, since: Mapping[int, datetime], now: datetime) -> dict[int, Result]:
    """The first result of each place whose check started at the place's time in ``since`` or later.
    Results after ``last_moment``, which a wrong clock wrote, are left out.
    """
    if not since:
        return {}
    first_ms = {place: to_ms(at) for place, at in since.items()}
    rows = db.session.execute(
        select(*RAW.values())
        .where(
            ResultRow.monitor_id == monitor_id,
            ResultRow.at.between(min(first_ms.values()), last_moment(now)),
            ResultRow.location_id.in_(first_ms),
        )
        .order_by(ResultRow.at)
    ).all()
    firsts: dict[int, Any] = {}
    for row in rows:
        if row.at >= first_ms[row.location_id]:
            firsts.setdefault(row.location_id, row)
    return dict(zip(firsts, decode(list(firsts.values())), strict=True))


def contexts(ids: set[Any]) -> dict[Any, dict[str, Any]]:
    """The data of the contexts with these numbers. ``ids`` may contain None."""
    return _by_id(ResultContextRow, "data", ids)


def as_recorded(result: Result, location: int) -> Result:
    """The result as it is read from the database: with its id, and its time in whole ms."""
    at = to_ms(result.checked_at)
    id = result_id(result.monitor_id or 0, at, location)
    return replace(result, id=id, checked_at=from_ms(at))


def newest_cover_s(monitor_id: int, until: datetime) -> int | None:
    """The most seconds for which the newest result until ``until`` counts; None without a result.
    Results that count only at their time are skipped.
    """
    last = to_ms(until)
    query = select(ResultRow.covers_s).where(
        ResultRow.monitor_id == monitor_id,
        ResultRow.at.between(last - MAX_COVER_MS, last),
        ResultRow.covers_s > MIN_COVER_S,
    )
    return db.session.scalar(query.order_by(ResultRow.at.desc()).limit(1))


def _numbers() -> _Numbers:
    numbers: _Numbers | None = current_app.extensions.get("wakeful.numbers")
    if numbers is None:
        numbers = current_app.extensions["wakeful.numbers"] = _Numbers()
    return numbers


def _context(result: Result) -> Context | None:
    context = (result.ip, result.http_version, result.redirects, result.warnings)
    return context if any(context) else None


def _data(context: Context) -> dict[str, Any]:
    ip, http_version, redirects, warnings = context
    data = {
        "ip": ip,
        "http_version": http_version,
        "redirects": list(redirects),
        "warnings": list(warnings),
    }
    return {name: value for name, value in data.items() if value}


def _digest(context: Context) -> str:
    """The key of a context in the database, the same in every process and version."""
    text = json.dumps(_data(context), sort_keys=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def store_evidence(column: str, values: Mapping[int, Any]) -> None:
    """Replace a column of ``MonitorEvidenceRow`` for each of these monitors; None removes it."""
    if values:
        insert = inserting(MonitorEvidenceRow)
        upsert = insert.on_conflict_do_update(
            index_elements=["monitor_id"], set_={column: insert.excluded[column]}
        )
        db.session.execute(
            upsert, [{"monitor_id": id, column: value} for id, value in values.items()]
        )


def _by_id(table: Any, column: str, ids: set[Any]) -> dict[Any, Any]:
    ids.discard(None)
    if not ids:
        return {}
    rows = db.session.execute(_reading_by_id(table, column), {"ids": list(ids)})
    return {row[0]: row[1] for row in rows}


@cache
def _reading_by_id(table: Any, column: str) -> Any:
    """Built once, with the table in place of the class, because each list of results runs three."""
    columns = table.__table__.c
    return select(columns.id, columns[column]).where(
        columns.id.in_(bindparam("ids", expanding=True))
    )


def _decoded(row: Any, context: Mapping[str, Any], code: str | None, place: str) -> Result:
    return Result(
        checked_at=from_ms(row.at),
        verdict=VERDICTS[row.verdict],
        monitor_id=row.monitor_id,
        id=result_id(row.monitor_id, row.at, row.location_id),
        cause_code=code,
        cause=row.cause,
        status_code=row.status_code,
        response_time=row.response_time,
        timings=Timings(row.dns, row.connect, row.tls, row.ttfb, row.download),
        ip=context.get("ip"),
        http_version=context.get("http_version"),
        redirects=tuple(context.get("redirects", ())),
        warnings=tuple(context.get("warnings", ())),
        location=place,
        maintenance=bool(row.maintenance),
    )
