"""Reminders of incidents that nobody has acknowledged, for monitors that ask for them."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import func, or_, select, update

from app.alerts.outbox import enqueue
from app.alerts.targets import hours_of, quiet_until
from app.db import db, writing
from app.db.tables import IncidentRow, MonitorRow
from app.db.types import Moment
from app.engine.recorder.quiet import Quiet
from app.engine.recorder.rows import lock
from app.errors import NotFound
from app.records import Event
from app.rules.time import SKEW

# When people were last alerted: by the opening, a reminder, or a digest of quiet hours.
_TOLD = func.coalesce(IncidentRow.reminded_at, IncidentRow.created_at, type_=Moment)
_UNANSWERED = (IncidentRow.ended_at.is_(None), IncidentRow.acknowledged_at.is_(None))


def remind(now: datetime) -> int:
    """Write the reminders that are due; returns how many. Needs an application context.

    None while paused, in maintenance or in quiet hours, whose digest includes the incident. Each
    reminder is a transaction of its own, and only one of several checkers writes it.
    """
    quiet = Quiet(db.session, now)
    due = [
        (incident_id, monitor.id)
        for incident_id, told, monitor in db.session.execute(
            select(IncidentRow.id, _TOLD, MonitorRow)
            .join(MonitorRow, MonitorRow.id == IncidentRow.monitor_id)
            .where(*_UNANSWERED, MonitorRow.remind_after.is_not(None), MonitorRow.paused.is_(False))
            .order_by(IncidentRow.id)
        )
        if (told <= now - timedelta(minutes=monitor.remind_after or 0) or told > now + SKEW)
        and not quiet.covers(monitor, now)
        and quiet_until(hours_of(monitor), [None], now) is None
    ]
    return sum(_remind(incident_id, monitor_id, now) for incident_id, monitor_id in due)


def _remind(incident_id: int, monitor_id: int, now: datetime) -> bool:
    with writing() as session:
        try:
            lock(session, monitor_id)
        except NotFound:
            return False  # deleted meanwhile
        monitor = session.get(MonitorRow, monitor_id, populate_existing=True)
        if monitor is None or monitor.paused or monitor.remind_after is None:
            return False
        # The guard: a second checker finds that ``reminded_at`` was set just now.
        before = now - timedelta(minutes=monitor.remind_after)
        done = session.execute(
            update(IncidentRow)
            # A time in the future was written by a clock that was ahead, and does not count.
            .where(
                IncidentRow.id == incident_id,
                *_UNANSWERED,
                or_(before >= _TOLD, now + SKEW < _TOLD),
            )
            .values(reminded_at=now)
            .execution_options(synchronize_session=False)
        )
        if getattr(done, "rowcount", 0) != 1:
            return False
        incident = session.get_one(IncidentRow, incident_id, populate_existing=True)
        enqueue(session, Event.INCIDENT_REMINDER, monitor, incident, now)
    return True
