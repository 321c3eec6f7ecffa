"""Monitors in a browser that runs no script."""

import re
from datetime import timedelta

from app.db import db, journal, writing
from app.db.tables import MonitorEvidenceRow, MonitorRow, MonitorStateRow
from app.engine import recorder
from app.net import icmp
from app.records import Assertion
from app.stores import current_store
from tests.factories import make_incident, make_monitor, make_outcome, now, window
from tests.support.queries import queries
from tests.support.store import store_of
from tests.web import scene
from tests.web.visitor import Visitor


def row(app, id=1):
    with app.app_context():
        monitor_row = db.session.get(MonitorRow, id)
        db.session.expunge_all()
        return monitor_row


def test_a_monitor_is_made_shown_changed_cloned_and_deleted(app, editor):
    editor.open("/monitors/new").press(
        "Save", url="http://127.0.0.1:9/health", name="Shop <b>", interval="300",
        request_auth_username="ada", request_auth_password="geheim", tags="prod, shop",
        ssl_alert_days="14",
    )  # fmt: skip
    assert editor.path == "/monitors/1"
    assert "Shop <b> saved." in editor.text
    assert "Shop &lt;b&gt;" in editor.page.text
    assert "Shop <b>" not in editor.page.text
    editor.open("/monitors/1/edit").press("Save", name="Shop", follow_redirects=False)
    stored = row(app)
    assert (stored.name, stored.interval, stored.follow_redirects) == ("Shop", 300, False)
    assert stored.request_auth_password == "geheim"
    assert editor.open("/monitors/1/clone").press("Save").path == "/monitors/2"
    copy = row(app, 2)
    assert copy.name == "Shop (copy)"
    assert copy.request_auth_password == "geheim"
    assert copy.tags == stored.tags
    editor.press("Pause").shows("Shop (copy) paused.")
    assert row(app, 2).paused
    editor.press("Resume")
    assert not row(app, 2).paused
    editor.open("/monitors/2/delete").shows("cannot be undone")
    editor.press("Delete this monitor").shows("Shop (copy) deleted")
    assert row(app, 2) is None


def test_without_a_script_a_new_monitor_is_loaded_again_until_its_first_check(app, editor):
    refresh = '<noscript><meta http-equiv="refresh"'
    new, old = make_monitor(app), make_monitor(app, created_at=now() - timedelta(minutes=2))
    assert refresh in editor.open(f"/monitors/{new.id}").page.text
    assert refresh not in editor.open(f"/monitors/{old.id}").page.text, "nothing checks it"
    with app.app_context():
        recorder.record([(new.id, make_outcome("up", now()))], now())
    assert refresh not in editor.open(f"/monitors/{new.id}").page.text
    assert "data-soon" in editor.open("/monitors").page.text


def test_places_can_be_chosen_where_there_are_several(app, editor):
    editor.open("/monitors/new").hides("Checked from")
    editor.press("Save", url="http://127.0.0.1:9/", name="Shop")
    with app.app_context():
        journal.place_id("oslo")
        assert current_store().monitors.get(1).locations == ("default",)
    editor.open("/monitors/1/edit").shows("Checked from")
    editor.press("Save", locations="oslo")
    assert store_of(app).monitors.get(1).locations == ("oslo",)
    editor.open("/monitors/1/edit").press("Save", name="Other")
    assert store_of(app).monitors.get(1).locations == ("oslo",)


def test_a_port_is_watched_with_the_fields_of_its_kind(app, editor):
    editor.open("/monitors/new").shows("https://example.com, tcp://example.com:25")
    editor.press("Save", url="tcp://127.0.0.1:9", request_method="POST", accepted_statuses="200")
    assert editor.status == 422
    for name in ("request_method", "accepted_statuses"):
        assert f'id="{name}-fault"' in editor.page.text
    assert editor.press("Save", request_method="GET", accepted_statuses="").path == "/monitors/1"
    assert "over TCP, every 1 min, within 30 s" in editor.text
    assert "GET" not in editor.text
    assert row(app).name == "127.0.0.1:9"


