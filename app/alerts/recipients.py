"""Who was alerted to an incident, and to whom its opening was never sent. Every function runs
inside a transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from sqlalchemy import func, or_, select
from sqlalchemy.orm import aliased

from app.alerts import retries
from app.db import AnySession
from app.db.tables import DeliveryRow
from app.db.types import Unreadable
from app.records import DeliveryStatus, Event

Target = tuple[str, str]  # channel and value

# The events that say that an incident is open.
OPEN_EVENTS = (Event.INCIDENT_OPENED, Event.INCIDENT_REMINDER)
_UNSENT = retries.given_up(None)


def lanes_alerted(session: AnySession, incident_id: int) -> dict[str, Target | None]:
    """The lanes that alerts of this incident were written for, with their channel values; None for
    a value that cannot be read.
    """
    query = (
        select(DeliveryRow.lane, DeliveryRow.channel, DeliveryRow.value)
        .where(DeliveryRow.incident_id == incident_id, DeliveryRow.event.in_(OPEN_EVENTS))
        .order_by(DeliveryRow.id)
    )
    return {
        lane: None if isinstance(value, Unreadable) else (channel, value)
        for lane, channel, value in session.execute(query)
    }


def sources_told(session: AnySession, incident_id: int) -> Mapping[str, str | None]:
    """By lane, the sources through which an alert of this incident was written that quiet hours do
    not hold, as the column has them.
    """
    held = (DeliveryRow.status == DeliveryStatus.HELD) & DeliveryRow.next_attempt_at.is_not(None)
    query = (
        select(DeliveryRow.lane, DeliveryRow.sources)
        .where(DeliveryRow.incident_id == incident_id, DeliveryRow.event.in_(OPEN_EVENTS), ~held)
        .order_by(DeliveryRow.id)
    )
    return {row.lane: row.sources for row in session.execute(query)}


def unsent_openings(
    session: AnySession, incident_ids: Collection[int]
) -> Mapping[int, frozenset[str]]:
    """For each of these incidents, the lanes in which its opening was given up without an attempt,
    alone or in a grouped message, and has not been written again since.
    """
    group = aliased(DeliveryRow)
    found: dict[int, set[str]] = defaultdict(set)
    openings = DeliveryRow.event == Event.INCIDENT_OPENED
    newest = (
        select(func.max(DeliveryRow.id))
        .where(openings, DeliveryRow.incident_id.in_(incident_ids))
        .group_by(DeliveryRow.incident_id, DeliveryRow.lane)
    )
    query = (
        select(DeliveryRow.incident_id, DeliveryRow.lane)
        .outerjoin(group, group.id == DeliveryRow.covered_by)
        .where(
            DeliveryRow.id.in_(newest),
            or_(
                *(
                    (row.status == DeliveryStatus.FAILED) & (row.reason == _UNSENT)
                    for row in (DeliveryRow, group)
                )
            ),
        )
    )
    for incident_id, lane in session.execute(query) if incident_ids else ():
        found[incident_id or 0].add(lane)
    return {incident_id: frozenset(lanes) for incident_id, lanes in found.items()}
