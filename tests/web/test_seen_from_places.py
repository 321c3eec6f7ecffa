"""The places on the pages of a monitor and of an incident (decision 14)."""

import re
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from app.db import db, journal, writing
from app.db.tables import AssignmentRow, DeliveryRow, PlaceRow, ResultRow
from app.engine import recorder
from app.records import IncidentQuery, PageQuery
from app.stores import current_store
from tests.factories import make_monitor, make_outcome, now
from tests.support.store import store_of

NAMES = ("berlin", "oslo", "sydney")


@pytest.fixture
def incident(app) -> int:
    """The id of an incident that two of three places see."""
    with app.app_context():
        ids = [journal.place_id(name) for name in NAMES]
        with writing() as session:
            session.get(PlaceRow, ids[2]).label = "Sydney"
        alerts = [["email", "ops@example.test"]]
        id = make_monitor(app, places=ids, confirmations=0, alerts=alerts).id
        start = now() - timedelta(seconds=50)
        for second, verdict in ((0, "up"), (40, "down")):
            for number, name in enumerate(("berlin", "sydney", "oslo")):
                at = start + timedelta(seconds=second, milliseconds=number)
                from_place = "up" if name == "sydney" else verdict
                fields = {"status_code": 200, "response_time": 310} if from_place == "up" else {}
                outcome = make_outcome(from_place, at, location=name, **fields)
                recorder.record([(id, outcome)], at, location=name)
        return current_store().monitors.get(id).open_incident_id


def test_an_incident_says_who_saw_it_and_who_did_not(app, editor, incident):
    with app.app_context():
        facts = db.session.scalars(select(DeliveryRow.facts)).one()
    assert facts["incident"]["seen_from"] == "2 of 3 places; Sydney still gets 200"
    for path in ("/", "/incidents", "/monitors/1"):
        assert "Seen from berlin, oslo" in editor.open(path).text, path
    editor.open(f"/incidents/{incident}").shows("Seen from 2 of 3 places; Sydney still gets 200")
    assert "berlin Down The server refused." in editor.text
    assert "Sydney Up HTTP 200, 310 ms" in editor.text
    assert "What it saw" in editor.text, "of berlin, which failed before there was a majority"
    failed = re.findall(r"When it failed \S+ (\w+)", editor.text)
    assert failed == ["oslo"], "whose check made it a majority"


@pytest.mark.parametrize(("place", "names"), [("sydney", ["Sydney"]), ("default", [])])
def test_an_incident_of_one_place_names_it_unless_it_is_the_servers_own(app, editor, place, names):
    """Otherwise people look for the failure from the server, which never saw it."""
    with app.app_context():
        id = journal.place_id(place)
        with writing() as session:
            session.get(PlaceRow, id).label = place.title()
        alerts = [["email", "ops@example.test"]]
        monitor = make_monitor(app, places=[id], confirmations=0, alerts=alerts).id
        outcome = make_outcome("down", now(), location=place)
        recorder.record([(monitor, outcome)], now(), location=place)
        incident = current_store().monitors.get(monitor).open_incident_id
        assert list(current_store().incidents.get(incident).seen_by) == names
        facts = db.session.scalars(select(DeliveryRow.facts)).one()["incident"]
    assert (facts["seen_by"], facts["seen_from"]) == (names, names[0] if names else None)
    for path in ("/incidents", f"/incidents/{incident}"):
        editor.open(path)
        assert ("Seen from Sydney" in editor.text) is bool(names)


@pytest.fixture
def silenced(app) -> int:
    """The id of an incident that ended because the one place that saw it fell silent."""
    with app.app_context():
        ids = [journal.place_id(name) for name in ("berlin", "sydney")]
        with writing() as session:
            session.get(PlaceRow, ids[1]).label = "Sydney"
        id = make_monitor(app, places=ids, confirmations=0, location_rule="any").id
        start = now() - timedelta(minutes=10)
        for minute in range(7):
            at = start + timedelta(minutes=minute)
            recorder.record([(id, make_outcome("up", at))], at, location="berlin")
            if minute == 1:
                recorder.record([(id, make_outcome("down", at))], at, location="sydney")
        return current_store().incidents.list(IncidentQuery()).items[0].id


