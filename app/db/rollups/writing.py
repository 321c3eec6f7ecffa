"""Sum each hour in six parts while it runs, and again when an incident in it has changed.

After each part, the running hour is summed from its start. To add only the part to the stored sums
would add up rounding errors, and lose the failures in a row before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from sqlalchemy import bindparam, or_, select, update

from app.db import DbSession, db, packed, writing
from app.db.latest import lock_states
from app.db.rollups.rows import (
    DAY_S,
    HOUR_S,
    MONITORS,
    ROLLUPS,
    columns_of,
    floor_to,
    outage_times_of,
    sums_of,
    sums_of_results,
)
from app.db.statements import deleting, inserting, pieces
from app.db.tables import MonitorStateRow, RollupRow
from app.db.types import from_ms, to_ms
from app.stats.tally import DAY_MS, HOUR_MS, Sums

# A part is summed this long after its end: by then, the checks that started in it are recorded and
# its failures are confirmed. Later changes call ``reroll``.
GRACE = timedelta(minutes=10)
# Shorter parts cost more, because each reads the hour again. Longer ones leave more results to
# read.
PART_MS = HOUR_MS // 6
# Monitors summed in one transaction: about 50 ms, so that results do not wait long for the lock.
CHUNK = 50
# The longest time whose results one statement reads for several monitors.
MAX_SHARED_MS = 3 * HOUR_MS
FAR_FUTURE_MS = 2**62  # later than any time

_STATES = MonitorStateRow.__table__
# Run in the transaction of each change of sums, or of results that are not summed yet: readers
# cache figures by ``sums_version``.
_SET_ROLLED = (
    update(_STATES)  # type: ignore[arg-type] # Flask-SQLAlchemy types __table__ as a FromClause
    .where(_STATES.c.monitor_id == bindparam("id"))
    .values(rolled_until=bindparam("until"), sums_version=_STATES.c.sums_version + 1)
)
_DAYS = select(ROLLUPS).where(
    ROLLUPS.c.monitor_id.in_(bindparam("ids", expanding=True)),
    ROLLUPS.c.period == DAY_S,
    ROLLUPS.c.start.in_(bindparam("starts", expanding=True)),
)
# A row of MONITORS, and the times (ms) between which it is summed.
MonitorSpan = tuple[Any, int, int]


def roll(now: datetime, limit: int = 3000) -> int:
    """Sum the complete parts of hours of at most ``limit`` monitors; returns how many monitors were
    due.

    The engine calls this every minute. Monitors that are farthest behind come first.
    """
    until = floor_to(to_ms(now - GRACE), PART_MS)
    _delete_future(until)
    rolled = MonitorStateRow.rolled_until
    behind = (
        select(MonitorStateRow.monitor_id)
        .where(or_(rolled.is_(None), rolled < from_ms(until)))
        .order_by(rolled.is_not(None), rolled, MonitorStateRow.monitor_id)
        .limit(limit)
    )
    ids = list(db.session.scalars(behind))
    for part in pieces(ids, CHUNK):
        with writing() as session:
            spans = [
                (monitor, _first_due(monitor, until), until)
                for monitor in _locked(session, part)
                # Not those that another checker has summed to a later time since they were read:
                # ``rolled_until`` would go back, and some results would count twice.
                if monitor.rolled_until is None or monitor.rolled_until < from_ms(until)
            ]
            hours = _sum(session, [span for span in spans if span[1] < until])
            complete = [row for row in hours if (row["start"] + HOUR_S) * 1000 <= until]
            _upsert(session, _days_with(session, complete))
            rows = [{"id": span[0].monitor_id, "until": from_ms(until)} for span in spans]
            if rows:
                session.execute(_SET_ROLLED, rows)
    return len(ids)


def _delete_future(until: int) -> None:
    """Delete the sums of hours that have not ended at ``until``. A clock that was ahead made them,
    and they would lack the checks to come; they are summed again after their end.

    Hours whose results have been deleted by age are kept: perhaps the clock is behind now.
    """
    ahead = MonitorStateRow.rolled_until > from_ms(until + HOUR_MS)
    for id in list(db.session.scalars(select(MonitorStateRow.monitor_id).where(ahead))):
        with writing() as session:
            for monitor in _locked(session, [id]):
                start = max(floor_to(until, HOUR_MS), _first_whole_hour(id))
                end = to_ms(monitor.rolled_until)
                if start < end:
                    _delete_sums(session, id, start, end)
                    session.execute(_SET_ROLLED, [{"id": id, "until": from_ms(start)}])
                    day = floor_to(start, DAY_MS)  # its row is deleted, but some hours are left
                    _upsert(session, _days(session, {id: start}, day, day + DAY_MS))


def reroll(monitor_id: int, from_: datetime, to: datetime | None = None) -> None:
    """Sum the hours between two times again, because an incident in them has changed.

    ``to`` defaults to now. Joins the caller's transaction. Hours that are not summed yet, and those
    whose results have been deleted by age, are not changed.
    """
    reroll_each({monitor_id: (from_, to)})


def reroll_each(times: Mapping[int, tuple[datetime, datetime | None]]) -> None:
    """``reroll`` several monitors, each between its two times."""
    with writing() as session:
        monitors = _locked(session, list(times))
        spans = [
            (monitor, start, end)
            for monitor in monitors
            for start, end in [_summed_hours(monitor, *times[monitor.monitor_id])]
            if start < end
        ]
        for part in pieces(spans, CHUNK):
            _sum_again(session, part)
        _set_rolled(session, monitors)


def _summed_hours(monitor: Any, from_: datetime, to: datetime | None) -> tuple[int, int]:
    """The start and end (ms) of the summed hours between two times whose results are all stored. If
    there are none, the end is not after the start.
    """
    start = floor_to(to_ms(from_), HOUR_MS)
    if monitor.rolled_until is None:
        return start, start
    until = to_ms(monitor.rolled_until)
    end = until if to is None else min(until, floor_to(to_ms(to) - 1, HOUR_MS) + HOUR_MS)
    if start < end:
        start = max(start, _first_whole_hour(monitor.monitor_id))
    return start, end


def _sum_again(session: DbSession, spans: Sequence[MonitorSpan]) -> None:
    for monitor, start, end in spans:
        _delete_sums(session, monitor.monitor_id, start, end)
    _sum(session, spans)
    if spans:
        until = {monitor.monitor_id: to_ms(monitor.rolled_until) for monitor, _start, _end in spans}
        begin, end = min(span[1] for span in spans), max(span[2] for span in spans)
        _upsert(session, _days(session, until, floor_to(begin, DAY_MS), -(-end // DAY_MS) * DAY_MS))


def _set_rolled(session: DbSession, monitors: Iterable[Any]) -> None:
    rolled = [{"id": monitor.monitor_id, "until": monitor.rolled_until} for monitor in monitors]
    if rolled:
        session.execute(_SET_ROLLED, rolled)


def is_summed(until: datetime | None, moment: datetime) -> bool:
    """Whether the time of ``moment`` is summed. ``until``: the monitor's ``rolled_until``, which is
    read under the lock of its state.
    """
    return until is not None and to_ms(moment) < to_ms(until)


def _locked(session: DbSession, ids: Sequence[int]) -> Sequence[Any]:
    # The recorder locks the same states when an incident starts or ends: either it reads that these
    # hours are summed, or the sums include its incident.
    lock_states(session, ids)
    return session.execute(MONITORS, {"ids": ids}).all()


def _first_due(monitor: Any, until: int) -> int:
    """The first hour (ms) that is not summed in full; ``until`` if there is nothing to sum."""
    if monitor.rolled_until is not None:
        return floor_to(to_ms(monitor.rolled_until), HOUR_MS)
    first = packed.first_at(monitor.monitor_id)
    return until if first is None else min(until, floor_to(first, HOUR_MS))


def _sum(session: DbSession, spans: Sequence[MonitorSpan]) -> list[dict[str, Any]]:
    """Write the hours of these monitors; returns their rows."""
    if not spans:
        return []
    begin, end = min(span[1] for span in spans), max(span[2] for span in spans)
    trouble = outage_times_of([span[0] for span in spans], begin, end)
    hours = []
    for same_time in _by_time(spans):
        _monitor, start, stop = same_time[0]
        alike = [span[0] for span in same_time]
        for id, sums in sums_of_results(alike, trouble, HOUR_MS, start, stop).items():
            hours += [columns_of(id, HOUR_S, at, figures) for at, figures in sums.items()]
    _upsert(session, hours)
    return hours


def _by_time(spans: Sequence[MonitorSpan]) -> Iterator[Sequence[MonitorSpan]]:
    """Group the spans by their time. One statement reads the results of a group: a statement for
    each monitor would cost as much as reading its results. A long span is alone, to save memory.
    """
    by_span: dict[tuple[int, int], list[MonitorSpan]] = {}
    for span in spans:
        if span[2] - span[1] > MAX_SHARED_MS:
            yield [span]
        else:
            by_span.setdefault(span[1:], []).append(span)
    yield from by_span.values()


def _days_with(session: DbSession, hours: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the days of these hours, which have just ended: each day's stored row plus its
    new hours. To read all hours of a day again would take three quarters of the time of summing.
    """
    added: dict[tuple[int, int], Sums] = {}
    for hour in (SimpleNamespace(**row) for row in hours):
        day = hour.monitor_id, floor_to(hour.start, DAY_S)
        added.setdefault(day, Sums()).add(sums_of(hour))
    if not added:
        return []
    ids, starts = ({day[index] for day in added} for index in (0, 1))
    for row in session.execute(_DAYS, {"ids": sorted(ids), "starts": sorted(starts)}):
        if (row.monitor_id, row.start) in added:
            added[row.monitor_id, row.start].add(sums_of(row))
    return [columns_of(id, DAY_S, start * 1000, sums) for (id, start), sums in added.items()]


