"""The dashboard on monitors behind another one that is down (decision 20)."""

from __future__ import annotations

import pytest

from app.db import db, dependencies, writing
from app.engine import recorder
from tests.factories import make_monitor, make_outcome, make_person, now
from tests.web.visitor import Visitor, apply


@pytest.fixture
def outage(app):
    """A router that is down, and two monitors behind it: ids."""
    router = make_monitor(app, name="Router", confirmations=0).id
    children = [make_monitor(app, name=f"Child {number}").id for number in range(2)]
    with app.app_context():
        with writing() as session:
            for id in children:
                dependencies.replace_parents(session, id, [router])
        for id in (router, *children):
            recorder.record([(id, make_outcome("down", now()))], now())
    return router, children


def test_pages_show_who_is_behind_an_outage_and_what_is_down(app, outage):
    router, (child, _other) = outage
    viewer = Visitor(app).let_in(make_person(app, "viewer"))
    home = viewer.open("/").page.text
    assert home.count("down-card ") == 1, "one card"
    assert "2 monitors behind it" in home
    page = viewer.open(f"/monitors/{child}").page.text
    assert "Unreachable: Router, which it is reached through, is down." in page
    assert f'<a href="/monitors/{router}">Router</a>' in page
    incident = viewer.open("/incidents/1").page.text
    assert "Child 0" in incident
    assert "Child 1" in incident


def test_the_page_of_a_parent_lists_the_first_that_are_reached_through_it(app):
    router = make_monitor(app, name="Router").id
    children = [make_monitor(app, name=f"Child {number:02}").id for number in range(22)]
    behind_child = make_monitor(app, name="Grandchild").id
    with app.app_context(), writing() as session:
        for id in children:
            dependencies.replace_parents(session, id, [router])
        dependencies.replace_parents(session, behind_child, [children[0]])
    viewer = Visitor(app).let_in(make_person(app, "viewer"))
    page = viewer.open(f"/monitors/{router}").page.text
    assert f'<a href="/monitors/{children[0]}">Child 00</a>' in page
    assert "Child 19" in page
    assert "Child 20" not in page
    assert "and 2 more" in page
    assert "Grandchild" not in page, "it is not reached through the router directly"
    assert "Reached through it" not in viewer.open(f"/monitors/{behind_child}").page.text


def test_the_wall_says_who_is_unreachable_also_where_the_parent_is_not_on_it(app, outage):
    _router, children = outage
    editor = Visitor(app).let_in(make_person(app, "editor"))
    wall = editor.open("/wall").shows("1 down").page.text
    assert wall.count('tone-unknown">Unreachable</span>') == 2
    apply(editor, children, "tag", tag="shop")
    editor.open("/wall?tag=shop").shows("2 unreachable").hides("Nothing is down")


def test_home_does_not_say_that_all_is_up_before_those_behind_a_good_parent_are_checked(app):
    router = make_monitor(app, name="Router", state={"verdict": "up"}).id
    make_monitor(app, name="Child", state={"verdict": "down", "behind_id": router})
    viewer = Visitor(app).let_in(make_person(app, "viewer"))
    viewer.open("/").shows("No confirmed outage").hides("Everything is up")


def test_a_report_names_unreachable_time_as_not_counted(app, outage):
    viewer = Visitor(app).let_in(make_person(app, "viewer"))
    viewer.open("/reports").shows("unreachable behind another one that was down")


def test_many_monitors_are_set_behind_another_at_once(app, outage):
    router, children = outage
    editor = Visitor(app).let_in(make_person(app, "editor"))
    switch = make_monitor(app, name="Switch").id

    def depends_on(action):
        apply(editor, children, action, parent="switch")
        with app.app_context():
            return dependencies.parents(db.session, children)

    assert depends_on("parent") == {id: [router, switch] for id in children}
    assert depends_on("unparent") == {id: [router] for id in children}


def test_the_form_suggests_what_a_monitor_is_reached_through(app, outage):
    router, (child, _other) = outage
    editor = Visitor(app).let_in(make_person(app, "editor"))
    make_monitor(app, name="Gateway", url="ping://gateway.test")
    page = editor.open(f"/monitors/{child}/edit").page.text
    assert 'value="1" checked><label for="depends_on-0">Router' in page
    page = editor.open("/monitors/new?url=https://gateway.test/").page.text
    assert "Gateway (same host)" in page
    page = editor.open(f"/monitors/{router}/edit").page.text
    assert "Child 0" not in page, "a circle would be refused"
