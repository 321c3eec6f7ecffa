"""A session ends for every copy of its cookie: idle, old, logged out, or its person changed
(decision 15).
"""

from __future__ import annotations

import sqlite3
from datetime import timedelta

import psycopg
import pytest

from app.access import passwords, sessions
from app.access.sessions import MAX_AGE, MAX_IDLE, TOUCH_AFTER
from app.db import db
from app.db.tables import SessionRow
from app.rules.clocks import SKEW
from tests.factories import PASSWORD, make_person
from tests.web.visitor import Visitor

MOMENT = timedelta(milliseconds=1)
EMAIL = "editor@wakeful.test"


@pytest.fixture
def person(app, clock):
    return make_person(app, "editor")


@pytest.fixture
def admin(app, clock):
    return Visitor(app).log_in(make_person(app, "admin").email)


@pytest.fixture
def browser(app, person):
    return Visitor(app).log_in(person.email)


def copy_of(app, visitor):
    """Somebody with a copy of the browser's cookie as it is now."""
    thief = Visitor(app)
    thief.client.set_cookie("wakeful", visitor.client.get_cookie("wakeful").value)
    return thief


def logged_in(visitor):
    return visitor.open("/profile").path == "/profile"


def test_a_copy_of_the_cookie_ends_with_the_logout_however_long_it_is_used(app, clock, browser):
    thief = copy_of(app, browser)
    assert logged_in(thief), "and its answer signs a cookie of its own"
    browser.open("/profile").press("Save", theme="dark")
    assert logged_in(browser), "another theme ends nothing"
    elsewhere = Visitor(app).log_in(EMAIL)
    browser.open("/profile").press("Log out")
    assert not logged_in(thief)
    assert not logged_in(browser)
    assert logged_in(elsewhere), "another browser of the same person"
    for _time in range(4):
        clock.now += timedelta(hours=11)
        assert not logged_in(thief)


def test_it_ends_after_12_hours_without_use_for_every_copy(app, clock, browser):
    thief = copy_of(app, browser)
    clock.now += MAX_IDLE - MOMENT
    assert logged_in(browser)
    clock.now += MAX_IDLE - MOMENT
    assert logged_in(thief), "any use of it counts"
    clock.now += MAX_IDLE
    assert not logged_in(browser)
    assert not logged_in(thief)


def test_it_ends_after_30_days_in_constant_use(app, clock, browser, monkeypatch):
    assert timedelta(days=30) == MAX_AGE
    max_age = timedelta(days=3)  # 60 visits less
    monkeypatch.setattr(sessions, "MAX_AGE", max_age)
    began = clock.now
    while clock.now + MAX_IDLE < began + max_age:
        clock.now += MAX_IDLE - MOMENT
        assert logged_in(browser)
    clock.now = began + max_age - MOMENT
    assert logged_in(browser)
    clock.now = began + max_age
    assert not logged_in(browser)
    browser.log_in(EMAIL)
    assert logged_in(browser), "a new one"


def test_a_change_of_ones_own_password_ends_all_others_and_every_copy(app, browser):
    thief, elsewhere = copy_of(app, browser), Visitor(app).log_in(EMAIL)
    new = PASSWORD + "!"
    browser.open("/profile").press(
        "Change password", current_password=PASSWORD, password=new, password_again=new
    )
    assert logged_in(browser)
    assert not logged_in(thief)
    assert not logged_in(elsewhere)


@pytest.mark.parametrize(
    "change",
    [{"email": "other@wakeful.test"}, {"role": "viewer"}, {"disabled": True}],
    ids=lambda change: next(iter(change)),
)
def test_another_email_role_or_access_ends_the_sessions(app, person, browser, admin, change):
    thief = copy_of(app, browser)
    admin.open(f"/people/{person.id}").press("Save", **change)
    assert not logged_in(browser)
    assert not logged_in(thief)
    assert logged_in(admin)


def test_a_password_that_an_admin_sets_and_a_deletion_end_them(app, person, browser, admin):
    admin.open(f"/people/{person.id}").press("Set password", password=PASSWORD + "!")
    assert not logged_in(browser)
    browser.log_in(EMAIL, PASSWORD + "!")
    admin.open(f"/people/{person.id}/delete").press("Delete this person")
    assert not logged_in(browser)
    with app.app_context():
        assert db.session.query(SessionRow).count() == 1, "the admin's"


