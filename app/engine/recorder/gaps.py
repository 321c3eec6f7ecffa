"""Gaps: times without checks, because the service was stopped or an older backup was restored. An
incident may have been over meanwhile, so its length is only an upper limit.

A gap is noted at the first check after it. Paused monitors have none: pausing ends the incident.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from app.db import AnySession, journal
from app.db.tables import IncidentRow
from app.engine.recorder.rows import covers_s, open_incident
from app.engine.state import Stands, State, cleared
from app.rules.time import iso

INTERVALS = 3
SHORTEST = timedelta(minutes=10)
KEPT = 20  # of one incident: a machine that sleeps each night must not fill its row

Gap = tuple[datetime, datetime]  # the last check before, and the first one after


def before(monitor: Any, state: State, at: datetime) -> Gap | None:
    """The gap between the monitor's last check and the one at ``at``, if there is one."""
    last = state.checked_at
    if last is None or at - last <= _limit(monitor):
        return None
    # If the interval was shortened since, the last result has the length for which it counts.
    covers = journal.covers_s(monitor.id, last) or 0
    was_longer = covers > covers_s(monitor)
    if was_longer and at - last <= INTERVALS * timedelta(seconds=covers):
        return None
    return last, at


def _limit(monitor: Any) -> timedelta:
    """The longest time between two checks that is no gap."""
    return max(INTERVALS * timedelta(seconds=monitor.interval), SHORTEST)


def note(session: AnySession, monitor_id: int, state: State, gap: Gap) -> State:
    """Write the gap into the open incident, if checks opened it; returns the state from then on.

    A failure that was not confirmed yet is dropped: it must not open an incident that began before
    the gap.
    """
    if state.stands is Stands.CONFIRMING:
        return cleared(state)
    if state.stands in (Stands.OPEN, Stands.RECOVERING):
        incident = open_incident(session, monitor_id)
        if incident is not None:
            found = {"from": iso(gap[0]), "to": iso(gap[1])}
            incident.unwatched = [*(incident.unwatched or []), found][-KEPT:]
    return state


def keep_those_within(incident: IncidentRow, ended: datetime) -> None:
    """Drop gaps after the end: a recovery may begin before a gap and be confirmed after it."""
    kept = [gap for gap in incident.unwatched or [] if gap["from"] < iso(ended)]
    incident.unwatched = kept or None
