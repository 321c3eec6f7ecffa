"""What the dashboard shows of monitors behind another one that is down (decision 20)."""

from __future__ import annotations

import pytest

from app.db import db, dependencies, writing
from app.engine import recorder
from tests.factories import make_monitor, make_outcome, make_person, now
from tests.web.test_bulk import apply
from tests.web.visitor import Visitor


@pytest.fixture
def outage(app):
    """A router that is down, and two monitors behind it: ids."""
    router = make_monitor(app, name="Router", confirmations=0).id
    children = [make_monitor(app, name=f"Child {number}").id for number in range(2)]
    with app.app_context():
        with writing() as session:
            for id in children:
                dependencies.choose(session, id, [router])
        for id in (router, *children):
            recorder.record([(id, make_outcome("down", now()))], now())
    return router, children


def test_pages_show_who_is_behind_an_outage_and_what_is_down(app, outage):
    router, (child, _other) = outage
    viewer = Visitor(app).log_in(make_person(app, "viewer").email)
    home = viewer.open("/").page.text
    assert home.count("down-card ") == 1, "one card"
    assert "2 monitors behind it" in home
    page = viewer.open(f"/monitors/{child}").page.text
    assert "Unreachable: Router, which it is reached through, is down." in page
    assert f'<a href="/monitors/{router}">Router</a>' in page
    incident = viewer.open("/incidents/1").page.text
    assert "Child 0" in incident
    assert "Child 1" in incident


def test_many_monitors_are_set_behind_another_at_once(app, outage):
    router, children = outage
    editor = Visitor(app).log_in(make_person(app, "editor").email)
    switch = make_monitor(app, name="Switch").id

    def depends_on(action):
        apply(editor, children, action, parent="switch")
        with app.app_context():
            return dependencies.parents(db.session, children)

    assert depends_on("parent") == {id: [router, switch] for id in children}
    assert depends_on("unparent") == {id: [router] for id in children}


def test_the_form_suggests_what_a_monitor_is_reached_through(app, outage):
    _router, (child, _other) = outage
    editor = Visitor(app).log_in(make_person(app, "editor").email)
    make_monitor(app, name="Gateway", url="ping://gateway.test")
    page = editor.open(f"/monitors/{child}/edit").page.text
    assert 'value="1" checked><label for="depends_on-0">Router' in page
    page = editor.open("/monitors/new?url=https://gateway.test/").page.text
    assert "Gateway (same host)" in page
