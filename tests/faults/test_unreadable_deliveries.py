"""A delivery that cannot be read is given up in the open, and every other alert goes on."""

import pytest
from sqlalchemy import select

from app.access.networks import ALLOW_NETWORKS
from app.access.webhook_secret import SETTING
from app.db import db
from app.db.settings import keep_setting
from app.db.tables import DeliveryRow, MonitorRow, SettingRow
from app.records import Event
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import HttpSink
from tests.factories import make_key, make_person, now
from tests.faults.broken import KINDS, TEXT_KINDS, corrupt
from tests.web.visitor import Visitor

pytestmark = pytest.mark.one_on_postgres

BROKEN = [(DeliveryRow.facts, kind) for kind in KINDS] + [
    (DeliveryRow.value, kind) for kind in TEXT_KINDS
]
# Those that take different ways through the code.
FEW = [
    (DeliveryRow.value, "another key"),
    (DeliveryRow.facts, "truncated"),
    (DeliveryRow.facts, "null"),
    (DeliveryRow.facts, "missing keys"),
]


def named(param):
    return param if isinstance(param, str) else param.key


@pytest.fixture
def box(app):
    return Outbox(app)


@pytest.fixture
def sink():
    made = HttpSink()
    yield made
    made.close()


def hook(sink, path="/hook"):
    return ("webhook", f"{sink.url}{path}")


@pytest.mark.parametrize(("column", "kind"), BROKEN, ids=named)
def test_the_rest_of_its_lane_and_the_other_lanes_are_sent(box, sink, column, kind):
    monitors = [box.monitor(hook(sink), name=f"Shop {n}") for n in range(2)]
    elsewhere = box.monitor(hook(sink, "/elsewhere"))
    for monitor in (*monitors, elsewhere):
        box.open(monitor)
    lost = box.rows()[0]
    corrupt(box.app, column, lost.id, kind)
    box.turn(3)
    assert len(sink.to("/hook")) == 1
    assert len(sink.to("/elsewhere")) == 1
    first, *others = box.rows()
    assert [row.status for row in others] == ["delivered", "delivered"]
    assert first.status == "failed"
    what = "target" if column is DeliveryRow.value else "message"
    assert first.reason.startswith(f"Not sent: its stored {what} cannot be read, because ")
    assert first.next_attempt_at is None


@pytest.mark.parametrize(("column", "kind"), FEW, ids=named)
def test_a_burst_is_told_without_it(box, sink, column, kind):
    monitors = [box.monitor(hook(sink), name=f"Shop {n}") for n in range(21)]
    for monitor in monitors:
        box.open(monitor)
    corrupt(box.app, column, box.rows()[0].id, kind)
    box.turn(3)
    (told,) = sink.to("/hook")
    assert told.json["type"] == "incidents.opened"
    assert told.json["data"]["count"] == 20
    lost, *rows = box.rows()
    assert lost.status == "failed"
    assert {row.status for row in rows} == {"held", "delivered"}


@pytest.mark.parametrize(("column", "kind"), FEW, ids=named)
def test_the_digest_of_quiet_hours_is_told_without_it(box, sink, column, kind):
    night = {"quiet_start": "07:00", "quiet_end": "09:00"}
    shop = box.monitor(hook(sink), **night)
    extra = {"expires_at": box.clock(), "days_left": 3, "host": "shop.test"}
    box.tell(Event.CERTIFICATE_EXPIRING, shop, None, extra)
    box.open(shop)
    corrupt(box.app, column, box.rows()[0].id, kind)
    box.turn(3700)
    (told,) = sink.to("/hook")
    assert told.json["type"] == "incidents.digest"
    assert (told.json["data"]["open"], told.json["data"]["notices"]) == (1, [])
    assert [row.status for row in box.rows()] == ["failed", "held", "delivered"]


def test_a_recovery_of_which_the_outage_could_not_be_read_is_held_with_the_reason(box, sink):
    shop = box.monitor(hook(sink))
    incident = box.open(shop)
    corrupt(box.app, DeliveryRow.facts, box.rows()[0].id)
    box.turn(3)
    box.clock.pass_(60)
    box.close(shop, incident)
    box.turn(3)
    assert [row.status for row in box.rows()] == ["failed", "held"]
    assert box.rows()[1].reason == "outage not delivered"
    assert not sink.requests


