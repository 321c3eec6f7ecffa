"""A flood of failures neither fills the audit log nor hides one: each is a line, or counted."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.exc import OperationalError

from app.access import Access, actors, counters, security_log
from app.access.counters import (
    LOGIN_WINDOW_SECONDS,
    MAX_OF_ACCOUNTS,
    MAX_OF_SOURCE,
    MAX_OF_STRANGERS,
    MAX_SOURCES,
    OTHER_SOURCES,
)
from app.access.security_log import SecurityEvent
from app.db import best_effort, db
from app.db.tables import AuditRow, CountedFailuresRow
from app.records import AuditQuery, Person, Role
from tests.support.clock import Clock

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
WINDOW = timedelta(seconds=LOGIN_WINDOW_SECONDS)
ANY = SecurityEvent.LOGIN_FAILED


@pytest.fixture
def clock(app, monkeypatch):
    """The time of the audit log; it stands still until a test moves it."""

    clock = Clock(NOON)
    monkeypatch.setattr("app.access.audit.clock", clock)
    return clock


def fail(app, person=None, address="192.0.2.1", typed="x", event=ANY):
    with app.app_context(), actors.acting_as(actors.visitor(address)):
        security_log.log_event(event, person, typed=typed)


def busy():
    raise OperationalError("UPDATE", {}, sqlite3.OperationalError("database is locked"))


def test_a_failure_has_its_line_also_when_the_last_use_of_a_key_was_just_not_stored(app, clock):
    with app.app_context():
        assert best_effort("The last use of an API key", busy) is None
        assert best_effort("Another one", lambda: "stored") is None, "left out for a while"
    fail(app, address="192.0.2.7")
    assert [address for address, _of, _number in lines(app)] == ["192.0.2.7"]


def test_a_wrong_guess_has_its_line_before_it_is_answered(app, clock, monkeypatch):
    monkeypatch.setattr(counters, "add", lambda *_arguments: busy())
    access = Access()
    with app.app_context(), pytest.raises(OperationalError):
        access.people.login("nobody@wakeful.test", "wrong-password")


def lines(app):
    """The failures of the audit log, the oldest first: address, account, number left out."""
    with app.app_context():
        page = Access().audit.page(AuditQuery(per_page=500))
        return [
            (
                line.actor.address,
                line.object.id or line.object.name,
                line.changes.get("left_out", {}).get("new"),
            )
            for line in reversed(page.lines)
            if line.action == "login_failed"
        ]


def counted(app):
    with app.app_context():
        return {(row.source, row.number) for row in db.session.query(CountedFailuresRow)}


def person(id):
    """Somebody with an account. Failures are told of people as they were read."""
    return Person(id, f"p{id}@wakeful.test", Role.VIEWER)


def test_a_flood_against_other_accounts_hides_no_failure_of_one(app, clock):
    for number in range(MAX_OF_STRANGERS + 30):
        fail(app, address=f"198.51.100.{number}", typed=f"word {number}")
    fail(app, person(7), "192.0.2.7")
    assert lines(app)[-1] == ("192.0.2.7", 7, None)
    assert len(lines(app)) == MAX_OF_STRANGERS + 1
    own = {(f"198.51.100.{MAX_OF_STRANGERS + place}", 1) for place in range(MAX_SOURCES)}
    assert counted(app) == own | {(OTHER_SOURCES, 30 - MAX_SOURCES)}


def test_each_account_has_so_many_lines_and_then_a_count_of_its_own(app, clock):
    for _ in range(MAX_OF_SOURCE):
        fail(app, person(1))
    assert counted(app) == set()
    clock.now += timedelta(seconds=5)
    fail(app, person(1))
    fail(app, person(2))
    assert counted(app) == {("person:1", 1)}, "the other has its line"
    assert lines(app) == MAX_OF_SOURCE * [("192.0.2.1", 1, None)] + [("192.0.2.1", 2, None)]


def test_each_address_has_so_many_lines_of_accounts_that_do_not_exist(app, clock):
    for number in range(MAX_OF_SOURCE + 3):
        fail(app, typed=f"word {number}", address=f"2001:db8::{number:x}")
    assert len(lines(app)) == MAX_OF_SOURCE
    assert counted(app) == {("2001:db8::/64", 3)}


def test_beyond_the_bound_of_all_accounts_each_is_still_counted_by_itself(app, clock):
    for id in range(MAX_OF_ACCOUNTS):
        fail(app, person(id + 1))
    assert len(lines(app)) == MAX_OF_ACCOUNTS
    fail(app, person(1000), "192.0.2.9")
    assert counted(app) == {("person:1000", 1)}
    clock.now += WINDOW
    fail(app, person(1000), "192.0.2.9")
    assert lines(app)[-2:] == [("192.0.2.9", 1000, None), ("192.0.2.9", 1000, 1)]


@pytest.mark.both_databases
def test_the_first_event_of_a_later_window_writes_the_counts_once(app, clock):
    for number in range(MAX_OF_SOURCE + 5):
        fail(app, typed="one word", address="192.0.2.1")
        fail(app, person(4), address=f"192.0.2.{number}")
        clock.now += timedelta(seconds=1)
    before = lines(app)
    clock.now = NOON + WINDOW - timedelta(milliseconds=1)
    fail(app, event=SecurityEvent.LOGIN_THROTTLED)
    assert lines(app) == before, "the window is not over"
    clock.now = NOON + WINDOW
    fail(app, event=SecurityEvent.LOGIN_THROTTLED)
    later = lines(app)[len(before) :]
    with app.app_context():
        name = f"account:{security_log.account_of('one word')}"
    assert sorted(later, key=str) == sorted([("192.0.2.1", name, 5), (None, 4, 5)], key=str)
    with app.app_context():
        row = db.session.query(AuditRow).filter_by(object_id=4).order_by(AuditRow.id.desc()).first()
        assert row.changes == {
            "left_out": {"old": None, "new": 5},
            "first": {"old": None, "new": "2026-05-04T12:00:10Z"},
            "last": {"old": None, "new": "2026-05-04T12:00:14Z"},
        }
    fail(app, event=SecurityEvent.LOGIN_THROTTLED)
    assert lines(app) == before + later


def test_counts_are_written_where_nothing_comes_after_and_once_by_several(app, clock):
    for _ in range(MAX_OF_SOURCE + 1):
        fail(app)
    clock.now += WINDOW

    def keep_house(_):
        with app.app_context():
            security_log.log_left_out()

    with ThreadPoolExecutor(4) as several:
        list(several.map(keep_house, range(8)))
    assert [line[2] for line in lines(app)] == MAX_OF_SOURCE * [None] + [1]
    assert counted(app) == set()


def test_a_count_of_the_future_is_written_after_the_clock_was_set_back(app, clock):
    for _ in range(MAX_OF_SOURCE + 1):
        fail(app)
    clock.now -= 10 * WINDOW
    fail(app, event=SecurityEvent.LOGIN_THROTTLED)
    assert [line[2] for line in lines(app)].count(1) == 1


def test_a_refused_guess_writes_nothing(app, clock, monkeypatch):
    fail(app)

    def writing():
        raise AssertionError("a write")

    monkeypatch.setattr(counters, "writing", writing)
    clock.now += WINDOW
    fail(app, event=SecurityEvent.LOGIN_THROTTLED)
