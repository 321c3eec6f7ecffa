"""Deliveries, maintenance, the wall and reports over another Wakeful's API."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from flask import Flask

from app import create_app
from app.config import Settings
from app.db import db, journal, writing
from app.db.journal import keep, known_numbers, row_of
from app.db.tables import DeliveryRow, IncidentRow, MaintenanceWindowRow, MonitorRow
from app.records import (
    ComponentName,
    Group,
    Location,
    MonitorQuery,
    PageQuery,
    Pair,
    Result,
    Verdict,
)
from app.rules.time import iso
from app.stores import current_access, current_store
from tests.factories import make_incident, make_key, make_monitor, make_person, now
from tests.faults.broken import corrupt
from tests.support.loopback import serving
from tests.web.test_remote_faults import looking
from tests.web.visitor import Visitor

pytestmark = pytest.mark.sqlite


@pytest.fixture
def remote(
    app: Flask, settings: Settings, sqlite_template: Path, tmp_path: Path
) -> Iterator[Visitor]:
    """An editor's browser on a dashboard whose records live behind ``app``'s API."""
    own = tmp_path / "dashboard.db"
    shutil.copyfile(sqlite_template, own)
    with serving(app) as url:
        dashboard = create_app(
            replace(
                settings,
                database_url=f"sqlite:///{own}",
                store="remote",
                remotes=((url, make_key(app)),),
            )
        )
        dashboard.testing = True
        person = make_person(dashboard, "editor")
        yield Visitor(dashboard).log_in(person.email)
        with dashboard.app_context():
            db.engine.dispose()


def test_pages_say_that_an_incident_was_found_late(app, remote):
    """On both sides, where it is listed and on its own page."""
    midnight = now().replace(hour=0, minute=0, second=0) - timedelta(days=1)
    monitor = make_monitor(app, created_at=midnight, updated_at=midnight)
    began = midnight + timedelta(hours=10, minutes=4)
    ended = began + timedelta(minutes=37)
    seen = {"found_late": True, "seen_by": ["Oslo"]}
    incident = make_incident(app, monitor, started_at=began, ended_at=ended, **seen)
    here = Visitor(app).log_in(make_person(app, "viewer").email)
    for visitor in (here, remote):
        for page in (
            "/incidents",
            f"/incidents/{incident.id}",
            f"/monitors/{monitor.id}",
            f"/monitors/{monitor.id}/days/{began:%Y-%m-%d}",
        ):
            shown = visitor.open(page).text
            assert "Found by results that came late. Nobody was alerted." in shown, page
            assert "Oslo" in shown


def test_the_delivery_log_is_the_remote_servers(app, remote):
    monitor = make_monitor(app, name="Shop")
    at = now() - timedelta(minutes=5)
    with app.app_context(), writing() as session:
        session.add(
            DeliveryRow(
                message_id="msg_1", event="incident.opened", monitor_id=monitor.id,
                channel="webhook", value="https://hooks.example.com/abcd1234", lane="l", facts={},
                status="failed", reason="410 Gone", created_at=at,
                attempts=[{"at": at.isoformat(), "ok": False, "answer": "410 Gone"}],
            )
        )  # fmt: skip
    remote.open("/deliveries")
    assert "Shop" in remote.text
    assert "410 Gone" in remote.text
    assert "An alert channel does not work" in remote.open("/").text
    remote.open("/deliveries").press("Retry now delivery 1")
    with app.app_context():
        assert db.session.get(DeliveryRow, 1).status == "pending"


def test_home_names_the_remote_servers_monitors_that_would_alert_nobody(app, remote):
    shop = make_monitor(app, name="Shop", alerts=[["email", "ops@example.test"]])
    corrupt(app, MonitorRow.alerts, shop.id)
    assert "Nobody would be alerted about Shop" in remote.open("/").text
    remote.open(f"/monitors/{shop.id}/edit").press("Save", remove_unreadable=True)
    assert "Nobody would be alerted" not in remote.open("/").text


def test_maintenance_is_planned_on_the_remote_server(app, remote):
    shop = make_monitor(app, name="Shop")
    remote.open("/maintenance/new").press(
        "Save", name="Works", start_at="2027-07-01T22:00", end_at="2027-07-02T01:30",
        often="cron", repeat="0 3 * * 1", scope="chosen", monitors=shop.id,
    )  # fmt: skip
    assert "Works saved." in remote.text
    with app.app_context():
        window = current_store().windows.list(PageQuery()).items[0]
    assert window.start_at == datetime(2027, 7, 1, 22, tzinfo=UTC)
    assert (window.repeat, window.monitors) == ("0 3 * * 1", (shop.id,))
    remote.open("/maintenance/1/edit").press("Save", scope="all", often="daily")
    assert "All monitors" in remote.text
    assert "Every day" in remote.text
    assert "Works" in remote.open("/maintenance?month=2027-07").text
    remote.open("/maintenance/1/delete").press("Delete this window")
    with app.app_context():
        assert db.session.query(MaintenanceWindowRow).count() == 0


def test_contacts_are_those_of_the_remote_server(app, remote):
    typed = {"channels[0][key]": "email", "channels[0][value]": "shop@example.com"}
    remote.open("/contacts/new").press("Save", name="Shop team", default="1", **typed)
    assert "Shop team saved." in remote.text
    remote.open("/monitors/new").press("Save", url="https://shop.example", name="Shop")
    with app.app_context():
        monitor = current_store().monitors.list(MonitorQuery()).items[0]
        assert monitor.alerts == (Pair("contact", "Shop team"),)
    assert "Shop" in remote.open("/contacts/1").text
    remote.open("/contacts/1/delete").press("Delete contact", force=True)
    assert "Shop team deleted." in remote.text
    with app.app_context():
        assert current_store().monitors.get(monitor.id).alerts == ()


def test_the_wall_sorts_what_the_server_sends(app, remote):
    make_monitor(app, name="Alpha", state={"verdict": "up"})
    since = now() - timedelta(hours=3)
    state = {"verdict": "down", "cause": "No answer came", "status_since": since}
    monitor = make_monitor(app, name="Beta", state=state)
    text = remote.open("/wall").text
    assert text.index("1 down") < text.index("Beta") < text.index("Alpha")
    assert "No answer came" in text
    text = remote.open(f"/monitors/{monitor.id}").text
    assert "Down for 3 h No answer came" in text


def test_a_report_is_the_remote_servers(app, remote):
    monitor = make_monitor(app, name="Shop")
    started = now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    make_incident(app, monitor, started_at=started, ended_at=started + timedelta(seconds=1))
    text = remote.open(f"/reports?month={started:%Y-%m}").text
    assert "Shop" in text
    assert remote.open(f"/reports/csv?month={started:%Y-%m}").page.text.count("Shop") == 1
    assert "Reports" in remote.open("/").text
    assert remote.open(f"/monitors/{monitor.id}/days/{started:%Y-%m-%d}").status == 200


def test_a_chosen_time_and_a_day_are_the_remote_servers(app, remote):
    monitor = make_monitor(app, name="Shop", created_at=now() - timedelta(days=3))
    start = now() - timedelta(days=1)
    found = {"verdict": Verdict.UP, "monitor_id": monitor.id, "response_time": 77}
    with app.app_context(), writing():
        results = [Result(start + timedelta(minutes=place), **found) for place in range(5)]
        known_numbers(results)
        keep([row_of(one, Location.DEFAULT) for one in results])
    span = f"from={iso(start)}&to={iso(start + timedelta(hours=1))}"
    text = remote.open(f"/monitors/{monitor.id}?{span}").text
    assert "Response time: 77 ms on average" in text
    assert "Zoom out" in text
    assert remote.open(f"/monitors/{monitor.id}?from=x&to=y").status == 422
    text = remote.open(f"/monitors/{monitor.id}/days/{start:%Y-%m-%d}").text
    assert "None: Up all day" in text
    assert "All checks" in text


def test_monthly_reports_are_sent_by_the_remote_server(app, remote):
    make_monitor(app, name="Shop", tags="\nshop\n")
    with app.app_context():
        boss = (Pair("email", "boss@shop.example"),)
        current_store().contacts.create({"name": "Boss", "channels": boss})
    remote.open("/reports?tag=shop")
    assert "Availability of 1 monitor tagged shop" in remote.text
    remote.press("Send monthly", contact="Boss")
    assert "Boss gets this report by email" in remote.text
    with app.app_context():
        (mail,) = current_store().report_mails.list(PageQuery()).items
        assert (mail.contact, mail.tag) == ("Boss", "shop")


def test_an_incident_is_classified_on_the_remote_server(app, remote):
    monitor = make_monitor(app, name="Shop")
    started = now() - timedelta(hours=2)
    incident = make_incident(
        app, monitor, started_at=started, ended_at=started + timedelta(hours=1)
    )
    page = remote.open(f"/incidents/{incident.id}").press("Mark as false alarm")
    assert "The figures are corrected." in page.text
    with app.app_context():
        assert db.session.get(IncidentRow, incident.id).classification == "false_alarm"


def test_monitors_are_counted_and_filtered_as_over_the_local_store(app, remote):
    make_monitor(app, name="Shop", tags="\nshop\n", paused=True)
    make_monitor(app, name="Blog", tags="\nwords\n")
    assert "2 monitors" in remote.open("/").text
    text = remote.open("/monitors?state=paused").text
    assert "Shop" in text
    assert "Blog" not in text
    text = remote.open("/monitors?tag=words").text
    assert "Blog" in text
    assert "Shop" not in text
    assert "24 hours" in text, "with its bar"
    assert remote.open("/monitors?state=odd").status == 422
    assert "Paused" in remote.open("/wall").text


def test_status_pages_are_made_and_edited_on_the_remote_server(app, remote):
    shop = make_monitor(app, name="Shop", tags="\nprod\n").id
    blog = make_monitor(app, name="Blog", tags="\nprod\n").id
    assert "Status pages" in remote.open("/").text
    remote.open("/status-pages/new").press("Search", name="Our shop", find="sho")
    remote.press("Add selected", pick=shop)
    remote.press("Add all with this tag", tag="prod")
    remote.press("Add heading", heading="Words")
    remote.press("Save", "", **{f"own[{blog}]": "Stories"})
    assert "Our shop saved." in remote.text
    with app.app_context():
        page = current_store().status_pages.list(PageQuery()).items[0]
    assert (page.name, page.monitors) == ("Our shop", (shop, blog))
    assert page.groups == (Group("Words"),)
    assert page.names == (ComponentName(blog, "Stories"),)
    assert "http://wakeful.test/status/our-shop" in remote.open("/status-pages").text
    remote.open("/status-pages/1/edit").press("Save", "", slug="", description="How we are")
    assert "Our shop saved." in remote.text
    remote.open("/status-pages/1/edit").press("Save", "", slug="Not good")
    assert remote.status == 422
    assert "Use lower-case letters" in remote.text
    assert "Nobody has subscribed yet" in remote.open("/status-pages/1/subscribers").text
    assert remote.open("/status-pages/1/subscribers.csv").page.text.startswith("channel,target")
    remote.open("/status-pages/1/delete").press("Delete this status page")
    with app.app_context():
        assert not current_store().status_pages.list(PageQuery()).items


def test_posts_are_written_on_the_remote_server(app, remote):
    monitor = make_monitor(app, name="Shop")
    incident = make_incident(app, monitor, cause_code="connection_refused")
    with app.app_context():
        current_store().status_pages.create({"name": "Our shop", "monitors": (monitor.id,)})
    remote.open("/status-pages/templates/new").press("Save", name="Slow", title="T", body="B")
    assert "Slow" in remote.open("/status-pages/1/posts/new").text
    remote.open("/status-pages/templates/1/edit").press("Save", name="Very slow")
    remote.open("/status-pages/templates/1/delete").press("Delete this template")
    assert "Very slow deleted." in remote.text
    assert "Post on a status page" in remote.open(f"/incidents/{incident.id}").text
    remote.open(f"/status-pages/1/posts/new?incident_id={incident.id}").press("Publish")
    remote.open("/status-pages/1/posts/1").press("Publish update", body="It was the disk.")
    remote.open("/status-pages/1/posts/1/edit").press("Save", title="The shop is away")
    remote.open("/status-pages/1/posts/1/updates/1").press("Save", body="We look at it.")
    with app.app_context():
        post = current_store().posts.get(1, 1)
    assert (post.title, post.state, post.incident_id) == (
        "The shop is away", "identified", incident.id,
    )  # fmt: skip
    assert [one.body for one in post.updates] == ["We look at it.", "It was the disk."]
    remote.open("/status-pages/1/posts/1/delete").press("Delete this post")
    assert "No posts yet" in remote.open("/status-pages/1").text


def test_an_import_creates_monitors_on_the_remote_server(app, remote):
    make_monitor(app, name="Old shop", url="https://old.example.com")
    remote.open("/contacts/new").press(
        "Save", name="Ops", **{"channels[0][key]": "email", "channels[0][value]": "ops@example.org"}
    )
    lines = "old.example.com\nShop, shop.example.com, prod, Ops\nBlog, blog.example.com, , Nobody"
    remote.open("/monitors/import").press("Preview", urls=lines)
    assert "Duplicate Already monitored as Old shop." in remote.text
    assert 'There is no contact "Nobody".' in remote.text
    assert "only among the first" not in remote.text, "there are no others"
    remote.press("Create 1 monitor")
    with app.app_context():
        made = current_store().monitors.get(2)
    assert (made.name, made.tags, made.alerts) == ("Shop", ("prod",), (Pair("contact", "Ops"),))
    backup = Path(__file__).parents[1] / "imports" / "samples" / "kuma-backup.json"
    form, _ = remote.open("/monitors/import").form_with("Preview")
    with backup.open("rb") as file:
        page = remote.client.post(form.action, data={**dict(form.values), "file": (file, "kuma")})
    remote._take(page)
    remote.press("Create 4 monitors")
    assert "4 monitors created" in remote.text
    with app.app_context():
        found = current_store().monitors.list(MonitorQuery()).items
    assert {one.name: one.paused for one in found if one.id > 2} == {
        "Shop": False, "Front page": False, "Database": True, "No errors": False
    }  # fmt: skip


def test_the_first_use_is_as_over_the_local_store(app, remote):
    hook = "https://hooks.slack.com/services/T0/B0/abcd1234"
    for number in range(2):
        alerts = [["slack", hook]]
        make_monitor(app, name=f"Shop {number}", url=f"https://127.0.0.1:9/{number}", alerts=alerts)
    row = {"alerts[0][key]": "slack", "alerts[0][value]": hook}
    assert "Email (not set up)" in remote.open("/monitors/new").text
    remote.press("Save", url="127.0.0.1:9/0", ssl_alert_days="auto", **row)
    assert "Shop 0 already checks this URL." in remote.text
    remote.press("Create anyway")
    assert "alert when a third of its lifetime remains" in remote.text
    assert "3 monitors use this Slack webhook. Create a contact from it" in remote.text
    link = next(part for part in remote.page.text.split('"') if "/from-channel?" in part)
    remote.open(link.replace("&amp;", "&")).press("Create contact", name="Shop team")
    assert "Shop team created. 3 monitors use it in place of the channel." in remote.text
    with app.app_context():
        monitors = current_store().monitors.list(MonitorQuery()).items
    assert [one.alerts for one in monitors] == [(Pair("contact", "Shop team"),)] * 3
    assert [one.ssl_alert_days for one in monitors] == ["auto", None, None]


def test_lists_windows_by_tag_and_links_to_the_wall_work_over_the_remote_server(app, remote):
    make_monitor(app, name="Alpha", tags="\nprod\n", state={"verdict": "up"})
    make_monitor(app, name="Zeta", state={"verdict": "down"})
    page = remote.open("/monitors").page.text
    assert page.index(">Zeta</a>") < page.index(">Alpha</a>")
    assert 'All <span class="faint num">1</span>' in remote.open("/monitors?tag=prod").page.text
    remote.open("/maintenance/new").press("Save", name="Works", scope="chosen", tags="prod")
    with app.app_context():
        assert current_store().windows.get(1).tags == ("prod",)
    assert "Works" in remote.open("/monitors/1").text
    dashboard = remote.client.application
    with dashboard.app_context():
        name = dashboard.extensions["wakeful.store"].names[0]
        access = current_access()
        _, token = access.wall_links.create("Lobby", "UTC", tag="prod", server=name)
        _, gone = access.wall_links.create("Old", "UTC", server="left.example.com")
    stranger = Visitor(dashboard)
    text = stranger.open(f"/screen/{token}").text
    assert "Alpha" in text
    assert "Zeta" not in text
    assert stranger.open(f"/screen/{gone}").status == 404


def test_a_dashboard_with_a_key_of_a_tag_shows_its_monitors_and_leaves_out_the_rest(
    app: Flask, settings: Settings, sqlite_template: Path, tmp_path: Path
) -> None:
    shop = make_monitor(app, name="Shop", tags="\nprod\n", state={"verdict": "down"})
    make_monitor(app, name="Other")
    incident = make_incident(app, shop)
    key = make_key(app, tag="prod")
    for editor in looking(app, key, settings, sqlite_template, tmp_path):
        for path in ("/", "/wall", "/monitors", "/monitors/new", f"/monitors/{shop.id}",
                     f"/monitors/{shop.id}/edit", f"/monitors/{shop.id}/checks", "/jump",
                     f"/monitors/{shop.id}/days/{now():%Y-%m-%d}", "/deliveries", "/incidents",
                     f"/incidents/{incident.id}", "/monitors/import"):  # fmt: skip
            assert editor.open(path).status == 200, path
            assert "Other" not in editor.text.replace("Others", ""), path
        editor.open("/monitors/new").press("Save", url="http://a.test/", name="New", tags="prod")
        assert "New" in editor.text
        places = editor.open("/jump").page.text
        for path in ("/contacts", "/status-pages", "/markers", "/maintenance", "/reports"):
            assert f'href="{path}"' not in places, path
            assert editor.open(path).status == 403, path
            assert "bound to the tag prod" in editor.text


def test_the_page_that_deletes_a_place_names_the_remote_servers_monitors(app, remote):
    make_monitor(app, name="Elsewhere")
    with app.app_context():
        place = journal.location_id("oslo")
    shop = make_monitor(app, places=[place])
    remote.open(f"/settings/locations/{place}/delete")
    assert "Monitors are checked from this place." in remote.text
    assert f"/monitors/{shop.id}/edit" in remote.page.text
    assert "Elsewhere" not in remote.text
