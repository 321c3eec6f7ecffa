"""Open and end incidents because of checks, all incidents of a batch together.

When thousands of monitors fail together, separate statements for each would take ten times as long,
and people would be notified of the last failures after minutes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import bindparam, select

from app.alerts.outbox import MONITOR_COLUMNS, Alert
from app.db import AnySession, rollups
from app.db.by_place import NewestCheck
from app.db.tables import IncidentRow, MonitorRow, MonitorStateRow, PlaceRow
from app.db.types import readable
from app.engine.recorder import by_place, evidence, gaps, slowness
from app.engine.recorder.alerting import notify
from app.engine.recorder.rows import end_incident, in_whole_seconds, remark_at
from app.i18n import N_, _
from app.judge.slow import Usual
from app.judge.verdict import PastResult
from app.records import MAX_CAUSE, Cause, Ending, Event, IncidentSeverity, Result, Verdict
from app.rules.who_saw import CHANGED, NOT_SLOW_NOW, fell_silent, seen_by

# The ids of the monitors in a batch
_IDS: Any = bindparam("ids", expanding=True)
_MONITORS = (
    select(
        *MONITOR_COLUMNS, MonitorRow.interval, MonitorRow.timeout, MonitorRow.updated_at,
        MonitorStateRow.rolled_until,
    )
    .join(MonitorStateRow, MonitorStateRow.monitor_id == MonitorRow.id)
    .where(MonitorRow.id.in_(_IDS))
)  # fmt: skip
WAS_SLOW = N_("It was slow before it was down: %(cause)s")
_OPEN = select(IncidentRow).where(IncidentRow.monitor_id.in_(_IDS), IncidentRow.ended_at.is_(None))


class Slow(NamedTuple):
    """Facts about a slow monitor. ``checks``: those of its slow places, whose median is above
    ``limit`` (ms). ``voters``: the number of places with enough checks. ``rejudged_from``: see
    ``rows``; earlier response times are not compared.
    """

    checks: Sequence[PastResult]
    limit: int
    voters: int
    rejudged_from: datetime


@dataclass(frozen=True, slots=True)
class Opening:
    """An incident that began at ``since`` and that ``result`` confirmed. ``slow``: set if the
    incident is degraded. ``was_slow``: no new one opens; the open degraded incident becomes down.
    """

    monitor_id: int
    since: datetime
    result: Result
    slow: Slow | None = None
    was_slow: bool = False


@dataclass(frozen=True, slots=True)
class Closing:
    """The open incident of a monitor ended at ``at``, the first good check of the recovery.
    ``good``: the ids of places whose newest check was good. ``silent``: places whose last check
    failed and that have no vote any more. ``by_silence``: the incident ends because of them.
    ``by_change``: it ends because the monitor was changed. ``slow``: the monitor is up again, but
    slow.

    If the incident ends by silence, or only silent places saw it, no check saw its end, and the
    incident and its message say so.
    """

    monitor_id: int
    at: datetime
    good: Collection[int]
    silent: Sequence[NewestCheck] = ()
    by_silence: bool = False
    by_change: bool = False
    slow: bool = False


Change = Opening | Closing


def open_and_end(
    session: AnySession, changes: Sequence[Change], failing: evidence.FailingChecks, now: datetime
) -> None:
    """Open and end these incidents, at most one for each monitor, and write the alerts about them
    in this order. The results of the batch must be stored already.
    """
    ids = [change.monitor_id for change in changes]
    monitors = {monitor.id: monitor for monitor in session.execute(_MONITORS, {"ids": ids})}
    openings = [change for change in changes if isinstance(change, Opening)]
    closings = [change for change in changes if isinstance(change, Closing)]
    incidents = _open(session, openings, monitors, failing, now) if openings else {}
    incidents |= _end(session, closings, monitors, now) if closings else {}
    notify(
        session,
        [
            Alert(
                Event.INCIDENT_OPENED if isinstance(change, Opening) else Event.INCIDENT_RESOLVED,
                monitors[change.monitor_id],
                incidents[change.monitor_id],
                _extra_facts(incidents[change.monitor_id], change),
            )
            for change in changes
            if change.monitor_id in incidents
        ],
        now,
    )


def _extra_facts(incident: IncidentRow, change: Change) -> Mapping[str, Any] | None:
    """The ``extra`` facts of an alert: the places whose silence ended the incident, or that the
    monitor, which is up again, is slow.
    """
    if isinstance(change, Opening):
        return None
    if incident.ending == Ending.SILENCE:
        return {"silent": [place.title for place in change.silent]}
    return {"slow": True} if change.slow else None


def _open(
    session: AnySession,
    openings: Sequence[Opening],
    monitors: Mapping[int, Any],
    failing: evidence.FailingChecks,
    now: datetime,
) -> dict[int, IncidentRow]:
    """Open incidents, by monitor."""
    opened = {opening.monitor_id: monitors[opening.monitor_id] for opening in openings}
    places = by_place.of_monitors(session, opened.values(), now)
    new_incidents = [
        evidence.NewIncident(opened[opening.monitor_id], opening.since, places[opening.monitor_id])
        for opening in openings
    ]
    evidence_of = evidence.of_incidents(session, failing, new_incidents)
    degraded = _open_rows(session, [opening for opening in openings if opening.was_slow])
    usual = slowness.usual_in_week(
        {
            opening.monitor_id: (opening.since, slow.rejudged_from)
            for opening in openings
            if (slow := opening.slow) is not None
        }
    )
    incidents = {
        (id := opening.monitor_id): _incident(
            opening, degraded.get(id), evidence_of[id], usual.get(id), places[id], now
        )
        for opening in openings
    }
    session.add_all(incidents.values())
    session.flush()
    for opening in openings:
        # The incident may have begun in an hour that is already summed.
        incident = incidents[opening.monitor_id]
        _sum_again(opened[opening.monitor_id], incident.down_since or incident.started_at)
    return incidents


def _open_rows(session: AnySession, changes: Sequence[Change]) -> dict[int, IncidentRow]:
    """The open incidents of these monitors."""
    ids = [change.monitor_id for change in changes]
    rows = session.scalars(_OPEN, {"ids": ids}) if ids else ()
    return {incident.monitor_id: incident for incident in rows}


def _incident(
    opening: Opening,
    degraded: IncidentRow | None,
    parts: Mapping[str, Any],
    usual: Usual | None,
    places: Sequence[NewestCheck],
    now: datetime,
) -> IncidentRow:
    """The row of a new incident, or of the open ``degraded`` one, which becomes down. Its cause is
    that of the first failing check: a repeat may fail for another reason, as when a server first
    hangs and then refuses connections.
    """
    first, result = parts["failing"] or {}, opening.result
    cause, code = first.get("cause") or result.cause or "", first.get("cause_code")
    incident = degraded or IncidentRow(
        monitor_id=opening.monitor_id,
        started_at=in_whole_seconds(opening.since),
        severity=IncidentSeverity.DEGRADED if opening.slow else IncidentSeverity.DOWN,
        by_hand=False,
        created_at=in_whole_seconds(now),
    )
    if (slow := opening.slow) is not None:
        # A new monitor has no week to compare with.
        if usual is None and (last_good := parts["usual"]):
            usual = Usual(last_good["response_time"], last_good["timings"], in_week=False)
        cause = slowness.cause_at(slow.checks, slow.limit, usual, places, slow.voters)
        code = Cause.SLOW_RESPONSE
    elif degraded is not None:
        _become_down(degraded, opening.since, now)
    incident.cause = cause[:MAX_CAUSE] or None
    incident.cause_code = code or result.cause_code
    incident.updated_at = in_whole_seconds(now)
    evidence.store_evidence(incident, parts)
    return incident


def _become_down(incident: IncidentRow, since: datetime, now: datetime) -> None:
    """Change a degraded incident to a down one. Its acknowledgement ends: the person knew only that
    the monitor was slow.
    """
    incident.severity = IncidentSeverity.DOWN
    incident.down_since = down_since = max(in_whole_seconds(since), incident.started_at)
    incident.reminded_at = now  # the next reminder is due a whole period from now
    remark_at(incident, _(WAS_SLOW, cause=incident.cause or ""), down_since)
    if incident.acknowledged_by:
        who = _("%(name)s had acknowledged that it is slow.", name=incident.acknowledged_by)
        remark_at(incident, who, down_since)
    incident.acknowledged_at = incident.acknowledged_by = None


def _end(
    session: AnySession, closings: Sequence[Closing], monitors: Mapping[int, Any], now: datetime
) -> dict[int, IncidentRow]:
    """End incidents, by monitor."""
    incidents = _open_rows(session, closings)
    for closing in closings:
        if (incident := incidents.get(closing.monitor_id)) is not None:
            since_change = monitors[closing.monitor_id].updated_at >= incident.started_at
            by_change = closing.by_change or (
                since_change and _nobody_saw_it_end(session, incident, closing.good)
            )
            gaps.drop_after(incident, _end_as(incident, closing, now, by_change=by_change))
    session.flush()
    for closing in closings:
        incident = incidents.get(closing.monitor_id)
        if incident is not None and incident.severity == IncidentSeverity.DOWN:
            _sum_again(monitors[closing.monitor_id], incident.ended_at or closing.at)
    return incidents


def _end_as(incident: IncidentRow, closing: Closing, now: datetime, *, by_change: bool) -> datetime:
    """End an incident; returns the time of its end. ``by_change``: it ends because the monitor was
    changed, not because a place saw it end.
    """
    silent = closing.silent
    names = {place.name for place in silent}
    if closing.by_silence or (silent and not seen_by(readable(incident.evidence)) - names):
        ended = end_incident(incident, closing.at, now, Ending.SILENCE)
        remark_at(incident, fell_silent([place.title for place in silent]), ended)
        gaps.add(incident, max(place.last_at or ended for place in silent), ended)
        return ended
    if by_change:
        ended = end_incident(incident, closing.at, now, Ending.CHANGED)
        is_slow = incident.severity == IncidentSeverity.DEGRADED
        remark_at(incident, _(NOT_SLOW_NOW if is_slow else CHANGED), ended)
        return ended
    return end_incident(incident, closing.at, now, Ending.RECOVERED)


def _nobody_saw_it_end(session: AnySession, incident: IncidentRow, good: Collection[int]) -> bool:
    """Whether no place that saw the failure is among the ``good`` places. After a change of
    the monitor, checks of other places may end an incident.
    """
    places = (readable(incident.evidence) or {}).get("places") or ()
    saw = {place["name"] for place in places if place.get("verdict") == Verdict.DOWN}
    names = session.scalars(select(PlaceRow.name).where(PlaceRow.id.in_(good)))
    return bool(saw) and saw.isdisjoint(names)


def _sum_again(monitor: Any, moment: datetime) -> None:
    if rollups.is_summed(monitor.rolled_until, moment):
        rollups.reroll(monitor.id, moment)
