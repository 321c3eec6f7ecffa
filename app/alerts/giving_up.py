"""Giving up what cannot be sent, or has waited until it was no news any more. Every function runs
inside a transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import or_, select

from app.alerts import retries
from app.alerts.messages import is_complete
from app.alerts.outbox import AnySession, update_deliveries
from app.db.tables import DeliveryRow
from app.db.types import Unreadable, Why
from app.records import DeliveryStatus

log = logging.getLogger(__name__)


def give_up(session: AnySession, id: int, reason: str) -> None:
    """A row that cannot even be tried."""
    session.execute(
        update_deliveries()
        .where(DeliveryRow.id == id)
        .values(
            status=DeliveryStatus.FAILED,
            reason=reason,
            next_attempt_at=None,
            lease_until=None,
            lease_token=None,
        )
    )


def give_up_unreadable(session: AnySession, ids: Sequence[int]) -> set[int]:
    """Give up those of these rows that cannot be read, or say too little for a message; their ids.

    Each says so in the log of deliveries. Whatever else is due goes on.
    """
    rows = session.scalars(
        select(DeliveryRow).where(DeliveryRow.id.in_(ids)).execution_options(populate_existing=True)
    )
    broken = {row.id: reason for row in rows if (reason := _fault(row))} if ids else {}
    for id, reason in broken.items():
        log.error("Delivery %d is given up: %s", id, reason)
        give_up(session, id, reason)
    return set(broken)


def _fault(row: DeliveryRow) -> str | None:
    """Why a row cannot be sent, as a sentence; None where it can."""
    for name, value in (("target", row.value), ("message", row.facts)):
        if isinstance(value, Unreadable):
            return f"Not sent: its stored {name} cannot be read, because {value.why}."
    if not is_complete(row.facts):
        return f"Not sent: its stored message cannot be read, because {Why.ODD}."
    return None


def outlived(session: AnySession, now: datetime) -> list[int]:
    """What may have waited for longer than its 24 hours: pending, or held for quiet hours."""
    waits = or_(
        DeliveryRow.status == DeliveryStatus.PENDING,
        (DeliveryRow.status == DeliveryStatus.HELD) & DeliveryRow.next_attempt_at.is_not(None),
    )
    free = or_(DeliveryRow.lease_until.is_(None), DeliveryRow.lease_until <= now)
    old = DeliveryRow.created_at < now - retries.GIVE_UP_AFTER
    return list(session.scalars(select(DeliveryRow.id).where(waits, old, free)))


def give_up_outlived(session: AnySession, now: datetime) -> None:
    """Give up what its 24 hours have passed over while nobody sent anything, as after the restore
    of an old copy: news of two days ago would pass for today's.
    """
    for id in outlived(session, now):
        row = DeliveryRow
        query = select(row.facts, row.created_at, row.attempts).where(row.id == id)
        facts, created_at, attempts = session.execute(query).one()
        if isinstance(facts, Unreadable) or not is_complete(facts):
            continue  # given up, with the reason, when its turn comes
        if now - retries.began(facts, created_at) > retries.GIVE_UP_AFTER:
            give_up(session, id, retries.given_up(attempts[-1].get("answer") if attempts else None))