def test_the_evidence_of_a_port_shows_what_it_sent(app, editor):
    evidence = {"url": "tcp://127.0.0.1:9", "ip": "127.0.0.1", "banner": "421 <busy>",
            "banner_bytes": 10}  # fmt: skip
    monitor = make_monitor(app, url="tcp://127.0.0.1:9")
    make_incident(
        app, monitor, evidence={"failing": evidence, "confirming": [], "last_good": evidence}
    )
    editor.open("/incidents/1")
    assert "421 &lt;busy&gt;" in editor.page.text
    assert "<busy" not in editor.page.text
    editor.shows("What the server sent first, 10 bytes", "connected")


def test_wrong_input_is_named_at_its_field_and_in_a_summary_and_nothing_typed_is_lost(editor):
    typed = {"url": "ftp://example.com", "timeout": "99", "request_auth_password": "typed",
             "tags": "kept", "alerts[0][value]": "not an address"}  # fmt: skip
    more = {"name": "n" * 256, "alert_condition": "url_text", "alerts[0][key]": "email"}
    assert editor.open("/monitors/new").press("Save", **typed, **more).status == 422
    page = editor.page.text
    assert 'role="alert"' in page
    for id in ("url", "name", "timeout", "alert_text_lookup", "alerts-0-value"):
        assert f'href="#{id}"' in page, id
        assert f'id="{id}-fault"' in page, id
        before, after = page.split(f'id="{id}"', 1)
        assert f"{id}-fault" in before.rsplit("<", 1)[1] + after.split(">")[0], id
    assert "This is not an email address." in editor.text
    values = dict(editor.form_with("Save")[0].values)
    assert {name: values[name] for name in typed} == typed
    assert editor.page.headers["Cache-Control"] == "no-store"


def test_rows_are_added_and_removed_without_a_script(app, editor):
    editor.open("/monitors/new").press("Add a header", url="http://127.0.0.1:9/", name="Rows")
    form, _ = editor.form_with("Save")
    assert dict(form.values)["url"] == "http://127.0.0.1:9/"
    assert {"request_headers[0][key]", "request_headers[1][key]"} <= form.names()
    headers = [("X-One", "1"), ("X-Two", "2")]
    typed = {f"request_headers[{n}][key]": key for n, (key, _value) in enumerate(headers)}
    typed |= {f"request_headers[{n}][value]": value for n, (_key, value) in enumerate(headers)}
    editor.press("Add a channel", **typed)
    remove = next(b for b in editor.form_with("Save")[0].buttons if b[2] == "request_headers[0]")
    values = dict(editor.form_with("Save")[0].values) | {remove[1]: remove[2]}
    editor._take(editor.client.post("/monitors/new", data=values))
    editor.press("Save", **{"alerts[0][key]": "email", "alerts[0][value]": "ops@example.com"})
    stored = row(app)
    assert stored.request_headers == [["X-Two", "2"]]
    assert stored.alerts == [["email", "ops@example.com"]]
    # Stored values come masked, and the mask keeps them.
    editor.open("/monitors/1/edit")
    assert "ops@example.com" not in editor.page.text
    editor.press("Save", name="Other")
    assert row(app).alerts == [["email", "ops@example.com"]]
    assert row(app).name == "Other"


def test_what_an_answer_has_becomes_an_assertion_by_a_click(app, editor, httpserver):
    """Without a script too. Values that look secret are not offered."""
    body = '{"status": "ok", "api_token": "abcdefgh", "items": [1]}'
    httpserver.expect_request("/").respond_with_data(body, content_type="application/json")
    url = httpserver.url_for("/")
    editor.open("/monitors/new").press("Check now", url=url, name="Shop")
    assert "abcdefgh" not in str(editor.form_with("Save")[0].buttons)
    editor.press("status = ok")
    form, _ = editor.form_with("Save")
    values = dict(form.values)
    columns = ("source", "property", "op", "value")
    sent = [values[f"assertions[0][{column}]"] for column in columns]
    assert sent == ["json", "$.status", "=", "ok"]
    wrong = {"assertions[0][value]": "", "assertions[0][op]": "<"}
    assert editor.press("Save", **wrong).shows("< needs a value.").status == 422
    editor.press("Save", **{"assertions[0][value]": "degraded", "assertions[0][op]": "="})
    editor.shows("Assertions", "status = degraded")
    assert row(app).assertions == (Assertion("json", "$.status", "=", "degraded"),)
    editor.press("Check now").shows('status is "ok", expected "degraded"')
    incident = editor.open("/monitors/1/edit").press("Check now")
    incident.shows("fails", "status = degraded")


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
    editor.shows_in_order(*names)
    editor.press("Search", search="LOG").shows("Login", "Old blog").hides("Printer")
    assert "search=LOG" in editor.page.request.url
    assert "sort_by=name" in editor.page.request.url
    editor.open("/monitors?state=unknown").shows("Printer").hides("Login")
    editor.open("/monitors?tag=api").shows("Checkout API").hides("Printer")
    assert editor.open("/monitors?search=zzz").text.count("Nothing found") == 1
    assert editor.open("/monitors?page=77").status == 200
    editor.open("/monitors?state=broken").shows(
        "This link has an invalid value: state.", status=422
    )
    editor.open("/monitors?status=down").shows(
        "This link has an unknown parameter: status.", status=422
    )


