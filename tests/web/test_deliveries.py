"""The delivery log: each message, its target, the answer to it, and retries."""

from datetime import datetime, timedelta
from typing import Any

from flask import Flask

from app.alerts.lanes import Reason
from app.db import db
from app.db.tables import DeliveryRow
from app.records import Pair
from app.rules.channel_values import channel_label
from app.web.views.deliveries import REASONS, failed_channels
from tests.factories import make_delivery, make_incident, make_monitor, now
from tests.support.store import store_of
from tests.web.visitor import token

HOOK = "https://hooks.example.com/services/abcd1234"


def deliver(app: Flask, **fields: Any) -> int:
    """Five minutes ago."""
    return make_delivery(app, **{"at": now() - timedelta(minutes=5)} | fields)


def attempt(answer: str, at: datetime | None = None, *, ok: bool = False) -> dict[str, Any]:
    return {"at": (at or now()).isoformat(), "ok": ok, "answer": answer}


def test_every_attempt_stands_there_with_its_time_and_the_answer_of_the_service(app, viewer):
    monitor = make_monitor(app, name="Shop")
    incident = make_incident(app, monitor)
    at = now() - timedelta(minutes=3)
    busy = attempt("503 Service Unavailable: <b>busy</b>", at - timedelta(seconds=5))
    facts = {"sent": "Down: <b>Shop"}
    about = {"monitor_id": monitor.id, "incident_id": incident.id, "facts": facts}
    deliver(app, attempts=[busy, attempt("200 ok", at, ok=True)], **about)
    assert viewer.open("/deliveries").status == 200
    viewer.shows("Incident opened", "Shop", "Webhook", "2 attempts", "200 ok", "Delivered")
    assert "503 Service Unavailable: &lt;b&gt;busy" in viewer.page.text
    assert "<b>busy" not in viewer.page.text
    assert HOOK not in viewer.page.text
    assert at.strftime("%H:%M:%S") in viewer.text
    assert f'href="/monitors/{monitor.id}"' in viewer.page.text
    assert f'href="/incidents/{incident.id}"' in viewer.page.text
    viewer.open("/deliveries/1").shows("503 Service Unavailable", "What was sent Down: <b>Shop")
    assert "<b>busy" not in viewer.page.text
    assert viewer.open("/deliveries/77").status == 404


def test_filters_stand_in_the_address(app, viewer):
    shop, blog = make_monitor(app, name="Shop"), make_monitor(app, name="Blog")
    incident = make_incident(app, shop)
    deliver(app, monitor_id=shop.id, incident_id=incident.id, attempts=[attempt("one", ok=True)])
    deliver(app, monitor_id=blog.id, status="failed", reason="two", channel="email")
    deliver(app, monitor_id=blog.id, status="held", reason="three")
    for query, listed in (
        ("", {"one", "two", "three"}),
        (f"?monitor_id={blog.id}", {"two", "three"}),
        (f"?incident_id={incident.id}", {"one"}),
        ("?channel=email", {"two"}),
        ("?status=held", {"three"}),
        (f"?status=held&monitor_id={shop.id}", set()),
    ):
        viewer.open(f"/deliveries{query}")
        assert {
            word for word in ("one", "two", "three") if f"{word}</div>" in viewer.page.text
        } == (listed), query
    assert "Nothing found" in viewer.text
    viewer.open("/deliveries?status=held").press("Show", monitor_id=blog.id)
    assert "status=held" in viewer.page.request.url
    assert f"monitor_id={blog.id}" in viewer.page.request.url
    assert viewer.open("/deliveries?status=lost").status == 422


def test_what_was_held_says_why(app, viewer):
    assert set(REASONS) == set(Reason)
    deliver(app, status="held", reason=Reason.OUTAGE_NOT_DELIVERED, event="incident.resolved")
    viewer.open("/deliveries")
    assert "The outage could not be delivered, so its recovery was not sent." in viewer.text


def test_retry_sends_it_again_and_comes_back_to_the_same_list(app, editor):
    id = deliver(app, status="failed", reason="410 Gone", attempts=[attempt("410 Gone")])
    editor.open("/deliveries?status=failed").press(f"Retry now delivery {id}")
    assert "is being sent again" in editor.text
    assert editor.page.request.url.endswith("/deliveries?status=failed")
    with app.app_context():
        row = db.session.get(DeliveryRow, id)
        assert row.status == "pending"
        assert row.next_attempt_at is not None


def test_home_names_what_a_restore_holds_and_it_can_be_given_up(app, editor):
    id = deliver(app, status="held", reason=Reason.RESTORED)
    editor.open("/").shows("A message was never sent.", "A backup was restored, and it is older.")
    editor.open("/deliveries?status=held").press(f"Give up delivery {id}").shows("will not be sent")
    assert "never sent" not in editor.open("/").text


