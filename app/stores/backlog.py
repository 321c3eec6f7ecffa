"""What is overdue, checks and alerts, for ``/readyz``, ``/metrics`` and the heartbeat. Needs an
application context.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import BigInteger, case, cast, exists, func, select, type_coerce

from app.db import db
from app.db.tables import AssignmentRow, DeliveryRow, LocationRow, MonitorRow
from app.db.types import to_ms
from app.records import DeliveryStatus

# An alert that waited for so long, while no other was delivered, says that none leave.
ALERTS_STUCK_AFTER = timedelta(minutes=15)
# Nothing is retried for longer, so what is delivered was written within this time, or retried by
# hand. It is there for the index: the table has a year of deliveries.
WRITTEN_WITHIN = timedelta(days=2)


def late_checks(now: datetime) -> dict[str, float]:
    """For each place with watched monitors, the seconds since its most overdue check was due; 0 if
    none is. Slots are stored within a minute, so up to 60 s mean nothing.
    """
    # The next slot is at most an interval after the last one; a new monitor is due at once.
    due = case(
        (AssignmentRow.slot.is_(None), type_coerce(MonitorRow.updated_at, BigInteger)),
        else_=type_coerce(AssignmentRow.slot, BigInteger)
        + cast(MonitorRow.interval, BigInteger) * 1000,
    )
    found = db.session.execute(
        select(LocationRow.name, func.min(due))
        .select_from(AssignmentRow)
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .join(LocationRow, LocationRow.id == AssignmentRow.location_id)
        .where(MonitorRow.paused.is_(False))
        .group_by(LocationRow.id, LocationRow.name)
        .order_by(LocationRow.id)
    )
    return {place: max(0.0, (to_ms(now) - first) / 1000) for place, first in found}


def oldest_alert(now: datetime) -> float:
    """The seconds since the oldest alert was written that still waits for its delivery; 0 if none
    does. Messages held in quiet hours and those to subscribers do not count.
    """
    first = db.session.scalar(
        select(func.min(DeliveryRow.created_at)).where(
            DeliveryRow.status == DeliveryStatus.PENDING, DeliveryRow.subscriber_id.is_(None)
        )
    )
    return 0.0 if first is None else max(0.0, (now - first).total_seconds())


def alerts_stuck(now: datetime) -> bool:
    """Whether an alert has waited for long, and no other was delivered meanwhile."""
    if oldest_alert(now) <= ALERTS_STUCK_AFTER.total_seconds():
        return False
    delivered = exists().where(
        DeliveryRow.created_at > now - WRITTEN_WITHIN,
        DeliveryRow.subscriber_id.is_(None),
        DeliveryRow.delivered_at > now - ALERTS_STUCK_AFTER,
    )
    return not db.session.scalar(select(delivered))
