"""Incidents that people report, close, reopen and delete (decision 4). Inside ``writing()``.

Fields are checked by the forms; what depends on stored data is checked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import select

from app.alerts.outbox import Alert, enqueue, enqueue_closing
from app.db import AnySession
from app.db.statements import select_fresh
from app.db.tables import IncidentRow, MonitorRow, MonitorStateRow
from app.engine.recorder import gaps, unreachable
from app.engine.recorder.alerting import notify
from app.engine.recorder.rows import (
    end_incident,
    find_open_incident,
    in_whole_seconds,
    lock_state,
    reset_confirmation,
)
from app.errors import Conflict, Invalid, existing, no_such
from app.i18n import _
from app.records import Ending, Event


def create_incident(session: AnySession, fields: Mapping[str, Any], now: datetime) -> IncidentRow:
    """Report an incident by hand. Raises Invalid (unknown monitor) and Conflict (another is open).

    ``fields``: ``monitor_id`` and ``started_at``, and any of ``acknowledged_at``, ``ended_at``,
    ``cause``, ``comment``. Stored open it alerts; stored ended it does not.
    """
    id = fields["monitor_id"]
    if session.get(MonitorRow, id) is None:
        raise Invalid({"monitor_id": [no_such("monitor", id)]})
    state = lock_state(session, id)
    # Read again under the lock: somebody may have changed whom it alerts meanwhile.
    monitor = session.get_one(MonitorRow, id, populate_existing=True)
    ended = fields.get("ended_at")
    if ended is None:
        _refuse_second_open(session, monitor.id, None)
    incident = IncidentRow(
        monitor_id=monitor.id,
        started_at=fields["started_at"],
        acknowledged_at=fields.get("acknowledged_at"),
        ended_at=ended,
        ending=None if ended is None else Ending.PERSON,
        cause=fields.get("cause"),
        comment=fields.get("comment"),
        by_hand=True,
        created_at=in_whole_seconds(now),
        updated_at=in_whole_seconds(now),
    )
    session.add(incident)
    session.flush()
    if ended is None:
        reset_confirmation(session, state)
        unreachable.detach(session, state, now)
        notify(session, [Alert(Event.INCIDENT_OPENED, monitor, incident)], now)
    return incident


def change_incident(
    session: AnySession,
    incident: IncidentRow,
    fields: Mapping[str, Any],
    now: datetime,
    *,
    by: str | None = None,
) -> None:
    """Change what was sent of a locked incident: ``acknowledged_at``, ``ended_at``, ``cause``,
    ``comment``, ``classification``.

    ``ended_at`` closes an open incident, or with None reopens one. ``by``: who does it. Raises
    Conflict when reopening beside another open incident.
    """
    state = session.get_one(MonitorStateRow, incident.monitor_id)
    was_open, was_acknowledged = incident.ended_at is None, incident.acknowledged_at is not None
    for name in {"cause", "comment", "classification"} & fields.keys():
        setattr(incident, name, fields[name])
    if "acknowledged_at" in fields:
        at = fields["acknowledged_at"]
        if at is None or not was_acknowledged:  # a corrected time keeps the first person
            incident.acknowledged_by = None if at is None else by
        incident.acknowledged_at = at
    if "ended_at" in fields:
        # The recorder corrects the end of an incident that was found late, until a person sets it.
        is_set = incident.found_late and incident.ended_at != fields["ended_at"]
        incident.ended_at = fields["ended_at"]
        if is_set or was_open != (incident.ended_at is None):
            incident.ending = None if incident.ended_at is None else Ending.PERSON
        if was_open and incident.ended_at is not None:
            incident.unwatched = list(gaps.gaps_until(incident, state, incident.ended_at)) or None
    if not was_open and incident.ended_at is None:
        _refuse_second_open(session, incident.monitor_id, incident.id)
    incident.updated_at = in_whole_seconds(now)
    session.flush()
    is_open, monitor = incident.ended_at is None, session.get_one(MonitorRow, incident.monitor_id)
    if was_open != is_open:
        reset_confirmation(session, state)
    if is_open and incident.acknowledged_at is not None and not was_acknowledged:
        enqueue(session, [Alert(Event.INCIDENT_ACKNOWLEDGED, monitor, incident)], now)
    if was_open and not is_open:
        alert = Alert(Event.INCIDENT_RESOLVED, monitor, incident, {"resolved_by": by})
        enqueue(session, [alert], now)
    if is_open and not was_open:
        # A recovery was sent, so it is alerted again, and reminders count from now.
        incident.reminded_at = now
        notify(session, [Alert(Event.INCIDENT_OPENED, monitor, incident)], now)


def delete_incident(session: AnySession, incident: IncidentRow, now: datetime) -> None:
    """Delete a locked incident and its pending deliveries. If checks fail, a new one opens."""
    if incident.ended_at is None:
        reset_confirmation(session, session.get_one(MonitorStateRow, incident.monitor_id))
        end_incident(incident, now, now, Ending.PERSON)
        monitor = session.get_one(MonitorRow, incident.monitor_id)
        enqueue_closing(session, monitor, incident, now, deleted=True)
    session.delete(incident)
    session.flush()


def lock_incident(session: AnySession, incident_id: int) -> IncidentRow:
    """The incident, with its monitor's state locked until the transaction ends. Raises NotFound."""
    query = select(IncidentRow.monitor_id).where(IncidentRow.id == incident_id)
    monitor_id = existing(session.scalar(query), "incident", incident_id)
    lock_state(session, monitor_id)
    # Read again under the lock: the engine may have ended it meanwhile.
    incident = session.scalar(select_fresh(IncidentRow).where(IncidentRow.id == incident_id))
    return existing(incident, "incident", incident_id)


def _refuse_second_open(session: AnySession, monitor_id: int, incident_id: int | None) -> None:
    """Raises Conflict if the monitor has another open incident."""
    with session.no_autoflush:
        other = find_open_incident(session, monitor_id)
    if other is not None and other.id != incident_id:
        raise Conflict(
            _("This monitor already has an open incident. Resolve it first."),
            open_incident_id=other.id,
        )
