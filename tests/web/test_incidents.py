"""Incidents in a browser that runs no script."""

import html
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from app.access.tokens import acknowledgement_token
from app.db import db
from app.db.tables import IncidentRow
from app.errors import Conflict
from app.records import MAX_COMMENT
from app.rules import comments
from tests.factories import make_delivery, make_incident, make_monitor, make_person, now
from tests.support.store import store_of
from tests.web import scene
from tests.web.visitor import Visitor


def row(app, id=1):
    with app.app_context():
        incident = db.session.get(IncidentRow, id)
        db.session.expunge_all()
        return incident


def test_an_incident_is_seen_acknowledged_commented_resolved_reopened_and_deleted(app, editor):
    monitor = make_monitor(app, name="Shop")
    make_incident(app, monitor, cause="The server answered <503>", evidence=scene.EVIDENCE)
    editor.open("/").open("/incidents/1").shows("The server answered <503>")
    assert "<script>alert" not in editor.page.text
    assert "&lt;script&gt;alert" in editor.page.text
    editor.press("Acknowledge").shows("Acknowledged by editor@wakeful.test")
    editor.press("Add comment", text="See https://wiki.example/disk.\n<b>Disk</b> is full.")
    editor.shows("editor@wakeful.test wrote", "<b>Disk</b> is full.")
    assert '<a href="https://wiki.example/disk"' in editor.page.text
    assert "<b>Disk" not in editor.page.text
    editor.press("Add comment", text="").shows("This field is required.", status=422)
    editor.open("/incidents/1").press("Resolve")
    assert row(app).ended_at is not None
    editor.press("Reopen")
    assert row(app).ended_at is None
    editor.open("/incidents/1/delete").press("Delete this incident")
    assert row(app) is None


def test_all_that_was_seen_stands_on_the_page(app, editor):
    cause, started = scene.UNAVAILABLE, datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
    monitor = make_monitor(app)
    make_incident(app, monitor, cause=cause, started_at=started, evidence=scene.EVIDENCE)
    text = editor.open("/incidents/1").text
    for evidence in (scene.EVIDENCE["failing"], scene.EVIDENCE["last_good"]):
        for certificate in evidence["tls"]:
            assert certificate["subject"] in text
            assert certificate["issuer"] in text
        for words in (
            evidence["status_line"],
            *evidence["resolved"],
            *map(": ".join, evidence["headers"]),
        ):
            assert words in text
    assert "Failed 3 times in 24 s" in text
    earlier = "good check at 21 Nov 2026 07:59:00, 1 min earlier"
    assert f"What changed Compared with the last {earlier}. Status 503, was 200" in text
    assert f"Last {earlier}" in text


def test_a_slow_check_is_not_called_good_beside_a_slow_incident(app, viewer):
    failing, good = (scene.EVIDENCE[name] for name in ("failing", "last_good"))
    evidence = {"failing": failing, "last_good": good | {"verdict": "degraded"}}
    make_incident(app, make_monitor(app), severity="degraded", evidence=evidence)
    text = viewer.open("/incidents/1").text
    assert "Slow check at" in text
    assert "ood check" not in text


def test_a_comment_that_does_not_fit_is_refused_and_kept_in_the_form(app, editor):
    make_incident(app, make_monitor(app), comment="x" * 9_990)
    editor.open("/incidents/1").press("Add comment", text="one more thought")
    editor.shows("too long", status=422)
    assert dict(editor.form_with("Add comment")[0].values)["text"] == "one more thought"
    assert row(app).comment == "x" * 9_990


def test_an_incident_is_reported_by_hand(app, editor):
    make_monitor(app, name="Shop")
    editor.open("/incidents/new?monitor_id=1").press("Report an incident", cause="Customers call")
    assert editor.path == "/incidents/1"
    assert "Reported manually" in editor.text
    editor.open("/incidents/new").press("Report an incident", monitor_id="1", cause="Again")
    editor.shows("Open that incident", status=409)
    assert dict(editor.form_with("Report an incident")[0].values)["cause"] == "Again", "it is kept"
    editor.open("/incidents/new").press("Report an incident", cause="Which one?")
    assert editor.status == 422
    later = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    editor.press("Report an incident", monitor_id="1", started_at=later).shows("in the future")


