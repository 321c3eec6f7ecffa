"""Monitors in a browser that runs no script."""

from __future__ import annotations

from datetime import timedelta

from app.db import db, journal, writing
from app.db.tables import MonitorEvidenceRow, MonitorRow, MonitorStateRow
from app.records import Pair
from app.stores import current_store
from tests.factories import make_incident, make_monitor, now
from tests.support.queries import queries
from tests.support.store import store_of
from tests.web import scene
from tests.web.visitor import Visitor


def row(app, id=1):
    with app.app_context():
        found = db.session.get(MonitorRow, id)
        db.session.expunge_all()
        return found


def test_a_monitor_is_made_shown_changed_cloned_and_deleted(app, editor):
    editor.open("/monitors").open("/monitors/new").press(
        "Save",
        url="http://127.0.0.1:9/health",
        name="Shop <b>",
        interval="300",
        request_auth_username="ada",
        request_auth_password="geheim",
        tags="prod, shop",
        ssl_alert_days="14",
    )
    assert editor.path == "/monitors/1"
    assert "Shop <b> saved." in editor.text
    assert "Shop &lt;b&gt;" in editor.page.text
    editor.open("/monitors/1/edit").press("Save", name="Shop", follow_redirects=False)
    stored = row(app)
    assert (stored.name, stored.interval, stored.follow_redirects) == ("Shop", 300, False)
    assert stored.request_auth_password == "geheim"
    editor.open("/monitors/1/clone").press("Save")
    assert editor.path == "/monitors/2"
    copy = row(app, 2)
    assert copy.name == "Shop (copy)"
    assert copy.request_auth_password == "geheim"
    assert copy.tags == stored.tags
    editor.open("/monitors/2/delete")
    assert "cannot be undone" in editor.text
    editor.press("Delete this monitor")
    assert "Shop (copy) deleted" in editor.text
    assert row(app, 2) is None


def test_places_can_be_chosen_where_there_are_several(app, editor):
    editor.open("/monitors/new")
    assert "Checked from" not in editor.text
    editor.press("Save", url="http://127.0.0.1:9/", name="Shop")
    with app.app_context():
        journal.location_id("oslo")
        assert current_store().monitors.get(1).locations == ("default",)
    editor.open("/monitors/1/edit")
    assert "Checked from" in editor.text
    editor.press("Save", locations="oslo")
    assert store_of(app).monitors.get(1).locations == ("oslo",)
    editor.open("/monitors/1/edit").press("Save", name="Other")
    assert store_of(app).monitors.get(1).locations == ("oslo",)


def test_a_port_is_watched_with_the_fields_of_its_kind(app, editor):
    editor.open("/monitors/new")
    assert "https://example.com or tcp://example.com:25" in editor.text
    editor.press("Save", url="tcp://127.0.0.1:9", request_method="POST", accepted_statuses="200")
    assert editor.status == 422
    for name in ("request_method", "accepted_statuses"):
        assert f'id="{name}-fault"' in editor.page.text
    editor.press("Save", request_method="GET", accepted_statuses="")
    assert editor.path == "/monitors/1"
    assert "over TCP, every 1 min, within 30 s" in editor.text
    assert "GET" not in editor.text
    assert row(app).name == "127.0.0.1:9"


def test_the_evidence_of_a_port_shows_what_it_sent(app, editor):
    seen = {"url": "tcp://127.0.0.1:9", "ip": "127.0.0.1", "banner": "421 <busy>",
            "banner_bytes": 10}  # fmt: skip
    monitor = make_monitor(app, url="tcp://127.0.0.1:9")
    make_incident(app, monitor, evidence={"failing": seen, "confirming": [], "last_good": seen})
    editor.open("/incidents/1")
    assert "421 &lt;busy&gt;" in editor.page.text
    assert "What the server sent first, 10 bytes" in editor.text
    assert "connected" in editor.text


