"""A person whose stored role or time zone cannot be read still gets every page, with the rights of
the least role, in UTC; doctor tells it, and an admin mends it.
"""

from __future__ import annotations

import pytest
from sqlalchemy import text

from app.commands.doctor import examine
from app.db import db, writing
from tests.factories import make_incident, make_monitor, make_person
from tests.web.visitor import Visitor

ADA = "ada@wakeful.test"
PAGES = ("/", "/monitors", "/incidents", "/deliveries", "/wall", "/maintenance", "/reports")
DAMAGE = [("role", "''"), ("time_zone", "'Middle/Earth'"), ("role", "x'ff41'")]


@pytest.fixture
def ada(app):
    """An editor, and something for the pages to show the time of."""
    make_incident(app, make_monitor(app))
    return make_person(app, "editor", ADA)


def damage(app, ada, field, value):
    with app.app_context(), writing() as session:
        session.execute(text(f"UPDATE people SET {field} = {value} WHERE id = {ada.id}"))


def stored(app, ada, field):
    with app.app_context():
        return db.session.scalar(text(f"SELECT {field} FROM people WHERE id = {ada.id}"))


def sentences(app):
    findings = examine(app, app.extensions["wakeful.settings"])
    return [
        finding.sentence for finding in findings if finding.is_problem and ADA in finding.sentence
    ]


@pytest.mark.parametrize(("field", "value"), DAMAGE)
def test_every_page_is_shown_with_the_least_rights(app, ada, field, value):
    visitor = Visitor(app).log_in(ADA)
    damage(app, ada, field, value)
    assert {path: visitor.open(path).status for path in (*PAGES, "/profile")} == dict.fromkeys(
        (*PAGES, "/profile"), 200
    )
    assert visitor.open("/monitors/new").status == (403 if field == "role" else 200)
    assert visitor.open("/people").status == 403
    [sentence] = sentences(app)
    words = field.replace("_", " ")
    assert sentence.startswith(f'The {words} of "{ADA}" (person {ada.id}) cannot be read, because ')
    assert "An admin can set it on the People page." in sentence


@pytest.mark.parametrize("role", ["viewer", "admin"])
def test_an_admin_gives_the_role_anew_also_the_one_it_was_read_as(app, ada, role):
    damage(app, ada, "role", "'owner'")
    admin = Visitor(app).let_in(make_person(app))
    assert admin.open("/people").status == 200
    admin.open(f"/people/{ada.id}").press("Save", role=role)
    assert f"{ADA} saved." in admin.text
    assert stored(app, ada, "role") == role
    assert sentences(app) == []


def test_a_person_chooses_the_zone_anew_also_the_one_it_was_read_as(app, ada):
    damage(app, ada, "time_zone", "'Middle/Earth'")
    visitor = Visitor(app).log_in(ADA)
    visitor.open("/profile").press("Save", time_zone="UTC")
    assert stored(app, ada, "time_zone") == "UTC"
    assert sentences(app) == []


def test_who_is_no_admin_any_more_does_not_count_as_the_last_one(app, ada):
    """Otherwise the one admin who is left could be removed, and nobody could mend it."""
    damage(app, ada, "role", "'admin '")
    admin = make_person(app)
    visitor = Visitor(app).log_in(admin.email)
    visitor.open(f"/people/{admin.id}").press("Save", role="viewer")
    assert "This is the last admin." in visitor.text