def test_no_page_calls_the_end_by_silence_a_recovery_and_all_name_the_place(editor, silenced):
    ending = "Ended after at most 3 min: Sydney fell silent"
    for path in ("/", "/incidents", "/monitors/1"):
        assert ending in editor.open(path).text, path
        editor.hides("Recovered", "Up again")
    editor.open("/").shows("The server refused. Seen from Sydney")
    steps = editor.open(f"/incidents/{silenced}").text.partition("Timeline")[2]
    order = ("Incident opened", "No results from where it was seen", "Wakeful wrote", "Over")
    assert sorted(order, key=steps.index) == list(order), "in the order of their times"
    assert "State Over" in editor.text
    assert "Resolved" not in editor.text
    assert "Resolved" not in editor.open("/monitors/1").text


def test_the_api_says_what_ended_an_incident_in_lists_too(app, silenced):
    (brief,) = store_of(app).incidents.list(IncidentQuery(brief=True)).items
    whole = store_of(app).incidents.get(silenced)
    for incident in (brief, whole):
        assert (incident.ending, incident.seen_by) == ("silence", ("Sydney",))
        ((since, to),) = incident.unwatched
        assert since == whole.started_at
        assert (to, incident.duration) == (whole.ended_at, 180)


def test_a_monitor_shows_its_response_time_by_place(editor, incident):
    editor.open("/monitors/1")
    editor.shows("Down when more than half of them fail", "Sydney Up", "310 ms 310 ms 310 ms")
    legend = editor.text.partition("Response time")[2].partition("Places")[0]
    assert "berlin oslo Sydney p95" in legend
    assert "Average" not in legend
    assert "Sydney: 310 ms to 310 ms." in editor.text
    assert "Sydney: 310 ms" not in editor.open("/monitors/1?range=7d").text
    assert "Average p95" in editor.text, "only sums of all places are kept at hand"


def test_the_api_gives_what_each_place_sees(app, incident):
    places = store_of(app).locations.of_monitor(1)
    assert [(place.name, place.verdict, place.checks, place.average) for place in places] == [
        ("berlin", "down", 1, 310),
        ("oslo", "down", 1, 310),
        ("sydney", "up", 2, 310),
    ]


def test_each_check_says_where_it_was_made_and_one_place_can_be_chosen(editor, incident):
    table = editor.open("/monitors/1").page.text.partition("Recent checks")[2]
    assert re.findall(r'data-label="Place">(\w+)<', table)[:3] == ["oslo", "Sydney", "berlin"]
    editor.open("/monitors/1/checks?location=sydney")
    assert re.findall(r'data-label="Place">(\w+)<', editor.page.text) == ["Sydney", "Sydney"]
    assert editor.open("/monitors/1/checks?location=paris").status == 422


def test_a_deleted_place_is_named_as_such(app, editor, incident):
    store_of(app).monitors.update(1, {"locations": ("berlin",)})
    (oslo,) = [
        place for place in store_of(app).locations.list(PageQuery()).items if place.name == "oslo"
    ]
    store_of(app).locations.delete(oslo.id)
    text = editor.open("/monitors/1/checks").page.text
    shown = re.findall(r'data-label="Place">([\w ]+)<', text)
    assert shown[:3] == ["Deleted place", "Sydney", "berlin"]


def test_a_monitor_with_one_place_says_nothing_of_places(app, editor):
    monitor = make_monitor(app)
    with app.app_context():
        recorder.record([(monitor.id, make_outcome("up", now()))], now())
    for path in ("", "/checks"):
        page = editor.open(f"/monitors/{monitor.id}{path}").page.text
        assert "checks" in page
        assert ">Place<" not in page
        assert 'name="location"' not in page


def test_a_silent_place_keeps_the_time_of_its_last_check(app, incident):
    later = now() + timedelta(hours=1)
    with app.app_context(), writing() as session:
        for row in session.scalars(select(AssignmentRow)):
            row.checked_at = later - timedelta(hours=2)
        session.execute(update(ResultRow).values(at=ResultRow.at - 7_200_000))
    places = store_of(app).locations.of_monitor(1)
    assert {place.verdict for place in places} == {None}
    assert {place.checked_at for place in places} == {later - timedelta(hours=2)}
