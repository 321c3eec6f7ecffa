"""The people who were alerted to an incident. Every function runs inside a transaction.

A later message about an incident must not be sent before an outage that is on hold, nor besides the
digest. It would be if a contact was added, or changed its quiet hours, after the outage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, or_, select
from sqlalchemy.orm import aliased

from app.alerts.lanes import Reason
from app.alerts.targets import Target
from app.db import AnySession
from app.db.statements import is_among
from app.db.tables import DeliveryRow
from app.db.types import Unreadable
from app.records import DeliveryStatus, Event

# The events that say that an incident is open.
OPEN_EVENTS = (Event.INCIDENT_OPENED, Event.INCIDENT_REMINDER)
# Built once, because it is run for each incident that ends.
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


@dataclass(frozen=True, slots=True)
class OnHold:
    """A delivery that waits for the end of quiet hours."""

    sources: str | None
    until: datetime


@dataclass(frozen=True, slots=True)
class Recipients:
    """The recipients of one incident, by lane. ``targets``: the channel values that alerts were
    written for; None for one that cannot be read. ``sources``: the column of the same name, for
    lanes with an alert that is not on hold. ``on_hold``: lanes whose alerts are all on hold.
    """

    targets: Mapping[str, Target | None]
    sources: Mapping[str, str | None]
    on_hold: Mapping[str, OnHold]


NOBODY = Recipients({}, {}, {})


def recipients_of(session: AnySession, incident_ids: Collection[int]) -> Mapping[int, Recipients]:
    """The recipients who were alerted that each of these incidents is open."""
    written: dict[int, list[Any]] = {id: [] for id in incident_ids}
    for row in session.execute(_OPENINGS, {"ids": list(written)}) if written else ():
        written[row.incident_id or 0].append(row)
    return {id: _recipients(rows) for id, rows in written.items()}


def _recipients(rows: Sequence[Any]) -> Recipients:
    on_hold = [
        row.status == DeliveryStatus.HELD and row.next_attempt_at is not None for row in rows
    ]
    sources = {row.lane: row.sources for row, waits in zip(rows, on_hold, strict=True) if not waits}
    return Recipients(
        targets={
            row.lane: None if isinstance(row.value, Unreadable) else (row.channel, row.value)
            for row in rows
        },
        sources=sources,
        on_hold={
            row.lane: OnHold(row.sources, row.next_attempt_at)
            for row, waits in zip(rows, on_hold, strict=True)
            if waits and row.lane not in sources
        },
    )


def notified_lanes(
    session: AnySession, incident_ids: Collection[int]
) -> Mapping[str, frozenset[int]]:
    """For each lane, the incidents whose outage was delivered there, alone or in a burst."""
    row = DeliveryRow
    query = select(row.lane, row.incident_id).where(
        is_among(row.incident_id, incident_ids),
        row.event.in_(OPEN_EVENTS),
        or_(row.status == DeliveryStatus.DELIVERED, row.reason == Reason.BURST),
    )
    return _grouped(session.execute(query))


def unsent_openings(
    session: AnySession, incident_ids: Collection[int]
) -> Mapping[int, frozenset[str]]:
    """For each of these incidents, the lanes in which its opening was given up without an attempt,
    alone or in a grouped message, and has not been written again since.
    """
    if not incident_ids:
        return {}
    group = aliased(DeliveryRow)
    openings = DeliveryRow.event == Event.INCIDENT_OPENED
    newest = (
        select(func.max(DeliveryRow.id))
        .where(openings, DeliveryRow.incident_id.in_(incident_ids))
        .group_by(DeliveryRow.incident_id, DeliveryRow.lane)
    )
    unsent = (
        (row.status == DeliveryStatus.FAILED) & (row.reason == Reason.EXPIRED)
        for row in (DeliveryRow, group)
    )
    query = (
        select(DeliveryRow.incident_id, DeliveryRow.lane)
        .outerjoin(group, group.id == DeliveryRow.covered_by)
        .where(DeliveryRow.id.in_(newest), or_(*unsent))
    )
    return _grouped(session.execute(query))


def _grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, frozenset[Any]]:
    grouped: dict[Any, set[Any]] = defaultdict(set)
    for key, value in pairs:
        grouped[key].add(value)
    return {key: frozenset(values) for key, values in grouped.items()}
