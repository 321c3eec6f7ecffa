"""The delivery log: rows of the outbox as the records that pages and the API show, with nothing
secret in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select

from app.alerts.outbox import AnySession
from app.db import db, writing
from app.db.tables import DeliveryRow
from app.records import Delivery, DeliveryStatus, mask


def to_record(row: DeliveryRow, covers: Sequence[int] = ()) -> Delivery:
    """The record of a row. ``covers``: the ids of the rows whose ``covered_by`` is this one (see
    ``covered_ids``).
    """
    return Delivery(
        id=row.id,
        event=row.event,
        monitor_id=row.monitor_id,
        incident_id=row.incident_id,
        channel=row.channel,
        target=mask(row.value),
        status=row.status,
        reason=row.reason,
        attempts=tuple(_attempt(attempt) for attempt in row.attempts or ()),
        created_at=row.created_at,
        next_attempt_at=row.next_attempt_at,
        delivered_at=row.delivered_at,
        covers=tuple(covers),
    )


def covered_ids(session: AnySession, ids: Sequence[int]) -> dict[int | None, list[int]]:
    """For each of these deliveries that is a grouped message: the ids of the deliveries that it
    covers.
    """
    found: dict[int | None, list[int]] = {}
    rows = (
        select(DeliveryRow.covered_by, DeliveryRow.id)
        .where(DeliveryRow.covered_by.in_(ids))
        .order_by(DeliveryRow.id)
    )
    for group, id in session.execute(rows):
        found.setdefault(group, []).append(id)
    return found


def forget_deliveries(before: datetime, *, at_once: int = 1_000) -> int:
    """Delete what was written before then and is not on its way any more; how many rows.

    Small transactions: the worker must not wait for a year of rows to go.
    """
    old = (
        select(DeliveryRow.id)
        .where(DeliveryRow.created_at < before, DeliveryRow.status != DeliveryStatus.PENDING)
        .order_by(DeliveryRow.created_at)
        .limit(at_once)
    )
    gone = 0
    while ids := list(db.session.scalars(old)):
        with writing() as session:
            # Judged again: somebody may have pressed "retry now" meanwhile.
            done = session.execute(
                delete(DeliveryRow)
                .where(DeliveryRow.id.in_(ids), DeliveryRow.status != DeliveryStatus.PENDING)
                .execution_options(synchronize_session=False)
            )
        gone += getattr(done, "rowcount", 0)
    return gone


def _attempt(attempt: dict[str, Any]) -> dict[str, Any]:
    """Only what the API promises: an attempt also keeps what the worker needs, such as a
    Retry-After.
    """
    return {name: attempt.get(name) for name in ("at", "ok", "answer")}
