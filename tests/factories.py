"""Create rows for tests, with valid values for all fields that a test does not set.

Rows come back detached: their columns can be read anywhere, without a context.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from flask import Flask
from sqlalchemy import insert

from app.access.tokens import keyed_hash
from app.alerts.outbox import lanes_text
from app.db import changes, db, journal, writing
from app.db.tables import (
    AssignmentRow,
    DeliveryRow,
    IncidentRow,
    MonitorRow,
    MonitorStateRow,
    SubscriberRow,
)
from app.engine import recorder
from app.records import (
    DEFAULT_ACCEPTED_STATUSES,
    DEFAULT_CONFIRMATIONS,
    DEFAULT_PLACE_ID,
    DEFAULT_TIMEOUT,
    AlertCondition,
    Cause,
    Outcome,
    Person,
    RequestMethod,
    Result,
    Verdict,
)

if TYPE_CHECKING:
    from app.access import Access

PASSWORD = "correct horse battery staple"
R = TypeVar("R", bound=db.Model)


def now() -> datetime:
    """The present, in whole seconds as incidents keep it."""
    return datetime.now(UTC).replace(microsecond=0)


def window(hours_ago: float, hours_long: float) -> dict[str, Any]:
    """A monitor's own maintenance, as its fields."""
    start = now() - timedelta(hours=hours_ago)
    return {
        "maintenance_start_at": start,
        "maintenance_end_at": start + timedelta(hours=hours_long),
    }


def make_monitor(
    app: Flask,
    *,
    state: dict[str, Any] | None = None,
    assignment: dict[str, Any] | None = None,
    places: Sequence[int] = (DEFAULT_PLACE_ID,),
    **fields: Any,
) -> MonitorRow:
    """A monitor that is due at once. ``state`` sets columns of its MonitorStateRow, ``assignment``
    those of its AssignmentRow in each of its ``places``.
    """
    values: dict[str, Any] = {
        "name": "Shop",
        "url": "http://127.0.0.1:9/",
        "interval": 60,
        "alert_condition": AlertCondition.URL_UNAVAILABLE,
        "request_method": RequestMethod.GET,
        "cache_buster": 0,
        "timeout": DEFAULT_TIMEOUT,
        "accepted_statuses": DEFAULT_ACCEPTED_STATUSES,
        "follow_redirects": True,
        "verify_tls": True,
        "confirmations": DEFAULT_CONFIRMATIONS,
        "tags": "",
        "paused": False,
        "created_at": now(),
        "updated_at": now(),
    } | fields
    monitor = MonitorRow(
        name_folded=values["name"].casefold(), url_folded=values["url"].casefold(), **values
    )
    columns = {"generation": 0, "blind": False} | (assignment or {})
    with app.app_context(), writing() as session:
        if values.get("alerts"):
            monitor.alert_lanes = lanes_text(values["alerts"])
        session.add(monitor)
        session.flush()
        session.expunge(monitor)  # what is loaded stays loaded after the commit
        state = {"monitor_id": monitor.id, "failures": 0} | (state or {})
        session.execute(insert(MonitorStateRow), [state])
        if places:
            assignments = [{"monitor_id": monitor.id, "location_id": id} | columns for id in places]
            session.execute(insert(AssignmentRow), assignments)
        changes.note(session, monitor.id)
    return monitor


def make_heartbeat(app: Flask, token: str = "", **fields: Any) -> MonitorRow:
    """A heartbeat that waits for its first ping, which comes each hour unless ``fields`` say so."""
    monitor = make_monitor(app, places=(), **{"url": "heartbeat:", "interval": 3600} | fields)
    token = token or str(uuid.uuid4())
    with app.app_context(), writing() as session:
        recorder.add_heartbeat(session, monitor.id, token, keyed_hash("ping", token), None)
    return monitor


