"""Invitations and links to set a new password."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from flask import Flask

from app.access import Access, passwords
from app.config import Settings
from app.db import db
from app.db.tables import InvitationRow, RecoveryRow
from app.errors import Denied, Invalid, NotFound
from tests.support.clock import Clock

PASSWORD = "correct horse battery staple"
NEW = "another long password"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(core: Flask, settings: Settings, clock: Clock) -> Iterator[Access]:
    access = Access(clock)
    with core.app_context():
        yield access


@pytest.mark.both_databases
def test_of_many_who_accept_at_once_one_gets_the_account(core: Flask, access: Access) -> None:
    _, token = access.invitations.invite("eve@example.org", "viewer")

    def accept(name: str) -> str | None:
        with core.app_context():
            try:
                return access.invitations.accept(token, PASSWORD, name=name).name
            except (Denied, Invalid):
                return None

    with ThreadPoolExecutor(4) as pool:
        names = [name for name in pool.map(accept, "abcd") if name]
    assert len(names) == 1
    assert [person.name for person in access.people.all()] == names
    assert access.invitations.all() == []


def test_a_link_that_ends_while_its_form_is_read_does_nothing(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = access.people.create("ada@example.org", PASSWORD, "admin")
    invitation, invited = access.invitations.invite("eve@example.org", "viewer")
    link = access.recovery.make_link(ada.id)
    for use, token, end in (
        (access.recovery.use, link, lambda: access.sessions.end_all(ada.id)),
        (access.invitations.accept, invited, lambda: access.invitations.revoke(invitation.id)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(passwords, "hashed", lambda _, end=end: str(end()))
            with pytest.raises(Denied):
                use(token, NEW)
    assert access.people.all() == [ada]
    assert access.people.login(ada.email, PASSWORD)


def test_an_invitation_ends_with_its_time_and_is_forgotten_later(
    access: Access, clock: Clock
) -> None:
    invitation, token = access.invitations.invite("eve@example.org", "viewer")
    clock.now += timedelta(days=7)
    assert access.invitations.of_token(token) is None
    assert access.invitations.is_over(invitation)
    with pytest.raises(Denied):
        access.invitations.accept(token, PASSWORD)
    access.invitations.forget_old()
    assert len(access.invitations.all()) == 1  # it can be renewed
    clock.now += timedelta(days=31)
    access.invitations.forget_old()
    assert db.session.query(InvitationRow).count() == 0
    with pytest.raises(NotFound):
        access.invitations.renew(invitation.id)


def test_a_clock_that_was_ahead_makes_no_link_last_longer(access: Access, clock: Clock) -> None:
    ada = access.people.create("ada@example.org", PASSWORD, "admin")
    clock.now += timedelta(days=100)
    _, token = access.invitations.invite("eve@example.org", "viewer")
    link = access.recovery.make_link(ada.id)
    clock.now -= timedelta(days=100)
    assert access.invitations.of_token(token) is None
    assert access.recovery.person(link) is None


@pytest.mark.parametrize(("email", "role"), [("eve", "viewer"), ("eve@example.org", "owner")])
def test_what_cannot_be_an_account_cannot_be_invited(access: Access, email: str, role: str) -> None:
    with pytest.raises(Invalid):
        access.invitations.invite(email, role)


@pytest.mark.both_databases
def test_of_many_who_use_a_recovery_link_at_once_one_sets_the_password(
    core: Flask, access: Access
) -> None:
    ada = access.people.create("ada@example.org", PASSWORD, "admin")
    session = access.sessions.begin(ada.id).session
    token = access.recovery.make_link(ada.id)

    def use(password: str) -> str | None:
        with core.app_context():
            try:
                access.recovery.use(token, password)
            except Denied:
                return None
            return password

    with ThreadPoolExecutor(4) as pool:
        used = [answer for answer in pool.map(use, [f"{NEW} {n}" for n in range(4)]) if answer]
    assert len(used) == 1
    assert access.people.login(ada.email, used[0]) is not None
    assert access.sessions.person(session) is None
    assert db.session.query(RecoveryRow).count() == 0


def test_a_changed_password_ends_the_links(access: Access) -> None:
    ada = access.people.create("ada@example.org", PASSWORD, "admin")
    person = access.recovery.make_link_by_email("ADA@example.org")
    assert person is not None
    access.people.change_password(ada.id, NEW, current=PASSWORD)
    assert access.recovery.person(person[1]) is None
    assert access.recovery.make_link_by_email("bob@example.org") is None


@pytest.mark.both_databases
def test_expired_links_and_those_of_deleted_people_go(access: Access, clock: Clock) -> None:
    access.people.create("ada@example.org", PASSWORD, "admin")
    eve = access.people.create("eve@example.org", PASSWORD, "viewer")
    assert access.recovery.make_link_by_email("ada@example.org")
    access.recovery.make_link(eve.id)
    access.people.delete(eve.id)
    assert db.session.query(RecoveryRow).count() == 1
    db.session.rollback()
    clock.now += timedelta(hours=1)
    access.recovery.forget_old()
    assert db.session.query(RecoveryRow).count() == 0
