"""Record results that come too late to be judged: they correct the figures, and nothing else.

An agent that was cut off brings the results of an hour. What they say is over: they neither open
nor close an incident, and change no monitor's state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select, tuple_

from app.db import AnySession, journal, rollups, writing
from app.db.tables import IncidentRow, MonitorRow, ResultRow
from app.db.types import to_ms
from app.engine.recorder import gaps
from app.engine.recorder.quiet import Quiet
from app.engine.recorder.rows import covers_s, lock
from app.records import Result


def record_late(results: Sequence[Result], *, location: str) -> int:
    """Store results, each with its ``monitor_id``; returns how many were new. One that is stored
    already is left out, and so is one of an unknown monitor.
    """
    if not results:
        return 0
    journal.known_numbers(results)
    place = journal.location_id(location)
    with writing() as session:
        quiet = Quiet(session, min(result.checked_at for result in results))
        monitors = _monitors(session, {result.monitor_id or 0 for result in results})
        known = _stored(session, results, place)
        fresh = [
            result
            for result in results
            if result.monitor_id in monitors
            and (result.monitor_id, to_ms(result.checked_at)) not in known
        ]
        journal.keep([_row(one, monitors, quiet, place) for one in fresh])
        session.flush()
        _correct(session, fresh, monitors)
    return len(fresh)


def _monitors(session: AnySession, ids: set[int]) -> dict[int, Any]:
    rows = session.execute(
        select(
            MonitorRow.id,
            MonitorRow.interval,
            MonitorRow.timeout,
            MonitorRow.paused,
            MonitorRow.maintenance_start_at,
            MonitorRow.maintenance_end_at,
            MonitorRow.tags,
        ).where(MonitorRow.id.in_(ids))
    )
    return {row.id: row for row in rows}


def _stored(session: AnySession, results: Sequence[Result], place: int) -> set[tuple[int, int]]:
    """Those of the results that are stored already, by monitor and time. The recorder moves a
    result by a millisecond if another place has one of the same time.
    """
    times = [(result.monitor_id, to_ms(result.checked_at)) for result in results]
    asked = {(monitor_id, at + more) for monitor_id, at in times for more in (0, 1)}
    rows = session.execute(
        select(ResultRow.monitor_id, ResultRow.at).where(
            tuple_(ResultRow.monitor_id, ResultRow.at).in_(sorted(asked)),
            ResultRow.location_id == place,
        )
    )
    return {(row.monitor_id, row.at - back) for row in rows for back in (0, 1)}


def _row(result: Result, monitors: Mapping[int, Any], quiet: Quiet, place: int) -> dict[str, Any]:
    monitor = monitors[result.monitor_id or 0]
    covers = 0 if monitor.paused else covers_s(monitor)
    maintenance = quiet.covers(monitor, result.checked_at)
    return journal.row_of(replace(result, maintenance=maintenance), place, covers)


def _with_gaps(session: AnySession, ids: Collection[int]) -> set[int]:
    """Those of these monitors that have an incident with a gap: mostly none."""
    row = IncidentRow
    found = select(row.monitor_id).where(row.monitor_id.in_(ids), row.unwatched.is_not(None))
    return set(session.scalars(found))


def _correct(session: AnySession, results: Sequence[Result], monitors: Mapping[int, Any]) -> None:
    """Sum the hours of these results again, those that are summed already; and what they saw was
    watched, though nobody knew it when the incident was written.
    """
    moments: dict[int, list[datetime]] = {}
    for result in results:
        moments.setdefault(result.monitor_id or 0, []).append(result.checked_at)
    with_gaps = _with_gaps(session, moments) if moments else ()
    for monitor_id in sorted(moments):  # in the order in which all writers lock the states
        found = moments[monitor_id]
        if monitor_id in with_gaps:
            lock(session, monitor_id)
            gaps.fill(session, monitors[monitor_id], found)
        rollups.reroll(monitor_id, min(found), max(found) + timedelta(milliseconds=1))
