"""Fixtures for tests of alerts: sinks, and a worker that a test runs turn by turn."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import func, select

from app.alerts import outbox
from app.alerts.outbox import Alert
from app.alerts.worker import Worker
from app.db import db, writing
from app.db.tables import DeliveryRow, IncidentRow, MonitorRow
from app.engine import recorder
from app.records import Ending, Event
from tests.factories import make_incident, make_monitor
from tests.support.clock import Clock


class Outbox:
    """The outbox of a test: monitors with channels, events, and a worker on a clock of its own."""

    def __init__(self, app: Flask) -> None:
        self.app = app
        self.clock = Clock()
        self.settings = app.extensions["wakeful.settings"]
        self.worker = Worker(app, self.settings, clock=self.clock)

    def configure(self, **changes: Any) -> None:
        """Set settings as if the worker had been started with them."""
        self.settings = dataclasses.replace(self.settings, **changes)
        self.worker = Worker(self.app, self.settings, clock=self.clock)

    def monitor(self, *alerts: tuple[str, str], **fields: Any) -> MonitorRow:
        return make_monitor(self.app, alerts=[list(pair) for pair in alerts], **fields)

    def incident(self, monitor: MonitorRow, **fields: Any) -> IncidentRow:
        values = {"started_at": self.clock.now, "cause": "The server answered 503."} | fields
        return make_incident(self.app, monitor, **values)

    def tell(
        self,
        event: Event,
        monitor: MonitorRow,
        incident: IncidentRow | None = None,
        extra: dict[str, Any] | None = None,
    ) -> list[int]:
        """Write an event into the outbox; the ids of its rows."""
        with self.app.app_context(), writing() as session:
            row = session.get_one(MonitorRow, monitor.id)
            kept = None if incident is None else session.get_one(IncidentRow, incident.id)
            newest = session.scalar(select(func.max(DeliveryRow.id))) or 0
            outbox.enqueue(session, [Alert(event, row, kept, extra)], self.clock.now)
            return list(session.scalars(select(DeliveryRow.id).where(DeliveryRow.id > newest)))

    def notice(self, monitor: MonitorRow) -> list[int]:
        """Write a message that is due at once and retried like any alert; the ids of its rows."""
        expires = self.clock.now + timedelta(days=7)
        extra = {"expires_at": expires, "days_left": 7, "domain": "shop.example"}
        return self.tell(Event.DOMAIN_EXPIRING, monitor, extra=extra)

    def send(self, channel: str, value: str, seconds: float = 0.0) -> DeliveryRow:
        """Send one message to a channel of a new monitor, after ``seconds``; its row."""
        (id,) = self.notice(self.monitor((channel, value)))
        self.turn(seconds)
        return self.row(id)

    def flap(self, monitor: MonitorRow, times: int, seconds: float = 30) -> None:
        """The monitor goes down and up so many times, each for so long."""
        for _ in range(times):
            incident = self.open(monitor)
            self.turn(seconds)
            self.close(monitor, incident)
            self.turn(seconds)

    def pause(self, id: int = 1) -> float:
        """The seconds until the next attempt."""
        return float((self.row(id).next_attempt_at - self.clock.now).total_seconds())

    def open(self, monitor: MonitorRow, **fields: Any) -> IncidentRow:
        incident = self.incident(monitor, **fields)
        self.tell(Event.INCIDENT_OPENED, monitor, incident)
        return incident

    def acknowledge(self, incidents: Sequence[IncidentRow]) -> None:
        """One person acknowledges them together."""
        now = self.clock.now
        with self.app.app_context(), writing() as session:
            for incident in incidents:
                fields = {"acknowledged_at": now}
                row = recorder.lock_incident(session, incident.id)
                recorder.change_incident(session, row, fields, now, by="Ben")

    def close(self, monitor: MonitorRow, incident: IncidentRow) -> None:
        with self.app.app_context(), writing() as session:
            row = session.get_one(IncidentRow, incident.id)
            row.ended_at, row.ending = self.clock.now, Ending.RECOVERED
        self.tell(Event.INCIDENT_RESOLVED, monitor, incident)

    def rows(self, *ids: int) -> list[DeliveryRow]:
        with self.app.app_context():
            query = select(DeliveryRow).order_by(DeliveryRow.id)
            if ids:
                query = query.where(DeliveryRow.id.in_(ids))
            rows = list(db.session.scalars(query))
            db.session.expunge_all()
            return rows

    def row(self, id: int) -> DeliveryRow:
        return self.rows(id)[0]

    def turn(self, seconds: float = 0.0) -> None:
        """Let ``seconds`` pass, then send and mark all that is due."""
        self.clock.advance(seconds=seconds)
        self.settle()

    def settle(self, until: Callable[[], bool] | None = None, patience: float = 120.0) -> None:
        """Send and mark all that is due now: until a turn that began idle finds nothing to do."""
        deadline = time.monotonic() + patience
        quiet = False
        while not quiet:
            assert time.monotonic() < deadline, [row.attempts for row in self.rows()]
            # A lane that has to wait is looked at again a second later: not now, then.
            was_idle = self.worker.idle
            started = self.worker.take_turn(0.0 if was_idle else 0.1)
            quiet = was_idle and not started and self.worker.idle
            if until is not None and until():
                return


@pytest.fixture
def box(core: Flask) -> Outbox:
    return Outbox(core)
