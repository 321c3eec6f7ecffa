"""Adding many monitors: lines, files and exports, a preview of them, and what became of each."""

import json
import logging
from io import BytesIO
from pathlib import Path

import pytest
from flask import Flask

from app.db import db
from app.db.tables import MonitorRow
from app.errors import Invalid, Unavailable
from app.records import MonitorQuery, Pair
from app.stores.local.monitors import LocalMonitors
from app.web.frame import progress
from app.web.views import imports
from tests.factories import make_monitor, make_person
from tests.support.store import store_of
from tests.web.visitor import Visitor, token

SAMPLES = Path(__file__).parents[1] / "imports" / "samples"
START = "/monitors/import"
LINES = """
https://one.example.com/
Two, https://two.example.com/path?a=1,2
"Three, the third",https://three.example.com/
https://four.example.com/a,b  Fourth
five.example.com:8443/health Five
Six, six.example.com, "prod, eu", Ops
"""


def rows(app: Flask) -> list[MonitorRow]:
    with app.app_context():
        monitors = list(db.session.query(MonitorRow).order_by(MonitorRow.id))
        db.session.expunge_all()
        return monitors


def make_contact(app: Flask, name: str) -> None:
    channels = (Pair("email", "ops@example.org"),)
    store_of(app).contacts.create({"name": name, "channels": channels})


def upload(visitor: Visitor, data: bytes, **fields: object) -> Visitor:
    form, _ = visitor.open(START).form_with("Preview")
    values = {**dict(form.values), **fields, "file": (BytesIO(data), "a file")}
    visitor._take(visitor.client.post(form.action, data=values, follow_redirects=True))
    return visitor


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def test_lines_are_previewed_and_then_become_monitors(app, editor):
    make_contact(app, "Ops")
    editor.open(START).press("Preview", urls=LINES, interval="300", tags="new")
    editor.shows("Nothing is saved yet.", status=200)
    assert rows(app) == []
    editor.press("Create 6 monitors").shows("6 monitors created")
    assert 'href="/monitors?tag=new">Show the monitors' in editor.page.text
    assert [(row.name, row.url) for row in rows(app)] == [
        ("one.example.com", "https://one.example.com/"),
        ("Two", "https://two.example.com/path?a=1,2"),
        ("Three, the third", "https://three.example.com/"),
        ("Fourth", "https://four.example.com/a,b"),
        ("Five", "https://five.example.com:8443/health"),
        ("Six", "https://six.example.com"),
    ]
    assert {row.interval for row in rows(app)} == {300}
    assert rows(app)[0].tags == "\nnew\n"
    assert rows(app)[5].tags == "\nprod\neu\nnew\n"
    assert store_of(app).monitors.get(6).alerts[0].value == "Ops"


def test_lines_that_do_not_fit_say_where_and_why_and_the_others_can_be_created(app, editor):
    lines = "https://good.example.com\n\nftp://bad.example.com\nShop, shop.example.com, , 12"
    editor.open(START).press("Preview", urls=lines)
    editor.shows(
        "1 can be created",
        "2 cannot be imported",
        "Line 3 Without a name ftp://bad.example.com Cannot be imported. URL",
        'There is no contact "12".',
    )
    editor.shows_in_order("ftp://bad.example.com", "shop.example.com", "https://good.example.com")
    assert editor.page.text.count('href="#unfit"') == editor.page.text.count('id="unfit"') == 1
    form, _ = editor.form_with("Preview")
    assert dict(form.values)["urls"].split() == lines.split(), "to be corrected"
    editor.press("Create 1 monitor")
    assert [row.url for row in rows(app)] == ["https://good.example.com"]


def test_a_url_that_is_watched_already_is_pointed_out_and_not_ticked(app, editor):
    make_monitor(app, name="The shop", url="https://shop.example.com/")
    editor.open(START).press(
        "Preview", urls="HTTPS://Shop.example.com\nnew.example.com\nhttps://new.example.com/"
    )
    editor.shows("Duplicate Already monitored as The shop.", "Duplicate Same check as line 2.")
    form, _ = editor.form_with("Create 1 monitor")
    assert [value for name, value in form.values if name == "pick"] == ["1"]
    editor.press("Create 1 monitor", pick=[0, 1])
    assert [row.url for row in rows(app)][1:] == [
        "HTTPS://Shop.example.com",
        "https://new.example.com",
    ]


