"""Read what a decision about a lane needs: its pending rows, and what was sent before them. Every
function runs inside a transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, bindparam, select

from app.alerts.lane_rules import Changes, History, Opening, Waiting
from app.alerts.outbox import Reason
from app.db import AnySession
from app.db.tables import DeliveryRow, IncidentRow
from app.records import DeliveryStatus, Event

MAX_PENDING = 5_000  # rows of one lane that are read
_LOOK_BACK = timedelta(minutes=30)
_CHANGES = (Event.INCIDENT_OPENED, Event.INCIDENT_RESOLVED)
# Built once: asked for each lane in each turn of the worker.
_PENDING = (
    select(
        DeliveryRow.id, DeliveryRow.event, DeliveryRow.monitor_id, DeliveryRow.incident_id,
        DeliveryRow.created_at, DeliveryRow.next_attempt_at, DeliveryRow.attempts,
        DeliveryRow.lease_until, DeliveryRow.reason, IncidentRow.ended_at,
        IncidentRow.acknowledged_at,
    )
    .outerjoin(IncidentRow, IncidentRow.id == DeliveryRow.incident_id)
    .where(DeliveryRow.lane == bindparam("lane"), DeliveryRow.status == DeliveryStatus.PENDING)
    .order_by(DeliveryRow.id)
    .limit(bindparam("most"))
)  # fmt: skip

# Of columns of the table: the ORM would double the time of thousands of rows.
_ROWS: Any = DeliveryRow.__table__
_SINCE = (
    select(_ROWS.c.event, _ROWS.c.created_at, _ROWS.c.monitor_id)
    .where(
        _ROWS.c.lane == bindparam("lane"),
        _ROWS.c.event.in_(_CHANGES),
        _ROWS.c.created_at >= bindparam("since", type_=_ROWS.c.created_at.type),
        _ROWS.c.monitor_id.is_not(None),
    )
    .order_by(_ROWS.c.created_at)
)


def pending(
    session: AnySession, lane: str, now: datetime, limit: int, only: int | None = None
) -> list[Waiting]:
    """The first ``limit`` pending rows of a lane, or only the one with the id ``only``."""
    query = _PENDING if only is None else _PENDING.where(DeliveryRow.id == only)
    return [
        Waiting(
            id=found.id,
            event=found.event,
            monitor_id=found.monitor_id,
            incident_id=found.incident_id,
            created_at=found.created_at,
            next_attempt_at=found.next_attempt_at or found.created_at,
            attempts=len(found.attempts or ()),
            leased=found.lease_until is not None and found.lease_until > now,
            reason=found.reason,
            over=found.ended_at is not None,
            settled=found.ended_at is not None or found.acknowledged_at is not None,
        )
        for found in session.execute(query, {"lane": lane, "most": limit})
    ]


def history_of(
    session: AnySession, lane: str, rows: Sequence[Waiting], known: History | None = None
) -> History:
    """``known``: that of some of these rows, as it was read in this transaction."""
    incidents = {
        row.incident_id
        for row in rows
        if row.event == Event.INCIDENT_RESOLVED and row.incident_id is not None
    }
    since = None
    if any(row.event in _CHANGES for row in rows):
        since = min(row.created_at for row in rows) - _LOOK_BACK
    if known is not None and known.since == since:
        changes = known.changes  # thousands in a mass outage
    else:
        changes = _changes(session, lane, since)
    return History(openings=_openings(session, lane, incidents), changes=changes, since=since)


def _changes(session: AnySession, lane: str, since: datetime | None) -> Changes:
    changes: dict[str, list[tuple[datetime, int]]] = {event: [] for event in _CHANGES}
    if since is not None:
        for event, at, monitor in session.execute(_SINCE, {"lane": lane, "since": since}):
            changes[event].append((at, monitor))
    return changes


def _openings(session: AnySession, lane: str, incidents: Collection[int]) -> dict[int, Opening]:
    """The state of each incident's opening; if a grouped message covers it, the group's state."""
    found: dict[int, Opening] = {}
    query = (
        select(
            DeliveryRow.incident_id,
            DeliveryRow.id,
            DeliveryRow.status,
            DeliveryRow.reason,
            DeliveryRow.covered_by,
        )
        .where(
            DeliveryRow.lane == lane,
            DeliveryRow.event == Event.INCIDENT_OPENED,
            DeliveryRow.incident_id.in_(list(incidents)),
        )
        .order_by(DeliveryRow.id)
    )
    reminded = session.scalars(_reminded(lane, incidents)).all() if incidents else ()
    covered: dict[int, int] = {}
    for known, id, status, reason, group in session.execute(query) if incidents else ():
        incident = known or 0
        told = reason in (Reason.QUIET_HOURS, Reason.RESTORED) and incident in reminded
        found[incident] = Opening(id, DeliveryStatus.DELIVERED if told else status, reason)
        covered.pop(incident, None)
        if group is not None:
            covered[incident] = group
    groups = select(DeliveryRow.id, DeliveryRow.status).where(
        DeliveryRow.id.in_(set(covered.values()))
    )
    states = {row.id: row.status for row in session.execute(groups)} if covered else {}
    for incident, group in covered.items():
        found[incident] = Opening(group, states.get(group, DeliveryStatus.DELIVERED))
    return found


def _reminded(lane: str, incidents: Collection[int]) -> Select[int | None]:
    """Those of these incidents that a reminder has told."""
    return select(DeliveryRow.incident_id).where(
        DeliveryRow.lane == lane,
        DeliveryRow.event == Event.INCIDENT_REMINDER,
        DeliveryRow.status == DeliveryStatus.DELIVERED,
        DeliveryRow.incident_id.in_(list(incidents)),
    )
