"""The audit log is written in the transaction of the change, and never has a secret."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from app.access import actors, audit
from app.access.audit import TABLES
from app.db import db, writing
from app.db.tables import AuditRow, MonitorRow
from app.db.types import Encrypted
from app.records import Action, Actor, ActorKind, AuditedObject, ObjectKind, Outcome, Pair, Result

ADA = Actor(ActorKind.PERSON, "ada@example.com", 7, "192.0.2.9")
CANARY = "canary-d41d8cd98f"


# Why nothing is recorded of the rows of a table.
PARTS = (
    "monitor_contacts", "status_page_groups", "status_page_monitors", "post_monitors",
    "maintenance_window_monitors", "assignments", "monitor_dependencies",
)  # fmt: skip
OF_THE_ENGINE = (
    "unreachable_spans", "monitor_states", "monitor_evidence", "results", "result_contexts",
    "packed_hours", "rollups", "cause_codes", "changes", "shards", "heartbeats", "domains",
    "heartbeat_states", "pings", "report_mails_sent",
)  # fmt: skip
NOTED_ELSEWHERE = (
    "deliveries", "invitations", "settings", "recoveries", "sessions", "authenticator_apps",
    "passkeys", "recovery_codes",
)  # fmt: skip
NOT_RECORDED = {
    **dict.fromkeys(PARTS, "part of another object, whose line has it"),
    **dict.fromkeys(OF_THE_ENGINE, "what checks and the engine record"),
    **dict.fromkeys(NOTED_ELSEWHERE, "noted where it is written"),
    "audit": "the log itself",
    "cancelled_events": "what calendars of status pages are told, after a change that has a line",
    "counters": "counts of requests",
    "sent_forms": "bookkeeping of requests",
    "left_out_failures": "they become lines",
    "used_hosts": "where people log in",
    "ended_agent_tokens": "the change of the place has a line",
    "half_logins": "log-ins that wait for the second factor; the login is noted",
    "passkey_challenges": "what a passkey is to sign",
    "devices": "browsers that people have logged in with before",
    "subscribers": "they confirm and end their subscriptions; who clears a page's is noted",
}


@pytest.fixture
def store(app):
    with app.app_context():
        yield app.extensions["wakeful.store"]


def lines():
    db.session.rollback()
    return list(db.session.scalars(select(AuditRow).order_by(AuditRow.id)))


def monitor_fields(**more):
    return {"name": "Shop", "url": "https://shop.example", "interval": 60, **more}


@pytest.mark.both_databases
def test_a_change_has_a_line_with_who_from_where_what_and_when(store):
    with actors.acting_as(ADA):
        monitor = store.monitors.create(monitor_fields())
        store.monitors.update(monitor.id, {"interval": 300, "tags": ["prod"]})
        store.monitors.update(monitor.id, {"pause": True})
        store.monitors.delete(monitor.id)
    created, changed, paused, deleted = lines()
    for line in (created, changed, paused, deleted):
        assert (line.actor_kind, line.actor_id, line.actor_name) == ("person", 7, ADA.name)
        assert line.address == "192.0.2.9"
        assert (line.object_kind, line.object_id, line.object_name) == (
            "monitor", monitor.id, "Shop",
        )  # fmt: skip
    assert created.action == "created"
    assert created.changes["url"] == {"old": None, "new": "https://shop.example"}
    assert changed.action == "changed"
    assert changed.changes == {
        "interval": {"old": 60, "new": 300},
        "tags": {"old": [], "new": ["prod"]},
    }
    assert paused.action == "paused"
    assert deleted.action == "deleted"
    assert deleted.changes["interval"] == {"old": 300, "new": None}


def test_what_changes_nothing_and_what_wakeful_does_has_no_line(store):
    monitor = store.monitors.create(monitor_fields())
    with actors.acting_as(ADA):
        store.monitors.update(monitor.id, {"interval": 60, "name": "Shop"})
    assert lines() == []


@pytest.mark.both_databases
def test_the_line_is_lost_with_the_change(store):
    monitor = store.monitors.create(monitor_fields())
    with actors.acting_as(ADA):
        with pytest.raises(ZeroDivisionError):
            fail_after_a_change(monitor.id)
        store.monitors.update(monitor.id, {"name": "Store"})
    [line] = lines()
    assert line.changes == {"name": {"old": "Shop", "new": "Store"}}


def fail_after_a_change(monitor_id):
    with writing() as session:
        session.get(MonitorRow, monitor_id).interval = 300
        session.flush()
        audit.note(session, Action.EXPORTED, AuditedObject(ObjectKind.AUDIT_LOG))
        raise ZeroDivisionError


@pytest.mark.both_databases
def test_the_line_outlives_a_savepoint_that_is_rolled_back_after_it(store):
    monitor = store.monitors.create(monitor_fields())
    with actors.acting_as(ADA), writing() as session:
        session.get(MonitorRow, monitor.id).interval = 300
        session.begin_nested().rollback()
    [line] = lines()
    assert line.changes == {"interval": {"old": 60, "new": 300}}


def test_a_line_is_written_only_with_a_transaction(store):
    with pytest.raises(RuntimeError, match="inside writing"):
        audit.note(db.session, Action.EXPORTED)


def test_an_incident_that_a_check_opens_is_no_line_and_its_acknowledgement_is(store):
    from app.engine import recorder
    from app.records import Cause, Verdict

    monitor = store.monitors.create(monitor_fields())
    down = Outcome(
        Result(
            monitor_id=monitor.id, checked_at=store.now(), verdict=Verdict.DOWN,
            cause_code=Cause.CONNECTION_REFUSED, cause="refused",
        )
    )  # fmt: skip
    with actors.acting_as(ADA):
        store.monitors.update(monitor.id, {"confirmations": 0})
        recorder.record([(monitor.id, down)], store.now())
        open_id = store.monitors.get(monitor.id).open_incident_id
        assert open_id is not None
        store.incidents.update(open_id, {"acknowledged_at": store.now()}, by="Ada")
        store.incidents.update(open_id, {"ended_at": store.now()}, by="Ada")
    assert [line.action for line in lines() if line.object_kind == "incident"] == [
        "acknowledged", "resolved",
    ]  # fmt: skip


def test_secrets_are_said_to_have_changed_and_never_shown(store):
    with actors.acting_as(ADA):
        monitor = store.monitors.create(
            monitor_fields(
                request_headers=[Pair("Authorization", CANARY)],
                request_auth_username="ada",
                request_auth_password=CANARY,
                request_method="POST",
                request_body=CANARY,
                alerts=[Pair("webhook", f"https://hooks.example/{CANARY}")],
            )
        )
        store.monitors.update(monitor.id, {"request_auth_password": f"{CANARY}-2"})
    created, changed = lines()
    for name in ("request_headers", "request_auth_password", "request_body", "alerts"):
        assert created.changes[name] == "changed"
    assert changed.changes == {"request_auth_password": "changed"}
    stored = db.session.execute(select(AuditRow.__table__)).all()
    assert CANARY not in str(stored)


def test_a_field_that_is_called_a_secret_is_not_shown_whatever_is_given(store):
    with writing() as session:
        audit.note(session, Action.CHANGED, None, {"smtp_password": ("a", CANARY)})
    [line] = lines()
    assert line.changes == {"smtp_password": "changed"}
    assert line.actor_kind == "wakeful"


def test_every_table_is_recorded_or_has_a_reason_and_no_secret_is_shown():
    recorded = {row.__tablename__ for row in TABLES}
    assert not recorded & NOT_RECORDED.keys()
    assert recorded | NOT_RECORDED.keys() == {table.name for table in db.metadata.sorted_tables}
    for row, table in TABLES.items():
        shown = {
            name: row.__mapper__.columns[name].type for name in table.columns.keys() - table.secret
        }
        assert not [name for name, type_ in shown.items() if isinstance(type_, Encrypted)]
        assert not [name for name in shown if "digest" in name or "hash" in name]
