"""A delivery whose target cannot be read is given up visibly, a message that cannot be read is
composed again from its incident, and every other alert is sent.
"""

import re
from datetime import timedelta

import pytest
from sqlalchemy import select

from app.access.settings import ALLOW_NETWORKS
from app.access.webhook_secret import SETTING
from app.db import db, writing
from app.db.settings import store_setting
from app.db.tables import DeliveryRow, IncidentRow, MonitorRow, SettingRow
from app.records import Event
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import Reply
from tests.api.conftest import Api
from tests.factories import make_key, make_person, now
from tests.faults.broken import KINDS, corrupt
from tests.web.visitor import Visitor


@pytest.fixture
def box(app):
    return Outbox(app)


def hook(sink, path="/hook"):
    return ("webhook", f"{sink.url}{path}")


def test_the_rest_of_its_lane_and_the_other_lanes_are_sent(box, sink):
    monitors = [box.monitor(hook(sink), name=f"Shop {n}") for n in range(2)]
    elsewhere = box.monitor(hook(sink, "/elsewhere"))
    for monitor in (*monitors, elsewhere):
        box.open(monitor)
    corrupt(box.app, DeliveryRow.value, box.rows()[0].id)
    box.turn(3)
    assert len(sink.to("/hook")) == 1
    assert len(sink.to("/elsewhere")) == 1
    first, *others = box.rows()
    assert [row.status for row in others] == ["delivered", "delivered"]
    assert first.status == "failed"
    assert first.reason.startswith("Not sent: its stored target cannot be read, because ")
    assert first.next_attempt_at is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_about_an_incident_is_composed_again(box, sink, kind):
    shop = box.monitor(hook(sink), name="Shop")
    incident = box.open(shop)
    corrupt(box.app, DeliveryRow.facts, box.rows()[0].id, kind)
    box.turn(3)
    box.clock.advance(seconds=60)
    box.close(shop, incident)
    corrupt(box.app, DeliveryRow.facts, box.rows()[1].id, kind)
    box.turn(3)
    assert [row.status for row in box.rows()] == ["delivered", "delivered"]
    opened, resolved = [request.json for request in sink.to("/hook")]
    assert (opened["type"], resolved["type"]) == ("incident.opened", "incident.resolved")
    assert opened["data"]["incident"]["cause"] == incident.cause
    assert opened["data"]["incident"]["status"] == "unresolved"
    assert resolved["data"]["incident"]["duration"] == 63


def test_a_message_that_its_incident_does_not_have_or_that_is_too_old_is_given_up(box, sink):
    shop = box.monitor(hook(sink))
    box.tell(Event.CERTIFICATE_EXPIRING, shop, extra={"days_left": 3, "host": "shop.test"})
    corrupt(box.app, DeliveryRow.facts, box.rows()[0].id)
    box.turn(3)
    (row,) = box.rows()
    assert row.status == "failed"
    assert row.reason.startswith("Not sent: its stored message cannot be read, because ")
    box.open(shop)
    corrupt(box.app, DeliveryRow.facts, box.rows()[1].id)
    box.turn(2 * 86_400)
    assert box.rows()[1].status == "failed"
    assert not sink.requests


def test_a_burst_leaves_out_what_cannot_be_read_and_has_what_was_composed_again(box, sink):
    for number in range(21):
        box.open(box.monitor(hook(sink), name=f"Shop {number}"))
    corrupt(box.app, DeliveryRow.value, box.rows()[0].id)
    corrupt(box.app, DeliveryRow.facts, box.rows()[1].id)
    box.turn(3)
    (request,) = sink.to("/hook")
    assert request.json["type"] == "incidents.opened"
    assert request.json["data"]["count"] == 20
    names = [incident["monitor"]["name"] for incident in request.json["data"]["incidents"]]
    assert names == [f"Shop {number}" for number in range(1, 11)]
    lost, *rows = box.rows()
    assert lost.status == "failed"
    assert {row.status for row in rows} == {"held", "delivered"}


