"""Alerts on the dashboard: a test with the service's real answer, quiet hours, reminders, and the
notice about a channel that does not work.
"""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from app.db import writing
from app.db.tables import IncidentRow
from app.engine import recorder
from app.web.views import channel_tests
from tests.alerts.sinks import HttpSink, Reply
from tests.factories import make_monitor
from tests.web.conftest import PHONE

SECRET = "T0SECRETSECRET"


@pytest.fixture(autouse=True)
def replies(sink: HttpSink) -> None:
    sink.replies[f"/{SECRET}/gone"] = [Reply(404, f"no_service at /{SECRET}/gone")]
    sink.replies[f"/{SECRET}/busy"] = [Reply(503, "busy")]


def typed(*alerts: tuple[str, str]) -> dict[str, str]:
    fields = {}
    for place, (key, value) in enumerate(alerts):
        fields |= {f"alerts[{place}][key]": key, f"alerts[{place}][value]": value}
    return fields


def test_what_is_typed_is_tested_before_it_is_saved(sink, worker, editor):
    editor.open("/monitors/new").press("Add a channel").press("Add a channel")
    alerts = typed(
        ("slack", f"{sink.url}/{SECRET}/fine"),
        ("webhook", f"{sink.url}/{SECRET}/gone"),
        ("email", "no address"),
    )
    editor.press("Send test alert", "alerts[0]", name="Half typed", **alerts)
    editor.shows("Delivered. HTTP 200: ok", status=200)
    assert "not an email address" not in editor.text, "it was not asked for"
    assert sink.requests[0].json["text"].startswith("*\N{LARGE BLUE CIRCLE} Test")
    assert 'value="Half typed"' in editor.page.text

    editor.press("Send test alert", "alerts[1]")
    assert "Not delivered. HTTP 404: no_service at ••••" in editor.text
    assert "retry" not in editor.text
    editor.press("Send test alert", "alerts[2]").shows("not an email address", status=422)
    editor.press("Send test alert to all")
    assert editor.status == 422, "the address is still no address"
    editor.shows("Delivered. HTTP 200: ok", "Not delivered. HTTP 404")
    assert [request.path for request in sink.requests].count(f"/{SECRET}/fine") == 2

    editor.open("/deliveries").shows("Test")
    assert SECRET not in editor.page.text


def test_a_stored_value_is_tested_by_its_mask_and_nothing_else_is_saved(app, sink, worker, editor):
    shop = make_monitor(app, alerts=[["webhook", f"{sink.url}/{SECRET}/busy"]])
    editor.open(f"/monitors/{shop.id}/edit").press("Send test alert", name="Other")
    assert "Not delivered. HTTP 503: busy" in editor.text
    assert SECRET not in editor.page.text
    assert sink.requests[0].json["data"]["monitor"] == {
        "id": shop.id, "name": "Shop", "url": shop.url,
    }  # fmt: skip
    assert "Other" not in editor.open("/monitors").text
    editor.open(f"/monitors/{shop.id}/clone").press("Send test alert")
    assert "Not delivered. HTTP 503" in editor.text


def test_each_alert_of_a_monitors_page_is_tested_and_its_answer_stands_beside_it(
    app, sink, worker, editor
):
    fine, gone = f"{sink.url}/{SECRET}/fine", f"{sink.url}/{SECRET}/gone"
    shop = make_monitor(app, alerts=[["slack", fine], ["webhook", gone]])
    button = "Send test alert to Webhook ••••gone"
    assert editor.open(f"/monitors/{shop.id}").press(button).path == f"/monitors/{shop.id}"
    assert "Not delivered. HTTP 404" in editor.text
    assert [request.path for request in sink.requests] == [f"/{SECRET}/gone"]
    editor.press("Send test alert to all")
    editor.shows("Delivered. HTTP 200: ok", "Not delivered. HTTP 404")
    assert SECRET not in editor.page.text
    other = make_monitor(app, name="Blog")
    for ids in ("1,2", "999,x,-1,٣", "1" * 5000):
        assert editor.open(f"/monitors/{other.id}?test_alerts={ids}").status == 200
        assert "Not delivered" not in editor.text, "these were tests of another monitor"


def test_a_service_that_takes_its_time_is_not_waited_for_for_ever(app, editor, viewer, monkeypatch):
    monkeypatch.setattr(channel_tests, "WAIT_SECONDS", 0.1)
    shop = make_monitor(app, alerts=[["webhook", "http://127.0.0.1:9/"]])
    editor.open(f"/monitors/{shop.id}").press("Send test alert to Webhook ••••1:9/")
    assert "No answer yet. The delivery log will show it." in editor.text
    assert "Send test alert" not in viewer.open(f"/monitors/{shop.id}").text
    editor.open("/monitors/new").press("Send test alert").shows("Add a channel first")


