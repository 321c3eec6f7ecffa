"""Ctrl-K: what it finds, for whom, and what it does."""

import re

from app.db import db
from app.db.tables import IncidentRow, MonitorRow
from app.web.views.jump import matching_actions
from tests.factories import make_incident, make_monitor
from tests.support.store import store_of

NAME = re.compile(r'<b class="break">([^<]*)</b>')


def entries(visitor, query, script=True):
    headers = {"X-Fragment": "jump"} if script else {}
    assert visitor.open(f"/jump?q={query}", headers=headers).status == 200
    return NAME.findall(visitor.page.text)


def test_pages_are_found_by_what_people_call_them(admin):
    for query, page in (
        ("uptime", "Reports"), ("SLA", "Reports"), ("silence", "Maintenance"),
        ("mute", "Maintenance"), ("webhook", "Contacts"), ("slack", "Contacts"),
        ("smtp", "Email settings"), ("users", "People"), ("dark", "Profile"),
        ("new mon", "New monitor"), ("add contact", "New contact"),
    ):  # fmt: skip
        assert entries(admin, query)[0] == page, query


def test_a_verb_and_a_name_are_an_action_in_either_order(app, editor):
    make_monitor(app, name="Web shop")
    make_monitor(app, name="Shop")
    for query in ("pause shop", "shop pause", "PAU Shop"):
        assert entries(editor, query)[:2] == ["Pause Shop", "Pause Web shop"]
    assert entries(editor, "check shop now")[0] == "Check Shop now"
    assert entries(editor, "mute shop")[0] == "Plan maintenance of Shop"
    assert "Resume Shop" not in entries(editor, "resume shop")


def test_an_action_is_sent_as_a_form_with_a_token_and_never_opened(app, editor):
    monitor = make_monitor(app, name="Shop")
    entries(editor, "pause shop", script=False)
    assert f'href="/monitors/{monitor.id}/pause"' not in editor.page.text
    editor.press("Pause Shop ActionEnter").shows("Shop paused.")
    with app.app_context():
        assert db.session.get(MonitorRow, monitor.id).paused
    assert entries(editor, "pause shop") == []
    assert entries(editor, "resume")[0] == "Resume Shop"
    assert editor.client.get(f"/monitors/{monitor.id}/resume").status_code == 405
    assert editor.client.post(f"/monitors/{monitor.id}/resume").status_code == 400  # no token


def test_letters_inside_the_name_of_a_page_come_after_what_they_begin(app, admin):
    """Enter takes the first, and "Backup" has "ack" in it."""
    make_incident(app, make_monitor(app, name="Shop"))
    assert entries(admin, "ack") == ["Acknowledge Shop", "Backup"]
    assert entries(admin, "eport") == ["Report an incident", "Reports"]


def test_open_incidents_are_acknowledged_from_the_list(app, editor):
    incident = make_incident(app, make_monitor(app, name="Shop"), cause="The server answered 503.")
    make_incident(app, make_monitor(app, name="Mail"), ended_at=None)
    assert entries(editor, "ack shop", script=False)[0] == "Acknowledge Shop"
    assert entries(editor, "acknowledge")[:2] == ["Acknowledge Mail", "Acknowledge Shop"]
    entries(editor, "ack shop", script=False)
    editor.press("Acknowledge Shop The server answered 503.Enter")
    assert "Acknowledged. Others can see that you are on it." in editor.text
    with app.app_context():
        assert db.session.get(IncidentRow, incident.id).acknowledged_at
    assert entries(editor, "acknowledge")[0] == "Acknowledge Mail"


def test_a_name_alone_finds_the_monitor_before_its_actions(app, editor):
    make_incident(app, make_monitor(app, name="Shop", tags="\nshop-team\nprod\n"))
    names = entries(editor, "shop")
    assert names[0] == "Shop"
    assert names[1:5] == ["Acknowledge Shop", "Check Shop now", "Pause Shop",
                          "Plan maintenance of Shop"]  # fmt: skip
    assert "shop-team" in names
    assert "Shop: The server refused the connection" in names


def test_a_verb_alone_never_puts_an_action_before_a_page_or_a_monitor(app, editor):
    make_monitor(app, name="Checkout")
    names = entries(editor, "check")
    assert names[0] == "Checkout"
    assert names.index("Check Checkout now") > 0


def test_a_tag_leads_to_its_monitors(app, viewer):
    make_monitor(app, tags="\nProd-EU\n")
    assert "Prod-EU" in entries(viewer, "prod")
    assert 'href="/monitors?tag=Prod-EU"' in viewer.page.text


def test_a_viewer_finds_what_they_may_see_and_nothing_that_changes(app, viewer):
    make_incident(app, make_monitor(app, name="Shop"))
    for query in ("shop", "pause shop", "ack shop", "check", "new", "mute", "settings", "invite"):
        names = entries(viewer, query)
        begins = ("Pause", "Check ", "Acknowledge", "Plan", "New ", "Invite", "Settings")
        assert not [name for name in names if name.startswith(begins)], query
        assert "<form" not in viewer.page.text.partition('id="main"')[0]
    assert entries(viewer, "shop")[0] == "Shop"


def test_a_query_of_no_words_asks_for_no_action(app):
    with app.app_context():
        assert matching_actions(" ", named=False) == matching_actions("", named=True) == []


def test_a_search_without_matches_says_so(editor):
    assert entries(editor, "zzz") == []
    assert "No matches." in editor.page.text


def test_names_are_shown_as_text(app, editor):
    make_monitor(app, name="<script>alert(1)</script> & co")
    entries(editor, "script")
    assert "<script>alert" not in editor.page.text
    assert "Pause &lt;script&gt;" in editor.page.text


def test_a_place_is_found_by_its_name_and_its_label(app, editor, viewer):
    store_of(app).locations.create({"name": "osl-1", "label": "Norway, Oslo"})
    for query in ("osl", "oslo", "norw"):
        assert entries(editor, query) == ["Norway, Oslo"]
        assert 'href="/settings/locations/2/edit"' in editor.page.text
    assert entries(viewer, "oslo") == ["Norway, Oslo"]
    assert 'href="/settings/locations"' in viewer.page.text, "where they may look"
    assert "Norway, Oslo" not in entries(viewer, "o"), "one letter is in too many names"


def test_the_words_of_a_query_may_stand_apart_in_the_name(app, editor):
    make_monitor(app, name="Shop service 1")
    make_monitor(app, name="Shop service 2")
    editor.open("/jump?q=shop 1").shows_in_order("Shop service 1", "Check Shop service 1 now")
    editor.open("/jump?q=pause 2 shop").shows("Pause Shop service 2").hides("service 1")
