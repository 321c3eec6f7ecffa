"""Lists of a monitor's results, single and packed ones, the newest first. To read a page, the
results of each hour are counted first, and then only those of its hours are read. Needs an
application context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from heapq import merge
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, bindparam, func, literal_column, select

from app.db import db, packed
from app.db.journal import COLUMNS, KEY, RAW, decode
from app.db.packed import Row, row_key
from app.db.tables import PackedHourRow, PlaceRow, ResultRow
from app.db.types import VERDICT_NUMBERS, to_ms
from app.records import DELETED_LOCATION, Result, ResultQuery, Verdict
from app.stats.tally import HOUR_MS

# Columns of tables, not of classes, whose statements take longer.
_SINGLES: Any = ResultRow.__table__.c
_HOURS: Any = PackedHourRow.__table__.c
_EVER = (2**31 - 1) * HOUR_MS  # the end of all hours that fit in a row


class _Selection(NamedTuple):
    """The results that a query selects: between two times (ms), of a verdict (its number), of a
    place (its name). None selects all.
    """

    monitor_id: int
    start: int
    end: int
    verdict: int | None
    place: str | None

    def singles(self, what: str, hours: Collection[int] | None = None) -> Sequence[Any]:
        """Rows of single results (``_statement``), of these ``hours`` only if they are given."""
        values: dict[str, Any] = {"id": self.monitor_id, "start": self.start, "end": self.end}
        statement = _statement(what, self.place, self.verdict, some=hours is not None)
        if hours is not None:
            values["hours"] = list(hours)
        return db.session.execute(statement, values).all()

    def packed(self, *names: str, hours: Collection[int] | None = None) -> Iterator[Row]:
        conditions = [] if self.place is None else [_is_from(_HOURS.location_id, self.place)]
        if hours is not None:
            conditions.append(_HOURS.hour.in_(hours))
        return packed.rows([self.monitor_id], self.start, self.end, names, *conditions)


# What a statement selects of single results: all columns, the count of each hour, or the columns
# that show changes.
ROWS, COUNTS, CHANGES = "rows", "counts", "changes"
_CHANGING = "verdict", "cause_code_id"


@lru_cache(maxsize=64)  # built once: each page of a monitor runs two of them
def _statement(what: str, place: str | None, verdict: int | None, *, some: bool) -> Select[Any]:
    """The single results of a monitor between two times, for the parameters ``id``, ``start`` and
    ``end``. ``some``: only those of ``hours``.
    """
    hour = _SINGLES.at // HOUR_MS
    if what == COUNTS:
        statement = select(hour.label("hour"), func.count()).group_by(literal_column("hour"))
        if verdict is not None:
            statement = statement.where(RAW["verdict"] == verdict)
    elif what == CHANGES:
        columns = [RAW[name] for name in (*KEY, *_CHANGING)]
        statement = select(*columns).order_by(*columns[1:3])
    else:
        statement = select(*RAW.values())
    statement = statement.where(
        _SINGLES.monitor_id == bindparam("id"),
        _SINGLES.at >= bindparam("start"),
        _SINGLES.at < bindparam("end"),
    )
    if place is not None:
        statement = statement.where(_is_from(_SINGLES.location_id, place))
    if some:
        statement = statement.where(hour.in_(bindparam("hours", expanding=True)))
    return statement


@lru_cache(maxsize=16)
def _counting_packed(place: str | None) -> Select[Any]:
    """How many packed results there are in each hour from ``first`` to ``stop``."""
    statement = (
        select(_HOURS.hour, func.sum(_HOURS.results))
        .where(
            _HOURS.monitor_id == bindparam("id"),
            _HOURS.hour >= bindparam("first"),
            _HOURS.hour < bindparam("stop"),
        )
        .group_by(_HOURS.hour)
    )
    return statement if place is None else statement.where(_is_from(_HOURS.location_id, place))


def page(query: ResultQuery) -> tuple[list[Result], int]:
    """The results of a page, and the number of all results."""
    selection = _Selection(
        query.monitor_id,
        0 if query.from_ is None else to_ms(query.from_),
        _EVER if query.to is None else to_ms(query.to),
        None if query.verdict is None else VERDICT_NUMBERS[Verdict(query.verdict)],
        query.location,
    )
    keys = set(_changes(selection)) if query.changes else None
    hours = _counts(selection) if keys is None else Counter(key[1] // HOUR_MS for key in keys)
    skipped = (query.page - 1) * query.per_page
    remaining = query.per_page
    parts: dict[int, slice] = {}  # the results of each hour that are on the page
    for hour in sorted(hours, reverse=True):
        number = hours[hour]
        if skipped < number and remaining > 0:
            parts[hour] = slice(skipped, skipped + remaining)
            remaining -= number - skipped
        skipped = max(0, skipped - number)
    by_hour = groupby(_rows(selection, parts, keys), lambda row: row[1] // HOUR_MS)
    rows = [row for hour, of_hour in by_hour for row in [*of_hour][parts[hour]]]
    return decode(rows), hours.total()


def _is_from(place: ColumnElement[int], name: str) -> ColumnElement[bool]:
    """Whether a result is of the place of this name."""
    if name == DELETED_LOCATION:
        return place.not_in(select(PlaceRow.id))
    return place.in_(select(PlaceRow.id).where(PlaceRow.name == name))


def _counts(selection: _Selection) -> Counter[int]:
    """How many results there are in each hour."""
    counts: Counter[int] = Counter(dict(selection.singles(COUNTS)))
    if selection.verdict is not None:
        for row in selection.packed("verdict"):
            counts[row[1] // HOUR_MS] += row[3] == selection.verdict
        return +counts
    first, stop = -(-selection.start // HOUR_MS), selection.end // HOUR_MS
    values = {"id": selection.monitor_id, "first": first, "stop": stop}
    counts.update(dict(db.session.execute(_counting_packed(selection.place), values).all()))
    if divided := {time // HOUR_MS for time in (selection.start, selection.end) if time % HOUR_MS}:
        counts.update(row[1] // HOUR_MS for row in selection.packed(hours=divided))
    return counts


def _changes(selection: _Selection) -> Iterator[Row]:
    """The keys of the results whose verdict or cause differs from that of the previous result in
    their place.
    """
    singles = selection.singles(CHANGES)
    last_by_place: dict[int, Row] = {}
    for row in merge(map(tuple, singles), selection.packed(*_CHANGING), key=row_key):
        place, verdict_and_cause = row[2], row[3:]
        if last_by_place.get(place) != verdict_and_cause:
            last_by_place[place] = verdict_and_cause
            if selection.verdict in (None, verdict_and_cause[0]):
                yield row_key(row)


def _rows(selection: _Selection, hours: Collection[int], keys: Collection[Row] | None) -> list[Row]:
    """The results of these hours, or only those with these ``keys``, the newest first."""
    if not hours:
        return []
    first, last = min(hours), max(hours)
    within = selection._replace(
        start=max(selection.start, first * HOUR_MS), end=min(selection.end, (last + 1) * HOUR_MS)
    )
    some = hours if len(hours) <= last - first else None  # None: all hours between the times
    packed_rows = within.packed(*COLUMNS[len(KEY) :], hours=some)
    return [
        row
        for row in reversed(packed.with_packed(sorted(within.singles(ROWS, some)), packed_rows))
        if (selection.verdict in (None, row[3]) if keys is None else row_key(row) in keys)
    ]
