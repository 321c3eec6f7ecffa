"""Packed hours: the results of a past hour in one value for each monitor and place.

A result takes 41 bytes as a single row (PostgreSQL: 165), and some 8 packed. ``pack_old``, which
housekeeping calls, packs the hours of a monitor that are summed and older than ``SINGLE_MS``. A
result that arrives later is a single row until it is packed too. Code that reads results of any age
uses ``rows``, ``with_packed`` and ``first_at``; lists use ``app/db/listed.py``. Results of the last
day are never packed, so code that needs no older ones reads the table ``results`` alone.

All functions that read or write the database need an application context.
"""

from __future__ import annotations

import json
import logging
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate, groupby, pairwise, repeat
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, bindparam, case, delete, func, select, type_coerce

from app.db import DbSession, db, writing
from app.db.journal import COLUMNS, KEY, RAW
from app.db.latest import lock_states
from app.db.statements import are_among, inserting, pieces
from app.db.tables import MonitorStateRow, PackedHourRow, ResultRow
from app.db.types import Unreadable, checked_numbers, from_ms, parsed, to_ms
from app.lasting import Lasting
from app.records import PHASES
from app.stats.tally import HOUR_MS

log = Lasting(logging.getLogger(__name__))

# How long a result stays a single row: longer than a day, because charts and evidence read a day,
# and results of agents may arrive a day late.
SINGLE_MS = 26 * HOUR_MS
# A transaction of this size takes some 50 ms, so that the recorder does not wait for long.
MONITORS_PER_TRANSACTION, HOURS_PER_TRANSACTION = 20, 6
DAMAGED = (
    "The results of monitor %d in the hour from %s cannot be read, because their value is "
    "damaged. All others can."
)

Row = tuple[Any, ...]
_PACKED = [name for name in COLUMNS if name not in ("monitor_id", "location_id")]
_RESULTS: Any = ResultRow.__table__
_HOURS: Any = PackedHourRow.__table__
_STATES: Any = MonitorStateRow.__table__


# --- One hour as bytes
#
# A line of JSON and the numbers of the columns, deflated. The line has the number of results, the
# causes, the first time within the hour, and the format of each column: its value, if all are
# equal; otherwise a list of the smallest value, the bytes for each number, and 1 if 0 stands for
# None. The numbers are the differences from the smallest value: first the low bytes of all, then
# the next bytes, because high bytes repeat. Times are the differences from the previous time.

_USUAL = b"[60,[],1823456,[59990,1],0,0,120,200,0,[0,1],[20,1],[30,1],[100,2],[0,1],1,null,null]\n"


def pack(results: Sequence[Row]) -> bytes:
    """``results``: values of COLUMNS, in the order of time, all of the same hour."""
    columns: dict[str, Sequence[Any]] = dict(zip(COLUMNS, zip(*results, strict=True), strict=True))
    times, causes = columns["at"], columns["cause"]
    texts = sorted({cause for cause in causes if cause is not None})
    columns |= {
        "at": [later - earlier for earlier, later in pairwise(times)],
        # Usually 0, because the phases add up to the response time
        "response_time": [
            None if total is None else total - spent
            for total, spent in zip(columns["response_time"], _spent(columns), strict=True)
        ],
        "cause": [None if cause is None else texts.index(cause) for cause in causes],
    }
    specs, bodies = zip(*(_pack_column(columns[name]) for name in _PACKED), strict=True)
    head = [len(results), texts, times[0] % HOUR_MS, *specs]
    line = json.dumps(head, separators=(",", ":"))
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=_USUAL)
    return deflate.compress(b"".join((line.encode(), b"\n", *bodies))) + deflate.flush()


def unpack(packed: bytes, hour: int, names: Sequence[str]) -> list[Sequence[Any]]:
    """The columns ``names`` of an hour. A damaged value raises an exception of any class."""
    data = zlib.decompressobj(-15, zdict=_USUAL).decompress(packed)
    line, _newline, body = data.partition(b"\n")
    count, texts, first, *specs = json.loads(line)
    needed_columns = {*names, *(PHASES if "response_time" in names else ())}
    columns: dict[str, Sequence[Any]] = {}
    index = 0
    for name, spec in zip(_PACKED, specs, strict=True):
        length = count - (name == "at")
        width = spec[1] if isinstance(spec, list) else 0
        if name in needed_columns:
            columns[name] = _unpack_column(spec, body[index : index + width * length], length)
        index += width * length
    if index != len(body):
        raise ValueError  # the columns have other lengths
    if "at" in columns:
        columns["at"] = list(accumulate(columns["at"], initial=hour * HOUR_MS + first))
    if "response_time" in columns:
        columns["response_time"] = [
            None if unspent is None else unspent + spent
            for unspent, spent in zip(columns["response_time"], _spent(columns), strict=True)
        ]
    if "cause" in columns:
        columns["cause"] = [None if cause is None else texts[cause] for cause in columns["cause"]]
    return [columns[name] for name in names]