@pytest.mark.parametrize(("column", "kind"), FEW, ids=named)
def test_the_log_of_deliveries_shows_it(box, sink, column, kind):
    shop = box.monitor(hook(sink))
    box.open(shop)
    id = box.rows()[0].id
    corrupt(box.app, column, id, kind)
    box.turn(3)
    client, key = box.app.test_client(), make_key(box.app)
    headers = {"Authorization": f"Bearer {key}"}
    (listed,) = client.get("/api/v1/deliveries", headers=headers).json["data"]
    assert client.get(f"/api/v1/deliveries/{id}", headers=headers).json["data"] == listed
    assert listed["status"] == "failed"
    if kind != "missing keys":
        what = "target" if column is DeliveryRow.value else "message"
        assert listed["unreadable"] == [what]
        retried = client.post(f"/api/v1/deliveries/{id}/retry", headers=headers)
        assert retried.status_code == 409
        assert "cannot be read" in retried.json["message"]
    visitor = Visitor(box.app).log_in(make_person(box.app).email)
    for path in ("/deliveries", f"/deliveries/{id}", "/", "/monitors"):
        assert visitor.open(path).status == 200, path
        if path.startswith("/deliveries"):
            assert "cannot be read" in visitor.text


@pytest.mark.sqlite
def test_an_incomplete_message_that_is_retried_fails_again_alone(box, sink):
    box.clock.now = now()  # the API's clock
    shop = box.monitor(hook(sink))
    box.open(shop)
    id = box.rows()[0].id
    corrupt(box.app, DeliveryRow.facts, id, "missing keys")
    box.turn(60)
    headers = {"Authorization": f"Bearer {make_key(box.app)}"}
    retried = box.app.test_client().post(f"/api/v1/deliveries/{id}/retry", headers=headers)
    assert retried.json["data"]["status"] == "pending"
    box.tell(Event.TEST, shop)
    box.turn(3)
    assert [row.status for row in box.rows()] == ["failed", "delivered"]


def test_a_monitor_whose_alerts_cannot_be_read_hides_no_broken_channel(box, sink):
    """The notice on the dashboard reads the alerts of the monitors to know who is still told."""
    shop = box.monitor(hook(sink))
    box.open(shop)
    corrupt(box.app, DeliveryRow.value, box.rows()[0].id)
    corrupt(box.app, MonitorRow.alerts, shop.id)
    box.turn(3)
    visitor = Visitor(box.app).log_in(make_person(box.app).email)
    assert "An alert channel does not work" in visitor.open("/").text


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_a_webhook_secret_that_cannot_be_read_stops_webhooks_alone(box, sink, kind):
    shop = box.monitor(hook(sink), ("slack", f"{sink.url}/slack"))
    box.tell(Event.TEST, shop)
    box.turn(1)
    assert len(sink.to("/hook")) == 1
    with box.app.app_context():
        assert db.session.scalar(select(SettingRow.name).where(SettingRow.name == SETTING))
    corrupt(box.app, SettingRow.value, SETTING, kind)
    incident = box.open(shop)
    box.turn(3)
    assert len(sink.to("/slack")) == 2
    assert len(sink.to("/hook")) == 1
    waiting = [row for row in box.rows() if row.incident_id == incident.id]
    assert [row.status for row in waiting] == ["pending", "delivered"]
    assert "Change the secret on the Settings page" in waiting[0].attempts[0]["answer"]

    visitor = Visitor(box.app).log_in(make_person(box.app).email)
    assert "The stored secret cannot be read." in visitor.open("/settings").text
    visitor.press("Show the secret")
    assert visitor.status == 200
    assert "cannot be read" in visitor.text
    visitor.open("/settings/webhook-secret/change").press("Change the secret")
    assert "The stored secret cannot be read." not in visitor.text
    box.turn(10)
    assert len(sink.to("/hook")) == 2, "the waiting message goes out with the new secret"


def test_networks_that_cannot_be_read_close_what_they_opened_and_are_set_again(box, sink):
    box.configure(allow_networks=None)
    box.app.extensions["wakeful.settings"] = box.settings
    visitor = Visitor(box.app).log_in(make_person(box.app).email)
    visitor.open("/settings").press("Save", allow_networks="loopback")
    corrupt(box.app, SettingRow.value, "allow_networks")
    shop = box.monitor(hook(sink))
    box.tell(Event.TEST, shop)
    box.turn(1)
    assert not sink.requests
    assert box.rows()[0].status == "failed", "refused by the policy, which names what to open"
    assert "The stored networks cannot be read." in visitor.open("/settings").text
    visitor.press("Save", allow_networks="loopback")
    assert "cannot be read" not in visitor.text
    box.tell(Event.TEST, shop)
    box.turn(1)
    assert len(sink.requests) == 1


def test_networks_that_this_version_does_not_know_stop_no_alert(box, sink):
    """As after a downgrade: the text is whole, but not all of it is a network."""
    box.configure(allow_networks=None)
    shop = box.monitor(hook(sink))
    with box.app.app_context():
        keep_setting(ALLOW_NETWORKS, "loopback", now())
    box.tell(Event.TEST, shop)
    box.turn(1)
    with box.app.app_context():
        keep_setting(ALLOW_NETWORKS, "loopback, moonbase", now())
    box.tell(Event.TEST, shop)
    box.turn(1)
    assert len(sink.requests) == 2