def test_the_digest_of_quiet_hours_leaves_out_a_message_that_cannot_be_read(box, sink):
    night = {"quiet_start": "07:00", "quiet_end": "09:00"}
    shop = box.monitor(hook(sink), **night)
    extra = {"expires_at": box.clock(), "days_left": 3, "host": "shop.test"}
    box.tell(Event.CERTIFICATE_EXPIRING, shop, None, extra)
    box.open(shop)
    corrupt(box.app, DeliveryRow.facts, box.rows()[0].id, "missing keys")
    box.turn(3700)
    (requests,) = sink.to("/hook")
    assert requests.json["type"] == "incidents.digest"
    assert (requests.json["data"]["open"], requests.json["data"]["notices"]) == (1, [])
    assert [row.status for row in box.rows()] == ["failed", "held", "delivered"]


def test_a_recovery_of_which_the_outage_could_not_be_read_is_held_with_the_reason(box, sink):
    shop = box.monitor(hook(sink))
    incident = box.open(shop)
    corrupt(box.app, DeliveryRow.value, box.rows()[0].id)
    box.turn(3)
    box.clock.advance(seconds=60)
    box.close(shop, incident)
    box.turn(3)
    assert [row.status for row in box.rows()] == ["failed", "held"]
    assert box.rows()[1].reason == "outage not delivered"
    assert not sink.requests


@pytest.mark.parametrize(
    "column", [DeliveryRow.value, DeliveryRow.facts], ids=lambda column: column.key
)
def test_the_log_of_deliveries_shows_it(box, sink, column):
    shop = box.monitor(hook(sink))
    box.tell(Event.CERTIFICATE_EXPIRING, shop, extra={"days_left": 3, "host": "shop.test"})
    id = box.rows()[0].id
    corrupt(box.app, column, id)
    box.turn(3)
    api = Api(box.app.test_client(), make_key(box.app))
    (listed,) = api.get("/deliveries")["data"]
    assert api.get(f"/deliveries/{id}")["data"] == listed
    assert listed["status"] == "failed"
    assert listed["unreadable"] == ["target" if column is DeliveryRow.value else "message"]
    retried = api("POST", f"/deliveries/{id}/retry")
    assert retried.status_code == 409
    assert "cannot be read" in retried.json["message"]
    visitor = Visitor(box.app).let_in(make_person(box.app))
    for path in ("/deliveries", f"/deliveries/{id}", "/", "/monitors"):
        assert visitor.open(path).status == 200, path
        if path.startswith("/deliveries"):
            assert "cannot be read" in visitor.text


def test_home_names_the_message_that_was_lost_and_blames_no_channel(box, sink):
    box.clock.now = now()  # the pages' clock
    shop = box.monitor(hook(sink), name="Shop")
    incident = box.open(shop)
    corrupt(box.app, DeliveryRow.value, box.rows()[0].id)
    box.turn(3)
    visitor = Visitor(box.app).let_in(make_person(box.app))
    home = visitor.open("/").text
    assert "A message was never sent. The people it was meant for do not know." in home
    assert re.search(rf"Shop ?\(incident {incident.id}\), to Webhook", home)
    assert "Not sent: its stored target cannot be read" in home
    assert "An alert channel does not work" not in home
    with box.app.app_context(), writing() as session:
        session.get_one(IncidentRow, incident.id).ended_at = now() - timedelta(days=2, hours=23)
    assert "was never sent" in visitor.open("/").text
    with box.app.app_context(), writing() as session:
        session.get_one(IncidentRow, incident.id).ended_at = now() - timedelta(days=3, hours=1)
    assert "was never sent" not in visitor.open("/").text


def test_an_incomplete_message_that_is_retried_fails_again_alone(box, sink):
    box.clock.now = now()  # the API's clock
    shop = box.monitor(hook(sink))
    box.tell(Event.CERTIFICATE_EXPIRING, shop, extra={"days_left": 3, "host": "shop.test"})
    id = box.rows()[0].id
    corrupt(box.app, DeliveryRow.facts, id, "missing keys")
    box.turn(60)
    api = Api(box.app.test_client(), make_key(box.app))
    assert api.data("POST", f"/deliveries/{id}/retry")["status"] == "pending"
    box.notice(shop)
    box.turn(3)
    assert [row.status for row in box.rows()] == ["failed", "delivered"]


