"""Each security event is one line of a fixed form in the log, without a secret, and nobody fills
the disk by failing. Most are lines of the audit log too.
"""

from __future__ import annotations

import logging
import re
import time
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import select
from werkzeug.test import EnvironBuilder, run_wsgi_app

from app.access import actors, security_log
from app.access.people import LOGINS_PER_ACCOUNT
from app.access.security_log import LIMIT, MAX_A_MINUTE, EventLimit, SecurityEvent, account_of
from app.db import db
from app.db.tables import AuditRow
from app.middleware import EARLY
from app.records import Client
from app.stores import current_store
from tests.factories import PASSWORD, make_key, make_person
from tests.support.clock import Clock
from tests.web.visitor import Visitor

EMAIL = "ada@wakeful.test"
NEW = PASSWORD + "!"
FORM = re.compile(
    r"security event=[a-z.-]+ who=(?:person:\d+|account:[0-9a-f]{16}|key:\d+|agent:\d+"
    r"|place:[a-z0-9-]+|nobody)"
    r" address=(?:[0-9a-f.:]+|unknown)"
)


@pytest.fixture(autouse=True)
def bound(app):
    """The limit of this test alone, in a minute that does not end."""
    clock = Clock(1000.0)
    app.extensions[LIMIT] = EventLimit(MAX_A_MINUTE, clock)
    return clock


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, logger="app.access.security_log")

    def read():
        messages = [
            record.message for record in caplog.records if record.name == security_log.__name__
        ]
        caplog.clear()
        return messages

    return read


@pytest.fixture
def ada(app):
    return make_person(app, "editor", EMAIL)


def events(lines):
    return [line.split("event=")[1].split()[0] for line in lines]


def audited(app):
    with app.app_context():
        rows = db.session.query(AuditRow).order_by(AuditRow.id)
        return [(row.action, row.object_id, row.object_name) for row in rows]


def test_every_event_is_a_line_of_one_form_without_a_secret(app, ada, lines):
    first = Visitor(app)
    first.log_in(EMAIL, "a wrong password")
    first.log_in("a password in the wrong field", "x")
    first.log_in(EMAIL)
    other = Visitor(app).log_in(EMAIL)
    first.open("/profile/sessions").press("Log out everywhere else")
    first.open("/profile").press(
        "Change password", current_password="wrong one", password=NEW, password_again=NEW
    )
    first.press("Change password", current_password=PASSWORD, password=NEW, password_again=NEW)
    first.open("/").press("Log out")
    logged = lines()
    assert events(logged) == [
        "login.failed", "login.failed", "login.ok", "login.new-device",
        "login.ok", "login.new-device", "sessions.ended", "password.wrong", "password.changed",
        "logout",
    ]  # fmt: skip
    assert all(FORM.fullmatch(line) for line in logged), logged
    assert logged[2] == f"security event=login.ok who=person:{ada.id} address=127.0.0.1"
    with app.app_context():
        assert account_of("A password in the wrong field") in logged[1]
    assert all(line.endswith(" address=127.0.0.1") for line in logged)
    cookie = other.client.get_cookie("wakeful").value
    for secret in ("a wrong", "wrong one", "wrong field", PASSWORD, NEW, cookie, EMAIL):
        assert secret not in " ".join(logged)


def test_failures_beyond_the_limit_are_throttled_events(app, ada, lines):
    for _ in range(LOGINS_PER_ACCOUNT + 1):
        Visitor(app).log_in(EMAIL, "guess")
    assert events(lines()) == LOGINS_PER_ACCOUNT * ["login.failed"] + ["login.throttled"]


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("fe80::1%eth0 event=login.ok", "fe80::1"),
        ("192.0.2.1\nsecurity event=login.ok", "unknown"),
        (None, "unknown"),
    ],
)
def test_nobody_writes_a_line_of_their_own(lines, app, address, shown):
    with app.app_context():
        security_log.log_event(SecurityEvent.LOGIN_THROTTLED, typed="x\ny", address=address)
    (line,) = lines()
    assert line.endswith(f" address={shown}")
    assert FORM.fullmatch(line)


def test_a_minute_has_a_bounded_number_of_lines_and_the_rest_is_counted(app, ada, lines, bound):
    def fail(times):
        with app.app_context():
            for _ in range(times):
                security_log.log_event(SecurityEvent.LOGIN_FAILED, typed="x", address="192.0.2.1")
            return account_of("x")

    fail(MAX_A_MINUTE + 7)
    assert len(lines()) == MAX_A_MINUTE
    with app.app_context():
        security_log.log_event(SecurityEvent.LOGIN_THROTTLED, typed="x")
        security_log.log_event(SecurityEvent.LOGIN_FAILED, ada)
    assert len(lines()) == 2, "other events are told, and what concerns an account"
    bound.now += 60
    account = fail(1)
    assert lines() == [
        "security event=login.failed who=account left-out=7",
        f"security event=login.failed who=account:{account} address=192.0.2.1",
    ]