def make_incident(app: Flask, monitor: MonitorRow, **fields: Any) -> IncidentRow:
    """An incident as the engine would have opened it; open unless ``ended_at`` is given."""
    values: dict[str, Any] = {
        "started_at": now(),
        "cause": "The server refused the connection",
        "cause_code": "connection_refused",
        "created_at": now(),
        "updated_at": now(),
    } | fields
    incident = IncidentRow(monitor_id=monitor.id, **values)
    with app.app_context():
        with writing() as session:
            session.add(incident)
        return _detached(incident)


def make_delivery(app: Flask, **fields: Any) -> int:
    """The id of a message to a webhook, which was created ``at``; delivered unless it has another
    ``status``.
    """
    at = fields.pop("at", now())
    values: dict[str, Any] = {
        "message_id": uuid.uuid4().hex,
        "event": "incident.opened",
        "channel": "webhook",
        "value": "https://hooks.example.com/services/abcd1234",
        "lane": "lane",
        "facts": {},
        "status": "delivered",
        "attempts": [],
        "created_at": at,
    } | fields
    if values["status"] == "delivered":
        values.setdefault("delivered_at", at)
    with app.app_context(), writing() as session:
        row = DeliveryRow(**values)
        session.add(row)
        session.flush()
        return row.id


def keep_results(app: Flask, results: Sequence[Result], place: int = DEFAULT_PLACE_ID) -> None:
    """Store these as what was checked from ``place``."""
    with app.app_context(), writing():
        journal.assign_numbers(results)
        journal.insert_results([journal.row_of(result, place) for result in results])


def make_subscriber(app: Flask, page_id: int, **fields: Any) -> SubscriberRow:
    """Somebody who has confirmed."""
    values: dict[str, Any] = {
        "channel": "email",
        "value": "reader@shop.example",
        "digest": uuid.uuid4().hex,
        "created_at": now(),
        "confirmed_at": now(),
    } | fields
    row = SubscriberRow(status_page_id=page_id, **values)
    with app.app_context():
        with writing() as session:
            session.add(row)
        return _detached(row)


def make_key(app: Flask, scope: str = "write", name: str = "test", **fields: Any) -> str:
    """The secret of a new API key, as sent after ``Bearer``."""
    with app.app_context():
        _key, secret = _access(app).keys.create(name, scope, **fields)
        return secret


def make_person(
    app: Flask, role: str = "admin", email: str | None = None, password: str = PASSWORD
) -> Person:
    """Somebody who can log in; ``role@wakeful.test`` unless ``email`` is given."""
    with app.app_context():
        return _access(app).people.create(email or f"{role}@wakeful.test", password, role)


def _access(app: Flask) -> Access:
    access: Access = app.extensions["wakeful.access"]
    return access


def _detached(row: R) -> R:
    db.session.refresh(row)
    db.session.expunge(row)
    db.session.rollback()
    return row


def make_outcome(verdict: str = "up", at: datetime | None = None, **fields: Any) -> Outcome:
    """An outcome as a prober would return it. ``fields`` are of the Outcome or, failing that, its
    Result.
    """
    own = {name: fields.pop(name) for name in list(fields) if name in OUTCOME_FIELDS}
    values: dict[str, Any] = {"response_time": 42, "ip": "127.0.0.1", "http_version": "1.1"}
    if verdict == Verdict.DOWN:
        values = {"cause_code": Cause.CONNECTION_REFUSED, "cause": "The server refused."}
    if verdict == Verdict.UNKNOWN:
        values = {"cause_code": Cause.NETWORK_DOWN, "cause": "Our own network failed."}
    values = {"checked_at": at or datetime.now(UTC), "verdict": Verdict(verdict)} | values | fields
    evidence = {"evidence": {"status_line": f"seen {verdict}"}}
    return Outcome(Result(**values), **evidence | own)


OUTCOME_FIELDS = {
    "evidence",
    "ssl_issued_at",
    "ssl_expires_at",
    "ssl_fingerprint",
    "ssl_host",
    "answered",
    "matched",
}
