"""Markers on the dashboard: added, listed, deleted, and shown on charts and incidents."""

from datetime import timedelta

from app.records import MarkerQuery
from app.web.shown.markers import marker_lines
from tests.factories import make_incident, make_monitor, now
from tests.support.store import store_of


def add(app, name="shop v2.1", **fields):
    return store_of(app).markers.create({"name": name} | fields)


def stored(app):
    return list(store_of(app).markers.list(MarkerQuery()).items)


def test_a_marker_is_added_listed_and_deleted(app, editor):
    editor.open("/markers").shows("No markers")
    editor.press(
        "Add marker",
        name="shop <v2.1>",
        tags="shop, api",
        link="https://ci.example/7",
        time="2026-11-21T08:00:00",
    )
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
    shop = make_monitor(app, name="Shop", tags="\nshop\n")
    mail = make_monitor(app, name="Mail", tags="\nmail\n")
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
    assert "Deployed 3 minutes before: shop v2.1" in text
    assert "Deployed: shop v2.2" in text, "what was deployed meanwhile is in its story"
    assert "mail v3" not in text
    assert "shop v2.0" not in text, "an hour before is no likely cause"


def test_names_are_shown_while_they_fit():
    few = marker_lines([(10, "a" * 40, "t"), (90, "b", "t")], 100)
    assert [(line.row, line.left) for line in few] == [(0, False), (1, True)]
    assert len(few[0].name) == 24
    many = marker_lines([(place, "x", "t") for place in range(5)], 100)
    assert {line.row for line in many} == {None}
