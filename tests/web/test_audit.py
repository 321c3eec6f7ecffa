"""The page of the audit log, its filters and its export."""

import html
import json
import re
from datetime import UTC, datetime, timedelta

from sqlalchemy import insert

from app.access import actors, audit_log
from app.access.audit import SETTINGS, TABLES
from app.access.second_factor import REQUIRED_ROLES
from app.db import db, writing
from app.db.tables import AuditRow
from app.records import (
    AUDIT_DAYS,
    KIND_OPTIONS,
    Actor,
    ActorKind,
    AuditedObject,
    ComponentName,
    Group,
    ObjectKind,
    Pair,
)
from app.rules.time import iso
from app.stores import current_store
from app.web.shown.audit import field_name, setting_name
from tests.factories import make_monitor

NOW = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)


def lines_of(answer):
    return [json.loads(line) for line in answer.get_data(as_text=True).splitlines()]


def fill(app, count, *, start=NOW, **columns):
    """``count`` lines, a second apart, the last at ``start``."""
    line = {
        "actor_kind": "person", "actor_id": 1, "actor_name": "ada@example.com", "address": None,
        "action": "changed", "object_kind": "monitor", "object_id": 5, "object_name": "Shop",
        "changes": {}, "words_folded": "ada@example.com\nshop\n",
    }  # fmt: skip
    rows = [{**line, "at": start - timedelta(seconds=number), **columns} for number in range(count)]
    with app.app_context(), writing() as session:
        session.execute(insert(AuditRow), rows)


def test_an_admin_reads_who_changed_what_and_from_where(app, admin, editor):
    name = "<script>alert(1)</script>"
    editor.open("/monitors/new").press("Save", name=name, url="https://shop.example/")
    editor.open("/monitors/1").press("Pause")
    admin.open("/audit")
    admin.shows("editor@", "127.0.0.1", "Created", "Paused", f"Monitor {name}", "shop.example")
    assert name not in admin.page.text
    assert admin.page.headers["Cache-Control"] == "no-store"
    admin.open("/audit?action=paused").shows("Paused").hides("https://shop.example/")


def test_filters_find_by_person_action_object_time_and_word(app, admin):
    fill(app, 1)
    fill(app, 1, actor_id=2, actor_name="bob@example.com", words_folded="bob@example.com\n")
    fill(app, 1, action="deleted", object_name="Deleted one")
    fill(app, 1, object_kind="contact", object_name="On call")
    fill(app, 1, start=NOW - timedelta(days=3), object_name="Older one")

    def names(query):
        return {
            (line["actor"]["name"], line["object"]["name"])
            for line in lines_of(admin.client.get(f"/audit.jsonl?{query}"))
            if line["actor"]["name"] != "admin@wakeful.test"  # who logged in to read it
        }

    ada, bob = "ada@example.com", "bob@example.com"
    assert len(names("")) == 5
    assert names("actor_kind=person&actor_id=2") == {(bob, "Shop")}
    assert names("search=BOB@") == {(bob, "Shop")}
    assert names("action=deleted") == {(ada, "Deleted one")}
    assert names("object_kind=contact") == {(ada, "On call")}
    assert names("to=2026-11-21T00:00:00Z") == {(ada, "Older one")}
    assert (ada, "Older one") not in names("from=2026-11-21T00:00:00Z")
    assert names("search=100%25") == set()


def test_what_a_filter_cannot_read_is_named_and_no_id_is_too_large(admin):
    admin.open("/audit?from=yesterday").shows("From", status=422)
    assert admin.open("/audit?before=nonsense").status == 422
    for id in ("99999999999999999999", "0"):
        assert admin.open(f"/audit?object_kind=monitor&object_id={id}").status == 200
        assert "Nothing matches" in admin.text


def test_pages_go_back_line_by_line_without_a_gap_or_a_repetition(app, admin):
    for number in range(0, 120, 3):  # three of each moment: the id decides
        for third in range(3):
            moment = NOW - timedelta(minutes=number)
            fill(app, 1, start=moment, object_name=f"Line {number + third}.")
    numbers, address = [], "/audit?object_kind=monitor&object_id=5"
    while address:
        admin.open(address)
        numbers += re.findall(r"Monitor Line (\d+)\.", admin.text)
        forward = re.search(r'rel="next" href="([^"]+)"', admin.page.text)
        address = html.unescape(forward[1]) if forward else None
    assert sorted(map(int, numbers)) == list(range(120))


def test_a_search_says_how_far_it_has_looked_and_goes_on(app, admin, monkeypatch):
    monkeypatch.setattr(audit_log, "MAX_SEARCHED", 40)
    fill(app, 100)
    fill(app, 1, start=NOW - timedelta(hours=1), words_folded="needle\n", object_name="Needle")
    admin.open("/audit?search=needle").shows("Searched back to").hides("Needle")
    for _step in range(3):
        if "Monitor Needle" in admin.text:
            break
        forward = re.search(r'rel="next" href="([^"]+)"', admin.page.text)
        admin.open(html.unescape(forward[1]))
    assert "Monitor Needle" in admin.text
    lines = lines_of(admin.client.get("/audit.jsonl?search=needle&object_kind=monitor"))
    assert [line["object"]["name"] for line in lines] == ["Needle"]


