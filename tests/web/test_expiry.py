"""The days left of a certificate and a domain: list, page, alert and condition agree."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from app.alerts.messages import compose
from app.alerts.messages.message import MessageContext
from app.db import db, writing
from app.db.tables import DeliveryRow, DomainRow, MonitorRow
from app.engine import domains
from app.engine.recorder import alerting
from app.records import Event, Outcome, Result, Verdict
from app.rules.time import iso
from tests.factories import make_monitor

MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)
EXPIRES = MIDNIGHT + timedelta(hours=6)
# Less than a day before the expiry: a count of whole days says 0 on both sides of midnight.
SIDES = [
    (MIDNIGHT - timedelta(minutes=5), 1, "expires tomorrow"),
    (MIDNIGHT + timedelta(minutes=5), 0, "expires today"),
    (EXPIRES + timedelta(minutes=5), 0, "expired today"),
    (EXPIRES - timedelta(days=5), 5, "expires in 5 days"),
    (EXPIRES - timedelta(days=5, hours=5), 5, "expires in 5 days"),
    (EXPIRES - timedelta(days=5, hours=7), 6, "expires in 6 days"),
]


@pytest.fixture(params=SIDES, ids=[str(side[0]) for side in SIDES])
def side(request):
    with time_machine.travel(request.param[0], tick=True):
        yield request.param


@pytest.fixture
def monitor(app, side):
    fields = {"ssl_alert_days": 30, "domain_alert_days": 30}
    made = make_monitor(app, state={"ssl_expires_at": EXPIRES, "domain": "shop.test"}, **fields)
    with app.app_context(), writing() as session:
        session.add(DomainRow(domain="shop.test", expires_at=EXPIRES))
    return made


def test_list_and_page_count_alike(monitor, side, viewer):
    _, _, count = side
    listed = count.removeprefix("expires in ")
    viewer.open("/monitors").shows(f"certificate {listed}", f"domain {listed}")
    viewer.open(f"/monitors/{monitor.id}").shows(f"Certificate {count}", f"Domain {count}")


def test_the_condition_and_the_alerts_count_as_the_page_does(app, monitor, side):
    now, days, count = side
    result = Result(checked_at=now, verdict=Verdict.UP)
    outcome = Outcome(result, ssl_expires_at=EXPIRES, ssl_host="shop.test")
    assert alerting.is_certificate_due(outcome, days, now)
    assert not alerting.is_certificate_due(outcome, days - 1, now)
    with app.app_context():
        with writing() as session:
            session.get_one(MonitorRow, monitor.id).alerts = [["email", "ops@shop.test"]]
        with writing() as session:
            alerting.notify_certificate(session, monitor.id, outcome, now)
        domains.alert_expiring(now)
        deliveries = list(db.session.scalars(db.select(DeliveryRow)))
        assert len(deliveries) == 2
        for row in deliveries:
            message = compose(row.facts, MessageContext("", str))
            assert message.title.endswith(count)
            assert message.data["days_left"] == days


def test_a_message_without_its_own_count_counts_from_its_moment(side):
    now, days, count = side
    facts = {
        "event": str(Event.DOMAIN_EXPIRING),
        "at": iso(now),
        "monitor": {"id": 1, "name": "Shop", "url": "https://shop.test/"},
        "extra": {"expires_at": iso(EXPIRES), "domain": "shop.test"},
    }
    message = compose(facts, MessageContext("", str))
    assert (message.title, message.data["days_left"]) == (f"Domain shop.test {count}", days)