def _spent(columns: Mapping[str, Sequence[Any]]) -> list[int]:
    phases = [columns[name] for name in PHASES]
    if any(None in column for column in phases):
        return [sum(filter(None, spent)) for spent in zip(*phases, strict=True)]
    return list(map(sum, zip(*phases, strict=True)))  # half the time


def _pack_column(values: Sequence[int | None]) -> tuple[Any, bytes]:
    if len(set(values)) <= 1:
        return (values[0] if values else None), b""
    numbers = [value for value in values if value is not None]
    has_none = len(numbers) < len(values)
    least = min(numbers) - has_none
    more = [0 if value is None else value - least for value in values]
    width = (max(more).bit_length() + 7) // 8
    body = b"".join(bytes(value >> 8 * n & 255 for value in more) for n in range(width))
    return [least, width, 1] if has_none else [least, width], body


def _unpack_column(spec: Any, body: bytes, length: int) -> list[Any]:
    if not isinstance(spec, list):
        return [spec] * length
    least, width, *has_none = spec
    values: Sequence[int] = body[:length]
    for n in range(1, width):
        high = body[n * length : (n + 1) * length]
        values = [value | byte << 8 * n for value, byte in zip(values, high, strict=True)]
    if has_none:
        return [None if value == 0 else least + value for value in values]
    return [least + value for value in values]


# --- Reading

_KEY = (_HOURS.c.monitor_id, _HOURS.c.hour, _HOURS.c.location_id)
_PACKED_HOURS = select(*_KEY, _HOURS.c.packed)
_BETWEEN = _PACKED_HOURS.where(
    _HOURS.c.monitor_id.in_(bindparam("ids", expanding=True)),
    _HOURS.c.hour.between(bindparam("first"), bindparam("last")),
).order_by(*_KEY)


