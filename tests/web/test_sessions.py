"""People see the browsers in which they are logged in, and end what they do not recognize."""

from datetime import timedelta

import pytest

from app.access import sessions
from app.access.people import DEVICE_RETENTION
from app.access.sessions import (
    BROWSERS,
    HEADER_READ,
    MAX_IDLE,
    RECENT,
    SYSTEMS,
    first_word,
)
from app.db import db
from app.db.tables import DeviceRow, RecoveryRow, SessionRow
from app.stores import current_access
from tests.factories import PASSWORD, make_person
from tests.support.store import access_of
from tests.web.visitor import Visitor, token

EMAIL = "ada@wakeful.test"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
    "Gecko) Version/18.5 Mobile/15E148 Safari/604.1"
)
SAMSUNG = (
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) "
    "SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36"
)
EDGE = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/137.0.0.0 Safari/537.36 Edg/137.0.0.0"
)
CHROME = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/137.0.0.0 Safari/537.36"
)


@pytest.fixture
def ada(app, clock):
    return make_person(app, email=EMAIL)


def visitor(app, email=EMAIL, *, agent=FIREFOX, address="192.0.2.1", password=PASSWORD):
    device = Visitor(app)
    device.client.environ_base |= {"HTTP_USER_AGENT": agent, "REMOTE_ADDR": address}
    return device.log_in(email, password)


@pytest.fixture
def browser(app, ada):
    return visitor(app)


@pytest.fixture
def phone(app, browser):
    return visitor(app, agent=IPHONE, address="2001:db8::7")


def logged_in(visitor):
    return visitor.open("/profile").path == "/profile"


def test_a_browser_is_named_in_words_of_ours():
    for header, browser, system in (
        (FIREFOX, "Firefox", "Linux"),
        (IPHONE, "Safari", "iOS"),
        (SAMSUNG, "Samsung", "Android"),
        (EDGE, "Edge", "Windows"),
        (CHROME, "Chrome", "macOS"),
        ("curl/8.14.1", "curl", None),
        (None, None, None),
        (HEADER_READ * " " + FIREFOX, None, None),
        ((HEADER_READ - len("Firefox/")) * " " + "Firefox/", "Firefox", None),
    ):
        words = first_word(BROWSERS, header), first_word(SYSTEMS, header)
        assert words == (browser, system), header


def test_a_person_sees_every_browser_they_are_logged_in_with(app, browser, phone, clock):
    make_person(app, email="bob@wakeful.test")
    visitor(app, "bob@wakeful.test", address="198.51.100.9")
    clock.now += timedelta(minutes=5)
    browser.open("/profile").open("/profile/sessions")
    assert "Firefox on Linux This browser 192.0.2.1" in browser.text
    assert "Safari on iOS 2001:db8::7" in browser.text
    assert browser.text.index("Firefox") < browser.text.index("Safari")
    assert "198.51.100.9" not in browser.text
    clock.now += timedelta(minutes=3)
    browser.client.environ_base["REMOTE_ADDR"] = "203.0.113.5"
    browser.open("/profile")
    assert "203.0.113.5" in browser.open("/profile/sessions").text, "the address of the last use"
    clock.now += MAX_IDLE - timedelta(minutes=5)
    assert "Safari on iOS" not in browser.open("/profile/sessions").text, "it is over"


def test_a_hostile_browser_name_is_an_unknown_browser(app, ada):
    for agent in ("<script>alert(1)</script>", "x" * 8000, "\xff\xfe", "'\"--"):
        hostile = visitor(app, agent=agent)
        assert "Unknown browser This browser" in hostile.open("/profile/sessions").text, agent
        assert agent not in hostile.page.text


def test_one_session_is_ended_and_its_browser_forgotten(app, browser, phone):
    browser.open("/profile/sessions").press("End Safari on iOS").shows("Session ended.")
    assert not logged_in(phone)
    assert logged_in(browser)
    with app.app_context():
        assert db.session.query(DeviceRow).count() == 1, "this browser's"


def test_all_others_are_ended(app, browser, phone):
    third = visitor(app, agent=CHROME)
    browser.open("/profile/sessions").press("Log out everywhere else")
    assert "You are logged out everywhere else." in browser.text
    assert [logged_in(device) for device in (browser, phone, third)] == [True, False, False]
    assert "Log out everywhere else" not in browser.open("/profile/sessions").text
    with app.app_context():
        assert db.session.query(DeviceRow).count() == 1


