"""Lists of a monitor's results, of single and packed ones alike, the newest first: how many there
are in each hour, then those of the hours of a page. Needs an application context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from heapq import merge
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, func, literal_column, select

from app.db import db, packed
from app.db.journal import COLUMNS, KEY, RAW, decode
from app.db.packed import Row, row_key
from app.db.tables import LocationRow, PackedHourRow, ResultRow
from app.db.types import VERDICT_NUMBERS, to_ms
from app.records import DELETED_LOCATION, Result, ResultQuery, Verdict
from app.stats.tally import HOUR_MS

# Columns of tables, not of classes: each page of a monitor builds these statements.
_SINGLES: Any = ResultRow.__table__.c
_HOURS: Any = PackedHourRow.__table__.c
_EVER = (2**31 - 1) * HOUR_MS  # the last hour that fits in a row


class _Selection(NamedTuple):
    """The results that a query selects: between two times (ms), of a verdict (its number), of a
    place (its name). None selects all.
    """

    monitor_id: int
    start: int
    end: int
    verdict: int | None
    place: str | None

    def conditions(self, table: Any) -> list[ColumnElement[bool]]:
        """The conditions of a table of results, but not those of time and verdict."""
        of_monitor = table.monitor_id == self.monitor_id
        if self.place is None:
            return [of_monitor]
        return [of_monitor, _is_from(table.location_id, self.place)]

    def singles(self, *columns: Any) -> Select[Any]:
        within = _SINGLES.at >= self.start, _SINGLES.at < self.end
        return select(*columns).where(*self.conditions(_SINGLES), *within)

    def packed(self, *names: str, hours: Collection[int] | None = None) -> Iterator[Row]:
        conditions = self.conditions(_HOURS)
        if hours is not None:
            conditions.append(_HOURS.hour.in_(hours))
        return packed.rows([self.monitor_id], self.start, self.end, names, *conditions)


def page(query: ResultQuery) -> tuple[list[Result], int]:
    """The results of a page, and how many there are in all."""
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
    left = query.per_page
    parts: dict[int, slice] = {}  # what the page has of each hour
    for hour in sorted(hours, reverse=True):
        number = hours[hour]
        if skipped < number and left > 0:
            parts[hour] = slice(skipped, skipped + left)
            left -= number - skipped
        skipped = max(0, skipped - number)
    by_hour = groupby(_rows(selection, parts, keys), lambda row: row[1] // HOUR_MS)
    rows = [row for hour, of_hour in by_hour for row in [*of_hour][parts[hour]]]
    return decode(rows), hours.total()


def _is_from(place: ColumnElement[int], name: str) -> ColumnElement[bool]:
    """Whether a result is of the place of this name."""
    if name == DELETED_LOCATION:
        return place.not_in(select(LocationRow.id))
    return place.in_(select(LocationRow.id).where(LocationRow.name == name))


def _counts(selection: _Selection) -> Counter[int]:
    """How many results there are in each hour."""
    hour = (_SINGLES.at // HOUR_MS).label("hour")
    singles = selection.singles(hour, func.count()).group_by(literal_column("hour"))
    if selection.verdict is not None:
        singles = singles.where(RAW["verdict"] == selection.verdict)
    counts: Counter[int] = Counter(dict(db.session.execute(singles).all()))
    if selection.verdict is not None:
        for row in selection.packed("verdict"):
            counts[row[1] // HOUR_MS] += row[3] == selection.verdict
        return +counts
    first, stop = -(-selection.start // HOUR_MS), selection.end // HOUR_MS
    whole = (
        select(_HOURS.hour, func.sum(_HOURS.results))
        .where(*selection.conditions(_HOURS))
        .where(_HOURS.hour >= first, _HOURS.hour < stop)
        .group_by(_HOURS.hour)
    )
    counts.update(dict(db.session.execute(whole).all()))
    if divided := {time // HOUR_MS for time in (selection.start, selection.end) if time % HOUR_MS}:
        counts.update(row[1] // HOUR_MS for row in selection.packed(hours=divided))
    return counts


def _changes(selection: _Selection) -> Iterator[Row]:
    """The keys of results whose verdict or cause differs from the one before in their place."""
    names = "verdict", "cause_code_id"
    columns = [RAW[name] for name in (*KEY, *names)]
    singles = db.session.execute(selection.singles(*columns).order_by(*columns[1:3])).all()
    before: dict[int, Row] = {}
    for row in merge(map(tuple, singles), selection.packed(*names), key=row_key):
        place, verdict_and_cause = row[2], row[3:]
        if before.get(place) != verdict_and_cause:
            before[place] = verdict_and_cause
            if selection.verdict in (None, verdict_and_cause[0]):
                yield row_key(row)


def _rows(selection: _Selection, hours: Collection[int], keys: Collection[Row] | None) -> list[Row]:
    """The results of these hours, or those of them with these keys, the newest first."""
    if not hours:
        return []
    within = selection._replace(
        start=max(selection.start, min(hours) * HOUR_MS),
        end=min(selection.end, (max(hours) + 1) * HOUR_MS),
    )
    of_hours = (_SINGLES.at // HOUR_MS).in_(hours)
    singles = db.session.execute(within.singles(*RAW.values()).where(of_hours)).all()
    packed_rows = within.packed(*COLUMNS[len(KEY) :], hours=hours)
    return [
        row
        for row in reversed(packed.with_packed(sorted(singles), packed_rows))
        if (selection.verdict in (None, row[3]) if keys is None else row_key(row) in keys)
    ]
