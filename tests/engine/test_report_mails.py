"""Monthly reports by email: of the month that is over, once, whatever stops or moves the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from app.alerts.messages import compose
from app.alerts.messages.message import MessageContext
from app.db import db, writing
from app.db.journal import assign_numbers, insert_results, row_of
from app.db.tables import DeliveryRow, ReportMailRow
from app.engine import report_mails
from app.records import DEFAULT_PLACE_ID, Pair, Result, Verdict
from app.stores import current_store
from tests.factories import make_incident, make_monitor

OCTOBER, NOVEMBER = datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def ordered(app):
    with app.app_context():
        yield order(app)


def order(app):
    """A report of the monitors tagged shop, ordered in October, with something to say."""
    monitors = [
        make_monitor(app, name=name, tags="\nshop\n", interval=3600, created_at=OCTOBER)
        for name in ("Shop", "Till")
    ]
    make_monitor(app, name="Blog", created_at=OCTOBER)
    with writing():
        for monitor in monitors:
            results = [
                Result(OCTOBER + hour * HOUR, Verdict.UP, monitor_id=monitor.id, response_time=100)
                for hour in range(744)
            ]
            assign_numbers(results)
            insert_results([row_of(result, DEFAULT_PLACE_ID) for result in results])
    at = OCTOBER + 100 * HOUR
    make_incident(app, monitors[1], started_at=at, ended_at=at + 2 * HOUR)
    store = current_store()
    channels = (
        Pair("email", "boss@shop.example"),
        Pair("email", "deputy@shop.example"),
        Pair("slack", "https://hooks.slack.com/services/T0/B0/x1"),
    )
    store.contacts.create({"name": "Boss", "channels": channels})
    mail = store.report_mails.create({"contact": "Boss", "tag": "shop"})
    set_created(mail.id, OCTOBER + timedelta(days=20))
    return mail.id


def set_created(id, at):
    with writing() as session:
        session.get(ReportMailRow, id).created_at = at


def deliveries():
    db.session.expire_all()
    return db.session.scalars(select(DeliveryRow).order_by(DeliveryRow.id)).all()


def test_a_report_goes_to_the_addresses_of_its_contact_on_the_first(ordered):
    assert report_mails.send(NOVEMBER - timedelta(seconds=1)) == 0
    assert report_mails.send(NOVEMBER) == 0  # the last checks are still coming in
    assert report_mails.send(NOVEMBER + report_mails.SETTLED) == 1
    rows = deliveries()
    assert [(row.channel, row.value) for row in rows] == [
        ("email", "boss@shop.example"), ("email", "deputy@shop.example"),
    ]  # fmt: skip
    message = compose(rows[0].facts, MessageContext("https://watch.example", str))
    assert message.title == "Availability of 2 monitors tagged shop, October 2026"
    assert message.items[0].text.startswith("Till: 99.73")
    assert "down 2 h, 1 incident" in message.items[0].text
    assert message.items[1].text == "Shop: 100% up"
    assert message.links[0].url == "https://watch.example/reports?month=2026-10&tag=shop"
    assert dict(message.details)["Incidents"] == "1"
    assert message.details[-1] == (
        "2026-10-05 04:00 UTC", "Till: The server refused the connection (2 h)",
    )  # fmt: skip


@pytest.mark.both_databases
def test_a_report_is_sent_once_even_if_the_clock_changes(ordered):
    moments = (
        NOVEMBER + HOUR,
        NOVEMBER + 2 * HOUR,  # restarted
        NOVEMBER - HOUR,  # set back into October
        NOVEMBER + timedelta(days=9),
        NOVEMBER + timedelta(days=400),  # set forward: nothing was checked in that month
        NOVEMBER + timedelta(days=10),
    )
    assert [report_mails.send(at) for at in moments] == [1, 0, 0, 0, 0, 0]
    assert len(deliveries()) == 2


def test_a_server_that_was_off_on_the_first_sends_it_later(ordered):
    assert report_mails.send(NOVEMBER + timedelta(days=12)) == 1


def test_a_report_is_for_the_months_to_come(ordered):
    set_created(ordered, NOVEMBER + timedelta(days=3))
    assert report_mails.send(NOVEMBER + timedelta(days=4)) == 0


def test_a_report_that_a_wrong_clock_ordered_is_sent(ordered):
    set_created(ordered, NOVEMBER + timedelta(days=900))
    assert report_mails.send(NOVEMBER + timedelta(days=4)) == 1


def test_one_report_that_fails_stops_no_other(ordered, monkeypatch):
    store = current_store()
    set_created(store.report_mails.create({"contact": "Boss"}).id, OCTOBER)
    facts = report_mails._facts

    def broken(session, row, *args):
        if row.id == ordered:
            raise RuntimeError("a fault of ours")
        return facts(session, row, *args)

    monkeypatch.setattr(report_mails, "_facts", broken)
    assert report_mails.send(NOVEMBER + HOUR) == 1
    monkeypatch.undo()
    assert report_mails.send(NOVEMBER + HOUR) == 1  # tried again