def test_a_monitor_whose_alerts_cannot_be_read_hides_no_broken_channel(box, sink):
    """The notice on the dashboard reads the alerts of monitors to find channels still in use."""
    sink.replies["/hook"] = [Reply(410)]
    shop = box.monitor(hook(sink))
    box.notice(shop)
    box.turn(3)
    corrupt(box.app, DeliveryRow.value, box.rows()[0].id)
    corrupt(box.app, MonitorRow.alerts, shop.id)
    visitor = Visitor(box.app).let_in(make_person(box.app))
    assert "An alert channel does not work" in visitor.open("/").text


def test_a_webhook_secret_that_cannot_be_read_stops_webhooks_alone(box, sink):
    shop = box.monitor(hook(sink), ("slack", f"{sink.url}/slack"))
    box.notice(shop)
    box.turn(1)
    assert len(sink.to("/hook")) == 1
    with box.app.app_context():
        assert db.session.scalar(select(SettingRow.name).where(SettingRow.name == SETTING))
    corrupt(box.app, SettingRow.value, SETTING)
    incident = box.open(shop)
    box.turn(3)
    assert len(sink.to("/slack")) == 2
    assert len(sink.to("/hook")) == 1
    waiting = [row for row in box.rows() if row.incident_id == incident.id]
    assert [row.status for row in waiting] == ["pending", "delivered"]
    assert "Change the secret on the Settings page" in waiting[0].attempts[0]["answer"]

    visitor = Visitor(box.app).let_in(make_person(box.app))
    assert "The stored secret cannot be read." in visitor.open("/settings").text
    assert "Show secret" not in visitor.text
    id = waiting[0].id
    assert "Not sent Not sent: the stored webhook secret" in visitor.open(f"/deliveries/{id}").text
    assert "No webhooks are sent." in visitor.open("/").text
    visitor.open("/settings/webhook-secret/change")
    assert "signed with the new one only" in visitor.text
    assert "signed with both" not in visitor.text
    visitor.press("Change secret")
    assert "they reject messages until they have it" in visitor.text
    assert "The stored secret cannot be read." not in visitor.text
    visitor.press("Show secret")
    assert "Copy it now." in visitor.text
    assert "No webhooks are sent." not in visitor.open("/").text
    box.turn(10)
    assert len(sink.to("/hook")) == 2, "the waiting message goes out with the new secret"


def test_networks_that_cannot_be_read_close_what_they_opened_and_are_set_again(box, sink):
    box.configure(allow_networks=None)
    box.app.extensions["wakeful.settings"] = box.settings
    visitor = Visitor(box.app).let_in(make_person(box.app))
    visitor.open("/settings").press("Save", allow_networks="loopback")
    corrupt(box.app, SettingRow.value, "allow_networks")
    shop = box.monitor(hook(sink))
    box.notice(shop)
    box.turn(1)
    assert not sink.requests
    assert box.rows()[0].status == "failed", "refused by the policy, which names what to open"
    assert "The stored networks cannot be read." in visitor.open("/settings").text
    visitor.press("Save", allow_networks="loopback")
    assert "cannot be read" not in visitor.text
    box.notice(shop)
    box.turn(1)
    assert len(sink.requests) == 1


def test_networks_that_this_version_does_not_know_stop_no_alert(box, sink):
    """This happens after a downgrade: the text is whole, but not all of it is a network."""
    box.configure(allow_networks=None)
    shop = box.monitor(hook(sink))
    with box.app.app_context():
        store_setting(ALLOW_NETWORKS, "loopback", now())
    box.notice(shop)
    box.turn(1)
    with box.app.app_context():
        store_setting(ALLOW_NETWORKS, "loopback, moonbase", now())
    box.notice(shop)
    box.turn(1)
    assert len(sink.requests) == 2
