"""Messages that quiet hours hold, and those about the same incident that come after them. Every
function runs inside a transaction.

What comes after a held outage must neither overtake it nor be told a second time: a contact may be
added or change its hours between the two, so that only the first is held.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import or_, select

from app.alerts.recipients import OPEN_EVENTS, waits
from app.db import AnySession
from app.db.tables import DeliveryRow
from app.records import DeliveryStatus


@dataclass(frozen=True, slots=True)
class Held:
    """A row that waits for the end of quiet hours."""

    sources: str | None
    until: datetime


def untold(written: Sequence[Any]) -> Mapping[str, Held]:
    """The lanes in which all that was written of an outage is held. ``written``: what
    ``recipients.openings_written`` found of it.
    """
    found = {row.lane: Held(row.sources, row.next_attempt_at) for row in written if waits(row)}
    told = {row.lane for row in written if not waits(row)}
    return {lane: held for lane, held in found.items() if lane not in told}


def told(
    session: AnySession, incident_ids: Collection[Any], burst: str
) -> Mapping[str, frozenset[int]]:
    """By lane, those of these incidents whose outage was told there. ``burst``: the reason of a row
    that a grouped message tells.
    """
    row = DeliveryRow
    query = select(row.lane, row.incident_id).where(
        row.incident_id.in_(incident_ids),
        row.event.in_(OPEN_EVENTS),
        or_(row.status == DeliveryStatus.DELIVERED, row.reason == burst),
    )
    found: dict[str, set[int]] = defaultdict(set)
    for lane, incident_id in session.execute(query):
        found[lane].add(incident_id or 0)
    return {lane: frozenset(ids) for lane, ids in found.items()}
