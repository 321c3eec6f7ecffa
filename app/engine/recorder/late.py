"""Record late results, which change no monitor's state: store them, correct the gaps of incidents,
find the outages that they show (``found_late``), and sum their hours again. ``app/judge/replay.py``
says which results are late, and how they count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select

from app.db import AnySession, assignments, db, dependencies, journal, rollups, writing
from app.db.latest import lock_states
from app.db.statements import grouped, pieces
from app.db.tables import IncidentRow, MonitorRow, MonitorStateRow
from app.db.types import to_ms
from app.db.windows import MaintenanceTimes
from app.engine.recorder import found_late, gaps
from app.engine.recorder.found_late import Search
from app.engine.recorder.rows import cover_limit_s, last_pause, lock_state, rejudged_from
from app.judge.replay import TimeSpan
from app.judge.verdict import MIN_COVER_S
from app.records import Result

# Monitors of one transaction: while it sums their hours again, no other process can write to
# SQLite.
CHUNK = 50
_MONITORS = select(
    MonitorRow.id, MonitorRow.interval, MonitorRow.timeout, MonitorRow.confirmations,
    MonitorRow.location_rule, MonitorRow.created_at, MonitorRow.paused, MonitorRow.tags,
    MonitorRow.maintenance_start_at, MonitorRow.maintenance_end_at, MonitorStateRow.paused_at,
    MonitorStateRow.resumed_at, MonitorStateRow.judged_since, MonitorStateRow.rolled_until,
).join(MonitorStateRow, MonitorStateRow.monitor_id == MonitorRow.id)  # fmt: skip


def record_late(
    results: Sequence[Result], now: datetime, *, location: str, in_time: Sequence[Result] = ()
) -> int:
    """Store results, each with its ``monitor_id``; returns how many were new. Results that are
    stored already, and those of unknown monitors, are left out.

    ``in_time``: results of the same place that were recorded in time. An earlier outage that was
    found late may continue or end with them.
    """
    place = journal.place_id(location)
    if not results and not _may_change_an_outage(in_time, place):
        return 0
    journal.assign_numbers(results)
    ids = _by_depth(_ids([*results, *in_time]))
    changed_times: dict[int, TimeSpan] = {}
    count = 0
    for part in map(set, pieces(ids, CHUNK)):
        late_part, in_time_part = (
            [result for result in some if result.monitor_id in part] for some in (results, in_time)
        )
        new_count, spans = _record_some(part, late_part, in_time_part, {}, place, now)
        changed_times |= spans
        count += new_count
    if times := _times_of_children(changed_times):
        _record_some(times, (), (), times, place, now)
    return count


def _by_depth(ids: Collection[int]) -> list[int]:
    """The ids, parents before their children: the outages of a parent are found first."""
    above = dependencies.above(db.session, ids)
    db.session.rollback()
    return sorted(ids, key=lambda id: (len(above.get(id, ())), id))


def _record_some(
    ids: Collection[int],
    results: Sequence[Result],
    in_time: Sequence[Result],
    times: Mapping[int, Sequence[datetime]],
    place: int,
    now: datetime,
) -> tuple[int, dict[int, TimeSpan]]:
    """Store the late ``results`` of these monitors, and search for outages around all results and
    around ``times`` (by monitor). Returns how many results were new, and the time in which
    incidents have changed, by monitor.
    """
    with writing() as session:
        # Two places may bring results of the same time together: each must see those of the
        # other.
        lock_states(session, ids)
        monitors = _monitors(session, ids)
        new_results = _store(session, results, monitors, place)
        _fill_gaps(session, new_results, monitors)
        places = assignments.of_each(session, monitors)
        searches = _searches(place, new_results, in_time, monitors, places)
        searches += [
            Search(monitors[id], place, min(moments), max(moments), places[id])
            for id, moments in sorted(times.items())
            if id in monitors
        ]
        spans = found_late.find_outages(session, searches, place, now)
        _reroll(new_results, spans, monitors, places)
    return len(new_results), spans


def _times_of_children(changed_times: Mapping[int, TimeSpan]) -> dict[int, list[datetime]]:
    """The times at which children are judged again: the incidents of their parents have changed
    then, and their own outages that were found late may be behind these.
    """
    below = dependencies.below(db.session, changed_times) if changed_times else {}
    times: dict[int, list[datetime]] = {}
    for parent, ids in below.items():
        for id in ids:
            times.setdefault(id, []).extend(changed_times[parent])
    db.session.rollback()
    return times


def _may_change_an_outage(in_time: Sequence[Result], place: int) -> bool:
    """Whether these results may continue or end an outage that was found late. Usually none is
    stored, and nothing is locked.
    """
    if not in_time:
        return False
    searches = _searches(place, (), in_time, _monitors(db.session, _ids(in_time)), {})
    needed = found_late.read_stored(db.session, searches)
    db.session.rollback()
    return bool(needed)


def _monitors(session: AnySession, ids: Collection[int]) -> dict[int, Any]:
    return {row.id: row for row in session.execute(_MONITORS.where(MonitorRow.id.in_(ids)))}


def _ids(results: Iterable[Result]) -> set[int]:
    return {result.monitor_id or 0 for result in results}


def _store(
    session: AnySession, results: Sequence[Result], monitors: Mapping[int, Any], place: int
) -> list[Result]:
    """Store the results that are new, and return them."""
    if not results:
        return []
    windows = MaintenanceTimes(session, min(result.checked_at for result in results))
    keys = journal.stored_times({_key(result) for result in results}, place)
    new_results = [
        result for result in results if result.monitor_id in monitors and _key(result) not in keys
    ]
    journal.insert_results([_row(result, monitors, windows, place) for result in new_results])
    session.flush()
    return new_results


def _key(result: Result) -> tuple[int, int]:
    return result.monitor_id or 0, to_ms(result.checked_at)


def _row(
    result: Result, monitors: Mapping[int, Any], windows: MaintenanceTimes, place: int
) -> dict[str, Any]:
    monitor = monitors[result.monitor_id or 0]
    covers = _cover_outside_pause_s(monitor, result.checked_at)
    maintenance = windows.covers(monitor, result.checked_at)
    return journal.row_of(replace(result, maintenance=maintenance), place, covers)


def _cover_outside_pause_s(monitor: Any, at: datetime) -> int:
    """The most seconds for which a result counts: 0 if it was made in the last pause. Before the
    pause, it counts until the pause begins.
    """
    covers, pause = cover_limit_s(monitor), last_pause(monitor)
    if pause is None or at >= pause[1]:
        return covers
    until_pause_s = int((pause[0] - at).total_seconds())
    return min(covers, max(MIN_COVER_S, until_pause_s)) if at < pause[0] else 0


def _searches(
    place: int,
    late: Iterable[Result],
    in_time: Iterable[Result],
    monitors: Mapping[int, Any],
    places: Mapping[int, Collection[int]],
) -> list[Search]:
    """The searches for outages around these results. Results from before ``rejudged_from`` are left
    out.
    """
    by_monitor: dict[int, Search] = {}
    for is_late, results in ((True, late), (False, in_time)):
        for result in results:
            monitor = monitors.get(result.monitor_id or 0)
            if monitor is None or result.checked_at < rejudged_from(monitor):
                continue
            if monitor.id not in by_monitor:
                at, its_places = result.checked_at, places.get(monitor.id, ())
                by_monitor[monitor.id] = Search(monitor, place, at, at, its_places)
            by_monitor[monitor.id].add(result, late=is_late)
    return [by_monitor[id] for id in sorted(by_monitor)]


def _fill_gaps(session: AnySession, results: Iterable[Result], monitors: Mapping[int, Any]) -> None:
    """Remove the time that these results watched from the gaps of incidents. Most incidents have
    none.
    """
    moments = grouped((result.monitor_id or 0, result.checked_at) for result in results)
    if not moments:
        return
    row = IncidentRow
    has_gap = row.monitor_id.in_(moments), row.unwatched.is_not(None)
    for monitor_id in sorted(set(session.scalars(select(row.monitor_id).where(*has_gap)))):
        lock_state(session, monitor_id)
        gaps.fill(session, monitors[monitor_id], moments[monitor_id])


def _reroll(
    results: Sequence[Result],
    changed_times: Mapping[int, TimeSpan],
    monitors: Mapping[int, Any],
    places: Mapping[int, Collection[int]],
) -> None:
    """Sum the hours of these results and of the changed times again."""
    times = []
    for result in results:
        id, at = result.monitor_id or 0, result.checked_at
        # Figures depend on a result while it counts and, if several places check, while later
        # failures of its place are being confirmed.
        checks = 1 + (monitors[id].confirmations if len(places[id]) > 1 else 0)
        times += [(id, at), (id, at + checks * timedelta(seconds=cover_limit_s(monitors[id])))]
    times += [(id, time) for id, span in changed_times.items() for time in span]
    spans: dict[int, TimeSpan] = {}
    for id, at in times:
        first, last = spans.get(id, (at, at + timedelta(milliseconds=1)))
        spans[id] = min(first, at), max(last, at + timedelta(milliseconds=1))
    if spans:
        rollups.reroll_each(spans)