def test_an_address_without_a_scheme_says_that_https_was_put_before_it(app, editor):
    for url, says in (("shop.example", True), ("https://mail.example", False)):
        editor.open("/monitors/new").press("Save", name="Shop", url=url)
        assert ("https:// was put before its address." in editor.text) == says, url


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
    editor.press("Check now", url=httpserver.url_for("/gone")).shows("HTTP 410")
    assert editor.press("Check now", url="nonsense").status == 422
    editor.press("Save", url=url, name="Live", alert_condition="url_unavailable").press("Check now")
    assert "Checked now. Up" in editor.text
    assert "127.0.0.1" in editor.text or "200" in editor.text


def test_a_test_for_the_script_is_the_outcome_alone(app, editor, httpserver):
    httpserver.expect_request("/").respond_with_data("fine")
    form, _ = editor.open("/monitors/new").form_with("Save")
    values = dict(form.values) | {"url": httpserver.url_for("/"), "check": "1"}
    answer = editor.client.post("/monitors/new", data=values, headers={"X-Fragment": "check"})
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert "HTTP 200" in answer.text


def test_a_stored_password_is_used_by_the_test_and_never_shown(app, editor, httpserver):
    headers = {"Authorization": "Basic YWRhOmdlaGVpbQ=="}
    httpserver.expect_request("/", headers=headers).respond_with_data("in")
    login = {"request_auth_username": "ada", "request_auth_password": "geheim"}
    make_monitor(app, url=httpserver.url_for("/"), **login)
    editor.open("/monitors/1/edit")
    assert "geheim" not in editor.page.text
    editor.press("Check now").shows("HTTP 200")
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
    expiry = {"ssl_expires_at": noon + timedelta(days=9), "domain": "example.com"}
    monitor = make_monitor(
        app, domain_alert_days=30, state={**expiry, "ssl_fingerprint": leaf["sha256"]}
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
    viewer.open(f"/monitors/{monitor.id}").shows("Certificate expires in 9 days")
    viewer.hides("Example CA")


def test_who_changes_what_somebody_else_has_just_changed_is_warned(app, editor):
    make_monitor(app, name="Shop")
    other = Visitor(app).log_in("editor@wakeful.test")
    editor.open("/monitors/1/edit")
    other.open("/monitors/1/edit").press("Save", name="Store", timeout="7")
    assert "Somebody else" not in other.text
    editor.press("Save", name="Boutique")
    editor.shows("Boutique saved.", "Your values replaced these: Name.")
    kept = store_of(app).monitors.get(1)
    assert (kept.name, kept.timeout) == ("Boutique", 7)


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
    assert len([statement for statement in sent if "FROM maintenance_windows" in statement]) == 2


def test_the_form_says_before_that_this_machine_may_not_ping(app, editor, monkeypatch):
    def not_allowed(_address: str) -> None:
        raise icmp.PingNotAllowed

    editor.open("/monitors/new?url=ping://router.test")
    assert ("does not let Wakeful send pings" in editor.text) == bool(icmp.why_not())
    monkeypatch.setattr(icmp, "open_socket", not_allowed)
    editor.open("/monitors/new?url=ping://router.test").shows("does not let Wakeful send pings")


def test_the_form_says_how_often_it_would_have_alerted_because_it_is_slow(app, editor):
    begin = now() - timedelta(minutes=30)
    monitor = make_monitor(app, slow_after=1000, slow_alert_after=5, created_at=begin)
    with app.app_context():
        for minute in range(10):
            at, slow = begin + timedelta(minutes=minute), minute < 5
            verdict, took = ("degraded", 3000) if slow else ("up", 100)
            recorder.record([(monitor.id, make_outcome(verdict, at, response_time=took))], at)
    editor.open("/monitors/1/edit").hides("would have alerted")  # it is asked for
    editor.press("How often in the last 30 days?").shows("this would have alerted 1 time, on")
    editor.press("How often in the last 30 days?", slow_after="5000")
    assert "this would not have alerted." in editor.text


def test_one_search_finds_each_word_in_name_url_or_tag(app, editor):
    make_monitor(app, name="Shop service 1", url="https://a.example/", tags="\nprod\n")
    make_monitor(app, name="Shop service 2", url="https://b.example/one", tags="\nPROD\neu\n")
    make_monitor(app, name="Blog", url="https://shop.example/1")
    make_monitor(app, name="Praxis", url="https://c.example/", tags="\nÄrzte\n")
    for search, names in {
        "Ärzte": ["Praxis"],
        "praxis ärZTE": ["Praxis"],
        "shop 1": ["Shop service 1", "Blog"],
        "SHOP prod": ["Shop service 1", "Shop service 2"],
        "eu": ["Shop service 2"],
        "b.example one": ["Shop service 2"],
        "%": [],
        "shop &search_by=name": ["Shop service 1", "Shop service 2"],
    }.items():
        page = editor.open(f"/monitors?search={search}").page.text
        rows = re.findall('class="name"[^>]*>([^<]*)<', page)
        assert sorted(rows) == sorted(names), search


def test_chips_count_the_tags_of_what_the_other_filters_find(app, editor):
    first = make_monitor(app, tags="\nprod\nshop\n", state={"verdict": "down"})
    make_monitor(app, tags="\nprod\n", state={"verdict": "up"})

    def chips(address):
        page = editor.open(address).page.text
        pairs = re.findall(r'chip"[^>]*><span[^>]*>(\w+)</span> <span[^>]*>(\d+)', page)
        return [f"{tag} {count}" for tag, count in pairs]

    assert chips("/monitors") == ["prod 2", "shop 1"]
    assert chips("/monitors?state=up") == ["prod 1"]
    assert chips("/monitors?tag=shop&state=up") == ["shop 0", "prod 1"]
    editor.open(f"/monitors/{first.id}/edit").press("Save", tags="prod, new")
    assert chips("/monitors") == ["prod 2", "new 1"]


def test_rows_and_order_are_remembered_and_a_link_wins(app, editor):
    for number in range(27):
        make_monitor(app, name=f"Shop {number:02}", state={"verdict": "up"})

    def shown(address="/monitors"):
        names = re.findall(r'class="name"[^>]*>Shop (\d+)<', editor.open(address).page.text)
        return len(names), names[0]

    assert shown() == (25, "00")
    assert shown("/monitors?sort_by=name&sort=desc") == (25, "26")
    assert shown("/monitors?per_page=50") == (27, "26")
    assert shown("/monitors?per_page=10&sort_by=name&sort=asc") == (10, "00")
    assert shown("/monitors?sort=desc") == (10, "26"), "the column stays"
    assert shown("/monitors?search=shop") == (10, "26")
    editor.client.set_cookie("wakeful_monitors", "per_page=7&sort_by=nothing")
    assert shown() == (25, "00")


def test_paused_and_maintenance_are_counted_from_their_beginning(app, viewer):
    """Not from the last change of what checks said."""
    old = now() - timedelta(days=9)
    state = {"verdict": "up", "status_since": old, "paused_at": now() - timedelta(minutes=5)}
    paused = make_monitor(app, paused=True, state=state)
    own = make_monitor(app, state=state, **window(0.25, 2))
    viewer.open(f"/monitors/{paused.id}").shows("Paused for 5 min")
    viewer.open(f"/monitors/{own.id}").shows("Maintenance for 15 min")
    start = now() - timedelta(minutes=40)
    fields = {"name": "Works", "start_at": start, "end_at": start + timedelta(hours=2)}
    store_of(app).windows.create(fields)
    viewer.open(f"/monitors/{own.id}").shows("Maintenance for 40 min")
