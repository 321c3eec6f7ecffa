"""Make pending rows due before their time, because the channel works again or the clock was set
back. Every function runs inside a transaction.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, or_, select

from app.alerts import claims, retries
from app.alerts.lane_rows import MAX_PENDING
from app.alerts.outbox import Reason, update_deliveries
from app.db import AnySession
from app.db.tables import DeliveryRow
from app.records import DeliveryStatus
from app.rules.time import SKEW

# Built once: asked in almost every turn of the worker.
_FAR_OFF = (
    select(
        DeliveryRow.id, DeliveryRow.created_at, DeliveryRow.next_attempt_at,
        DeliveryRow.lease_until, DeliveryRow.reason, DeliveryRow.attempts,
    )
    .where(
        DeliveryRow.status == DeliveryStatus.PENDING,
        or_(
            DeliveryRow.next_attempt_at > bindparam("attempt"),
            DeliveryRow.lease_until > bindparam("lease"),
        ),
    )
    .limit(MAX_PENDING)
)  # fmt: skip


def retry_soon(session: AnySession, lane: str, now: datetime) -> None:
    """The channel works again: make its rows that wait for a retry due now."""
    soon = now + timedelta(seconds=2)
    session.execute(
        update_deliveries()
        .where(
            DeliveryRow.lane == lane,
            DeliveryRow.status == DeliveryStatus.PENDING,
            DeliveryRow.next_attempt_at > soon,
            or_(DeliveryRow.reason.is_(None), DeliveryRow.reason == Reason.BY_HAND),
        )
        .values(next_attempt_at=now)
    )


def delayed_by_clock(session: AnySession, now: datetime) -> list[int]:
    """The ids of the pending rows that would wait too long because the clock was set back: leased
    for longer than a lease lasts, or in a pause that began in what is now the future. Pauses that
    began in the past are kept, among them those that a service asked for (Retry-After).
    """
    latest = {"attempt": now + SKEW, "lease": now + claims.LEASE + SKEW}
    return [row.id for row in session.execute(_FAR_OFF, latest) if _is_delayed(row, now)]


def _is_delayed(row: Any, now: datetime) -> bool:
    if row.lease_until is not None and row.lease_until > now + claims.LEASE + SKEW:
        return True
    if row.next_attempt_at is None or row.next_attempt_at <= now + SKEW:
        return False
    attempts = row.attempts or ()
    began = datetime.fromisoformat(attempts[-1]["at"]) if attempts else row.created_at
    return (
        began > now + SKEW
        or row.reason == Reason.BY_HAND  # a retry by hand has no pause
        or row.next_attempt_at > now + retries.GIVE_UP_AFTER + SKEW
    )


def make_due(session: AnySession, ids: Collection[int], now: datetime) -> None:
    """Make these rows due now, and end their leases."""
    rows = (DeliveryRow.id.in_(list(ids)), DeliveryRow.status == DeliveryStatus.PENDING)
    for moment in (DeliveryRow.next_attempt_at, DeliveryRow.lease_until):
        session.execute(update_deliveries().where(*rows, moment > now).values({moment: now}))
