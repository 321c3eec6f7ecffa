"""Nobody closes the login for others (decision 15): a browser in which the person has logged in
before has a limit of its own, and room of its own for the hash.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta

import pytest
from sqlalchemy import event

from app.access import passwords, people
from app.access.people import (
    DEVICE_RETENTION,
    LOGIN_WINDOW_SECONDS,
    LOGINS_PER_ACCOUNT,
    LOGINS_PER_ADDRESS,
    LOGINS_PER_DEVICE,
)
from app.access.recovery import REQUESTS_PER_ADDRESS
from app.db import db
from app.db.tables import CounterRow, DeviceRow
from app.errors import Throttled
from app.pages.visitors import WRONG_MAX
from app.records import Client
from app.stores.local.subscribers import SIGN_UPS
from tests.factories import PASSWORD, make_person
from tests.pages.made import make_page
from tests.web.visitor import Visitor

EMAIL = "ada@wakeful.test"
NEW = PASSWORD + "!"
TRIES = 100


@pytest.fixture
def access(app):
    return app.extensions["wakeful.access"]


@pytest.fixture
def ada(app, clock):
    return make_person(app, email=EMAIL)


@pytest.fixture
def browser(app, ada):
    """Ada's, in which she has logged in before."""
    browser = Visitor(app).log_in(EMAIL)
    browser.open("/").press("Log out")
    return browser


def device(browser):
    return browser.client.get_cookie("wakeful_device").value


def logged_in(browser):
    return browser.open("/profile").path == "/profile"


def guess(app, tries, email=EMAIL, device=None):
    """So many wrong passwords, each from another address; how many were compared."""
    access, compared = app.extensions["wakeful.access"], 0
    with app.app_context():
        for number in range(tries):
            client = Client(f"2001:db8:{number:x}::1", device=device)
            try:
                assert access.people.login(email, "guess", client) is None
            except Throttled:
                continue
            compared += 1
    return compared


def test_the_owner_logs_in_on_a_known_device_while_strangers_guess(app, browser):
    assert guess(app, TRIES) == LOGINS_PER_ACCOUNT, "and no more than these are compared"
    assert Visitor(app).log_in(EMAIL).status == 429
    browser.log_in(EMAIL)
    assert logged_in(browser)
    assert guess(app, 1) == 0, "the owner's login gives strangers no new attempts"


def test_strangers_at_the_owners_address_do_not_lock_the_owner_out(app, browser, access):
    for number in range(LOGINS_PER_ADDRESS):
        with app.app_context():
            access.people.login(f"somebody{number}@example.org", "guess", Client("127.0.0.1"))
    assert Visitor(app).log_in(EMAIL).status == 429
    browser.log_in(EMAIL)
    assert logged_in(browser)


def test_a_known_device_has_a_limit_too(app, browser, clock):
    for _ in range(LOGINS_PER_DEVICE):
        assert browser.log_in(EMAIL, "guess").status == 422
    assert browser.log_in(EMAIL).status == 429
    assert Visitor(app).log_in(EMAIL).status != 429, "which closes no other browser"
    clock.now += timedelta(seconds=LOGIN_WINDOW_SECONDS)
    browser.log_in(EMAIL)
    assert logged_in(browser)


def test_a_device_of_one_person_is_a_strangers_for_another(app, browser):
    make_person(app, "admin", email="bob@wakeful.test")
    assert guess(app, 20, "bob@wakeful.test", device(browser)) == LOGINS_PER_ACCOUNT


def test_two_people_who_share_a_browser_are_both_known_in_it(app, browser):
    make_person(app, "admin", email="bob@wakeful.test")
    browser.log_in("bob@wakeful.test").open("/").press("Log out")
    for email in (EMAIL, "bob@wakeful.test"):
        guess(app, LOGINS_PER_ACCOUNT, email)
        browser.log_in(email)
        assert logged_in(browser)
        browser.press("Log out")


def test_a_copy_of_the_cookie_is_worth_nothing_after_the_next_login(app, browser):
    copied = device(browser)
    browser.log_in(EMAIL)
    assert device(browser) != copied
    with app.app_context():
        assert device(browser) not in str(vars(db.session.query(DeviceRow).one()))
    guess(app, LOGINS_PER_ACCOUNT)
    assert guess(app, 1, device=copied) == 0
    assert guess(app, 1, device=device(browser)) == 1


@pytest.mark.parametrize("made_up", ["x" * 5000, "ü\ud800", "1"])
def test_a_made_up_cookie_is_a_strangers(app, browser, made_up):
    guess(app, LOGINS_PER_ACCOUNT)
    assert guess(app, 1, device=made_up) == 0


def test_a_new_password_makes_every_other_browser_a_strangers(app, browser):
    elsewhere = Visitor(app).log_in(EMAIL)
    elsewhere.open("/profile").press(
        "Change password", current_password=PASSWORD, password=NEW, password_again=NEW
    )
    guess(app, LOGINS_PER_ACCOUNT)
    assert browser.log_in(EMAIL, NEW).status == 429
    elsewhere.press("Log out")
    elsewhere.log_in(EMAIL, NEW)
    assert logged_in(elsewhere), "the one in which it was changed is known"


