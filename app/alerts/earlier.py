"""Pending rows that become due before their time: the channel works again, or the clock was set
back. Every function runs inside a transaction.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import or_, select

from app.alerts import claims, retries
from app.alerts.lane_rows import MAX_PENDING
from app.alerts.outbox import Reason, update_deliveries
from app.db import AnySession
from app.db.clocks import SKEW
from app.db.tables import DeliveryRow
from app.records import DeliveryStatus


def hurry(session: AnySession, lane: str, now: datetime) -> None:
    """The channel works again: what waits for a retry there is tried now, not in two minutes."""
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


def free_after_step(session: AnySession, now: datetime) -> list[int]:
    """The pending rows that a clock that was set back has put out of reach: leased for longer than
    a lease lasts, or waiting though the pause was begun in what is now the future. A pause that a
    service asked for (Retry-After) is kept, and so is every other that began in the past.
    """
    query = (
        select(
            DeliveryRow.id, DeliveryRow.created_at, DeliveryRow.next_attempt_at,
            DeliveryRow.lease_until, DeliveryRow.reason, DeliveryRow.attempts,
        )
        .where(
            DeliveryRow.status == DeliveryStatus.PENDING,
            or_(
                DeliveryRow.next_attempt_at > now + SKEW,
                DeliveryRow.lease_until > now + claims.LEASE + SKEW,
            ),
        )
        .limit(MAX_PENDING)
    )  # fmt: skip
    return [row.id for row in session.execute(query) if _out_of_reach(row, now)]


def _out_of_reach(row: Any, now: datetime) -> bool:
    if row.lease_until is not None and row.lease_until > now + claims.LEASE + SKEW:
        return True
    if row.next_attempt_at is None or row.next_attempt_at <= now + SKEW:
        return False
    attempts = row.attempts or ()
    began = datetime.fromisoformat(attempts[-1]["at"]) if attempts else row.created_at
    return (
        began > now + SKEW
        or row.reason == Reason.BY_HAND  # which never waits
        or row.next_attempt_at > now + retries.GIVE_UP_AFTER + SKEW
    )


def make_due(session: AnySession, ids: Collection[int], now: datetime) -> None:
    """Let these rows go at once, whoever leased them."""
    rows = (DeliveryRow.id.in_(list(ids)), DeliveryRow.status == DeliveryStatus.PENDING)
    for moment in (DeliveryRow.next_attempt_at, DeliveryRow.lease_until):
        session.execute(update_deliveries().where(*rows, moment > now).values({moment: now}))
