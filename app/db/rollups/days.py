"""The days of many monitors, for status pages: read from the rollups once, and cached."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from operator import add
from typing import Any

from sqlalchemy import Select, String, bindparam, cast, func, literal_column, select, union_all

from app.db import db
from app.db.cached import Cached
from app.db.rollups.reading import strip_hour, unsummed_hours, whole_days_until
from app.db.rollups.rows import DAY_S, HOUR_S, MONITORS, ROLLUPS
from app.db.types import to_ms
from app.records import PublicDay
from app.stats.tally import DAY_MS, percent

# Seconds up, down, unknown and in maintenance.
Seconds = tuple[int, int, int, int]
NOTHING: Seconds = (0, 0, 0, 0)


@dataclass(slots=True, eq=False)
class Days:
    """The days of a monitor. ``shown`` and ``seconds`` are those of the rollups; ``unsummed``: the
    seconds of the results that are not summed yet, by the index of the day.
    """

    shown: Sequence[PublicDay]
    seconds: Sequence[Seconds]
    unsummed: Mapping[int, Seconds]


# The cached days of a monitor. Equal days, as most are, share one object.
Summed = tuple[list[PublicDay], list[Seconds]]


class CachedDays:
    """The days of at most 20,000 monitors (``Cached``)."""

    def __init__(self) -> None:
        self._cache: Cached[Summed] = Cached(20_000)

    def read(
        self, ids: Sequence[int], days: Sequence[date], midnights: Sequence[int], now: datetime
    ) -> dict[int, Days]:
        """The ``days`` of each monitor, each the time between two of ``midnights`` (ms).

        An hour that a midnight divides counts for the day in which it starts.
        """
        bounds = tuple(midnights)
        states = db.session.execute(MONITORS, {"ids": ids}).all() if ids else ()
        versions = {row.monitor_id: row.sums_version for row in states}
        # Two zones may have the same midnights between other days.
        what = days[0], bounds
        last = min(bounds[-1], to_ms(now))
        whole_until = whole_days_until(states, to_ms(now))
        summed = self._cache.read(
            versions, what, lambda missing: _read(missing, days, bounds, whole_until)
        )
        unsummed: dict[int, dict[int, Seconds]] = {id: {} for id in ids}
        if bounds[0] < last:
            for id, hours in unsummed_hours(states, bounds[0], last).items():
                for begin, sums in hours.items():
                    index = bisect_right(bounds, begin) - 1
                    if 0 <= index < len(days):
                        earlier = unsummed[id].get(index, NOTHING)
                        unsummed[id][index] = add_seconds(earlier, strip_hour(sums)[:4])
        # A monitor that has just been deleted has no state.
        nothing = _nothing(days)
        return {id: Days(*summed.get(id, nothing), unsummed[id]) for id in ids}


def public_day(day: date, seconds: Seconds) -> PublicDay:
    up, down, unknown, maintenance = seconds
    return PublicDay(day, percent(up, down), down, maintenance, unknown)


def add_seconds(seconds: Seconds, more: Seconds) -> Seconds:
    up, down, unknown, maintenance = map(add, seconds, more)
    return up, down, unknown, maintenance


def _nothing(days: Sequence[date]) -> Summed:
    return [public_day(day, NOTHING) for day in days], [NOTHING] * len(days)


def _read(
    ids: Sequence[int], days: Sequence[date], midnights: Sequence[int], whole_until: int
) -> dict[int, Summed]:
    """The days of each monitor by the rollups. ``whole_until``: see ``whole_days_until``."""
    nothing = _nothing(days)
    summed = {id: (list(nothing[0]), list(nothing[1])) for id in ids}
    parsed: dict[str, tuple[int, PublicDay, Seconds]] = {}  # by text: most days are equal
    for id, packed in db.session.execute(_packed_days(midnights, whole_until), {"ids": ids}):
        for text in packed.split(","):
            if text not in parsed:
                index, up, down, unknown, maintenance = map(int, text.split(":"))
                seconds = up, down, unknown, maintenance
                parsed[text] = index, public_day(days[index], seconds), seconds
            index, day, seconds = parsed[text]
            summed[id][0][index], summed[id][1][index] = day, seconds
    return summed


def _packed_days(midnights: Sequence[int], whole_until: int) -> Select[Any]:
    """The statement for a row for each monitor: its days as ``index:up:down:unknown:maintenance``,
    separated by commas. A row for each day would take three times as long.
    """
    runs = union_all(
        *(_part_of_days(*run) for run in _even_days(midnights, whole_until))
    ).subquery()
    id, *columns = runs.c
    text: Any = cast(columns[0], String)
    for column in columns[1:]:
        text = text + ":" + cast(column, String)
    return select(id, func.aggregate_strings(text, ",")).group_by(id)


def _even_days(midnights: Sequence[int], whole_until: int) -> list[tuple[int, int, int, int]]:
    """Runs of days that one statement sums: start and end (s), the index of the first day, and the
    period of the rows to read. Whole UTC days before ``whole_until`` have rows of a day.
    """
    runs: list[tuple[int, int, int, int]] = []
    for index, (begin, end) in enumerate(pairwise(midnights)):
        even = end - begin == DAY_MS
        period = DAY_S if even and begin % DAY_MS == 0 and begin < whole_until else HOUR_S
        if runs and even and runs[-1][3] == period and (runs[-1][1] - runs[-1][0]) % DAY_S == 0:
            runs[-1] = (runs[-1][0], end // 1000, *runs[-1][2:])
        else:
            runs.append((begin // 1000, end // 1000, index, period))
    return runs


def _part_of_days(start: int, end: int, first: int, period: int) -> Select[Any]:
    sums = (ROLLUPS.c.up_s, ROLLUPS.c.down_s, ROLLUPS.c.unknown_s, ROLLUPS.c.maintenance_s)
    # A day with 23 or 25 hours is a run alone.
    day = (ROLLUPS.c.start - start) // DAY_S + first if (end - start) % DAY_S == 0 else None
    day_index = (literal_column(str(first)) if day is None else day).label("day_index")
    where = (
        ROLLUPS.c.monitor_id.in_(bindparam("ids", expanding=True)),
        ROLLUPS.c.period == period,
        ROLLUPS.c.start >= start,
        ROLLUPS.c.start < end,
    )
    if period == DAY_S:
        return select(ROLLUPS.c.monitor_id, day_index, *sums).where(*where)
    summed = [func.sum(column).label(column.name) for column in sums]
    grouped = (ROLLUPS.c.monitor_id, *(() if day is None else (literal_column("2"),)))
    return select(ROLLUPS.c.monitor_id, day_index, *summed).where(*where).group_by(*grouped)