def test_a_csv_file_with_a_header_row_is_read(app, editor):
    upload(editor, b"Tags;URL;Name\nprod;shop.example.com;Shop\n;ftp://x;Bad\n")
    assert "1 cannot be imported" in editor.text
    editor.press("Create 1 monitor")
    assert [(row.name, row.url, row.tags) for row in rows(app)] == [
        ("Shop", "https://shop.example.com", "\nprod\n")
    ]


def test_a_preview_of_a_file_says_what_is_stored_and_what_does_not_fit(app, editor):
    upload(editor, sample("kuma-backup.json"))
    editor.shows(
        "Uptime Kuma: 7 entries. Nothing is saved yet.",
        "Wakeful has no MQTT checks yet.",
        "Starts paused.",
        "Interval: 20 s · Accepted status codes: 200-299,401 · Time limit in seconds: 48"
        " · Rechecks before an incident: 3 · Certificate expiry: 14 days before · Method: POST"
        " · Request headers: X-Api-Key, Content-Type · Request body: 26 characters",
        "Alert when: The response does not contain the text · Text to find: Welcome",
        "Alerts: Ops Slack, Email ••••.org",
        "1 starts paused",
    )
    assert "hooks" not in editor.text
    editor.press("Create 5 monitors")
    made = {row.name: row for row in rows(app)}
    assert sorted(made) == ["Database", "Front page", "No errors", "Router", "Shop"]
    assert made["Shop"].request_auth_password == "kumabasicpass"
    assert [name for name, row in made.items() if row.paused] == ["Database"]


