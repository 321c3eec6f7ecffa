"""Open and end incidents because of checks, those of a batch together.

When thousands of monitors fail at once, reading and writing for each by itself would take ten times
as long, and people would be notified of the last ones after minutes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, select

from app.alerts.outbox import MONITOR_COLUMNS, Alert
from app.db import AnySession, rollups
from app.db.by_place import NewestCheck
from app.db.tables import IncidentRow, LocationRow, MonitorRow
from app.db.types import readable
from app.engine.recorder import by_place, evidence, gaps
from app.engine.recorder.alerting import notify_all
from app.engine.recorder.rows import end, remark_at, whole
from app.i18n import _
from app.records import MAX_CAUSE, Ending, Event, Result, Verdict
from app.rules.who_saw import CHANGED, fell_silent, seen_by

# Built once: the ids are those of a batch.
_IDS: Any = bindparam("ids", expanding=True)
_MONITORS = select(
    *MONITOR_COLUMNS, MonitorRow.interval, MonitorRow.timeout, MonitorRow.updated_at
).where(MonitorRow.id.in_(_IDS))
_OPEN = select(IncidentRow).where(IncidentRow.monitor_id.in_(_IDS), IncidentRow.ended_at.is_(None))


@dataclass(frozen=True, slots=True)
class Opening:
    """An incident that began at ``since`` and that ``result`` confirmed. ``summed_until``: the
    monitor's ``rolled_until``.
    """

    monitor_id: int
    since: datetime
    result: Result
    summed_until: datetime | None


@dataclass(frozen=True, slots=True)
class Closing:
    """The open incident of a monitor ended at ``at``, the first good check of the recovery.
    ``good``: places that are good now. ``silent``: places that saw the failure to the last and have
    no vote any more. If that is why the incident ends (``by_silence``), or if no other place saw
    it, nobody saw it end, and the incident and its message say so. ``changed``: the incident ends
    because the rule or the places of the monitor changed.
    """

    monitor_id: int
    at: datetime
    summed_until: datetime | None
    good: Collection[int]
    silent: Sequence[NewestCheck] = ()
    by_silence: bool = False
    changed: bool = False


Change = Opening | Closing


def carry_out(
    session: AnySession, changes: Sequence[Change], failing: evidence.Failing, now: datetime
) -> None:
    """Open and end these incidents, at most one of each monitor, and write the alerts about them in
    this order. The results of the batch must be stored.
    """
    monitors = _by_id(
        session.execute(_MONITORS, {"ids": [change.monitor_id for change in changes]})
    )
    openings = [change for change in changes if isinstance(change, Opening)]
    closings = [change for change in changes if isinstance(change, Closing)]
    incidents = _open(session, openings, monitors, failing, now) if openings else {}
    incidents |= _end(session, closings, monitors, now) if closings else {}
    notify_all(
        session,
        [
            Alert(
                Event.INCIDENT_OPENED if isinstance(change, Opening) else Event.INCIDENT_RESOLVED,
                monitors[change.monitor_id],
                incidents[change.monitor_id],
                _silent_in(incidents[change.monitor_id], change),
            )
            for change in changes
            if change.monitor_id in incidents
        ],
        now,
    )


def _silent_in(incident: IncidentRow, change: Change) -> Mapping[str, Any] | None:
    """What a message says besides: the places whose silence ended the incident."""
    if isinstance(change, Opening) or incident.ending != Ending.SILENCE:
        return None
    return {"silent": [place.title for place in change.silent]}


def _by_id(monitors: Iterable[Any]) -> dict[int, Any]:
    return {monitor.id: monitor for monitor in monitors}


def _open(
    session: AnySession,
    openings: Sequence[Opening],
    monitors: Mapping[int, Any],
    failing: evidence.Failing,
    now: datetime,
) -> dict[int, IncidentRow]:
    """Open incidents, by monitor."""
    places = by_place.of_monitors(
        session, [monitors[opening.monitor_id] for opening in openings], now
    )
    new_incidents = [
        evidence.NewIncident(
            monitors[opening.monitor_id], opening.since, places[opening.monitor_id]
        )
        for opening in openings
    ]
    evidence_of = evidence.of_incidents(session, failing, new_incidents)
    incidents = {
        opening.monitor_id: _incident(opening, evidence_of[opening.monitor_id], now)
        for opening in openings
    }
    session.add_all(incidents.values())
    session.flush()
    for opening in openings:
        # The incident may have begun in an hour that is already summed.
        _sum_again(opening, incidents[opening.monitor_id].started_at)
    return incidents


def _incident(opening: Opening, parts: Mapping[str, Any], now: datetime) -> IncidentRow:
    """The row of a new incident. Its cause is that of the first failing check: a repeat may fail
    for another reason, as when a server first hangs and then refuses.
    """
    first, result = parts["failing"] or {}, opening.result
    cause = (first.get("cause") or result.cause or "")[:MAX_CAUSE] or None
    incident = IncidentRow(
        monitor_id=opening.monitor_id,
        started_at=whole(opening.since),
        cause=cause,
        cause_folded=cause and cause.casefold(),
        cause_code=first.get("cause_code") or result.cause_code,
        by_hand=False,
        created_at=whole(now),
        updated_at=whole(now),
    )
    evidence.store_evidence(incident, parts)
    return incident


def _end(
    session: AnySession, closings: Sequence[Closing], monitors: Mapping[int, Any], now: datetime
) -> dict[int, IncidentRow]:
    """End incidents, by monitor."""
    ids = [closing.monitor_id for closing in closings]
    incidents = {incident.monitor_id: incident for incident in session.scalars(_OPEN, {"ids": ids})}
    for closing in closings:
        if (incident := incidents.get(closing.monitor_id)) is not None:
            since_change = monitors[closing.monitor_id].updated_at >= incident.started_at
            changed = closing.changed or (
                since_change and _nobody_saw_it_end(session, incident, closing.good)
            )
            gaps.keep_those_within(incident, _ended(incident, closing, now, changed=changed))
    session.flush()
    for closing in closings:
        if closing.monitor_id in incidents:
            _sum_again(closing, incidents[closing.monitor_id].ended_at or closing.at)
    return incidents


def _ended(incident: IncidentRow, closing: Closing, now: datetime, *, changed: bool) -> datetime:
    """End an incident; returns when. ``changed``: it ends because the monitor was changed, not
    because a place saw it end.
    """
    silent = closing.silent
    names = {place.name for place in silent}
    if closing.by_silence or (silent and not seen_by(readable(incident.evidence)) - names):
        ended = end(incident, closing.at, now, Ending.SILENCE)
        remark_at(incident, fell_silent([place.title for place in silent]), ended)
        gaps.add(incident, max(place.last_at or ended for place in silent), ended)
        return ended
    if changed:
        ended = end(incident, closing.at, now, Ending.CHANGED)
        remark_at(incident, _(CHANGED), ended)
        return ended
    return end(incident, closing.at, now, Ending.RECOVERED)


def _nobody_saw_it_end(session: AnySession, incident: IncidentRow, good: Collection[int]) -> bool:
    """Whether none of the places that saw the failure is among those that are good now. With
    another rule, or without the place that fails, the others alone may end an incident.
    """
    places = (readable(incident.evidence) or {}).get("places") or ()
    saw = {place["name"] for place in places if place.get("verdict") == Verdict.DOWN}
    names = session.scalars(select(LocationRow.name).where(LocationRow.id.in_(good)))
    return bool(saw) and saw.isdisjoint(names)


def _sum_again(change: Change, moment: datetime) -> None:
    if rollups.is_summed(change.summed_until, moment):
        rollups.reroll(change.monitor_id, moment)