def test_wrong_input_is_told_at_its_field_and_in_a_summary_and_nothing_typed_is_lost(editor):
    editor.open("/monitors/new").press(
        "Save",
        url="ftp://example.com",
        name="",
        timeout="99",
        alert_condition="url_text",
        request_auth_password="typed",
        tags="kept",
    )
    assert editor.status == 422
    page = editor.page.text
    assert 'role="alert"' in page
    for id in ("url", "name", "timeout", "alert_text_lookup"):
        assert f'href="#{id}"' in page, id
        assert f'id="{id}-fault"' in page, id
        assert (
            f"{id}-fault"
            in page.split(f'id="{id}"')[0].rsplit("<", 1)[1]
            + page.split(f'id="{id}"')[1].split(">")[0]
        ), id
    values = dict(editor.form_with("Save")[0].values)
    assert values["url"] == "ftp://example.com"
    assert values["timeout"] == "99"
    assert values["request_auth_password"] == "typed"
    assert values["tags"] == "kept"
    assert editor.page.headers["Cache-Control"] == "no-store"


def test_rows_are_added_and_removed_without_a_script(app, editor):
    editor.open("/monitors/new").press("Add a header", url="http://127.0.0.1:9/", name="Rows")
    form, _ = editor.form_with("Save")
    assert dict(form.values)["url"] == "http://127.0.0.1:9/"
    assert {"request_headers[0][key]", "request_headers[1][key]"} <= form.names()
    editor.press(
        "Add a channel",
        **{
            "request_headers[0][key]": "X-One",
            "request_headers[0][value]": "1",
            "request_headers[1][key]": "X-Two",
            "request_headers[1][value]": "2",
        },
    )
    remove = next(b for b in editor.form_with("Save")[0].buttons if b[2] == "request_headers[0]")
    values = dict(editor.form_with("Save")[0].values) | {remove[1]: remove[2]}
    editor._take(editor.client.post("/monitors/new", data=values))
    editor.press(
        "Save",
        **{"alerts[0][key]": "email", "alerts[0][value]": "ops@example.com"},
    )
    stored = row(app)
    assert stored.request_headers == [["X-Two", "2"]]
    assert stored.alerts == [["email", "ops@example.com"]]
    # Stored values come masked, and the mask keeps them.
    editor.open("/monitors/1/edit")
    assert "ops@example.com" not in editor.page.text
    editor.press("Save", name="Other")
    assert row(app).alerts == [["email", "ops@example.com"]]
    assert row(app).name == "Other"


def test_a_faulty_row_is_told_by_its_place(editor):
    editor.open("/monitors/new").press(
        "Save",
        url="http://a.test",
        name="A",
        **{"alerts[0][key]": "email", "alerts[0][value]": "not an address"},
    )
    assert editor.status == 422
    assert 'href="#alerts-0-value"' in editor.page.text
    assert "This is not an email address." in editor.text


def test_pause_and_resume(app, editor):
    make_monitor(app)
    editor.open("/monitors/1").press("Pause")
    assert "Shop paused." in editor.text
    assert row(app).paused
    editor.press("Resume")
    assert not row(app).paused


def test_an_expiry_that_is_asked_for_and_not_known_is_shown_as_unknown(app, editor):
    make_monitor(app, ssl_alert_days=7, domain_alert_days=0)
    make_monitor(app)
    text = editor.open("/monitors/1").text
    assert text.count("expiry unknown") == 2
    assert "expiry unknown" not in editor.open("/monitors/2").text


def test_search_order_state_tag_and_page_size_stand_in_the_address(app, editor):
    scene.fill(app, [part for part in scene.PARTS if part.days <= 5])
    editor.open("/monitors?sort_by=name&sort=asc")
    names = ["Brand new", "Checkout API", "Login", "Old blog", "Printer", "Warehouse"]
    places = [editor.text.index(name) for name in names]
    assert places == sorted(places)
    editor.press("Show", search="LOG")
    assert "Login" in editor.text
    assert "Old blog" in editor.text
    assert "Printer" not in editor.text
    assert "search=LOG" in editor.page.request.url
    assert "sort_by=name" in editor.page.request.url
    editor.open("/monitors?state=unknown")
    assert "Printer" in editor.text
    assert "Login" not in editor.text
    editor.open("/monitors?tag=api")
    assert "Checkout API" in editor.text
    assert "Printer" not in editor.text
    assert editor.open("/monitors?search=zzz").text.count("Nothing found") == 1
    assert editor.open("/monitors?page=77").status == 200
    assert editor.open("/monitors?state=broken").status == 422