@pytest.mark.settings(metrics_token="token-of-prometheus", rate_limit=0)
def test_wrong_keys_and_refused_access_are_lines_without_what_was_sent(app, ada, lines):
    client, editor = app.test_client(), Visitor(app).log_in(EMAIL)
    reader, near = make_key(app, "read"), make_key(app, networks="192.0.2.0/24")
    lines()

    def ask(path, secret, **more):
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return client.open(path, headers=headers, **more).status_code

    wrong = "wk_abcdefgh_an invented secret"
    assert ask("/api/v1/monitors", wrong) == 401
    assert ask("/api/v1/agent/hello", wrong, method="POST") == 401
    assert ask("/metrics", wrong) == 401
    assert ask("/api/v1/monitors", None) == 401, "nothing was tried"
    assert ask("/api/v1/monitors", reader, method="POST", data={"name": "x"}) == 403
    assert ask("/api/v1/monitors", near) == 403
    assert ask("/api/v1/monitors", reader) == 200
    assert editor.open("/people").status == 403
    logged = lines()
    assert [line.removeprefix("security event=") for line in logged] == [
        "key.wrong who=nobody address=127.0.0.1",
        "key.wrong who=nobody address=127.0.0.1",
        "key.wrong who=nobody address=127.0.0.1",
        "access.refused who=key:1 address=127.0.0.1",
        "access.refused who=key:2 address=127.0.0.1",
        f"access.refused who=person:{ada.id} address=127.0.0.1",
    ]
    assert all(FORM.fullmatch(line) for line in logged)
    for _ in range(MAX_A_MINUTE + 5):
        ask("/metrics", wrong)
    assert len(lines()) == MAX_A_MINUTE - 3, "and no more in this minute"
    with app.app_context():
        assert "access.refused" not in {row.action for row in db.session.query(AuditRow)}


def test_an_ended_token_of_an_agent_names_its_place_once_an_hour(app, lines, monkeypatch):
    """An agent tries every 15 s until somebody gives it the new one."""
    client = app.test_client()
    with app.app_context():
        oslo, eu, us = (
            current_store().locations.create({"name": name, "carrier": "agent"})
            for name in ("oslo", "eu", "us")
        )
        current_store().locations.new_token(oslo.id)
        current_store().locations.update(eu.id, {"carrier": "local"})
        current_store().locations.delete(us.id)
    lines()

    def knock(place):
        headers = {"Authorization": f"Bearer {place.token}"}
        answer = client.post("/api/v1/agent/hello", json={}, headers=headers)
        assert answer.status_code == 401
        return answer.get_json()["message"]

    for place in (oslo, eu, us):
        for _ in range(3):
            sentence = (
                f"This token of the place {place.name} was replaced or has ended: give the agent"
            )
            assert knock(place).startswith(sentence)
        assert lines() == [f"security event=key.wrong who=place:{place.name} address=127.0.0.1"]
    later = time.monotonic() + 3600
    monkeypatch.setattr("app.access.security_log.time.monotonic", lambda: later)
    knock(oslo)
    (line,) = lines()
    assert FORM.fullmatch(line)


def test_a_key_that_is_refused_before_its_body_is_read_is_a_line_too(app, lines):
    secret = make_key(app, networks="192.0.2.0/24")
    for headers, line in (
        ({"Authorization": "Bearer wrong"}, "key.wrong who=nobody address=198.51.100.7"),
        ({"Authorization": f"Bearer {secret}"}, "access.refused who=key:1 address=198.51.100.7"),
    ):
        environ = EnvironBuilder(
            "/api/v1/monitors",
            method="POST",
            headers=headers,
            environ_base={"REMOTE_ADDR": "198.51.100.7", EARLY: True},
        ).get_environ()
        _body, status, _headers = run_wsgi_app(app.wsgi_app, environ)
        assert status[:3] in ("401", "403")
        assert lines() == [f"security event={line}"]
        assert actors.actor() is None, "the thread serves others next"


def test_nobody_can_try_words_on_a_line(app):
    """The hash of what was typed is keyed: people type passwords into the wrong field."""
    with app.app_context():
        account = account_of(EMAIL)
    assert account != sha256(EMAIL.encode()).hexdigest()[:16]
    app.config.update(SECRET_KEY="another key of 32 characters or more", SECRET_KEY_FALLBACKS=[])
    app.extensions.pop("wakeful.hash_key")
    with app.app_context():
        assert account_of(EMAIL) != account


def test_the_audit_log_has_logins_failures_and_ends_once_each(app, ada):
    browser = Visitor(app)
    browser.log_in(EMAIL, "wrong")
    browser.log_in("nobody@wakeful.test", "wrong")
    browser.log_in(EMAIL)
    Visitor(app).log_in(EMAIL)
    browser.open("/profile/sessions").press("Log out everywhere else")
    browser.press("Log out")
    person = (ada.id, EMAIL)
    with app.app_context():
        nobody = account_of("nobody@wakeful.test")
        last = db.session.scalars(select(AuditRow).order_by(AuditRow.id.desc())).first()
    assert (last.actor_kind, last.actor_id) == ("person", ada.id), "it is they who log out"
    assert audited(app) == [
        ("login_failed", *person),
        ("login_failed", None, f"account:{nobody}"),
        ("logged_in", *person),
        ("logged_in", *person),
        ("session_ended", *person),
        ("logged_out", *person),
    ]


def test_a_login_that_cannot_be_audited_is_no_login(app, ada, monkeypatch):
    """The line and the session are one transaction."""

    def broken(*_args, **_kwargs):
        raise RuntimeError("no line")

    monkeypatch.setattr("app.access.audit.note", broken)
    access = app.extensions["wakeful.access"]
    with app.app_context(), pytest.raises(RuntimeError):
        access.sessions.begin(ada.id, Client("192.0.2.1"))
    with app.app_context():
        assert access.sessions.of(ada.id) == []


def test_the_manual_names_every_event():
    manual = (Path(__file__).parents[2] / "docs" / "people.md").read_text()
    assert [event for event in SecurityEvent if f"| `{event}` |" not in manual] == []
    filtered = re.search(r"failregex = (.+)", manual)[1].replace("<ADDR>", r"\S+")
    failures = {
        event for event in SecurityEvent if event.endswith((".failed", ".wrong", ".throttled"))
    }
    line = "security event={} who=person:1 address=192.0.2.7"
    assert {event for event in SecurityEvent if re.search(filtered, line.format(event))} == failures
