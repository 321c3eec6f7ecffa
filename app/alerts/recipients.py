"""Who was alerted to an incident, and to whom its opening was never sent. Every function runs
inside a transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, func, or_, select
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
# Built once: asked for each incident that ends.
_OPENINGS = (
    select(
        DeliveryRow.incident_id, DeliveryRow.lane, DeliveryRow.channel, DeliveryRow.value,
        DeliveryRow.sources, DeliveryRow.status, DeliveryRow.next_attempt_at,
    )
    .where(
        DeliveryRow.incident_id.in_(bindparam("ids", expanding=True)),
        DeliveryRow.event.in_(OPEN_EVENTS),
    )
    .order_by(DeliveryRow.id)
)  # fmt: skip


def openings_written(
    session: AnySession, incident_ids: Collection[int]
) -> Mapping[int, Sequence[Any]]:
    """The rows that say of each of these incidents that it is open, oldest first: their lane,
    channel, value, sources, status and next attempt.
    """
    found: dict[int, list[Any]] = {id: [] for id in incident_ids}
    for row in session.execute(_OPENINGS, {"ids": list(found)}) if found else ():
        found[row.incident_id or 0].append(row)
    return found


def lanes_alerted(written: Sequence[Any]) -> dict[str, Target | None]:
    """The lanes that alerts of an incident were written for, with their channel values; None for
    a value that cannot be read. ``written``: what ``openings_written`` found of it.
    """
    return {
        row.lane: None if isinstance(row.value, Unreadable) else (row.channel, row.value)
        for row in written
    }


def sources_told(written: Sequence[Any]) -> Mapping[str, str | None]:
    """By lane, the sources through which an alert of an incident was written that quiet hours do
    not hold, as the column has them.
    """
    return {row.lane: row.sources for row in written if not waits(row)}


def waits(row: Any) -> bool:
    """Whether a row waits for the end of quiet hours."""
    return row.status == DeliveryStatus.HELD and row.next_attempt_at is not None


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