@pytest.mark.parametrize(
    "act",
    [
        lambda access: access.people.change_password(1, NEW),
        lambda access: access.recovery.use(access.recovery.make_link(1), NEW),
        lambda access: access.sessions.end_all(1),
    ],
    ids=["changed password", "recovered password", "ended sessions"],
)
def test_what_ends_all_sessions_makes_every_browser_a_strangers(app, browser, access, act):
    with app.app_context():
        act(access)
    guess(app, LOGINS_PER_ACCOUNT)
    assert guess(app, 1, device=device(browser)) == 0


def test_a_device_is_known_for_half_a_year_since_its_last_login(app, browser, clock, access):
    clock.now += DEVICE_RETENTION - timedelta(milliseconds=1)
    guess(app, LOGINS_PER_ACCOUNT)
    with app.app_context():
        access.forget_old()
    assert guess(app, 1, device=device(browser)) == 1
    clock.now += timedelta(milliseconds=1)
    guess(app, LOGINS_PER_ACCOUNT)  # a new window has begun
    assert guess(app, 1, device=device(browser)) == 0
    with app.app_context():
        access.forget_old()
        assert db.session.query(DeviceRow).count() == 0


def test_the_longest_unused_devices_of_a_person_are_forgotten(app, browser, clock, monkeypatch):
    monkeypatch.setattr(people, "DEVICES_PER_PERSON", 3)
    browsers = [browser]
    for _ in range(3):
        clock.now += timedelta(minutes=1)
        browsers.append(Visitor(app).log_in(EMAIL))
    guess(app, LOGINS_PER_ACCOUNT)
    logged_in = [bool(guess(app, 1, device=device(browser))) for browser in browsers]
    assert logged_in == [False, True, True, True]


def test_the_cookie_is_out_of_the_reach_of_scripts_and_other_sites(app, ada):
    Visitor(app).log_in(EMAIL)
    page = app.test_client().get("/login")
    assert "wakeful_device" not in str(page.headers), "only a login sets it"
    visitor = Visitor(app).log_in(EMAIL)
    cookie = visitor.client.get_cookie("wakeful_device")
    assert cookie.http_only
    assert cookie.same_site == "Lax"
    assert cookie.max_age == DEVICE_RETENTION.total_seconds()


# --- What an attempt costs


def writes_during(app, act):
    """The statements that change something."""
    devices = []

    def note(_connection, _cursor, statement, *_rest):
        if statement.split()[0] in ("INSERT", "UPDATE", "DELETE"):
            devices.append(statement)

    with app.app_context():
        engine = db.engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        act()
    finally:
        event.remove(engine, "before_cursor_execute", note)
    return devices


def test_an_attempt_that_is_refused_writes_nothing(app, ada):
    guess(app, LOGINS_PER_ACCOUNT)
    assert writes_during(app, lambda: guess(app, 20)) == []


def test_other_requests_of_strangers_that_are_refused_write_nothing(app, access):
    """SQLite has one writer: the results of checks would wait for a flood of them."""
    page = make_page(app, password=PASSWORD)
    strangers = app.test_client()

    def enter():
        return strangers.post("/status/example", data={"password": "a guess"}).status_code

    def sign_up():
        app.extensions["wakeful.public"].subscribe(
            page, "webhook", "https://a.example/", address="192.0.2.1"
        )

    def ask_for_a_link():
        access.recovery.count(EMAIL, "192.0.2.1")

    def refused():
        for _ in range(5):
            assert enter() == 429
            for act in (sign_up, ask_for_a_link):
                with pytest.raises(Throttled):
                    act()

    with app.app_context():
        assert [enter() for _ in range(WRONG_MAX)] == WRONG_MAX * [422]
        for _ in range(SIGN_UPS):
            sign_up()
        for _ in range(REQUESTS_PER_ADDRESS):
            ask_for_a_link()
        assert writes_during(app, refused) == []


def test_an_attempt_without_room_for_its_hash_writes_nothing(app, ada):
    with ExitStack() as stack:
        while stack.enter_context(passwords.PASSWORDS.taken()):
            pass
        assert writes_during(app, lambda: guess(app, 20)) == []
    with app.app_context():
        assert db.session.query(CounterRow).count() == 0


def test_strangers_take_all_room_for_hashes_but_one_is_left_for_people_we_know(app, browser):
    with ExitStack() as stack:
        while stack.enter_context(passwords.PASSWORDS.taken()):
            pass
        assert Visitor(app).log_in(EMAIL).status == 429
        browser.log_in(EMAIL)
        assert logged_in(browser)


def test_a_hundred_guesses_at_the_same_moment_all_count(app, ada, access, monkeypatch):
    monkeypatch.setattr(passwords, "PASSWORDS", passwords.Slots(16))
    monkeypatch.setattr(passwords, "_HASH_SLOTS", passwords.Slots(16))
    together = threading.Barrier(16)

    def guess_once(_number):
        together.wait(60)
        return guess(app, 6)

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(guess_once, range(16))) == LOGINS_PER_ACCOUNT