def test_quiet_hours_and_reminders_are_typed_into_the_form_and_come_as_messages(
    app, sink, worker, editor
):
    present = datetime.now(UTC)
    around = [f"{present + timedelta(hours=hours):%H:%M}" for hours in (-2, 2)]
    quiet = {"quiet_start": around[0], "quiet_end": around[1], "quiet_zone": "UTC"}
    hook = typed(("webhook", f"{sink.url}/hook"))
    editor.open("/monitors/new").press(
        "Save", url="http://127.0.0.1:9/", name="Shop", remind_after="10", **quiet, **hook
    )
    editor.shows(f"{around[0]} to {around[1]}, UTC", "every 10 min while it is down")
    editor.open("/incidents/new?monitor_id=1").press("Report an incident", cause="It burns")
    assert "It was due in quiet hours. One message at their end covers it." in editor.text
    assert "Held" in editor.open("/deliveries").text
    assert not sink.requests

    editor.open("/monitors/1/edit").press("Save", quiet_start="", quiet_end="").hides("Quiet hours")
    sink.wait_for(lambda: len(sink.requests) == 1, 60)
    with app.app_context():
        with writing() as session:  # eleven minutes go by
            incident_row = session.get_one(IncidentRow, 1)
            assert incident_row.reminded_at is not None, "the digest told of it"
            incident_row.reminded_at -= timedelta(minutes=11)
        assert recorder.remind(datetime.now(UTC)) == 1
    sink.wait_for(lambda: len(sink.requests) == 2, 60)
    assert [request.json["type"] for request in sink.requests] == [
        "incidents.digest",
        "incident.reminder",
    ]
    assert "It burns" in str(sink.requests[1].json)


def test_the_notice_of_a_channel_goes_when_a_test_arrives_there(app, sink, worker, editor):
    sink.replies["/hook"] = [Reply(410, "gone"), Reply()]
    shop = make_monitor(app, alerts=[["webhook", f"{sink.url}/hook"]])
    button = "Send test alert to Webhook ••••hook"
    editor.open(f"/monitors/{shop.id}").press(button)
    assert "An alert channel does not work" in editor.open("/").text
    assert "HTTP 410: gone" in editor.text
    editor.open(f"/monitors/{shop.id}").press(button)
    assert "An alert channel does not work" not in editor.open("/").text


@PHONE
@pytest.mark.browser
def test_with_scripts_the_answer_comes_into_its_row(sink: HttpSink, worker: None, visit) -> None:
    page = visit("/monitors/new")
    page.get_by_label("Alerts, row 1: Channel").select_option("webhook")
    page.get_by_label("Alerts, row 1: Webhook URL").fill(f"{sink.url}/{SECRET}/gone")
    page.get_by_role("button", name="Add a channel").click()
    page.get_by_label("Alerts, row 2: Channel").select_option("discord")
    page.get_by_label("Alerts, row 2: Webhook URL").fill(f"{sink.url}/{SECRET}/fine")
    page.get_by_role("button", name="Alerts, row 2: send test alert").click()
    expect(page.get_by_text("Delivered. HTTP 200")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Alerts, row 1: send test alert").click()
    expect(page.get_by_text("Not delivered. HTTP 404")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("Delivered. HTTP 200")).to_be_visible()
    url = page.get_by_label("Alerts, row 1: Webhook URL")
    expect(url).to_have_value(f"{sink.url}/{SECRET}/gone")
    assert page.url.endswith("/monitors/new")
    url.fill("nonsense")
    page.get_by_role("button", name="Alerts, row 1: send test alert").click()
    expect(page.locator(".pair .fault").first).to_be_visible()
    assert page.url.endswith("/monitors/new")
    page.get_by_role("button", name="Send test alert to all").click()
    sink.wait_for(lambda: len(sink.to(f"/{SECRET}/fine")) == 2, 60)
    expect(page.locator("[aria-busy]")).to_have_count(0)
    assert len(sink.to(f"/{SECRET}/fine")) == 2, "it was sent once, though the other row is wrong"
    page.get_by_label("Alerts, row 1: Webhook URL").fill(f"{sink.url}/{SECRET}/fine")
    page.get_by_role("button", name="Alerts, row 1: send test alert").click()
    expect(page.locator(".pair .fault")).to_have_count(0)


def test_the_notes_of_a_monitor_stand_wherever_somebody_looks_when_it_fails(
    app, sink, worker, editor, stranger
):
    hook, runbook = typed(("webhook", f"{sink.url}/hook")), "https://wiki.example/shop?a=1"
    notes = f"Restart it: {runbook}.\n<b>Ask Ben.</b>"
    editor.open("/monitors/new").press("Save", url="http://127.0.0.1:9/", notes=notes, **hook)
    link = f'<a href="{runbook}" rel="nofollow noopener">{runbook}</a>.\n&lt;b&gt;Ask Ben.'
    assert link in editor.page.text
    editor.open("/incidents/new?monitor_id=1").press("Report an incident", cause="It burns")
    assert link in editor.page.text
    sink.wait_for(lambda: sink.requests, 60)
    data = sink.requests[0].json["data"]
    assert data["monitor"]["notes"] == f"Restart it: {runbook}. · <b>Ask Ben.</b>"
    assert link in stranger.open(urlsplit(data["incident"]["acknowledge_link"]).path).page.text
    assert "Ask Ben" not in editor.open("/monitors").text
    editor.open("/monitors/1/edit").press("Save", notes="").hides("Notes Restart")