def test_the_list_begins_with_the_worst_and_its_heads_change_the_order(app, editor):
    for name, verdict, ms in (("Alpha", "up", 50), ("Beta", "down", None), ("Gamma", "up", 900)):
        make_monitor(app, name=name, tags="\nprod\n" * (name != "Gamma"),
                     state={"verdict": verdict, "response_time": ms})  # fmt: skip

    def shown(path):
        text = editor.open(path).page.text
        return sorted(("Alpha", "Beta", "Gamma"), key=lambda name: text.index(f">{name}</a>"))

    assert shown("/monitors") == ["Beta", "Alpha", "Gamma"]
    assert editor.page.text.count("aria-sort=") == 1
    assert '<th scope="col" class="slim" aria-sort="descending">' in editor.page.text
    assert "/monitors?sort_by=state&amp;sort=asc" in editor.page.text  # the other way round
    assert shown("/monitors?sort_by=response_time&sort=desc") == ["Gamma", "Alpha", "Beta"]
    assert shown("/monitors?sort_by=name&sort=asc") == ["Alpha", "Beta", "Gamma"]
    assert '<th scope="col" aria-sort="ascending">' in editor.page.text
    assert shown("/monitors?sort_by=id") == ["Gamma", "Beta", "Alpha"]


def test_the_counters_above_the_list_follow_its_filters(app, editor):
    make_monitor(app, name="Alpha", tags="\nprod\n", state={"verdict": "up"})
    make_monitor(app, name="Beta", state={"verdict": "down"})
    for path in ("/monitors?tag=prod", "/monitors?search=alp", "/monitors?tag=prod&state=up"):
        text = editor.open(path).page.text
        assert 'All <span class="faint num">1</span>' in text
        assert "state=down" not in text
    assert 'All <span class="faint num">2</span>' in editor.open("/monitors?state=up").page.text


def test_check_now_and_test_before_saving_say_what_they_saw(app, editor, httpserver):
    httpserver.expect_request("/").respond_with_data("<p>All is well here</p>", status=200)
    httpserver.expect_request("/gone").respond_with_data("gone", status=410)
    url = httpserver.url_for("/")
    editor.open("/monitors/new").press(
        "Check now", url=url, alert_condition="url_no_text", alert_text_lookup="well"
    )
    assert editor.status == 200
    assert "HTTP 200" in editor.text
    assert "DNS" in editor.text
    assert "All is well here" in editor.text  # the text that was found, in its surroundings
    assert dict(editor.form_with("Save")[0].values)["url"] == url
    with app.app_context():
        assert db.session.query(MonitorRow).count() == 0
    editor.press("Check now", url=httpserver.url_for("/gone"))
    assert "HTTP 410" in editor.text
    editor.press("Check now", url="nonsense")
    assert editor.status == 422
    editor.press("Save", url=url, name="Live", alert_condition="url_unavailable")
    editor.press("Check now")
    assert "Checked now. Up" in editor.text
    assert "127.0.0.1" in editor.text or "200" in editor.text


def test_a_test_for_the_script_is_the_outcome_alone(app, editor, httpserver):
    httpserver.expect_request("/").respond_with_data("fine")
    form, _ = editor.open("/monitors/new").form_with("Save")
    values = dict(form.values) | {"url": httpserver.url_for("/"), "test": "1"}
    answer = editor.client.post("/monitors/new", data=values, headers={"X-Fragment": "test"})
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert "HTTP 200" in answer.text


def test_a_stored_password_is_used_by_the_test_and_never_shown(app, editor, httpserver):
    httpserver.expect_request(
        "/", headers={"Authorization": "Basic YWRhOmdlaGVpbQ=="}
    ).respond_with_data("in")
    make_monitor(
        app,
        url=httpserver.url_for("/"),
        request_auth_username="ada",
        request_auth_password="geheim",
    )
    editor.open("/monitors/1/edit")
    assert "geheim" not in editor.page.text
    editor.press("Check now")
    assert "HTTP 200" in editor.text
    editor.press("Save", remove_password=True)
    assert row(app).request_auth_password is None


