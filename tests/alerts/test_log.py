"""The delivery log: which channels do not work, and how long it is kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from app.access.settings import Policies
from app.alerts import outbox
from app.alerts.answers import Answer
from app.alerts.channels import SENDERS, slack
from app.alerts.channels.base import Outgoing, Tools
from app.alerts.claims import SENT
from app.alerts.composing import message_text
from app.alerts.log import failed_channels, forget_deliveries, lost_messages
from app.db import db, writing
from app.db.tables import ContactRow, DeliveryRow, MonitorRow
from app.engine.housekeeping import Housekeeper
from app.records import DeliveryStatus, Event
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import HttpSink, Reply


def broken(box: Outbox) -> list[tuple[str, str | None]]:
    with box.app.app_context():
        return [(channel.channel, channel.reason) for channel in failed_channels(db.session)]


@pytest.mark.both_databases
def test_a_channel_is_broken_from_its_refusal_until_it_delivers_or_no_monitor_has_it(
    box: Outbox, sink: HttpSink
) -> None:
    sink.replies["/slack"] = [Reply(404, "no_service"), Reply(404, "no_service"), Reply()]
    slack = ("slack", f"{sink.url}/slack")
    shop = box.monitor(slack, ("webhook", f"{sink.url}/hook"))
    box.notice(shop)
    box.turn()
    box.notice(shop)
    box.turn(3600)
    assert broken(box) == [("slack", "HTTP 404: no_service")]
    box.notice(shop)
    box.turn(3600)
    assert broken(box) == []

    # An attempt in the same second as the failure: the higher id is later.
    sink.replies["/slack"] = [Reply(410), Reply()]
    box.notice(shop)
    box.turn()
    assert len(broken(box)) == 1
    box.notice(shop)
    box.turn()
    assert broken(box) == []

    sink.replies["/slack"] = [Reply(410)]
    box.notice(shop)
    box.turn(5)
    assert len(broken(box)) == 1
    with box.app.app_context(), writing() as session:
        session.get_one(MonitorRow, shop.id).alerts = [["webhook", f"{sink.url}/hook"]]
    assert broken(box) == []


def test_home_does_not_read_all_messages_that_arrived(box: Outbox) -> None:
    plans: list[str] = []

    def explain(_connection: Any, cursor: Any, statement: str, values: Any, *_more: Any) -> None:
        own = cursor.connection.cursor()
        plans.extend(step for *_ids, step in own.execute(f"EXPLAIN QUERY PLAN {statement}", values))
        own.close()

    with box.app.app_context():
        event.listen(db.engine, "before_cursor_execute", explain)
        failed_channels(db.session)
        lost_messages(db.session, box.clock.now)
        event.remove(db.engine, "before_cursor_execute", explain)
    of_all = [step for step in plans if step == "SCAN deliveries" or "subscriber_id" in step]
    assert plans
    assert not of_all


def test_a_grouped_message_that_failed_stands_for_its_monitors(box: Outbox, sink: HttpSink) -> None:
    sink.replies["/hook"] = [Reply(410)]
    for number in range(21):
        box.open(box.monitor(("webhook", f"{sink.url}/hook"), name=f"M{number}"))
    box.turn(1)
    assert broken(box) == [("webhook", "HTTP 410: ok")]
    with box.app.app_context(), writing() as session:
        session.query(MonitorRow).delete()
    assert broken(box) == []


def test_a_bug_in_a_sender_is_logged_with_its_place_and_is_shown_after_the_second_time(
    box: Outbox, sink: HttpSink, caplog: pytest.LogCaptureFixture
) -> None:
    def send(outgoing: Outgoing, tools: Tools) -> Answer:
        if len(box.rows()) == 1:
            raise RuntimeError(outgoing.value)
        return slack.send(outgoing, tools)

    value = f"{sink.url}/services/SECRETSECRET"
    box.worker.senders = {**SENDERS, "slack": send}
    monitor = box.monitor(("slack", value))
    (first,) = box.notice(monitor)
    box.turn()
    assert box.row(first).status == DeliveryStatus.PENDING
    assert "test_log.py" in caplog.text
    assert "in send > RuntimeError" in caplog.text
    box.turn(5)
    row = box.row(first)
    assert [attempt["bug"] for attempt in row.attempts] == [True, True]
    assert row.status == DeliveryStatus.FAILED
    assert "SECRETSECRET" not in caplog.text + str(row.attempts)
    ((channel, reason),) = broken(box)
    assert channel == "slack"
    assert "Sending failed inside Wakeful (RuntimeError, test_log.py:" in str(reason)

    (second,) = box.notice(monitor)  # it is not made to wait for a lane that does not work
    box.turn()
    assert box.row(second).status == DeliveryStatus.DELIVERED
    assert broken(box) == []


def test_a_contact_of_no_monitor_whose_channel_does_not_work_is_shown(
    box: Outbox, sink: HttpSink
) -> None:
    sink.replies["/hook"] = [Reply(410)]
    place = {"id": 2, "name": "osaka", "label": "Osaka"}
    facts = {"location": place, "monitors": 1, "unknown": 0, "since": None}
    with box.app.app_context(), writing() as session:
        contact = ContactRow(
            name="Ops",
            name_folded="ops",
            channels=[["webhook", f"{sink.url}/hook"]],
            default=True,
            min_severity="all",
            acknowledgements=True,
            quiet_zone="UTC",
            created_at=box.clock.now,
            updated_at=box.clock.now,
        )
        session.add(contact)
        session.flush()
        id = contact.id
        outbox.notify_of_place(session, Event.LOCATION_SILENT, facts, box.clock.now)
    box.turn()
    assert [channel for channel, _reason in broken(box)] == ["webhook"]
    with box.app.app_context(), writing() as session:
        session.get_one(ContactRow, id).channels = [["webhook", f"{sink.url}/other"]]
    assert broken(box) == []


def test_a_message_that_waits_is_shown_as_it_will_be_sent(box: Outbox, sink: HttpSink) -> None:
    """The text has the notes of the monitor, in the time zone of the contact, and in English."""
    box.configure(time_zone="Asia/Tokyo")
    sink.replies["/slack"] = [Reply(503)]
    other = box.monitor(name="Search")
    box.incident(other)
    box.open(box.monitor(("slack", f"{sink.url}/slack"), name="Shop", notes="Call Ben."))
    (waiting,) = box.rows()
    with box.app.app_context():
        shown = message_text(db.session, box.settings, db.session.get_one(DeliveryRow, waiting.id))
    assert shown is not None
    for part in ("Notes: Call Ben.", "Also down: Search", "JST", "/acknowledge/…"):
        assert part in shown
    box.turn(1)
    assert box.row(waiting.id).facts[SENT] == shown


def test_a_message_of_an_unknown_channel_is_shown_and_fails_by_its_name(box: Outbox) -> None:
    box.open(box.monitor(("webhook", "http://127.0.0.1:9/")))
    (waiting,) = box.rows()
    with box.app.app_context(), writing() as session:
        row = session.get_one(DeliveryRow, waiting.id)
        row.channel = "pigeon"  # as a newer version may write
        assert "Shop" in (message_text(session, box.settings, row) or "")
    box.turn(1)
    assert "No channel is called pigeon." in (box.row(waiting.id).reason or "")


@pytest.mark.both_databases
def test_old_deliveries_are_deleted_unless_they_are_pending(box: Outbox) -> None:
    monitor = box.monitor(("webhook", "http://127.0.0.1:9/"))
    old = [box.notice(monitor)[0] for _ in DeliveryStatus]
    with box.app.app_context(), writing() as session:
        for id, status in zip(old, DeliveryStatus, strict=True):
            session.get_one(DeliveryRow, id).status = status
    box.clock.advance(
        seconds=timedelta(days=box.settings.retention_days, seconds=1).total_seconds()
    )
    (young,) = box.notice(monitor)
    with box.app.app_context():
        assert forget_deliveries(box.clock.now - timedelta(days=900)) == 0
        keeper = Housekeeper(box.app, box.settings, Policies(box.settings))
        keeper.delete_old(box.clock.now)
    pending = old[list(DeliveryStatus).index(DeliveryStatus.PENDING)]
    assert [row.id for row in box.rows()] == [pending, young]


def test_many_old_deliveries_are_deleted_in_small_transactions(box: Outbox) -> None:
    monitor = box.monitor(("webhook", "http://127.0.0.1:9/"))
    for _ in range(5):
        box.notice(monitor)
    with box.app.app_context():
        with writing() as session:
            session.query(DeliveryRow).update({"status": DeliveryStatus.DELIVERED})
        assert forget_deliveries(box.clock.now + timedelta(seconds=1), per_transaction=2) == 5
    assert box.rows() == []