def rows(
    ids: Collection[int],
    start: int,
    end: int,
    names: Sequence[str],
    *conditions: ColumnElement[bool],
) -> Iterator[Row]:
    """The packed results of these monitors between two times (ms): KEY, then ``names``, in the
    order of KEY. ``conditions`` are of columns of PackedHourRow.

    Values are not converted. A damaged hour is logged and left out.
    """
    statement = _BETWEEN.where(*conditions) if conditions else _BETWEEN
    span = {"ids": list(ids), "first": start // HOUR_MS, "last": min(-(-end // HOUR_MS), 2**31) - 1}
    hours = db.session.execute(statement, span).all()
    for _key, places in groupby(hours, lambda hour: hour[:2]):
        unpacked = [_unpacked(hour, names) for hour in places]
        if len(unpacked) > 1:  # of several places
            unpacked = [sorted((row for part in unpacked for row in part), key=row_key)]
        for part in unpacked:
            if part and start <= part[0][1] and part[-1][1] < end:
                yield from part
            else:
                yield from (row for row in part if start <= row[1] < end)


def _unpacked(packed_hour: Any, names: Sequence[str]) -> list[Row]:
    monitor_id, hour, place, packed = packed_hour
    columns = parsed(unpack, packed, hour, ["at", *names])
    if isinstance(columns, Unreadable):
        log.error(DAMAGED, monitor_id, from_ms(hour * HOUR_MS), topic=(monitor_id, hour, place))
        return []
    at, *others = columns
    return list(zip(repeat(monitor_id), at, repeat(place), *others, strict=False))


def row_key(row: Row) -> Row:
    return row[:3]


def with_packed(singles: Sequence[Row], packed: Iterable[Row]) -> Sequence[Row]:
    """Single and packed results, each once, in the order of KEY. The single ones must be read
    first: a result that is packed between the two reads is then read twice, and not missed.
    """
    by_key = {row_key(row): row for row in packed}
    if not by_key:
        return singles
    by_key = {tuple(row[:3]): row for row in singles} | by_key
    return [by_key[key] for key in sorted(by_key)]


def first_at(monitor_id: int, since: int = 0) -> int | None:
    """The time (ms) of a monitor's first stored result from ``since`` on."""
    first_single = db.session.scalar(
        select(func.min(ResultRow.at)).where(
            ResultRow.monitor_id == monitor_id, ResultRow.at >= since
        )
    )
    first_hour = db.session.scalar(
        select(func.min(PackedHourRow.hour)).where(
            PackedHourRow.monitor_id == monitor_id, PackedHourRow.hour >= -(-since // HOUR_MS)
        )
    )
    end = (since // HOUR_MS if first_hour is None else first_hour) * HOUR_MS + HOUR_MS
    packed = (row[1] for row in rows([monitor_id], since, end, ()))
    return min((at for at in (first_single, next(packed, None)) if at is not None), default=None)


# --- Packing

_FIRST = (
    select(func.min(_RESULTS.c.at)).where(_RESULTS.c.monitor_id == _STATES.c.monitor_id)
).scalar_subquery()
# Hours that end by this time are old enough: it depends on ``now`` and on the summed time.
_SUMMED = type_coerce(_STATES.c.rolled_until, BigInteger)
_NOW: Any = bindparam("now", type_=BigInteger)
_UNTIL = case((_SUMMED > _NOW, _NOW), else_=_SUMMED) // HOUR_MS * HOUR_MS - SINGLE_MS
_BEHIND = (
    select(_STATES.c.monitor_id, _FIRST, _UNTIL)
    .where(_FIRST < _UNTIL)
    .order_by(_STATES.c.monitor_id)
)
_TAKE = (
    delete(_RESULTS)
    .where(
        _RESULTS.c.monitor_id == bindparam("id"),
        _RESULTS.c.at >= bindparam("start", type_=BigInteger),
        _RESULTS.c.at < bindparam("end", type_=BigInteger),
    )
    .returning(*RAW.values())
)


def pack_old(now: datetime, seconds: float) -> int:
    """Pack hours that are old enough, for about ``seconds``. Returns how many results were packed.
    One transaction packs and deletes them, so that after a kill each is either single or packed.
    """
    ends, packed, in_round = time.monotonic() + seconds, 0, 1
    while in_round:
        in_round = 0
        ids = db.session.scalars(_BEHIND, {"now": to_ms(now)}).all()
        for part in pieces(ids, MONITORS_PER_TRANSACTION):
            in_round += _pack_some(part, to_ms(now))
            if time.monotonic() > ends:
                return packed + in_round
        packed += in_round
    return packed


def _pack_some(ids: Sequence[int], now: int) -> int:
    with writing() as session:
        lock_states(session, ids)  # processes that write late results or pack these hours wait
        results: list[Row] = []
        some = _BEHIND.where(_STATES.c.monitor_id.in_(ids))
        for id, first, until in session.execute(some, {"now": now}).all():
            start = first // HOUR_MS * HOUR_MS
            end = min(until, start + HOURS_PER_TRANSACTION * HOUR_MS)
            span = {"id": id, "start": start, "end": end}
            results += map(tuple, checked_numbers(session.execute(_TAKE, span).all(), texts=1))
        _store(session, results)
    return len(results)


def _store(session: DbSession, unpacked_rows: Iterable[Row]) -> None:
    def hour_of(row: Row) -> Row:
        return row[0], row[2], row[1] // HOUR_MS

    by_hour = groupby(sorted(unpacked_rows, key=lambda row: (row[0], row[2], row[1])), hour_of)
    hours: dict[Row, Sequence[Row]] = {
        (id, hour, place): list(results) for (id, place, hour), results in by_hour
    }
    if not hours:
        return
    for hour_row in session.execute(_PACKED_HOURS.where(are_among(_KEY, hours))).all():
        *key, _packed = hour_row
        earlier = _unpacked(hour_row, COLUMNS[len(KEY) :])
        hours[tuple(key)] = with_packed(hours[tuple(key)], earlier)
    statement = inserting(PackedHourRow)
    changes = {name: statement.excluded[name] for name in ("results", "packed")}
    values = [
        dict(zip(_HOURS.c.keys(), (*key, len(results), pack(results)), strict=True))
        for key, results in hours.items()
    ]
    session.execute(
        statement.on_conflict_do_update(index_elements=[*_HOURS.primary_key], set_=changes), values
    )