def test_this_browser_logs_out_and_is_forgotten(app, browser, phone):
    browser.open("/profile/sessions").press("Log out and forget this browser")
    assert browser.path == "/login"
    assert logged_in(phone)
    with app.app_context():
        assert db.session.query(DeviceRow).count() == 1, "the phone's"
    phone.open("/").press("Log out")
    with app.app_context():
        assert db.session.query(DeviceRow).count() == 1, "a plain logout forgets no browser"


def test_nobody_ends_a_session_of_somebody_else(app, browser):
    bob = make_person(app, "viewer", email="bob@wakeful.test")
    other = visitor(app, bob.email)
    (mine,) = access_of(app).sessions.of(1)
    proof = token(other.open("/profile/sessions"))
    for id in (mine.id, 999):
        answer = other.client.post(f"/profile/sessions/{id}/end", data=proof)
        assert answer.status_code == 404
    assert logged_in(browser)


def test_an_admin_ends_all_sessions_of_another_person(app, browser, phone):
    admin = visitor(app, make_person(app, "admin").email)
    access_of(app).recovery.make_link(1)
    admin.open("/people/1").press("Log them out everywhere")
    assert f"{EMAIL} is logged out everywhere." in admin.text
    assert not logged_in(browser)
    assert not logged_in(phone)
    assert logged_in(admin)
    with app.app_context():
        assert db.session.query(RecoveryRow).count() == 0
        assert db.session.query(DeviceRow).count() == 1, "the admin's"
    browser.log_in(EMAIL)
    assert logged_in(browser)


def test_ending_sessions_asks_for_a_recent_password(browser, phone, clock):
    clock.now += RECENT
    browser.open("/profile/sessions").press("Log out everywhere else")
    assert logged_in(phone)
    browser.press("Log out everywhere else", your_password=PASSWORD)
    assert not logged_in(phone)
    assert logged_in(browser)


def test_the_longest_unused_session_ends_where_there_are_too_many(app, ada, clock, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_OF_PERSON", 3)
    with app.app_context():
        access = current_access()
        tokens = []
        for _ in range(3):
            tokens.append(access.sessions.begin(ada.id).session)
            clock.now += timedelta(seconds=1)
        assert access.sessions.person(tokens[0]) is not None
        access.sessions.begin(ada.id)
        assert access.sessions.person(tokens[0]) is None
        assert access.sessions.person(tokens[1]) is not None


# --- A new session keeps nothing of the old


def kept(visitor):
    with visitor.client.session_transaction() as cookie:
        return cookie.get("_user_id"), cookie.get("csrf_token"), cookie.get("server")


def with_an_old_session(app):
    """A browser in which Bob is logged in."""
    bob = visitor(app, make_person(app, "admin", email="bob@wakeful.test").email)
    bob.open("/profile")
    with bob.client.session_transaction() as cookie:
        cookie["server"] = "another"
    return bob, kept(bob)


@pytest.mark.parametrize("how", ["invitation", "password", "recovery", "email"])
def test_a_new_session_keeps_nothing_of_the_old_one(app, clock, how):
    old, before = with_an_old_session(app)
    link = access_of(app).invitations.invite("eve@wakeful.test", "viewer")[1]
    lost = access_of(app).recovery.make_link(1)
    new = {"password": PASSWORD + "!", "password_again": PASSWORD + "!"}
    if how == "invitation":
        old.open(f"/invitation/{link}").press("Create account", **new)
    elif how == "recovery":
        old.open(f"/new-password/{lost}").press("Set password", **new)
    elif how == "password":
        old.open("/profile").press("Change password", current_password=PASSWORD, **new)
    else:
        old.open("/people/1").press("Save", email="robert@wakeful.test", current_password=PASSWORD)
    token, csrf, server = kept(old)
    assert token != before[0]
    assert csrf != before[1]
    assert server is None
    with app.app_context():
        assert db.session.query(SessionRow).count() == (0 if how == "recovery" else 1)


def test_a_session_from_before_the_list_was_kept_is_shown(app, browser):
    with app.app_context():
        db.session.query(SessionRow).update(
            {"address": None, "browser": None, "system": None, "password_at": None}
        )
        db.session.commit()
    assert "Unknown browser This browser unknown" in browser.open("/profile/sessions").text
    (record,) = access_of(app).sessions.of(1)
    assert not access_of(app).sessions.password_is_recent(record)


def test_a_browser_is_remembered_as_long_as_its_row(browser):
    assert browser.client.get_cookie("wakeful_device").max_age == DEVICE_RETENTION.total_seconds()