# How many monitors each file has, and its secrets.
FILES = {
    "kuma-backup.json": (5, "kumabasicpass kumaheadersecret kumabodysecret kuma-bot-token"
                            " kumasecrethook kumasmtppassword kumapagerkey"),
    "uptimerobot.json": (6, "robotpassword robotheadersecret"),
    "uptimerobot.csv": (4, "no-secret-in-it"),
    "betterstack.json": (5, "stackpassword stackheadersecret"),
    "gatus.yaml": (7, "gatusheadersecret gatusbodysecret gatussecrethook gatussmtppassword"
                      " gatuspagerkey gatuspushtoken"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_tools_become_monitors_and_no_page_or_log_shows_a_secret(
    app, editor, monkeypatch, caplog, name
):
    count, secrets = FILES[name]
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(progress, "SECONDS", 0)
    pages = [upload(editor, sample(name)).page.text]
    pages.append(editor.press(f"Create {count} monitors").page.text)
    while any(button[0] == "Continue" for form in editor.forms for button in form.buttons):
        pages.append(editor.press("Continue").page.text)
    assert len(pages) > 3
    assert f"{count} monitors created" in editor.text
    assert len(rows(app)) == count
    for secret in secrets.split():
        assert secret not in "".join(pages)
        assert secret not in caplog.text


def test_a_file_that_cannot_be_read_is_refused_beside_its_field(editor):
    upload(editor, b'{"monitorList": [')
    assert (editor.status, "File: This is not valid JSON." in editor.text) == (422, True)


def test_an_import_needs_either_lines_or_a_file(editor):
    editor.open(START).press("Preview")
    editor.shows("Enter at least one line, or choose a file.", status=422)
    upload(editor, b"https://a.example", urls="https://b.example")
    assert "Enter lines or choose a file, not both." in editor.text


def failing(monkeypatch, url, error, times=1, *, after=False):
    """The store raises ``error`` for the monitor with this URL, ``after`` it has stored it."""
    make, left = LocalMonitors.create, [None] * times

    def create(monitors, fields, **more):
        fails = fields["url"] == url and left and (left.pop() or True)
        made = None if fails and not after else make(monitors, fields, **more)
        if fails:
            raise error
        return made

    monkeypatch.setattr(LocalMonitors, "create", create)


LOST = Unavailable("The server did not answer in time.")


def test_an_import_continues_after_the_store_was_unreachable(app, editor, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS", 0)
    failing(monkeypatch, "https://c.example.com", LOST)
    lines = "\n".join(f"{letter}.example.com" for letter in "abcd")
    editor.open(START).press("Preview", urls=lines).press("Create 4 monitors")
    assert editor.press("Continue").press("Continue").status == 503
    assert "2 of 4 done. The server did not answer in time." in editor.text
    assert "Your change may have been saved" in editor.text
    editor.press("Continue").press("Continue").shows("4 monitors created")
    assert [row.url[8] for row in rows(app)] == list("abcd")


def test_what_the_store_refuses_is_listed_at_the_end_and_the_others_are_created(
    app, editor, monkeypatch
):
    monkeypatch.setattr(progress, "SECONDS", 0)
    failing(monkeypatch, "https://b.example.com", Invalid({}, "Your plan allows two monitors."), 9)
    lines = "\n".join(f"https://{letter}.example.com" for letter in "abc")
    editor.open(START).press("Preview", urls=lines).press("Create 3 monitors")
    editor.press("Continue").press("Continue")
    editor.shows("2 monitors created", "https://b.example.com Your plan allows two monitors.")
    assert len(rows(app)) == 2


def test_a_monitor_whose_answer_was_lost_is_not_created_twice(app, editor, monkeypatch):
    failing(monkeypatch, "https://b.example.com", LOST, after=True)
    editor.open(START).press("Preview", urls="a.example.com\nb.example.com\nc.example.com")
    assert editor.press("Create 3 monitors").status == 503
    editor.press("Continue").shows("3 monitors created")
    assert [row.url[8] for row in rows(app)] == list("abc")


def test_a_shared_notification_becomes_a_contact_once(app, editor, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS", 0)
    upload(editor, sample("kuma-backup.json"))
    assert "Contact to be created: Ops Slack (Slack ••••hook)" in editor.text
    assert "3 of these monitors alert nobody." in editor.text
    editor.press("Create 5 monitors")
    while "monitors created" not in editor.text:
        editor.press("Continue")
    store = store_of(app)
    assert list(store.contacts.names()) == ["Ops Slack"]
    alerts = {monitor.name: monitor.alerts for monitor in store.monitors.list(MonitorQuery()).items}
    assert alerts["Shop"][0] == alerts["Database"][0] == Pair("contact", "Ops Slack")
    upload(editor, sample("kuma-backup.json"))
    assert "Contact to be created" not in editor.text, "the same channels are there"
    assert "5 duplicates, not selected" in editor.text


def test_a_contact_of_the_same_name_with_other_channels_stays_as_it_is(app, editor):
    make_contact(app, "Ops Slack")
    upload(editor, sample("kuma-backup.json"))
    assert "Contact to be created: Ops Slack 2 (Slack ••••hook)" in editor.text
    editor.press("Create 5 monitors")
    assert list(store_of(app).contacts.names()) == ["Ops Slack", "Ops Slack 2"]
    (shop,) = store_of(app).monitors.list(MonitorQuery(search="Shop")).items
    assert shop.alerts[0] == Pair("contact", "Ops Slack 2")


def test_more_than_fit_on_a_page_are_counted(app, editor, monkeypatch):
    monkeypatch.setattr(imports, "MAX_ROWS", 1)
    editor.open(START).press("Preview", urls="a.example.com\nb.example.com")
    assert "These are the first 1; 1 more does not fit on this page." in editor.text
    editor.press("Create 1 monitor")
    assert len(rows(app)) == 1


def test_a_preview_shows_tags_and_contacts(app, editor):
    make_contact(app, "Ops")
    editor.open(START).press("Preview", urls='Shop, shop.example.com, "prod, eu", Ops')
    assert (
        "Shop https://shop.example.com prod eu Alerts: Ops Interval: 1 min · Accepted status codes:"
        " 200-399 · Time limit in seconds: 30 · Rechecks before an incident: 2"
        " · Certificate expiry: 14 days before Ready"
    ) in editor.text


def test_a_sentence_of_many_entries_is_shown_once_and_they_lead_to_it(editor):
    endpoint = "  - {name: %s, url: 'https://%s.example', conditions: [%s], interval: 5s}\n"
    dropped, stated = "'[IP].a == 1', '[STATUS] == 200'", "'[STATUS] == 200'"
    endpoints = [endpoint % (name, name, dropped if name != "d" else stated) for name in "abcd"]
    sockets = "".join(f"  - {{name: w{n}, url: 'ws://{n}.example'}}\n" for n in range(3))
    upload(editor, f"endpoints:\n{''.join(endpoints)}{sockets}".encode())
    text = editor.text
    for sentence in ("Interval: 5 s becomes 10 s.", "Condition on [IP].a", "no WebSocket"):
        assert text.count(sentence) == 1
    assert "Interval: 5 s becomes 10 s. 4 entries" in text
    assert text.count("Notes: 1 , 2") == 3
    assert text.count("Cannot be imported. Notes: 3") == 3


def test_a_preview_that_is_too_large_to_carry_is_refused(editor, monkeypatch):
    monkeypatch.setattr(imports, "MAX_SEALED", 100)
    upload(editor, b"https://a.example.com\n")
    assert "This is too much for one preview." in editor.text


def test_a_preview_is_taken_only_unchanged_and_from_the_person_who_saw_it(app, editor):
    form, _ = (
        editor.open(START).press("Preview", urls="a.example.com").form_with("Create 1 monitor")
    )
    kept = dict(form.values)
    other = Visitor(app).let_in(make_person(app, "editor", "other@wakeful.test"))
    other.open("/")
    for visitor, sealed in (
        (other, kept["sealed"]),
        (editor, kept["sealed"][:-9] + "AAAAAAAA="),
        (editor, ""),
        (editor, "ü"),
    ):
        sent = {**token(visitor), "sealed": sealed, "pick": "0"}
        page = visitor.client.post(f"{START}/create", data=sent)
        assert page.status_code == 403
        assert "Start again." in page.text
    assert rows(app) == []


def test_a_sealed_preview_is_not_accepted_for_another_purpose(app, editor, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS", 0)
    editor.open(START).press("Preview", urls="a.example\nb.example").press("Create 2 monitors")
    fields = dict(editor.form_with("Continue")[0].values)
    for swapped in ({"sealed": fields["refused"]}, {"refused": fields["sealed"]}):
        page = editor.client.post(f"{START}/create", data={**fields, **swapped})
        assert page.status_code == 403
    assert len(rows(app)) == 1


def test_a_result_that_is_loaded_again_creates_nothing(app, editor):
    editor.open(START).press("Preview", urls="https://a.example.com\nhttps://b.example.com")
    form, _ = editor.form_with("Create 2 monitors")
    for _ in range(2):
        page = editor.client.post(form.action, data=dict(form.values) | {"pick": ["0"]})
    assert page.status_code == 302
    assert [row.url for row in rows(app)] == ["https://a.example.com"]
    editor.client.post(form.action, data=dict(form.values) | {"pick": ["1"]})  # another choice
    assert len(rows(app)) == 2


def test_invalid_choices_create_nothing(app, editor):
    form, _ = (
        editor.open(START).press("Preview", urls="a.example.com").form_with("Create 1 monitor")
    )
    for pick in ("7", "-1", "x", "9" * 30, "²"):
        sent = {**dict(form.values), "pick": pick}
        page = editor.client.post(f"{START}/create", data=sent)
        assert page.status_code == 200
        assert "0 monitors created" in page.text
    assert rows(app) == []


def test_only_the_import_form_accepts_a_file_within_its_limits(app, editor):
    file = {"file": (BytesIO(b"a"), "a")}
    assert editor.client.post("/login", data=file).status_code == 415
    kind = "multipart/form-data; boundary=a"
    large = b"a" * (4 * 1024 * 1024 + 1)
    refused = editor.client.post(START, data=large, content_type=kind)
    assert refused.status_code == 413
    assert "Import a larger one on the server" in refused.text
    many = {f"f{n}": (BytesIO(b"a"), "a") for n in range(300)}
    assert editor.client.post(START, data=many).status_code == 413
    mixed = {"Content-Type": "multipart/mixed; boundary=a"}
    assert editor.client.post(START, data=b"--a--", headers=mixed).status_code == 415


def test_invalid_or_long_text_is_shown_shortened_and_cleaned(editor):
    half, long = "\ud800", "x" * 100_000
    data = {"monitorList": [
        {"name": f"{half}{long}", "type": half, "url": f"https://{half}.example/{long}",
         "headers": {half: half}, "tags": [{"name": half + long, "value": half}]},
        {"name": f"b{half}", "type": "http", "url": "https://b.example", "headers": {half: half}},
    ]}  # fmt: skip
    upload(editor, json.dumps(data).encode())
    assert editor.status == 200
    assert len(editor.page.text) < 60_000
    assert "2 cannot be imported" in editor.text


def test_a_missing_contact_is_created_once_for_all_lines_that_name_it(app, editor):
    make_contact(app, "Ops")
    lines = "A, a.example.com, , Shop team; ops\nB, b.example.com, , shop TEAM\n"
    lines += "C, c.example.com, , dev@example.com\nD, d.example.com, , Nobody"
    editor.open(START).press("Preview", urls=lines)
    editor.shows("4 can be created", "New contacts", "Shop team", "dev@example.com", "Nobody")
    editor.press("Create 4 monitors", channel_2="none")
    editor.shows("Shop team Choose how it is reached, or that it is not created.", status=422)
    assert rows(app) == [], "nothing is created before everybody can be reached"
    hook = {"channel_0": "webhook", "value_0": "http://127.0.0.1:9/"}
    editor.press("Create 4 monitors", **hook).shows("4 monitors created")
    contacts = store_of(app).contacts
    assert list(contacts.names()) == ["dev@example.com", "Ops", "Shop team"]
    alerts = [[pair.value for pair in store_of(app).monitors.get(id).alerts] for id in (1, 2, 3, 4)]
    assert alerts == [["Shop team", "Ops"], ["Shop team"], ["dev@example.com"], []]
    assert contacts.get(contacts.id_of("dev@example.com")).channels[0].key == "email"


def test_a_contact_is_chosen_in_the_preview_for_those_that_alert_nobody(app, editor):
    editor.open(START).press("Preview", urls="A, a.example.com\nB, b.example.com")
    editor.shows("2 of these monitors alert nobody.")
    editor.press("Create 2 monitors", silent_email="dev")
    assert editor.status == 422
    editor.press("Create 2 monitors", silent_email="dev@example.com").shows("2 monitors created")
    editor.open(START).press("Preview", urls="C, c.example.com")
    editor.press("Create 1 monitor", silent_contact="dev@example.com").shows("1 monitor created")
    monitors = [store_of(app).monitors.get(id) for id in (1, 2, 3)]
    assert [[pair.value for pair in m.alerts] for m in monitors] == [["dev@example.com"]] * 3
    assert list(store_of(app).contacts.names()) == ["dev@example.com"]


def test_the_file_is_kept_while_the_list_is_changed(app, editor):
    make_contact(app, "Ops")
    upload(editor, b"A, https://a.example")
    editor.press("Preview", contacts=["Ops"], tags="new")
    editor.shows("1 can be created", "Alerts: Ops", "new", status=200)
    editor.press("Preview", urls="https://b.example").shows("https://b.example")
    editor.hides("https://a.example")


def test_the_next_import_starts_with_what_was_chosen_last(app, editor):
    make_contact(app, "Ops, night")
    chosen = {"interval": "300", "tags": "eu, shop", "contacts": ["Ops, night"], "format": "csv"}
    editor.open(START).press("Preview", urls="a.example.com", **chosen)
    form, _ = editor.open(START).form_with("Preview")
    expected = {("interval", "300"), ("tags", "eu, shop"), ("format", "csv"), ("urls", "")}
    assert expected | {("contacts", "Ops, night")} <= set(form.values)
    store_of(app).contacts.remove(1)
    form, _ = editor.open(START).form_with("Preview")
    assert "contacts" not in form.names(), "it is gone"
    assert expected <= set(form.values)


@pytest.mark.settings(allow_networks=None, rate_limit=0)
def test_a_preview_offers_the_networks_that_its_entries_need(app, admin):
    lines = "http://10.1.1.1/\nhttp://10.1.1.2/\ndns://127.0.0.1/shop.test\nhttp://localhost/"
    lines += "\nhttp://169.254.169.254/\nhttp://shop.example.com/"
    admin.open(START).press("Preview", urls=lines)
    admin.shows(
        "2 entries cannot be checked yet. 10.1.1.1 is", "1 entry cannot be checked yet. 169"
    )
    admin.hides("Allow 169")
    admin.press("Allow 10.0.0.0/8", pick=[1]).hides("10.1.1.1 is").shows("Allow 127.0.0.0/8")
    assert dict(admin.form_with("Preview")[0].values)["urls"].split() == lines.split()
    admin.press("Create 1 monitor")
    assert [row.url for row in rows(app)] == ["http://10.1.1.2/"]
