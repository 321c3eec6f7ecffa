"""Hashing a password takes 64 MiB. Many logins at once do not take many times as much."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import requests

from app.access import passwords
from app.db import db
from app.errors import Throttled
from app.records import Client
from app.slots import LONG_WAITS, REMOTE_ANSWERS, RESERVED, THREADS, TRUSTED_PASSWORDS, Slots
from tests.factories import PASSWORD, make_person
from tests.support.web_process import Installation, Web, csrf, installation, web_process
from tests.web.visitor import Visitor

MIB = 1024 * 1024
HASH = 64 * MIB
PEOPLE = 5


@pytest.fixture(scope="module")
def installed(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    server = installation(tmp_path_factory.mktemp("instance"), sqlite_template)
    with server.app() as app:
        for number in range(PEOPLE):
            make_person(app, email=f"person{number}@wakeful.test")
    return server


@pytest.fixture(scope="module")
def web(installed: Installation) -> Iterator[Web]:
    with web_process(installed) as running:
        yield running


def log_in(web: Web, session: requests.Session, email: str, token: str) -> requests.Response:
    fields = {"email": email, "password": PASSWORD, "csrf_token": token}
    return session.post(f"{web.base}/login", fields, timeout=60, allow_redirects=False)


def test_many_log_ins_at_once_take_the_memory_of_few(web):
    people = []
    for number in range(PEOPLE):
        session = requests.Session()
        people.append((session, f"person{number}@wakeful.test", csrf(session, web.base)))
    web.forget_peak()
    before = web.peak_memory()
    with ThreadPoolExecutor(PEOPLE) as pool:
        answers = list(pool.map(lambda person: log_in(web, *person), people))
    assert web.peak_memory() - before < 4 * HASH
    assert [answer.status_code for answer in answers] == PEOPLE * [302], "each waits for a turn"


def test_those_who_wait_for_a_turn_keep_no_connection_to_the_database(app, monkeypatch):
    person = make_person(app)
    waiting, over = threading.Barrier(9), threading.Event()

    class Slow:
        def verify(self, hash_, password):
            waiting.wait(30)
            assert over.wait(60)
            return True

        def check_needs_rehash(self, hash_):
            return False

    monkeypatch.setattr(passwords, "_hasher", Slow())
    monkeypatch.setattr(passwords, "_unknown_hash", lambda: "")
    monkeypatch.setattr(passwords, "_HASH_SLOTS", Slots(8))

    def log_in():
        with app.app_context():
            assert app.extensions["wakeful.access"].people.login(
                person.email, PASSWORD, Client("::1")
            )

    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(log_in) for _ in range(8)]
        waiting.wait(30)
        with app.app_context():
            assert db.engine.pool.checkedout() == 0
        over.set()
        for request in asked:
            request.result()


def test_a_log_in_without_a_turn_may_come_back_soon_and_does_not_count(app):
    person = make_person(app)
    access = app.extensions["wakeful.access"]
    with ExitStack() as stack:
        while stack.enter_context(passwords.PASSWORDS.taken()):
            pass
        refused = Visitor(app).log_in(person.email)
        with app.app_context():
            for _ in range(60):  # more than an account or an address may fail
                with pytest.raises(Throttled, match=passwords.BUSY):
                    access.people.login(person.email, PASSWORD, Client("192.0.2.1"))
    assert refused.status == 429
    assert int(refused.page.headers["Retry-After"]) > 0
    assert passwords.BUSY in refused.text
    with app.app_context():
        assert access.people.login(person.email, PASSWORD, Client("192.0.2.1")).id == person.id


def test_a_new_password_waits_for_its_turn_as_well(app):
    person = make_person(app)
    with app.app_context(), ExitStack() as stack:
        for slots in (passwords.PASSWORDS, TRUSTED_PASSWORDS):
            while stack.enter_context(slots.taken()):
                pass
        access = app.extensions["wakeful.access"]
        with pytest.raises(Throttled):
            access.people.change_password(person.id, "another passphrase", current=PASSWORD)
        with pytest.raises(Throttled):
            access.people.create("other@wakeful.test", PASSWORD, "viewer")


def test_all_kinds_of_slow_requests_at_once_leave_threads_for_others(app, monkeypatch):
    """The test uses as many threads as the web server has, and more of each kind of slow
    request.
    """
    person = make_person(app)
    over, hashing = threading.Event(), passwords._hasher

    class Slow:
        def verify(self, hash_, password):
            assert over.wait(60)
            return hashing.verify(hash_, password)

        check_needs_rehash = hashing.check_needs_rehash

    monkeypatch.setattr(passwords, "_hasher", Slow())
    monkeypatch.setattr(passwords, "_HASH_SLOTS", Slots(2, patience=60.0))
    monkeypatch.setattr(REMOTE_ANSWERS, "_patience", 0.0)

    def log_in():
        with app.app_context(), suppress(Throttled):
            app.extensions["wakeful.access"].people.login(
                person.email, PASSWORD, Client("192.0.2.1")
            )

    def wait_in(slots):
        with slots.taken() as free:
            assert not free or over.wait(60)

    others = threading.Barrier(RESERVED)
    with ThreadPoolExecutor(THREADS) as pool:
        slow = [pool.submit(log_in) for _ in range(2 * THREADS)]
        for slots in (LONG_WAITS, REMOTE_ANSWERS):
            slow += [pool.submit(wait_in, slots) for _ in range(2 * THREADS)]
        try:
            for future in [pool.submit(others.wait, 30) for _ in range(RESERVED)]:
                future.result(30)  # both run at the same moment
        finally:
            over.set()
    for future in slow:
        future.result()
