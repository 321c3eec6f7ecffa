"""``wakeful user``, as typed: people for whoever has the server."""

from __future__ import annotations

import re

import pyotp
import pytest
from sqlalchemy import select

from app.access import actors
from app.db import db
from app.db.tables import AuditRow
from tests.alerts.sinks import mail_sink
from tests.factories import PASSWORD
from tests.support.typed import access, install_at, typing

NEW = "another long passphrase"


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Ada, an admin, and Bob, an editor with a second factor."""
    install_at(tmp_path / "instance", monkeypatch)
    type_ = typing(monkeypatch)
    type_("user", "create", "ada@example.org", "--role", "admin", input=f"{PASSWORD}\n")
    type_("user", "create", "Bob@example.org", "--role", "editor", input=f"{PASSWORD}\n")
    with access() as parts:
        secret, sealed = parts.factors.start_app(2)
        parts.factors.add_app(2, sealed, pyotp.TOTP(secret).now(), current=PASSWORD)
    return type_


def audit():
    """The audit log's lines on commands, the newest last."""
    query = select(AuditRow).where(AuditRow.actor_kind == "command").order_by(AuditRow.id)
    return [(row.action, row.object_kind, row.object_name) for row in db.session.scalars(query)]


def test_list_shows_role_access_second_factor_and_last_login(people):
    with access() as here:
        here.people.login("ada@example.org", PASSWORD)
    code, out, err = people("user", "list")
    ada, bob = out.splitlines()
    assert (code, err) == (0, "")
    assert re.fullmatch(
        r"ada@example\.org\tadmin\tenabled\tpassword only\t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*", ada
    )
    assert bob == "Bob@example.org\teditor\tenabled\tsecond factor\tnever logged in"


def test_password_is_read_twice_never_shown_and_ends_sessions(people):
    with access() as here:
        token = here.sessions.begin(1).session
    code, out, err = people("user", "password", "ADA@example.org", input=f"{NEW}\n{NEW}\n")
    assert (code, err) == (0, "")
    assert out == "Password of ada@example.org changed. They are logged out.\n"
    with access() as here:
        assert here.sessions.person(token) is None
        assert here.people.login("ada@example.org", PASSWORD) is None
        assert here.people.login("ada@example.org", NEW).email == "ada@example.org"
        assert audit()[-1] == ("changed", "person", "ada@example.org")


def test_a_password_that_cannot_be_taken_changes_nothing(people):
    for typed, fault in (
        (f"{NEW}\n{NEW}x\n", "The two passwords are different. Nothing was changed."),
        (f"{NEW}\n", "The two passwords are different. Nothing was changed."),
        ("short\nshort\n", "The password is too short"),
        ("password\npassword\n", "one of the most common passwords"),
    ):
        code, out, err = people("user", "password", "ada@example.org", input=typed)
        assert (code, out) == (1, ""), typed
        assert fault in err, typed
    code, _out, err = people("user", "password", "ada@example.org", NEW)
    assert (code, "unexpected extra argument" in err) == (2, True), "it is never an argument"
    with access() as here:
        assert here.people.login("ada@example.org", PASSWORD) is not None


def test_no_transaction_waits_while_a_password_is_typed(people, monkeypatch):
    waiting = []

    def typed(_prompt):
        waiting.append(db.session().in_transaction())
        return NEW

    monkeypatch.setattr("app.commands.accounts.typed_line", typed)
    assert people("user", "password", "ada@example.org")[0] == 0
    assert waiting == [False, False], "PostgreSQL would end it"


def test_disable_ends_sessions_and_enable_gives_access_back(people):
    with access() as here:
        token = here.sessions.begin(2).session
    code, out, _err = people("user", "disable", "bob@example.org")
    assert (code, out) == (0, "Bob@example.org cannot log in any more.\n")
    with access() as here:
        assert here.sessions.person(token) is None
        assert here.people.login("bob@example.org", PASSWORD) is None
    assert "\tdisabled\t" in people("user", "list")[1]
    assert people("user", "enable", "bob@example.org")[1] == "Bob@example.org can log in again.\n"
    with access() as here:
        assert here.people.login("bob@example.org", PASSWORD) is not None
    last = "This is the last admin. Make another person an admin first.\n"
    assert people("user", "disable", "ada@example.org") == (1, "", last)


def test_reset_removes_the_second_factor_only(people):
    with access() as here:
        token, half = here.sessions.begin(2).session, here.pending_logins.begin(2)
    code, out, _err = people("user", "reset", "bob@example.org")
    assert code == 0
    assert out == (
        "Second factor of Bob@example.org removed. Their password alone logs them in.\n"
        "Email is not set up, so tell them yourself.\n"
    )
    with access() as here:
        assert here.sessions.person(token) is None
        assert here.pending_logins.person(half) is None
        assert not here.factors.of(2).is_set
        assert not here.people.login("bob@example.org", PASSWORD).second_factor
        assert audit()[-1] == ("deleted", "second_factor", "Bob@example.org")
    again = people("user", "reset", "bob@example.org")
    assert again[:2] == (0, "Bob@example.org has no second factor. Nothing was changed.\n")


def test_reset_tells_the_person_by_email_or_says_that_it_could_not(people, monkeypatch):
    with mail_sink() as sink:
        monkeypatch.setenv("WAKEFUL_SMTP_URL", f"smtp://127.0.0.1:{sink.port}")
        out = people("user", "reset", "bob@example.org")[1]
        nothing = people("user", "reset", "bob@example.org")[1]
    assert out.splitlines()[1:] == ["They were notified by email."]
    assert nothing == "Bob@example.org has no second factor. Nothing was changed.\n"
    (mail,) = sink.mails
    assert mail["To"] == "Bob@example.org"
    assert "removed on the server, by command" in mail.get_body(("plain",)).get_content()
    with access() as here:
        secret, sealed = here.factors.start_app(2)
        here.factors.add_app(2, sealed, pyotp.TOTP(secret).now(), current=PASSWORD)
    code, out, err = people("user", "reset", "bob@example.org")
    assert (code, len(out.splitlines())) == (0, 1), "the factor is removed all the same"
    assert err.startswith("They could not be notified by email: ")
    assert err.endswith(" Tell them yourself.\n")


def test_an_unknown_address_is_named_with_the_way_out(people):
    fault = "No account has the email address eve@example.org. To see all: wakeful user list\n"
    for command in ("password", "disable", "enable", "reset"):
        answer = people("user", command, "eve@example.org", input=f"{NEW}\n{NEW}\n")
        assert answer == (1, "", fault), command
        assert actors.actor() is None, command