def test_the_export_is_json_lines_and_leaves_a_line_itself(app, admin, monkeypatch):
    monkeypatch.setattr(audit_log, "EXPORTED_PER_STATEMENT", 7)
    fill(app, 30, changes={"interval": {"old": 60, "new": 300}, "alerts": "changed"})
    answer = admin.client.get("/audit.jsonl?object_kind=monitor")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.mimetype == "application/jsonl"
    lines = lines_of(answer)
    assert len({line["id"] for line in lines}) == 30
    assert lines[0]["at"] == "2026-11-23T08:00:00Z"
    assert lines[0]["changes"] == {"interval": {"old": 60, "new": 300}, "alerts": "changed"}
    admin.open("/audit").shows("Exported")


def test_lines_are_kept_for_400_days(app):
    fill(app, 1, start=datetime.now(UTC) - timedelta(days=AUDIT_DAYS, minutes=1))
    fill(app, 1, start=datetime.now(UTC) - timedelta(days=AUDIT_DAYS - 1))
    with app.app_context():
        app.extensions["wakeful.access"].audit.forget_old()
        assert db.session.query(AuditRow).count() == 1


def test_one_request_does_not_act_in_the_name_of_the_one_before(app, admin, stranger):
    admin.open("/monitors")
    assert actors.actor() is None
    stranger.open("/login")
    assert actors.actor() is None


def test_every_field_of_the_log_has_the_name_that_a_form_gives_it(app):
    def bare(kind, names):
        of = AuditedObject(kind, 1)
        return [(kind, name) for name in names if field_name(of, name) == name]

    with app.test_request_context():
        for table in TABLES.values():
            assert bare(table.kind, {*table.columns.values()} - {"options"}) == []
        assert bare(ObjectKind.MONITOR, KIND_OPTIONS) == []  # what that column holds
        assert field_name(AuditedObject(ObjectKind.MONITOR, 1), "interval") == "Interval"
        assert field_name(AuditedObject(ObjectKind.MONITOR, 1), "gone_since") == "gone_since"
        for name in (*SETTINGS, REQUIRED_ROLES):
            assert setting_name(name) != name
        for name in ("value", "host", "port", "tls", "user", "sender", "password", "roles"):
            assert field_name(AuditedObject(ObjectKind.SETTING, None, "smtp_url"), name) != name


def test_the_page_says_fields_and_settings_in_the_words_of_the_forms(app, admin):
    setting = {"object_kind": "setting", "object_id": None, "object_name": "allow_networks"}
    fill(app, 1, **setting, changes={"value": {"old": "", "new": "private"}})
    admin.open("/audit?object_kind=setting")
    assert "Networks that checks and alerts may reach Value – → private" in admin.text
    assert "allow_networks" not in admin.text


def test_a_line_says_how_many_failures_it_stands_for(app, admin):
    changes = {"left_out": {"old": None, "new": 17}, "first": {"old": None, "new": iso(NOW)}}
    fill(app, 1, action="login_failed", object_kind="person", changes=changes)
    admin.open("/audit?action=login_failed")
    assert "Failures counted together 17 First 2026-11-23T08:00:00Z" in admin.text


def test_admins_get_from_an_object_to_its_lines(app, admin, editor):
    with app.app_context():
        store = current_store()
        for name in ("Shop", "Blog"):
            store.monitors.create({"name": name, "url": f"https://{name}.example/", "interval": 60})
        store.contacts.create({"name": "Ops", "channels": (Pair("email", "a@example.com"),)})
        store.status_pages.create({"name": "Our status"})
    editor.open("/keys").press("Create key", name="CI")
    for page, kind in (
        ("/monitors/1", "monitor"),
        ("/contacts/1", "contact"),
        ("/status-pages/1", "status_page"),
        ("/people/2", "person"),
        ("/keys", "key"),
    ):
        of_kind = rf'href="(/audit\?object_kind={kind}&amp;object_id=\d+)"'
        link = re.search(of_kind, admin.open(page).page.text)
        assert link, page
        admin.open(html.unescape(link[1]))
        assert "Created" in admin.text, page
        assert "Blog" not in admin.text, page
        assert "/audit" not in editor.open(page).page.text, page


def test_the_log_says_what_it_shows_and_names_what_changes_point_at(app, admin, editor):
    """The lines include objects that were deleted since: the log itself has their names."""
    for name in ("Checkout", "Search", "Gone"):
        make_monitor(app, name=name)
    editor.open("/status-pages/new").press("Save", name="Our status")
    fields = {"names": [ComponentName(2, "Find")], "groups": [Group("Shop", (1, 2))]}
    with app.app_context(), actors.acting_as(Actor(ActorKind.COMMAND, "ops")):
        pages, monitors = current_store().status_pages, current_store().monitors
        pages.update(1, {"monitors": (1, 3)})
        pages.update(1, {"monitors": (1, 2), **fields})
        monitors.delete(3)
    fill(app, 1, object_kind="status_page", object_id=1, object_name="Our status",
         changes={"monitors": {"old": [4711], "new": None}})  # fmt: skip
    admin.open("/audit?object_kind=status_page&object_id=1")
    admin.shows("Changes to Our status", "Checkout, Gone → Checkout, Search", "#4711")
    admin.shows("Search: Find", "Shop (Checkout, Search)", "8 fields")
    assert '<details class="small"><summary>8 fields' in admin.page.text
    admin.open("/audit?actor_kind=person&actor_id=2").shows("What editor@wakeful.test has done")
    admin.open("/audit?object_kind=contact&object_id=9").shows("Changes to #9")