def _days(
    session: DbSession, until: Mapping[int, int], begin: int, end: int
) -> list[dict[str, Any]]:
    """The rows of the days between two midnights, each the sum of its hours that have ended.
    ``until``: the time (ms) until which each monitor is summed.
    """
    days: dict[tuple[int, int], Sums] = {}
    rows = session.execute(
        select(ROLLUPS).where(
            ROLLUPS.c.monitor_id.in_(until),
            ROLLUPS.c.period == HOUR_S,
            ROLLUPS.c.start >= begin // 1000,
            ROLLUPS.c.start < end // 1000,
        )
    )
    for row in rows:
        day = floor_to(row.start * 1000, DAY_MS)
        if (row.start + HOUR_S) * 1000 <= until[row.monitor_id]:
            days.setdefault((row.monitor_id, day), Sums()).add(sums_of(row))
    return [columns_of(id, DAY_S, day, sums) for (id, day), sums in days.items()]


def _upsert(session: DbSession, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    statement = inserting(RollupRow)
    keys = {"monitor_id", "period", "start"}
    changes = {c.name: statement.excluded[c.name] for c in ROLLUPS.c if c.name not in keys}
    session.execute(
        statement.on_conflict_do_update(index_elements=sorted(keys), set_=changes), rows
    )


def _delete_sums(session: DbSession, id: int, start: int, end: int) -> None:
    """Delete hours that are summed again, and the days that they are part of."""
    for period, begin, stop in (
        (HOUR_S, start, end),
        (DAY_S, floor_to(start, DAY_MS), floor_to(end - 1, DAY_MS) + DAY_MS),
    ):
        session.execute(
            deleting(RollupRow).where(
                RollupRow.monitor_id == id,
                RollupRow.period == period,
                RollupRow.start >= begin // 1000,
                RollupRow.start < stop // 1000,
            )
        )


def _first_whole_hour(id: int) -> int:
    """The first hour (ms) whose results are all stored. Results of older hours are deleted."""
    first = packed.first_at(id)
    if first is None:
        return FAR_FUTURE_MS
    hour = floor_to(first, HOUR_MS)
    older = select(RollupRow.start).where(
        RollupRow.monitor_id == id, RollupRow.period == HOUR_S, RollupRow.start < hour // 1000
    )
    # If there are older hours whose results are deleted, some of this hour's may be too.
    return hour if db.session.execute(older.limit(1)).first() is None else hour + HOUR_MS