def test_a_monitor_shows_the_certificates_that_were_sent_and_its_domain(app, viewer):
    leaf = {
        "subject": "shop.example.com", "issuer": "Example CA", "sha256": "ab" * 32,
        "not_before": "2026-10-01T00:00:00Z", "not_after": "2026-12-30T00:00:00Z",
        "names": ["shop.example.com", "www.example.com"],
    }  # fmt: skip
    kept = {"checked_at": "2026-11-21T08:00:00Z", "tls": [leaf, leaf | {"subject": "Example CA"}]}
    noon = now().replace(hour=12)
    known = {"ssl_expires_at": noon + timedelta(days=9), "domain": "example.com"}
    monitor = make_monitor(
        app, domain_alert_days=30, state={**known, "ssl_fingerprint": leaf["sha256"]}
    )
    with app.app_context(), writing() as session:
        session.add(MonitorEvidenceRow(monitor_id=monitor.id, last_good=kept))
    text = viewer.open(f"/monitors/{monitor.id}").text
    for words in (
        "Certificate expires in 9 days",
        "shop.example.com from Example CA valid 1 Oct 2026 to 30 Dec 2026",
        "for shop.example.com, www.example.com",
        "Chain Example CA",
        "Domain expiry unknown , alert 30 days before example.com",
    ):
        assert words in text
    with app.app_context(), writing() as session:
        session.get(MonitorStateRow, monitor.id).ssl_fingerprint = "cd" * 32  # it was renewed
    text = viewer.open(f"/monitors/{monitor.id}").text
    assert "Certificate expires in 9 days" in text
    assert "Example CA" not in text


def test_a_form_that_stood_open_does_not_undo_what_others_changed(app, editor):
    make_monitor(app, name="Shop", interval=60)
    editor.open("/monitors/1/edit")
    alerts = (Pair("email", "ops@example.com"),)
    store_of(app).monitors.update(1, {"name": "Store", "alerts": alerts})
    editor.press("Save", interval="300")
    found = store_of(app).monitors.get(1)
    assert (found.name, found.interval, found.alerts) == ("Store", 300, alerts)


def test_who_changes_what_somebody_else_has_just_changed_is_told(app, editor):
    make_monitor(app, name="Shop")
    other = Visitor(app).log_in("editor@wakeful.test")
    editor.open("/monitors/1/edit")
    other.open("/monitors/1/edit").press("Save", name="Store", timeout="7")
    assert "Somebody else" not in other.text
    editor.press("Save", name="Boutique")
    assert "Boutique saved." in editor.text
    assert "Your values replaced these: Name." in editor.text
    kept = store_of(app).monitors.get(1)
    assert (kept.name, kept.timeout) == ("Boutique", 7)


def test_a_url_alone_is_enough_without_a_script(app, editor):
    assert (
        'value="shop.example.com/a"'
        in editor.open("/monitors/new?url=https://shop.example.com/a").page.text
    )
    editor.open("/monitors/new").press("Save", url="https://shop.example.com/")
    assert editor.status == 200
    assert row(app, 1).name == "shop.example.com"


def test_pages_below_the_list_mark_it_in_the_menu(app, editor):
    make_monitor(app, name="Shop")
    for path in ("/monitors/1/checks", "/monitors/1/days/2026-11-20", "/monitors/import"):
        page = editor.open(path)
        assert page.status == 200, path
        assert '<a href="/monitors" aria-current="page">' in page.page.text, path


def test_a_monitors_page_reads_each_thing_once(app, viewer):
    """For itself, and for the statistics of a day and of a year."""
    monitor = make_monitor(app, state={"verdict": "up", "rolled_until": now()})
    make_incident(app, monitor, ended_at=now())
    viewer.open(f"/monitors/{monitor.id}")  # the first one after the start asks more
    with app.app_context(), queries() as sent:
        viewer.open(f"/monitors/{monitor.id}")
    # One of them for results before the day: this monitor has none just before it.
    assert len(sent) <= 27
    # For the figures and, as a list, for what comes next.
    assert len([one for one in sent if "FROM maintenance_windows" in one]) == 2
