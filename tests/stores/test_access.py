"""People, keys, settings and counters (decision 6)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from flask import Flask

from app.access import Access
from app.access.counters import Counters, Limit, counted_address
from app.access.people import LOGIN_WINDOW_SECONDS, LOGINS_PER_ACCOUNT, LOGINS_PER_ADDRESS
from app.config import Settings
from app.db import db
from app.db.tables import ApiKeyRow, CounterRow, PersonRow, SettingRow
from app.errors import Conflict, Denied, Invalid, NotFound, Throttled
from app.records import Client
from tests.support.clock import Clock
from tests.support.queries import queries

PASSWORD = "correct horse battery staple"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(core: Flask, settings: Settings, clock: Clock) -> Iterator[Access]:
    access = Access(clock)
    core.extensions["wakeful.access"] = access
    with core.app_context():
        yield access


def test_a_key_works_until_it_is_revoked_and_only_its_hash_is_stored(
    access: Access, clock: Clock
) -> None:
    key, text = access.keys.create("deploys", "write")
    assert text.startswith(f"wk_{key.prefix}_")
    assert len(text) > 40
    row = db.session.get(ApiKeyRow, key.id)
    assert row is not None
    assert text not in str(vars(row))
    owner = access.keys.authenticate(text)
    assert owner is not None
    assert (owner.id, owner.scope, owner.name) == (key.id, "write", "deploys")
    access.keys.revoke(key.prefix)
    assert access.keys.authenticate(text) is None
    assert access.keys.all()[0].revoked_at == clock()
    with pytest.raises(NotFound):
        access.keys.revoke("nothere1")


@pytest.mark.both_databases
def test_processes_count_requests_in_shares_and_each_number_is_given_once(
    core: Flask, access: Access, settings: Settings, clock: Clock
) -> None:
    here, there = access.counters, Counters(clock)

    def count(counters: Counters) -> int:
        with core.app_context():
            return counters.count("api:key", 60, share=5)

    with queries() as sent:
        assert [count(here) for _ in range(5)] == [1, 2, 3, 4, 5]
    assert len([message for message in sent if message.startswith("INSERT")]) == 1
    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(count, [here, there] * 10))
    assert len(set(numbers)) == 20
    assert min(numbers) == 6
    # After a start, what the process had left counts too; in the next window nothing does.
    assert count(Counters(clock)) > max(numbers)
    with core.app_context():
        # Several at once: what is left of the share, and the rest of a larger one.
        counts = [there.count("results", 60, many, share=5) for many in (3, 4, 12, 1)]
        assert counts == [3, 7, 19, 20]
    clock.advance(minutes=1)
    assert [count(there), count(here), count(there)] == [1, 6, 2]


def test_a_wrong_key_of_any_form_is_refused(access: Access) -> None:
    key, text = access.keys.create("deploys", "read")
    nearly = text[:-1] + ("A" if text[-1] != "A" else "B")
    ours = f"wk_{key.prefix}_"
    for wrong in ("", "wk", "wk__", nearly, ours, text + "x", text.upper(), "\ud800"):
        assert access.keys.authenticate(wrong) is None, wrong


def test_a_key_ends_at_its_expiry(access: Access, clock: Clock) -> None:
    _, text = access.keys.create("short", "read", clock() + timedelta(hours=1))
    clock.advance(minutes=59)
    assert access.keys.authenticate(text) is not None
    clock.advance(minutes=1)
    assert access.keys.authenticate(text) is None


def test_the_last_use_of_a_key_is_written_at_most_once_a_minute(
    access: Access, clock: Clock
) -> None:
    _, text = access.keys.create("busy", "read")
    uses = []
    for _ in range(4):
        access.keys.authenticate(text)
        uses.append(access.keys.all()[0].last_used_at)
        clock.advance(seconds=30)
    start = uses[0]
    assert start is not None
    assert uses == [start, start, start + timedelta(minutes=1), start + timedelta(minutes=1)]


@pytest.mark.parametrize(
    ("name", "scope", "days", "field"),
    [
        (" ", "read", 1, "name"),
        ("x" * 256, "read", 1, "name"),
        ("a", "all", 1, "scope"),
        ("a", "read", -1, "expires_at"),
    ],
)
def test_a_key_with_invalid_fields_is_refused(
    access: Access, clock: Clock, name: str, scope: str, days: int, field: str
) -> None:
    with pytest.raises(Invalid) as caught:
        access.keys.create(name, scope, clock() + timedelta(days=days))
    assert list(caught.value.errors) == [field]


def test_a_person_logs_in_whatever_the_case_of_the_address(access: Access, clock: Clock) -> None:
    made = access.people.create("Ada@Example.com", PASSWORD, "editor")
    row = db.session.get(PersonRow, made.id)
    assert row is not None
    assert row.password_hash.startswith("$argon2id$")
    person = access.people.login("ADA@example.COM", PASSWORD, Client("192.0.2.1"))
    assert person is not None
    assert (person.id, person.email, person.last_login_at) == (made.id, made.email, clock())
    assert access.people.login("ada@example.com", "wrong", Client("192.0.2.1")) is None
    assert access.people.login("nobody@example.com", PASSWORD, Client("192.0.2.1")) is None
    access.people.create("boss@example.com", PASSWORD, "admin")
    access.people.update(made.id, {"disabled": True})
    assert access.people.login("ada@example.com", PASSWORD) is None


@pytest.mark.parametrize(
    ("email", "password", "role", "field"),
    [
        ("ada", PASSWORD, "admin", "email"),
        ("ada@example.com", "short", "admin", "password"),
        ("ada@example.com", PASSWORD, "king", "role"),
        ("TAKEN@example.com", PASSWORD, "viewer", "email"),
        ("ada@example.com", "x" * 256, "admin", "password"),
    ],
)
def test_an_account_with_invalid_fields_is_refused(
    access: Access, email: str, password: str, role: str, field: str
) -> None:
    access.people.create("taken@example.com", PASSWORD, "admin")
    with pytest.raises(Invalid) as caught:
        access.people.create(email, password, role)
    assert list(caught.value.errors) == [field]
    assert len(access.people.all()) == 1


@pytest.mark.both_databases
def test_guessing_at_one_account_is_stopped_and_others_can_still_log_in(
    access: Access, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    access.people.create("ada@example.com", PASSWORD, "admin")
    access.people.create("bob@example.com", PASSWORD, "viewer")
    for number in range(LOGINS_PER_ACCOUNT):
        assert access.people.login("ada@example.com", "guess", Client(f"192.0.2.{number}")) is None
    with pytest.raises(Throttled) as caught:
        # The right one comes too late.
        access.people.login("Ada@example.com", PASSWORD, Client("192.0.2.200"))
    assert 0 < caught.value.retry_after <= LOGIN_WINDOW_SECONDS
    assert access.people.login("bob@example.com", PASSWORD, Client("192.0.2.200")) is not None
    clock.advance(seconds=caught.value.retry_after)
    assert access.people.login("ada@example.com", PASSWORD, Client("192.0.2.200")) is not None


@pytest.mark.parametrize(
    ("address", "other", "together"),
    [
        ("198.51.100.7", "198.51.100.8", False),
        ("::ffff:198.51.100.7", "::ffff:198.51.100.8", False),
        ("2001:db8:0:1::7", "2001:db8:0:1:ffff::8", True),
        ("2001:db8:0:1::7", "2001:db8:0:2::7", False),
        ("", "unix", True),
        ("", "198.51.100.7", False),
    ],
)
def test_the_clients_of_one_ipv6_network_count_as_one(
    address: str, other: str, together: bool
) -> None:
    assert (counted_address(address) == counted_address(other)) == together


def test_trying_many_accounts_from_one_address_is_stopped(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The hash is what takes time; this is about the counting.
    monkeypatch.setattr(
        "app.access.passwords.matches", lambda *_hash_and_password, count, trusted: bool(count())
    )
    for number in range(LOGINS_PER_ADDRESS):
        # An IPv6 subscriber has a whole /64: another address of it is no other origin.
        client = Client(f"2001:db8::{number:x}")
        assert access.people.login(f"user{number}@example.com", "guess", client) is None
    with pytest.raises(Throttled):
        access.people.login("somebody@example.com", "guess", Client("2001:db8::ffff"))
    assert access.people.login("somebody@example.com", "guess", Client("2001:db8:0:1::1")) is None


def test_a_login_resets_the_count_of_wrong_passwords(access: Access) -> None:
    access.people.create("ada@example.com", PASSWORD, "admin")
    for _ in range(3):
        for _ in range(LOGINS_PER_ACCOUNT - 1):
            access.people.login("ada@example.com", "typo", Client("192.0.2.1"))
        assert access.people.login("ada@example.com", PASSWORD, Client("192.0.2.1")) is not None


def test_a_typed_email_is_not_stored_in_the_counters(access: Access) -> None:
    access.people.login("my secret password", "x", Client("192.0.2.1"))
    names = [row.name for row in db.session.query(CounterRow)]
    assert names
    assert not any("secret" in name for name in names)


@pytest.mark.both_databases
def test_the_last_admin_cannot_be_removed(access: Access) -> None:
    admin = access.people.create("ada@example.com", PASSWORD, "admin")
    access.people.create("bob@example.com", PASSWORD, "editor")
    for attempt in (
        lambda: access.people.delete(admin.id),
        lambda: access.people.update(admin.id, {"role": "viewer"}),
        lambda: access.people.update(admin.id, {"disabled": True}),
    ):
        with pytest.raises(Conflict):
            attempt()
    other = access.people.create("eve@example.com", PASSWORD, "admin")
    assert access.people.update(admin.id, {"role": "viewer"}).role == "viewer"
    access.people.delete(admin.id)
    with pytest.raises(NotFound):
        access.people.get(admin.id)
    assert access.people.get(other.id).role == "admin"


@pytest.mark.parametrize(
    "fields",
    [
        {"time_zone": "Mars/Base"}, {"time_zone": "Europe"}, {"time_zone": "../etc"},
        {"theme": "pink"}, {"role": "king"}, {"email": "x"}, {"password_hash": "x"},
    ],
)  # fmt: skip
def test_a_person_cannot_get_invalid_fields(access: Access, fields: dict[str, str]) -> None:
    person = access.people.create("ada@example.com", PASSWORD, "admin")
    with pytest.raises(Invalid) as caught:
        access.people.update(person.id, fields)
    assert list(caught.value.errors) == list(fields)
    assert access.people.get(person.id) == person


def test_a_password_is_changed_only_with_the_present_one(access: Access) -> None:
    person = access.people.create("ada@example.com", PASSWORD, "admin")
    with pytest.raises(Invalid) as caught:
        access.people.change_password(person.id, "another password", current="wrong")
    assert list(caught.value.errors) == ["current_password"]
    access.people.change_password(person.id, "another password", current=PASSWORD)
    assert access.people.login(person.email, PASSWORD) is None
    assert access.people.login(person.email, "another password") is not None


@pytest.mark.both_databases
def test_the_setup_link_makes_one_admin_and_is_void_then(access: Access) -> None:
    assert access.setup.needed()
    token = access.setup.token()
    assert access.setup.token() == token
    with pytest.raises(Denied):
        access.setup.use("wrong", "ada@example.com", PASSWORD)
    with pytest.raises(Invalid):
        access.setup.use(token, "ada@example.com", "short")
    assert access.setup.use(token, "ada@example.com", PASSWORD).role == "admin"
    assert not access.setup.needed()
    with pytest.raises(Denied):
        access.setup.use(token, "eve@example.com", PASSWORD)
    assert [person.email for person in access.people.all()] == ["ada@example.com"]


def test_the_setup_link_is_void_once_an_account_was_made_by_command(access: Access) -> None:
    token = access.setup.token()
    access.people.create("ada@example.com", PASSWORD, "admin")
    assert not access.setup.is_token(token)
    with pytest.raises(Denied):
        access.setup.use(token, "eve@example.com", PASSWORD)


@pytest.mark.both_databases
def test_settings_are_stored_encrypted_and_can_be_removed(access: Access) -> None:
    assert access.settings.get("webhook_secret") is None
    access.settings.set("webhook_secret", "whsec_abc")
    access.settings.set("webhook_secret", "whsec_def")
    assert access.settings.get("webhook_secret") == "whsec_def"
    assert access.settings.get_or_make("webhook_secret", lambda: "never") == "whsec_def"
    raw = db.session.connection().exec_driver_sql("SELECT value FROM settings").scalar_one()
    assert "whsec" not in raw
    access.settings.set("webhook_secret", None)
    assert access.settings.get("webhook_secret") is None
    assert db.session.get(SettingRow, "webhook_secret") is None


@pytest.mark.both_databases
def test_a_count_is_shared_by_threads_and_starts_anew_with_each_window(
    core: Flask, access: Access, clock: Clock
) -> None:
    def count(_: int) -> int:
        with core.app_context():
            return access.counters.count("key:1", 60)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(count, range(12))) == list(range(1, 13))
    assert access.counters.counted(Limit("key:1", 60, 0)) == 12
    assert access.counters.count("key:2", 60) == 1
    assert access.counters.seconds_left(60) == 60
    clock.advance(seconds=60)
    assert access.counters.count("key:1", 60) == 1
    access.counters.count("agent:1:results", 10)
    clock.advance(seconds=9)
    access.counters.forget_old()
    assert access.counters.counted(Limit("agent:1:results", 10, 0)) == 1, "its window is not over"
    clock.advance(hours=2)
    access.counters.forget_old()
    assert {row.name for row in db.session.query(CounterRow)} == {"key:1", "key:2"}
    clock.advance(days=2)
    access.counters.forget_old()
    assert db.session.query(CounterRow).count() == 0
