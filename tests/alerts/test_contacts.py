"""Alerts through contacts: who gets what, when, and once (decision 13)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from app.db import writing
from app.db.tables import ContactRow, MonitorContactRow
from app.engine import recorder
from app.records import DeliveryStatus, Event
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import HttpSink, MailSink
from tests.support.contacts import NIGHT, contact, give, types

NIGHT_ENDS = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
EXPIRY = {"expires_at": datetime(2026, 12, 1, tzinfo=UTC), "days_left": 10, "host": "shop.example"}


def change(box: Outbox, id: int, **fields: Any) -> None:
    with box.app.app_context(), writing() as session:
        row = session.get_one(ContactRow, id)
        for name, value in fields.items():
            setattr(row, name, value)


def test_a_value_that_several_contacts_give_is_alerted_once(box: Outbox, sink: HttpSink) -> None:
    hook, other = ("webhook", f"{sink.url}/hook"), ("webhook", f"{sink.url}/other")
    monitor = box.monitor(hook)
    give(box, monitor, contact(box, "Shop", hook, other), contact(box, "Night", other))
    incident = box.open(monitor)
    box.turn(1)
    box.close(monitor, incident)
    box.turn(1)
    both = ["incident.opened", "incident.resolved"]
    assert (types(sink, "/hook"), types(sink, "/other")) == (both, both)
    assert len(box.rows()) == 4


def test_a_contact_is_notified_of_an_acknowledgement_unless_it_wants_none(
    box: Outbox, sink: HttpSink
) -> None:
    monitor = box.monitor()
    calm = contact(box, "Calm", ("webhook", f"{sink.url}/calm"), acknowledgements=False)
    give(box, monitor, contact(box, "Shop", ("webhook", f"{sink.url}/shop")), calm)
    incident = box.open(monitor)
    late = contact(box, "Late", ("webhook", f"{sink.url}/late"))
    with box.app.app_context(), writing() as session:
        session.add(MonitorContactRow(monitor_id=monitor.id, contact_id=late, position=2))
    with box.app.app_context(), writing() as session:
        row = recorder.lock_incident(session, incident.id)
        fields = {"acknowledged_at": box.clock.now}
        recorder.change_incident(session, row, fields, box.clock.now, by="Ada")
    box.turn(1)
    assert types(sink, "/shop") == ["incident.opened", "incident.acknowledged"]
    assert sink.to("/shop")[1].json["data"]["incident"]["acknowledged_by"] == "Ada"
    assert types(sink, "/calm") == ["incident.opened"]
    assert types(sink, "/late") == []  # it was not told of the outage


def test_a_contact_for_incidents_alone_is_notified_of_no_expiry(
    box: Outbox, sink: HttpSink
) -> None:
    hook = ("webhook", f"{sink.url}/all")
    down = contact(box, "Down", ("webhook", f"{sink.url}/down"), hook, min_severity="down")
    monitor = box.monitor()
    give(box, monitor, down, contact(box, "All", hook))
    box.tell(Event.CERTIFICATE_EXPIRING, monitor, extra=EXPIRY)
    box.open(monitor)
    box.turn(1)
    assert types(sink, "/down") == ["incident.opened"]
    assert types(sink, "/all") == ["certificate.expiring", "incident.opened"]


def test_the_quiet_hours_of_a_contact_hold_what_no_other_source_tells(
    box: Outbox, sink: HttpSink
) -> None:
    quiet = contact(
        box, "Quiet", ("webhook", f"{sink.url}/quiet"), ("webhook", f"{sink.url}/both"), **NIGHT
    )
    monitor = box.monitor()
    give(box, monitor, quiet, contact(box, "Awake", ("webhook", f"{sink.url}/both")))
    incident = box.open(monitor)
    box.turn(1)
    assert (types(sink, "/quiet"), types(sink, "/both")) == ([], ["incident.opened"])
    [on_hold] = [row for row in box.rows() if row.status == DeliveryStatus.HELD]
    assert (on_hold.reason, on_hold.next_attempt_at) == ("quiet hours", NIGHT_ENDS)
    box.close(monitor, incident)
    box.turn((NIGHT_ENDS - box.clock.now).total_seconds() - 1)
    assert types(sink, "/quiet") == []
    box.turn(15)  # the worker looks for the end of quiet hours every few seconds
    assert types(sink, "/quiet") == ["incidents.digest"]
    assert types(sink, "/both") == ["incident.opened", "incident.resolved"]


def test_the_quiet_hours_of_a_monitor_hold_what_its_contacts_would_tell(
    box: Outbox, sink: HttpSink
) -> None:
    monitor = box.monitor(**NIGHT)
    give(box, monitor, contact(box, "Awake", ("webhook", f"{sink.url}/awake")))
    box.open(monitor)
    box.turn(1)
    assert types(sink, "/awake") == []


def test_quiet_hours_that_a_contact_loses_hold_nothing_any_longer(
    box: Outbox, sink: HttpSink
) -> None:
    quiet = contact(box, "Quiet", ("webhook", f"{sink.url}/quiet"), **NIGHT)
    monitor = box.monitor()
    give(box, monitor, quiet)
    box.open(monitor)
    box.turn(1)
    change(box, quiet, quiet_start=None, quiet_end=None)
    box.turn(15)
    assert types(sink, "/quiet") == ["incidents.digest"]


def test_quiet_hours_that_begin_while_a_message_waits_hold_it(box: Outbox, sink: HttpSink) -> None:
    quiet = contact(box, "Quiet", ("webhook", f"{sink.url}/quiet"))
    monitor = box.monitor()
    give(box, monitor, quiet)
    box.open(monitor)  # held back for half a second, for others of the same burst
    change(box, quiet, **NIGHT)
    box.turn(1)
    assert types(sink, "/quiet") == []
    assert [row.status for row in box.rows()] == [DeliveryStatus.HELD]


def test_a_changed_contact_changes_what_is_sent_from_then_on(box: Outbox, sink: HttpSink) -> None:
    shop = contact(box, "Shop", ("webhook", f"{sink.url}/old"))
    first, two = box.monitor(name="One"), box.monitor(name="Two")
    give(box, first, shop)
    give(box, two, shop)
    box.open(first)
    change(box, shop, channels=[["webhook", f"{sink.url}/new"]])
    box.turn(1)
    box.open(two)
    box.turn(1)
    assert (len(sink.to("/old")), len(sink.to("/new"))) == (1, 1)


def test_a_contact_that_cannot_be_read_keeps_no_other_from_being_alerted(
    box: Outbox, sink: HttpSink, caplog: pytest.LogCaptureFixture
) -> None:
    monitor = box.monitor(("webhook", f"{sink.url}/own"))
    broken = contact(box, "Broken", ("webhook", f"{sink.url}/broken"))
    give(box, monitor, broken, contact(box, "Shop", ("webhook", f"{sink.url}/shop")))
    with box.app.app_context(), writing() as session:
        session.execute(text(f"UPDATE contacts SET channels = 'junk' WHERE id = {broken}"))
    box.open(monitor)
    box.turn(1)
    assert (types(sink, "/own"), types(sink, "/shop")) == (["incident.opened"],) * 2
    assert 'The stored channels of contact "Broken" cannot be read' in caplog.text


def test_the_contacts_of_a_monitor_whose_alerts_cannot_be_read_are_alerted(
    box: Outbox, sink: HttpSink
) -> None:
    monitor = box.monitor(("webhook", f"{sink.url}/own"))
    give(box, monitor, contact(box, "Shop", ("webhook", f"{sink.url}/shop")))
    with box.app.app_context(), writing() as session:
        session.execute(text(f"UPDATE monitors SET alerts = 'junk' WHERE id = {monitor.id}"))
    incident = box.open(monitor)
    box.turn(1)
    box.close(monitor, incident)
    box.turn(1)
    assert types(sink, "/shop") == ["incident.opened", "incident.resolved"]


def test_damaged_hours_of_a_contact_and_damaged_sources_hold_nobody_up(
    box: Outbox, sink: HttpSink
) -> None:
    quiet = contact(box, "Quiet", ("webhook", f"{sink.url}/quiet"), **NIGHT)
    broken = contact(box, "Broken", ("webhook", f"{sink.url}/broken"), **NIGHT)
    monitor = box.monitor()
    give(box, monitor, quiet, broken)
    box.open(monitor)
    box.turn(1)
    with box.app.app_context(), writing() as session:
        session.execute(text(f"UPDATE contacts SET quiet_start = '99:99' WHERE id = {broken}"))
        session.execute(text("UPDATE deliveries SET sources = ',99999999999999999999,x,'"))
    box.open(box.monitor(name="Other"))
    other = box.monitor(name="Third")
    give(box, other, broken)
    box.open(other)
    box.turn(15)
    assert types(sink, "/quiet") == ["incidents.digest"]  # nothing says any longer who is quiet
    assert sorted(types(sink, "/broken")) == ["incident.opened", "incidents.digest"]


def test_a_recovery_goes_to_everybody_who_was_notified_of_the_outage(
    box: Outbox, sink: HttpSink
) -> None:
    shop = contact(box, "Shop", ("webhook", f"{sink.url}/old"))
    monitor = box.monitor()
    give(box, monitor, shop)
    incident = box.open(monitor)
    box.turn(1)
    change(box, shop, channels=[["webhook", f"{sink.url}/new"]])
    box.close(monitor, incident)
    box.turn(1)
    assert types(sink, "/old") == ["incident.opened", "incident.resolved"]
    assert types(sink, "/new") == []


def test_times_in_emails_and_chats_are_in_the_zone_of_the_contact(
    box: Outbox, sink: HttpSink, mail: MailSink
) -> None:
    """The monitor's own channels have the zone of the installation. The first button of a mail is
    to acknowledge.
    """
    box.configure(smtp_url=f"smtp://127.0.0.1:{mail.port}", time_zone="Asia/Tokyo")
    slack, own = ("slack", f"{sink.url}/slack"), ("webhook", f"{sink.url}/own")
    monitor = box.monitor(("slack", f"{sink.url}/own"), own)
    people = ("email", "ops@example.com"), slack
    plain, berlin = (
        contact(box, "Plain", slack),
        contact(box, "Berlin", *people, time_zone="Europe/Berlin"),
    )
    give(box, monitor, plain, berlin)
    box.open(monitor)
    box.turn(1)
    (sent,) = mail.mails
    parts = [sent.get_body((kind,)).get_content() for kind in ("plain", "html")]
    for written in (*parts, str(sink.to("/slack")[0].json)):
        assert "2026-11-21 09:00 CET" in written
        assert "UTC" not in written
    assert parts[1].index(">Acknowledge</a>") < parts[1].index(">Incident</a>")
    assert any("2026-11-21 17:00 JST" in str(request.json) for request in sink.to("/own"))


def test_a_digest_has_its_times_in_the_zone_of_the_contact(box: Outbox, sink: HttpSink) -> None:
    monitor = box.monitor()
    fields = NIGHT | {"time_zone": "America/New_York"}
    give(box, monitor, contact(box, "Night", ("slack", f"{sink.url}/slack"), **fields))
    box.open(monitor)
    box.turn(1)
    box.clock.now = NIGHT_ENDS
    box.turn(1)
    (request,) = sink.to("/slack")
    assert "still down since 2026-11-21 03:00 EST" in str(request.json)
