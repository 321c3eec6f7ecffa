"""The dashboard over another Wakeful's API. The contract of the stores holds what each operation
does there; here the pages reach it: stories of what is written, and one of what is shown.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.db import db, journal
from app.db.tables import DeliveryRow, IncidentRow, MonitorRow
from app.records import (
    ComponentName,
    Group,
    MarkerQuery,
    MonitorQuery,
    PageQuery,
    Pair,
    PostQuery,
    Result,
    Verdict,
)
from app.rules.time import iso
from app.stores import current_access
from tests.factories import (
    keep_results,
    make_delivery,
    make_incident,
    make_key,
    make_monitor,
    make_person,
    now,
)
from tests.faults.broken import corrupt
from tests.support.store import store_of
from tests.web.visitor import Visitor

BACKUP = Path(__file__).parents[1] / "imports" / "samples" / "kuma-backup.json"


def test_contacts_monitors_windows_and_imports_are_written_on_the_remote_server(app, remote):
    store = store_of(app)
    typed = {"channels[0][key]": "email", "channels[0][value]": "shop@example.com"}
    remote.open("/contacts/new").press("Save", name="Shop team", default="1", **typed)
    assert "Shop team saved." in remote.text
    remote.open("/monitors/new").press("Save", url="https://shop.example", name="Shop", tags="prod")
    (shop,) = store.monitors.list(MonitorQuery()).items
    assert shop.alerts == (Pair("contact", "Shop team"),)
    remote.open("/reports").press("Send monthly", contact="Shop team")
    assert "Shop team gets this report by email" in remote.text
    (mail,) = store.report_mails.list(PageQuery()).items
    assert (mail.contact, mail.tag) == ("Shop team", None)

    remote.open("/maintenance/new").press(
        "Save", name="Works", start_at="2027-07-01T22:00", end_at="2027-07-02T01:30",
        often="cron", repeat="0 3 * * 1", scope="chosen", monitors=shop.id,
    )  # fmt: skip
    window = store.windows.get(1)
    assert window.start_at == datetime(2027, 7, 1, 22, tzinfo=UTC)
    assert (window.repeat, window.monitors) == ("0 3 * * 1", (shop.id,))
    remote.open("/maintenance/1/edit").press("Save", scope="chosen", tags="prod", monitors=[])
    assert store.windows.get(1).tags == ("prod",)
    assert "Works" in remote.open("/maintenance?month=2027-07").text
    remote.open("/maintenance/1/delete").press("Delete this window")
    assert not store.windows.list(PageQuery()).items

    lines = "shop.example\nNew, new.example.com, prod, Shop team"
    remote.open("/monitors/import").press("Preview", urls=lines)
    remote.shows("Duplicate Already monitored as Shop.")
    assert "only among the first" not in remote.text, "there are no others"
    remote.press("Create 1 monitor")
    assert store.monitors.get(2).tags == ("prod",)
    form, _ = remote.open("/monitors/import").form_with("Preview")
    with BACKUP.open("rb") as file:
        page = remote.client.post(form.action, data={**dict(form.values), "file": (file, "kuma")})
    remote._take(page)
    remote.press("Create 5 monitors").shows("5 monitors created")
    assert sum(monitor.paused for monitor in store.monitors.list(MonitorQuery()).items) == 1
    remote.open("/contacts/1/delete").press("Delete contact", force=True)
    assert store.monitors.get(shop.id).alerts == ()


def test_status_pages_and_posts_are_written_on_the_remote_server(app, remote):
    store = store_of(app)
    monitor = make_monitor(app, name="Shop", tags="\nprod\n")
    shop, blog = monitor.id, make_monitor(app, name="Blog", tags="\nprod\n").id
    started = now() - timedelta(hours=2)
    incident = make_incident(
        app, monitor, cause_code="connection_refused", started_at=started, ended_at=now()
    ).id
    remote.open("/status-pages/new").press("Search", name="Our shop", find="sho")
    remote.press("Add selected", pick=shop).press("Add all with this tag", tag="prod")
    remote.press("Add heading", heading="Words").press("Save", "", **{f"own[{blog}]": "Stories"})
    page = store.status_pages.get(1)
    assert (page.name, page.monitors) == ("Our shop", (shop, blog))
    assert (page.groups, page.names) == ((Group("Words"),), (ComponentName(blog, "Stories"),))
    assert "http://wakeful.test/status/our-shop" in remote.open("/status-pages").text
    remote.open("/status-pages/1/edit").press("Save", "", slug="Not good")
    assert (remote.status, "Use lower-case letters" in remote.text) == (422, True)
    assert "Nobody has subscribed yet" in remote.open("/status-pages/1/subscribers").text
    assert remote.open("/status-pages/1/subscribers.csv").page.text.startswith("channel,target")

    remote.open("/status-pages/templates/new").press("Save", name="Slow", title="T", body="B")
    assert "Slow" in remote.open("/status-pages/1/posts/new").text
    remote.open("/status-pages/templates/1/delete").press("Delete this template")
    assert "Post on a status page" in remote.open(f"/incidents/{incident}").text
    remote.press("Mark as false alarm")
    with app.app_context():
        assert db.session.get(IncidentRow, incident).classification == "false_alarm"
    remote.open(f"/status-pages/1/posts/new?incident_id={incident}").press("Publish")
    remote.open("/status-pages/1/posts/1").press("Publish update", body="It was the disk.")
    remote.open("/status-pages/1/posts/1/edit").press("Save", title="The shop is away")
    remote.open("/status-pages/1/posts/1/updates/1").press("Save", body="We look at it.")
    post = store.posts.get(1, 1)
    assert (post.title, post.incident_id) == ("The shop is away", incident)
    assert [update.body for update in post.updates] == ["We look at it.", "It was the disk."]
    remote.open("/status-pages/1/posts/1/delete").press("Delete this post")
    assert not store.posts.list(PostQuery(1)).items
    remote.open("/status-pages/1/delete").press("Delete this status page")
    assert not store.status_pages.list(PageQuery()).items


def test_pages_say_that_an_incident_was_found_late(app, remote):
    """On both sides, where it is listed and on its own page."""
    midnight = now().replace(hour=0, minute=0, second=0) - timedelta(days=1)
    monitor = make_monitor(app, created_at=midnight, updated_at=midnight)
    began = midnight + timedelta(hours=10, minutes=4)
    ended = began + timedelta(minutes=37)
    late = {"found_late": True, "seen_by": ["Oslo"]}
    incident = make_incident(app, monitor, started_at=began, ended_at=ended, **late)
    here = Visitor(app).let_in(make_person(app, "viewer"))
    for visitor in (here, remote):
        for page in (
            "/incidents",
            f"/incidents/{incident.id}",
            f"/monitors/{monitor.id}",
            f"/monitors/{monitor.id}/days/{began:%Y-%m-%d}",
        ):
            shown = visitor.open(page).text
            assert "Found by results that came late. Nobody was alerted." in shown, page
            assert "Oslo" in shown, page


def test_what_pages_show_is_the_remote_servers(app, remote):
    with app.app_context():
        place = journal.place_id("oslo")
    since = now() - timedelta(hours=3)
    state = {"verdict": "down", "cause": "No answer came", "status_since": since}
    created = {"created_at": now() - timedelta(days=3)}
    shop = make_monitor(app, name="Shop", state=state, places=[place], **created).id
    blog = make_monitor(app, name="Blog", tags="\nprod\n", state={"verdict": "up"})
    make_monitor(app, name="Zeta", paused=True)
    make_delivery(app, monitor_id=shop, status="failed", reason="410 Gone")
    assert "410 Gone" in remote.open("/deliveries").text
    assert "An alert channel does not work" in remote.open("/").text
    assert "3 monitors" in remote.text
    remote.open("/deliveries").press("Retry now delivery 1")
    with app.app_context():
        assert db.session.get(DeliveryRow, 1).status == "pending"
    text = remote.open("/wall").text
    assert text.index("1 failing, checking again") < text.index("Shop") < text.index("Blog")
    assert "Paused" in text
    assert "Failing, checking again for 3 h No answer came" in remote.open(f"/monitors/{shop}").text
    page = remote.open("/monitors").page.text
    assert page.index(">Shop</a>") < page.index(">Blog</a>")
    assert "24 hours" in remote.text, "with its bar"
    assert remote.open("/monitors?state=odd").status == 422
    page = remote.open("/monitors?tag=prod").page.text
    assert 'All <span class="faint num">1</span>' in page
    assert ">Shop</a>" not in page
    remote.open(f"/settings/locations/{place}/delete")
    assert "Monitors are checked from this place." in remote.text
    assert f"/monitors/{shop}/edit" in remote.page.text
    assert "Blog" not in remote.text

    start = now() - timedelta(days=1)
    check = {"verdict": Verdict.UP, "monitor_id": shop, "response_time": 77}
    keep_results(app, [Result(start + timedelta(minutes=minute), **check) for minute in range(5)])
    span = f"from={iso(start)}&to={iso(start + timedelta(hours=1))}"
    remote.open(f"/monitors/{shop}?{span}").shows("Response time: 77 ms on average", "Zoom out")
    assert "None: Up all day" in remote.open(f"/monitors/{shop}/days/{start:%Y-%m-%d}").text
    month = now().replace(day=1, hour=0, minute=0, second=0)
    make_incident(app, blog, started_at=month, ended_at=month + timedelta(seconds=1))
    assert "Blog" in remote.open(f"/reports?month={month:%Y-%m}").text
    assert remote.open(f"/reports/csv?month={month:%Y-%m}").page.text.count("Blog") == 1


def test_home_says_of_the_remote_servers_incidents_that_nobody_was_reached(app, remote):
    auth = make_monitor(app, name="Auth", state={"verdict": "down"})
    fields = {"monitor_id": auth.id, "incident_id": make_incident(app, auth).id}
    tried = [{"at": iso(now()), "ok": False, "answer": "HTTP 503"}]
    make_delivery(app, status="pending", attempts=tried, **fields)
    remote.open("/").shows(
        "Nobody has been reached yet about Auth. Webhook failed 1 time: HTTP 503."
    )
    make_delivery(app, **fields)
    remote.open("/").hides("Nobody has been reached")


def test_home_names_the_remote_servers_monitors_that_would_alert_nobody(app, remote):
    shop = make_monitor(app, name="Shop", alerts=[["email", "ops@example.test"]])
    corrupt(app, MonitorRow.alerts, shop.id)
    assert "Nobody would be alerted about Shop" in remote.open("/").text
    remote.open(f"/monitors/{shop.id}/edit").press("Save", remove_unreadable=True)
    assert "Nobody would be alerted" not in remote.open("/").text


def test_the_first_use_is_as_over_the_local_store(app, remote):
    hook = "https://hooks.slack.com/services/T0/B0/abcd1234"
    for number in range(2):
        fields = {"name": f"Shop {number}", "url": f"https://127.0.0.1:9/{number}", "interval": 60}
        store_of(app).monitors.create(fields | {"alerts": (Pair("slack", hook),)})
    row = {"alerts[0][key]": "slack", "alerts[0][value]": hook}
    assert "Email (not set up)" in remote.open("/monitors/new").text
    remote.press("Save", url="127.0.0.1:9/0", ssl_alert_days="auto", **row)
    assert "Shop 0 already checks this URL." in remote.text
    remote.press("Create anyway").shows("alert when a third of its lifetime remains")
    assert "3 monitors use this Slack webhook. Create a contact from it" in remote.text
    link = next(part for part in remote.page.text.split('"') if "/from-channel?" in part)
    remote.open(link.replace("&amp;", "&")).press("Create a contact", name="Shop team")
    monitors = store_of(app).monitors.list(MonitorQuery()).items
    assert [monitor.alerts for monitor in monitors] == [(Pair("contact", "Shop team"),)] * 3
    assert [monitor.ssl_alert_days for monitor in monitors] == ["auto", None, None]


def test_a_link_to_the_wall_shows_the_server_that_it_was_made_for(app, remote):
    make_monitor(app, name="Alpha", tags="\nprod\n", state={"verdict": "up"})
    make_monitor(app, name="Zeta", state={"verdict": "down"})
    dashboard = remote.client.application
    with dashboard.app_context():
        name = dashboard.extensions["wakeful.store"].names[0]
        access = current_access()
        _, token = access.wall_links.create("Lobby", "UTC", tag="prod", server=name)
        _, gone = access.wall_links.create("Old", "UTC", server="left.example.com")
    stranger = Visitor(dashboard)
    stranger.open(f"/screen/{token}").shows("Alpha").hides("Zeta")
    assert stranger.open(f"/screen/{gone}").status == 404


def test_markers_are_the_remote_servers(app, remote):
    markers = store_of(app).markers
    incident = make_incident(app, make_monitor(app), started_at=now() - timedelta(minutes=10))
    remote.open("/markers").press("Add marker", name="shop v2.1")
    time = incident.started_at - timedelta(minutes=5)
    markers.create({"name": "shop v2.0", "time": time})
    assert "shop v2.1" in remote.open("/monitors/1").page.text
    remote.open("/incidents/1").shows("shop v2.0 deployed at", ", 5 minutes earlier")
    remote.open("/markers/1/delete").press("Delete this marker")
    assert [marker.name for marker in markers.list(MarkerQuery()).items] == ["shop v2.0"]


def test_a_dashboard_with_a_key_of_a_tag_shows_its_monitors_and_leaves_out_the_rest(app, over):
    shop = make_monitor(app, name="Shop", tags="\nprod\n", state={"verdict": "down"})
    other = make_monitor(app, name="Other")
    incident = make_incident(app, shop)
    editor = over((app, make_key(app, tag="prod")))
    for path in ("/", "/wall", "/monitors", "/monitors/new", f"/monitors/{shop.id}",
                 f"/monitors/{shop.id}/edit", f"/monitors/{shop.id}/checks", "/jump",
                 f"/monitors/{shop.id}/days/{now():%Y-%m-%d}", "/deliveries", "/incidents",
                 f"/incidents/{incident.id}", "/monitors/import"):  # fmt: skip
        assert editor.open(path).status == 200, path
        assert "Other" not in editor.text.replace("Others", ""), path
    assert editor.open(f"/monitors/{other.id}").status == 404
    editor.open("/monitors/new").press("Save", url="http://a.test/", name="New", tags="prod")
    assert "New" in editor.text
    places = editor.open("/jump").page.text
    for path in ("/contacts", "/status-pages", "/markers", "/maintenance", "/reports"):
        assert f'href="{path}"' not in places, path
        assert editor.open(path).status == 403, path
        assert "bound to the tag prod" in editor.text, path