def test_a_password_that_is_replaced_while_it_is_compared_opens_nothing(app, person, monkeypatch):
    access, matches = app.extensions["wakeful.access"], passwords.matches

    def matches_and_is_replaced(*given, **more):
        matched = matches(*given, **more)
        monkeypatch.setattr(passwords, "matches", matches)
        access.people.change_password(person.id, PASSWORD + "!")
        return matched

    monkeypatch.setattr(passwords, "matches", matches_and_is_replaced)
    monkeypatch.setattr(passwords, "is_outdated", lambda hash_: True)  # so it is hashed again
    with app.app_context():
        assert access.people.login(EMAIL, PASSWORD) is None
        assert access.people.login(EMAIL, PASSWORD) is None, "and its hash does not come back"
        assert access.people.login(EMAIL, PASSWORD + "!") is not None


def test_what_was_typed_survives_a_session_that_ended_meanwhile(app, clock, browser):
    browser.open("/monitors/new")
    clock.now += MAX_IDLE
    browser.press("Save", url="http://shop.example.com/", name="Shop", timeout="7")
    assert browser.status == 400
    assert "You are logged out, so nothing was changed." in browser.text
    assert "Shop" in browser.text
    tab = Visitor(app)
    tab.client = browser.client  # the other tab that "Log in" opens
    tab.log_in(EMAIL)
    browser.press("Send it again")
    browser.press("Send it again")
    assert "Shop saved." in browser.text


# --- The record


def test_the_record_holds_no_token_and_its_last_use_is_written_now_and_then(app, clock, browser):
    def used():
        with app.app_context():
            return db.session.query(SessionRow).one().last_used_at

    began = clock.now
    clock.now += TOUCH_AFTER - MOMENT
    assert logged_in(browser)
    assert used() == began
    clock.now += MOMENT
    assert logged_in(browser)
    assert used() == clock.now
    with browser.client.session_transaction() as cookie, app.app_context():
        assert cookie["_user_id"] not in str(vars(db.session.query(SessionRow).one()))


@pytest.mark.both_databases
def test_a_page_is_shown_while_the_database_takes_no_writes(
    app, settings, clock, browser, monkeypatch
):
    monkeypatch.setattr("app.db.BEST_EFFORT_SECONDS", 0.2)
    monkeypatch.setattr("app.db.BEST_EFFORT_AGAIN", 0.0)
    clock.now += TOUCH_AFTER
    with app.app_context():
        before = db.session.query(SessionRow).one().last_used_at
        db.session.remove()  # a connection in use would not be closed
        db.engine.dispose()
    if settings.database_url.startswith("sqlite"):
        writer = sqlite3.connect(settings.instance / "wakeful.db", isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
    else:
        writer = psycopg.connect(settings.database_url.replace("+psycopg", ""))
        writer.execute("SELECT 1 FROM sessions FOR UPDATE")
    try:
        assert logged_in(browser)
    finally:
        writer.rollback()
        writer.close()
    with app.app_context():
        assert db.session.query(SessionRow).one().last_used_at == before
    assert logged_in(browser)
    with app.app_context():
        assert db.session.query(SessionRow).one().last_used_at == clock.now


def test_a_lost_time_of_last_use_leaves_the_usual_patience_to_others(app, clock, browser):
    """SQLite's busy timeout belongs to the connection, which the pool hands on."""
    clock.now += TOUCH_AFTER
    assert logged_in(browser)
    with app.app_context(), db.engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 10_000
        else:
            assert connection.exec_driver_sql("SHOW lock_timeout").scalar() == "0"


@pytest.mark.both_databases
def test_ended_sessions_are_deleted(app, clock, browser):
    access = app.extensions["wakeful.access"]
    Visitor(app).log_in(EMAIL)
    clock.now += MAX_IDLE - MOMENT
    assert logged_in(browser)
    with app.app_context():
        access.sessions.forget_old()
        assert db.session.query(SessionRow).count() == 2
    clock.now += MOMENT
    with app.app_context():
        access.sessions.forget_old()
        assert db.session.query(SessionRow).count() == 1
    assert logged_in(browser)


@pytest.mark.parametrize("ahead", [timedelta(minutes=1), timedelta(days=365)])
def test_one_that_began_in_the_future_is_over_and_is_forgotten(app, clock, browser, ahead):
    clock.now -= ahead
    assert not logged_in(browser)
    with app.app_context():
        app.extensions["wakeful.access"].sessions.forget_old()
        assert db.session.query(SessionRow).count() == 0


def test_one_that_another_machine_began_a_moment_ahead_holds(app, clock, browser):
    clock.now -= SKEW
    with app.app_context():
        app.extensions["wakeful.access"].sessions.forget_old()
    assert logged_in(browser)


def test_logging_in_again_ends_the_session_before(app, browser):
    browser.client.get("/login")
    with app.app_context():
        assert db.session.query(SessionRow).count() == 1
    new = PASSWORD + "!"
    browser.open("/profile").press(
        "Change password", current_password=PASSWORD, password=new, password_again=new
    )
    with app.app_context():
        assert db.session.query(SessionRow).count() == 1