def test_edit_corrects_times_and_cause(app, editor):
    make_incident(app, make_monitor(app), started_at=now() - timedelta(hours=2))
    ended = (now() - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S")
    editor.open("/incidents/1/edit").press("Save", ended_at=ended, cause="A cable")
    assert editor.path == "/incidents/1"
    assert row(app).cause == "A cable"
    editor.open("/incidents/1/edit").press("Save", ended_at="2001-01-01T00:00")
    editor.shows("before the incident started", status=422)


def test_the_list_filters_by_status_search_and_monitor(app, editor):
    shop, docs = make_monitor(app, name="Shop"), make_monitor(app, name="Docs")
    make_incident(app, shop, cause="Disk full")
    make_incident(app, docs, cause="Cable cut", ended_at=now() + timedelta(seconds=5))
    for query, names in {
        "": {"Shop", "Docs"},
        "?status=unresolved": {"Shop"},
        "?status=resolved": {"Docs"},
        "?status=acknowledged": set(),
        "?search=cable&search_by=cause": {"Docs"},
        f"?monitor_id={shop.id}": {"Shop"},
        "?monitor_id=99": set(),
    }.items():
        text = editor.open(f"/incidents{query}").text
        assert {name for name in ("Shop", "Docs") if name in text} == names, query


def test_a_link_from_an_alert_acknowledges_by_one_click_without_a_login(app, stranger, editor):
    incident = make_incident(app, make_monitor(app, name="Shop"))
    with app.app_context():
        token = acknowledgement_token(incident.id, "a link in the email to ops@example.com")
    for method in ("HEAD", "OPTIONS"):  # as mail scanners and previews ask
        stranger.client.open(f"/acknowledge/{token}", method=method)
    assert stranger.client.post(f"/acknowledge/{token}").status_code in (400, 422), "not by itself"
    stranger.open(f"/acknowledge/{token}")
    assert row(app).acknowledged_at is None, "opening the link alone must change nothing"
    via = "Somebody, from a link in the email to ops@example.com"
    stranger.press("Acknowledge").shows(f"Acknowledged by {via}, just now")
    assert row(app).acknowledged_by == via
    assert not stranger.forms, "there is nothing left to press"
    assert stranger.open(f"/acknowledge/{token}x").status == 404
    other = make_incident(app, make_monitor(app))
    with app.app_context():
        token, gone = acknowledgement_token(other.id, "a link"), acknowledgement_token(77)
    editor.open(f"/acknowledge/{token}").press("Acknowledge")
    assert row(app, other.id).acknowledged_by == "editor@wakeful.test", "who is logged in"
    assert stranger.open(f"/acknowledge/{gone}").status == 404
    assert "no longer exists" in stranger.text


def test_a_name_given_behind_the_link_is_shown_and_remembered_on_the_device(app, stranger):
    first = make_incident(app, make_monitor(app))
    second = make_incident(app, make_monitor(app))
    with app.app_context():
        tokens = [
            acknowledgement_token(incident.id, "a link in Slack") for incident in (first, second)
        ]
    stranger.open(f"/acknowledge/{tokens[0]}").press("Acknowledge", name="x" * 81)
    assert stranger.status == 422
    assert row(app).acknowledged_at is None
    stranger.press("Acknowledge", name="Ada").shows("by Ada, from a link in Slack")
    assert row(app).acknowledged_by == "Ada, from a link in Slack"
    stranger.open(f"/acknowledge/{tokens[1]}")
    assert dict(stranger.form_with("Acknowledge")[0].values)["name"] == "Ada"
    stranger.press("Acknowledge", name="").shows("by Somebody, from a link in Slack")


def test_the_link_of_a_message_about_several_offers_all_of_them(app, stranger):
    incidents = [make_incident(app, make_monitor(app, name=f"Shop {n}")) for n in range(4)]
    store_of(app).incidents.update(incidents[3].id, {"ended_at": now()})
    storm = make_delivery(app, event="incidents.opened")
    for incident in incidents:
        make_delivery(app, incident_id=incident.id, status="held", covered_by=storm)
    alone = make_incident(app, make_monitor(app))
    with app.app_context():
        token = acknowledgement_token(incidents[0].id, "a link in Slack", storm)
    stranger.open(f"/acknowledge/{token}").shows(
        "Acknowledge 3 incidents of this message", "Shop 2"
    )
    stranger.press("Acknowledge 3 incidents of this message", name="Ada")
    stranger.shows("Acknowledged by Ada, from a link in Slack").hides("of this message")
    by = [row(app, incident.id).acknowledged_by for incident in (*incidents, alone)]
    assert by == ["Ada, from a link in Slack"] * 3 + [None, None]


def test_one_of_several_is_acknowledged_alone_and_the_others_stay_on_offer(app, stranger):
    incidents = [make_incident(app, make_monitor(app, name=f"Shop {n}")) for n in range(3)]
    storm = make_delivery(app, event="incidents.opened")
    for incident in incidents:
        make_delivery(app, incident_id=incident.id, status="held", covered_by=storm)
    with app.app_context():
        token = acknowledgement_token(incidents[0].id, "a link in Slack", storm)
    stranger.open(f"/acknowledge/{token}").press("Acknowledge")
    stranger.shows("Acknowledged by Somebody", "Acknowledge 2 incidents of this message")
    assert [row(app, incident.id).acknowledged_at is None for incident in incidents] == [
        False, True, True,
    ]  # fmt: skip


def test_remarks_survive_what_people_write():
    at = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
    text = comments.add("Imported from elsewhere", "First\n\nwith a gap", "ada@example.org", at)
    text = comments.add(text, "[not a head]", "bob@example.org", at + timedelta(minutes=1))
    remarks = comments.remarks(text)
    assert [(remark.who, remark.text) for remark in remarks] == [
        (None, "Imported from elsewhere"),
        ("ada@example.org", "First\n\nwith a gap"),
        ("bob@example.org", "[not a head]"),
    ]
    assert remarks[1].at == at
    assert comments.remarks("[2026-02-31 08:00:00 UTC, x]\nno such day")[0].at is None
    assert comments.remarks(None) == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_no_remark_is_written_in_the_name_of_another_person(end):
    at = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
    forged = f"On it.{end}{end}[2026-11-20 09:00:00 UTC, boss@example.org]{end}Fire everybody."
    text = comments.add(None, "First", "ada@example.org", at)
    text = comments.add(text, forged, "mallory@example.org", at + timedelta(minutes=1))
    text = comments.add(text, forged.removeprefix("On it."), "x], [y", at + timedelta(minutes=2))
    assert [remark.who for remark in comments.remarks(text)] == [
        "ada@example.org", "mallory@example.org", "x), (y",
    ]  # fmt: skip
    assert "Fire everybody." in comments.remarks(text)[1].text
    long = forged.ljust(MAX_COMMENT, "x")  # there is no room for the head of its own
    opened = comments.opening({"comment": long}, "mallory@example.org", at)["comment"]
    assert [remark.who for remark in comments.remarks(opened)] == [None]
    assert len(opened) <= MAX_COMMENT


def test_the_list_refreshes_itself_and_costs_nothing_while_nothing_happens(app, viewer):
    monitor = make_monitor(app, name="Shop")
    ask = {"X-Fragment": "live"}
    first = viewer.client.get("/incidents", headers=ask)
    assert "No incidents" in first.text
    assert "<html" not in first.text
    headers = ask | {"If-None-Match": first.headers["ETag"]}
    assert viewer.client.get("/incidents", headers=headers).status_code == 304
    make_incident(app, monitor, cause="It burns")
    assert "It burns" in viewer.client.get("/incidents", headers=headers).text


def test_comments_at_the_same_moment_are_all_kept(app, editor):
    make_incident(app, make_monitor(app))
    with pytest.raises(Conflict):
        store_of(app).incidents.update(1, {"comment": "late"}, expected={"comment": "another"})

    def write(number: int) -> int:
        # Not by the login form: of four who log in at once, one is asked to wait.
        person = Visitor(app).let_in(second)
        return person.open("/incidents/1").press("Add comment", text=f"note {number}").status

    second = make_person(app, "editor", "second@example.org")
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(write, range(8))) == {200}
    assert all(f"note {number}" in row(app).comment for number in range(8))


def test_the_heads_of_the_list_sort_it(app, viewer):
    monitors = [make_monitor(app, name=name) for name in ("First", "Second")]
    hour = timedelta(hours=1)
    for number, monitor in enumerate(monitors):
        start = now() - (5 - number) * hour
        make_incident(app, monitor, started_at=start, ended_at=now() - (1 + number) * hour)
    viewer.open("/incidents")
    assert 'aria-sort="descending"' in viewer.page.text
    link = re.search(r'class="sort" href="([^"]*sort_by=started_at[^"]*)"', viewer.page.text)[1]
    shown = viewer.open(html.unescape(link)).text
    assert shown.index("Second") < shown.index("First")
    other = re.search(r'class="sort" href="([^"]*sort_by=started_at[^"]*)"', viewer.page.text)[1]
    shown = viewer.open(html.unescape(other)).text
    assert shown.index("First") < shown.index("Second")
