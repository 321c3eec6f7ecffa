"""Several secret keys, and ``wakeful secrets rotate`` (decision 15)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import update

from app import create_app, create_core
from app.access import tokens
from app.access.tokens import Purpose
from app.alerts.outbox import lane_of
from app.commands import rotating
from app.commands.doctor import examine
from app.config import SettingError, Settings, read
from app.db import db, liveness, rotation, schema, unreadable, writing
from app.db.settings import store_setting
from app.db.tables import AuditRow, ContactRow, IncidentRow, MonitorRow, SettingRow
from app.db.types import Unreadable
from app.errors import Denied, WakefulError
from app.pages.copies import Copies
from app.records import Action
from tests.conftest import SECRET_KEY
from tests.factories import make_incident, make_monitor, make_person, make_subscriber, now
from tests.pages.made import make_page
from tests.support.command import start
from tests.web.visitor import Visitor, token

NEW, OTHER = "a new secret key for tests", "another secret key, of somebody else"
ALERTS = [["webhook", "https://hooks.example/secret"]]


@contextmanager
def having(settings: Settings, first: str, *others: str, web: bool = False) -> Iterator[Flask]:
    """The installation with these keys, in its context unless it is for the web."""
    changed = replace(settings, secret_key=first, old_keys=others)
    app = (create_app if web else create_core)(changed)
    try:
        if web:
            yield app
        else:
            with app.app_context():
                yield app
                db.session.remove()
    finally:
        with app.app_context():
            db.engine.dispose()


@pytest.fixture
def stored(app: Flask) -> Flask:
    """Secrets in every table that has some, written with the only key."""
    shop = make_monitor(
        app,
        alerts=ALERTS,
        request_auth_password="the password",
        request_body="a body",
        request_headers=[["X-Token", "header value"]],
    )
    make_incident(app, shop, evidence={"events": []})
    make_subscriber(app, make_page(app))
    with app.app_context():
        store_setting("webhook_secret", "whsec_abc", now())
        with writing() as session:
            fields = {"name": "Night", "name_folded": "night", "channels": ALERTS}
            session.add(ContactRow(**fields, created_at=now(), updated_at=now()))
    return app


def rotate(settings: Settings) -> bool:
    with having(settings, NEW, SECRET_KEY) as app:
        return rotating.rotate_keys(app.extensions["wakeful.settings"])


def old_left(settings: Settings) -> int:
    with having(settings, NEW, SECRET_KEY):
        return sum(item.old for item in rotation.count())


@pytest.mark.both_databases
def test_rotate_re_encrypts_everything_and_the_old_key_can_go(stored, settings, capsys):
    with stored.app_context():
        tables = {table.name for table, _columns in unreadable.encrypted()}
        hashed = lane_of(*ALERTS[0])
        values = old_left(settings)
        with pytest.raises(WakefulError, match="WAKEFUL_SECRET_KEY=NEW,OLD"):
            rotating.rotate_keys(settings)
    assert values >= 8

    assert rotate(settings)
    printed = capsys.readouterr().out
    assert f"{values} values were re-encrypted" in printed
    assert all(f"{name}: " in printed for name in tables)
    assert "Done: no stored value needs the old key" in printed
    with stored.app_context():
        line = db.session.query(AuditRow).filter_by(action=Action.ROTATED).one()
        assert line.changes["re_encrypted"]["new"] == values
    assert rotate(settings)  # a second time finds nothing to do
    assert "0 values were re-encrypted" in capsys.readouterr().out

    with having(settings, NEW):
        schema.check_key()
        shop = db.session.query(MonitorRow).one()
        assert (shop.request_auth_password, shop.alerts) == ("the password", ALERTS)
        assert db.session.query(ContactRow).one().channels == ALERTS
        assert db.session.query(IncidentRow).one().evidence == {"events": []}
        assert lane_of(*ALERTS[0]) == hashed  # outage and recovery stay in one lane
        assert db.session.get(SettingRow, tokens.HASH_KEY).value == SECRET_KEY
        assert not list(unreadable.scan(tables))
    with having(settings, SECRET_KEY), pytest.raises(SettingError):
        schema.check_key()


def test_the_first_key_writes_and_all_read_while_both_are_set(stored, settings):
    with having(settings, NEW, SECRET_KEY):
        assert db.session.query(MonitorRow).one().request_auth_password == "the password"
        store_setting("other", "written now", now())
    with having(settings, SECRET_KEY):
        assert isinstance(db.session.get(SettingRow, "other").value, Unreadable)
    with having(settings, NEW):
        assert db.session.get(SettingRow, "other").value == "written now"


def test_what_was_signed_or_sealed_with_the_old_key_is_accepted(stored, settings, tmp_path):
    page, who, mark = 1, 1, "0" * 64
    end = Purpose.UNSUBSCRIBE
    with stored.app_context():
        link = tokens.acknowledgement_token(7, "mail")
        leave = tokens.subscription_token(end, page, who, mark, now())
        box = tokens.seal({"a": 1}, "import")
    Copies(tmp_path, [SECRET_KEY]).write("page-1", "a copy", changed=True)
    with having(settings, NEW, SECRET_KEY):
        assert tokens.read_acknowledgement(link).incident_id == 7
        assert tokens.read_subscription(end, leave, now()) is not None
        assert tokens.unseal(box, "import") == {"a": 1}
        fresh = tokens.acknowledgement_token(8, "mail")
        fresh_leave = tokens.subscription_token(end, page, who, mark, now())
    assert Copies(tmp_path, [NEW, SECRET_KEY]).read("page-1") == "a copy"
    assert Copies(tmp_path, [NEW]).read("page-1") is None
    with having(settings, NEW):
        assert tokens.read_acknowledgement(fresh).incident_id == 8
        assert tokens.read_subscription(end, fresh_leave, now()) is not None
        assert tokens.read_subscription(end, leave, now()) is None
        with pytest.raises(Denied):
            tokens.read_acknowledgement(link)


def test_people_stay_logged_in_and_an_open_form_is_taken(stored, settings):
    make_person(stored, "editor")
    editor = Visitor(stored).log_in("editor@wakeful.test").open("/profile")
    cookie, sent = editor.client.get_cookie("wakeful"), token(editor)
    with having(settings, NEW, SECRET_KEY, web=True) as app:
        client = app.test_client()
        client.set_cookie("wakeful", cookie.value)
        assert client.get("/profile").status_code == 200
        assert client.post("/logout", data=sent).status_code == 302
    with having(settings, NEW, web=True) as app:
        client = app.test_client()
        client.set_cookie("wakeful", cookie.value)
        assert client.get("/profile").status_code == 302


def kill_after_first_batch(settings: Settings) -> None:
    """In a process of its own."""
    replaced = rotation._replace

    def die(*arguments: Any) -> int:
        if getattr(die, "passed", False):
            os.kill(os.getpid(), signal.SIGKILL)
        die.passed = True  # type: ignore[attr-defined]
        return replaced(*arguments)

    rotation._replace, rotation.BATCH = die, 2  # type: ignore[assignment]
    rotate(settings)


@pytest.mark.both_databases
def test_after_a_kill_the_next_run_does_the_rest(stored, settings, capsys):
    for _number in range(5):
        make_monitor(stored, request_auth_password="one more")
    before = old_left(settings)
    killed = start(kill_after_first_batch, settings)
    killed.join(100)
    assert killed.exitcode == -signal.SIGKILL
    left = old_left(settings)
    assert 0 < left < before
    assert rotate(settings)
    assert f"{left} values were re-encrypted" in capsys.readouterr().out
    assert old_left(settings) == 0


def test_values_that_no_key_reads_are_named_and_the_rest_is_done(stored, settings, capsys):
    with having(settings, OTHER), writing() as session:
        session.execute(update(MonitorRow).values(request_body="of another key"))
        store_setting("strange", "of another key", now())
    with stored.app_context(), writing() as session:
        session.execute(db.text("UPDATE contacts SET channels = 'damaged'"))
    assert not rotate(settings)
    out, err = capsys.readouterr()
    assert 'The request body of "Shop" (monitor 1) cannot be read' in err
    assert "The setting strange cannot be read" in err
    assert 'The channels of "Night" (contact 1) cannot be read' in err
    assert "These values need neither key" in err
    assert "contacts: 0 re-encrypted, 0 with the new key, 0 with an old key, 1 not readable" in out
    assert "no stored value needs the old key" in out
    assert old_left(settings) == 0


def test_it_is_not_done_while_a_process_writes_with_the_old_key(
    stored, settings, capsys, monkeypatch
):
    batches = rotation._batches

    def written_meanwhile(*arguments: Any) -> Iterator[Any]:
        with stored.app_context():
            store_setting("busy", "again", now())
        yield from batches(*arguments)

    monkeypatch.setattr(rotation, "_batches", written_meanwhile)
    assert not rotate(settings)
    out, err = capsys.readouterr()
    assert "Not done: a process goes on writing with the old key" in err
    assert "Done" not in out
    monkeypatch.undo()
    assert rotate(settings)


def test_a_value_that_is_written_meanwhile_is_not_overwritten(stored, settings, monkeypatch):
    replaced = rotation._replace

    def after_a_write(table: Any, *arguments: Any) -> int:
        if table is SettingRow.__table__:
            store_setting("webhook_secret", "whsec_newer", now())
        return replaced(table, *arguments)

    monkeypatch.setattr(rotation, "_replace", after_a_write)
    assert rotate(settings)
    with having(settings, NEW):
        assert db.session.get(SettingRow, "webhook_secret").value == "whsec_newer"


@pytest.mark.parametrize("role", [liveness.CHECKER, liveness.WORKER])
def test_nothing_begins_while_a_checker_or_worker_lacks_the_new_key(stored, settings, capsys, role):
    with stored.app_context():
        liveness.write(f"{role}:here:1", now())
    before = old_left(settings)
    with pytest.raises(WakefulError, match=f"run without the new key: {role}:here:1"):
        rotate(settings)
    assert old_left(settings) == before
    with stored.app_context():
        liveness.note_end(f"{role}:here:1", now())
    with having(settings, NEW, SECRET_KEY):
        liveness.write(f"{role}:here:2", now())
    with stored.app_context():
        liveness.write(f"{role}:here:3", now() - timedelta(minutes=2))  # it was killed
    assert rotate(settings)


def test_doctor_names_what_only_an_old_key_reads(stored, settings):
    def sentence() -> str:
        with having(settings, NEW, SECRET_KEY) as app:
            findings = examine(app, app.extensions["wakeful.settings"])
            return "\n".join(finding.sentence for finding in findings)

    before = sentence()
    assert "Only an old secret key reads the password of monitor 1. Run: wakeful" in before
    assert "Only an old secret key reads the setting webhook_secret." in before
    rotate(settings)
    after = sentence()
    assert "Only an old" not in after
    assert "The first key reads every stored value" in after


def test_keys_are_separated_by_commas_or_lines(tmp_path: Path):
    def keys(text: str) -> tuple[str, ...]:
        return read({"WAKEFUL_INSTANCE": str(tmp_path), "WAKEFUL_SECRET_KEY": text}).secret_keys

    assert keys(f" {NEW.replace(',', '')} , {SECRET_KEY}") == (NEW, SECRET_KEY)
    assert keys(f"{NEW},{NEW}") == (NEW,)
    with pytest.raises(SettingError, match="16 characters"):
        keys(f"{NEW},short")
    with pytest.raises(SettingError, match="16 characters"):
        keys(",")
    (tmp_path / "secret_key").write_text(f"{NEW}\n\n{SECRET_KEY}\n")
    assert read({"WAKEFUL_INSTANCE": str(tmp_path)}).secret_keys == (NEW, SECRET_KEY)
