"""A database of another version: a newer one is refused with a sentence, an older one upgraded with
a copy kept beside it (decision 16).
"""

from __future__ import annotations

import re
import sqlite3
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import select, text

from app import create_core
from app.config import Settings
from app.db import copying, db, schema, writing
from app.db.tables import SettingRow
from app.errors import WakefulError
from app.paths import MIGRATIONS
from tests.support.command import environ_of, python, wakeful
from tests.support.older import OLDEST, make_oldest

SENTENCE = (
    "The database was written by a newer version of Wakeful (revision 9999; this version knows"
    f" {schema.newest_revision()}). Install the newer version, or restore a backup."
)
MOMENT = datetime(2026, 11, 21, 8, tzinfo=UTC)


@pytest.fixture
def newer(core):
    """The application on a database that a newer version has upgraded."""
    with core.app_context():
        with writing() as session:
            session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        yield core


def run(settings, words):
    return wakeful(words.split(), environ_of(settings, BIND="127.0.0.1:0"), "a passphrase 1\n")


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "words", ["serve", "web", "checker", "worker", "db upgrade", "key list", "webhook-secret"]
)
def test_every_command_refuses_it_with_the_sentence(newer, settings, words):
    done = run(settings, words)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{SENTENCE}\n")


@pytest.fixture(params=["DELETE FROM alembic_version", "DROP TABLE alembic_version"])
def unversioned(core, request):
    """The application on a database whose tables have no version, as after half a restore."""
    with core.app_context():
        with writing() as session:
            session.execute(text(request.param))
        yield core


@pytest.mark.both_databases
def test_tables_without_a_version_are_refused_with_a_sentence(
    unversioned, app, client, monkeypatch
):
    for command_of_the_schema in (schema.upgrade, schema.require):
        with pytest.raises(WakefulError, match="but not their version"):
            command_of_the_schema()
    assert db.session.scalar(text("SELECT count(*) FROM monitors")) == 0
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json["faults"]) == (503, [schema.UNVERSIONED])
    monkeypatch.setattr(schema, "refuse_unknown", lambda: None)  # lost after it was asked for
    with pytest.raises(WakefulError, match="but not their version"):
        schema.upgrade()


@pytest.mark.parametrize("words", ["serve", "db upgrade", "doctor"])
def test_commands_refuse_tables_without_a_version(unversioned, settings, words):
    done = run(settings, words)
    assert done.returncode == 1
    printed = done.stdout if words == "doctor" else done.stderr
    assert schema.UNVERSIONED in printed
    assert "wakeful db upgrade" not in printed
    assert "Traceback" not in done.stderr


@pytest.mark.both_databases
def test_an_upgrade_refuses_it_and_changes_nothing(newer, settings, monkeypatch):
    with pytest.raises(WakefulError, match=re.escape(SENTENCE)):
        schema.upgrade()
    with pytest.raises(WakefulError, match=re.escape(SENTENCE)):
        schema.require()
    assert schema.stored_revision() == "9999"
    assert not list(settings.instance.glob("*.bak"))
    # Another version upgrades after this one has asked, before it has the lock.
    monkeypatch.setattr(schema, "refuse_unknown", lambda: None)
    with pytest.raises(WakefulError, match=re.escape(SENTENCE)):
        schema.upgrade()


def test_it_names_the_copy_that_the_newer_version_has_left(newer, settings, client):
    file = settings.database_url.removeprefix("sqlite:///")
    for revision in (OLDEST, schema.newest_revision(), "9999"):
        Path(f"{file}.{revision}.bak").touch()
    copy = f"{file}.{schema.newest_revision()}.bak"
    sentence = f"{SENTENCE} The upgrade has left a copy of the database from before it: {copy}"
    assert client.get("/readyz").json["faults"] == [sentence]
    Path(copy).unlink()
    assert schema.fault().endswith(f"{file}.{OLDEST}.bak"), "this version upgrades it"


def test_the_doctor_gives_the_same_sentence(newer, settings):
    done = run(settings, "doctor")
    assert done.returncode == 1
    assert f"WRONG  tables: {SENTENCE}\n" in done.stdout
    assert "db upgrade" not in done.stdout
    assert "Traceback" not in done.stderr


def test_any_gunicorn_ends_with_the_sentence(newer, settings):
    script = "from gunicorn.app.wsgiapp import run; run()"
    done = python(script, ["--bind=127.0.0.1:0", "wsgi:app"], environ_of(settings))
    assert done.returncode == 4, "gunicorn's own code for an application that does not start"
    assert SENTENCE in done.stderr
    assert "Traceback" not in done.stderr


def test_readyz_and_metrics_of_a_server_that_runs_already_tell_it(app, client):
    with app.app_context(), writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json["faults"]) == (503, [SENTENCE])
    assert "wakeful_ready 0.0" in client.get("/metrics").text


def test_an_older_database_is_refused_with_what_to_do(app, client):
    with app.app_context():
        make_oldest()
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json["faults"]) == (503, [schema.OLD])


def test_the_revisions_are_those_that_alembic_finds():
    script = ScriptDirectory(str(MIGRATIONS))
    assert schema.revisions() == {revision.revision for revision in script.walk_revisions()}
    assert schema.newest_revision() == script.get_current_head()


@pytest.fixture
def older(core):
    """The application on a database of the version before."""
    with core.app_context():
        with writing() as session:
            session.add(SettingRow(name="kept", value="as it was", updated_at=MOMENT))
        make_oldest()
        yield core


def test_an_upgrade_keeps_a_copy_beside_the_file_that_only_its_owner_reads(older, settings, caplog):
    before = schema.stored_revision()
    schema.upgrade()
    assert schema.stored_revision() == schema.newest_revision()
    copy = settings.instance / f"wakeful.db.{before}.bak"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert str(copy) in caplog.text
    with sqlite3.connect(copy) as kept:
        assert kept.execute("SELECT version_num FROM alembic_version").fetchall() == [(before,)]
        assert kept.execute("SELECT name FROM settings WHERE name = 'kept'").fetchall()
        assert kept.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    kept.close()

    copied = copy.stat().st_mtime_ns
    schema.upgrade()
    assert copy.stat().st_mtime_ns == copied, "nothing to upgrade, nothing to copy"
    assert {path.name for path in settings.instance.glob("*.bak*")} == {copy.name}


def test_without_room_for_the_copy_nothing_is_changed(older, settings, monkeypatch):
    before = schema.stored_revision()

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(copying, "copy_locked", full)
    with pytest.raises(WakefulError, match=r"could not be copied to .*No space left on device\. "):
        schema.upgrade()
    db.session.rollback()
    assert schema.stored_revision() == before
    assert db.session.scalar(select(SettingRow.name).where(SettingRow.name == "kept"))


def test_a_first_start_has_nothing_to_copy(tmp_path):
    url = f"sqlite:///{tmp_path / 'wakeful.db'}"
    with create_core(Settings(tmp_path, url, "x" * 16)).app_context():
        schema.upgrade()
    assert not list(tmp_path.glob("*.bak*"))