def test_who_only_looks_cannot_retry_and_what_arrived_needs_none(app, viewer, editor):
    deliver(app, status="failed", reason="no")
    arrived = deliver(app)
    assert "Retry now" not in viewer.open("/deliveries").text
    editor.open("/deliveries?status=delivered").hides("Retry now")
    answer = editor.client.post(f"/deliveries/{arrived}/retry", data=token(editor))
    assert answer.status_code == 409
    assert "This message was delivered already" in answer.text


def test_a_channel_that_gave_up_is_named_until_it_delivers_again_or_nobody_has_it(app):
    other = "https://other.example.com/services/zzzz9999"
    shop = make_monitor(app, alerts=[["webhook", HOOK], ["slack", other]])

    def broken() -> list[str]:
        with app.test_request_context("/"):
            return [
                f"{channel_label(delivery.channel)} {delivery.target} {delivery.reason}"
                for delivery in failed_channels()[0]
            ]

    def failed(hours: float, **fields: Any) -> int:
        at = now() - timedelta(hours=hours)
        tried = {"attempts": [attempt("404", at)], "reason": "404", "monitor_id": shop.id}
        return deliver(app, status="failed", at=at, **tried | fields)

    assert broken() == []
    failed(2, value="https://hooks.example.com/services/gone7777", lane="gone")
    assert broken() == [], "no monitor has this value any more"
    group = failed(50, channel="slack", value=other, lane="other", monitor_id=None)
    assert broken() == []
    deliver(app, status="held", lane="other", monitor_id=shop.id, covered_by=group)
    assert broken() == ["Slack ••••9999 404"], "a message for several, days ago: still broken"
    failed(1)
    failed(1)
    assert broken() == ["Webhook ••••1234 404", "Slack ••••9999 404"]
    deliver(app, at=now(), value=other, lane="other", channel="slack")
    assert broken() == ["Webhook ••••1234 404"]
    deliver(app, at=now())
    assert broken() == []


def test_the_notice_links_what_failed(app, viewer):
    shop = make_monitor(app, alerts=[["webhook", HOOK]])
    tried = {"reason": "410 Gone", "attempts": [attempt("410 Gone")], "monitor_id": shop.id}
    id = deliver(app, status="failed", **tried)
    with app.test_request_context("/"):
        page = app.jinja_env.get_or_select_template("deliveries/_failed.html")
        context: dict[str, Any] = {}
        app.update_template_context(context)
        text = page.render(context)
    assert "An alert channel does not work" in text
    assert f'href="/deliveries/{id}"' in text


def contact_of(app: Flask, name: str) -> str:
    """The sources of a delivery for a contact of this name."""
    fields = {"name": name, "channels": (Pair("webhook", HOOK),)}
    return f",{store_of(app).contacts.create(fields).id},"


def test_the_page_of_an_incident_says_for_whom_a_message_was_and_whether_it_arrived(app, viewer):
    monitor = make_monitor(app)
    about = {"monitor_id": monitor.id, "incident_id": make_incident(app, monitor).id}
    deliver(app, sources=contact_of(app, "Shop team"), **about)
    for status in ("pending", "failed", "held"):
        deliver(app, status=status, **about)
    text = viewer.open("/incidents/1").text
    assert "Delivered to ••••1234, for Shop team" in text
    for words in ("Not yet delivered to", "Not delivered to", "Held back from"):
        assert f"{words} ••••1234" in text


def test_the_page_of_a_contact_says_why_a_message_was_held(app, viewer):
    sources = contact_of(app, "Shop team")
    deliver(app, status="held", reason="burst", sources=sources)
    text = viewer.open(f"/contacts/{sources.strip(',')}").text
    assert "Many monitors changed at once, so one message covered all of them." in text


def test_a_message_that_is_in_the_digest_is_not_retried(app, editor):
    monitor = make_monitor(app)
    incident = make_incident(app, monitor)
    on_hold = {"monitor_id": monitor.id, "incident_id": incident.id, "status": "held"}
    waiting = deliver(
        app, **on_hold, reason="quiet hours", next_attempt_at=now() + timedelta(hours=1)
    )
    digest = deliver(app, event="incidents.digest")
    covered = deliver(app, **on_hold, reason="quiet hours", covered_by=digest)
    for id, offered in ((waiting, True), (covered, False)):
        assert ("Retry now" in editor.open(f"/deliveries/{id}").text) == offered
    editor.open("/deliveries?status=held").shows(f"Retry now delivery {waiting}")
    editor.hides(f"Retry now delivery {covered}")


def test_a_message_about_a_place_names_it(app, viewer):
    store_of(app).locations.create({"name": "oslo", "label": "Oslo, Norway"})
    for name in ("oslo", "gone"):
        place = {"id": 2, "name": name, "label": None}
        deliver(app, event="location.silent", facts={"extra": {"location": place}})
    deliver(app, event="location.online", facts={"extra": {"location": "damaged"}})
    viewer.open("/deliveries").shows("Place silent: Oslo, Norway", "Place silent: gone")
    assert 'href="/settings/locations">Oslo, Norway' in viewer.page.text
    assert "Place Oslo, Norway To" in viewer.open("/deliveries/1").text
    assert viewer.open("/deliveries/3").status == 200
