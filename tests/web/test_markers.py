"""Markers on the dashboard: added, listed, deleted, and shown on charts and incidents."""

import itertools
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.records import MarkerQuery
from app.web.shown.markers import Lettering, marker_lines, unnamed
from tests.factories import make_incident, make_monitor, now
from tests.support.store import store_of


def add(app, name="shop v2.1", **fields):
    return store_of(app).markers.create({"name": name} | fields)


def stored(app):
    return list(store_of(app).markers.list(MarkerQuery()).items)


def test_a_marker_is_added_listed_and_deleted(app, editor):
    make_monitor(app, tags="\nshop\n")
    editor.open("/markers").shows("No markers")
    editor.press(
        "Add marker", name="shop <v2.1>", tags="shop, api", link="https://ci.example/7",
        time="2026-11-21T08:00:00",
    )  # fmt: skip
    assert editor.path == "/markers"
    assert "shop <v2.1> added." in editor.text
    assert 'href="https://ci.example/7"' in editor.page.text
    (marker,) = stored(app)
    assert (marker.tags, f"{marker.time:%H:%M}") == (("shop", "api"), "08:00")
    editor.open(f"/markers/{marker.id}/delete").press("Delete this marker").shows("No markers")
    assert stored(app) == []


def test_a_faulty_marker_is_kept_in_the_form(app, editor):
    editor.open("/markers").press("Add marker", name="x", link="javascript:alert(1)")
    editor.shows("This is not a URL.", status=422)
    assert dict(editor.form_with("Add marker")[0].values)["link"] == "javascript:alert(1)"
    assert stored(app) == []


def test_a_viewer_reads_markers_and_adds_none(app, viewer):
    marker = add(app)
    page = viewer.open("/markers")
    assert "shop v2.1" in page.text
    assert not any(form.action.endswith("/markers") for form in page.forms)
    assert viewer.client.post("/markers", data={"name": "x"}).status_code in (400, 403)
    assert viewer.client.get(f"/markers/{marker.id}/delete").status_code == 403


def test_charts_show_the_markers_that_concern_their_monitor(app, viewer):
    old = {"created_at": now() - timedelta(days=9)}
    shop = make_monitor(app, name="Shop", tags="\nshop\n", **old)
    mail = make_monitor(app, name="Mail", tags="\nmail\n", **old)
    add(app, "shop v2.1", tags=("shop",), time=now() - timedelta(hours=3))
    add(app, "Firewall", time=now() - timedelta(hours=4))
    add(app, "long ago", time=now() - timedelta(days=3))
    names = ("shop v2.1", "Firewall", "long ago")
    for monitor, expected in ((shop, [True, True, False]), (mail, [False, True, False])):
        page = viewer.open(f"/monitors/{monitor.id}").page.text
        assert [name in page for name in names] == expected
    assert "long ago" in viewer.open(f"/monitors/{mail.id}?range=7d").page.text


def test_an_incident_says_what_was_deployed_before_it(app, viewer):
    started = now() - timedelta(minutes=30)
    make_incident(app, make_monitor(app, tags="\nshop\n"), started_at=started)
    for name, minutes, tags in (
        ("shop v2.1", -3, ("shop",)),
        ("mail v3", -2, ("mail",)),
        ("shop v2.0", -61, ()),
        ("shop v2.2", 20, ()),
    ):
        add(app, name, tags=tags, time=started + timedelta(minutes=minutes))
    text = viewer.open("/incidents/1").text
    assert "shop v2.1 deployed at" in text
    assert ", 3 minutes earlier" in text
    assert "Deployed: shop v2.2" in text, "what was deployed meanwhile is in its story"
    assert "mail v3" not in text
    assert "shop v2.0" not in text, "an hour before is no likely cause"


@given(st.lists(st.tuples(st.floats(70, 894), st.text("ab", min_size=1, max_size=30)), max_size=9))
def test_no_name_covers_another_or_is_crossed_by_a_line(drawn):
    lines = marker_lines([(x, name, "t") for x, name in sorted(drawn)], 900, Lettering(8, 14))
    named = [line for line in lines if line.y is not None]
    if drawn:
        assert named, "the first has a name"
    for line, other in itertools.permutations(named, 2):
        begin, end = other.reach
        assert 0 <= begin < end <= 900
        if line.y == other.y:
            assert line.reach[1] <= begin or end <= line.reach[0]
        if line.y <= other.y:  # its line goes down beside or through the other's row
            assert not begin < line.x < end


def test_names_of_markers_far_apart_stand_in_one_row():
    lines = marker_lines([(100, "a" * 40, "t"), (500, "b", "t"), (890, "c", "t")], 900,
                         Lettering(8, 14))  # fmt: skip
    assert [(line.row, line.y, line.is_left) for line in lines] == [
        (0, -14, False), (0, -14, False), (0, -14, True),
    ]  # fmt: skip
    assert len(lines[0].name) == 24


def test_markers_without_room_for_a_name_are_listed_by_their_moments():
    drawn = [(100 + place, f"v{place}", f"Fri {place // 4}: v{place}") for place in range(8)]
    lines = marker_lines(drawn, 900, Lettering(8, 14))
    assert unnamed(lines) == "Fri 0: v1, v2, v3; Fri 1: v4, v6, v7"
