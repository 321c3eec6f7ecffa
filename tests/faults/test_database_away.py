"""A database that cannot be used gives a 503 with Retry-After, not a 500. Requests that only read
still work, and so do connections opened meanwhile once the database works again.
"""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.db import db, faults, writing
from app.db.tables import SettingRow
from tests.factories import make_key, make_monitor, make_person, now
from tests.support.troubles import bound, failing, full, locked, read_only
from tests.web.visitor import Visitor

FORM = {"name": "Shop", "url": "http://127.0.0.1:9/", "interval": "60"}


@pytest.fixture
def key(app):
    return {"Authorization": f"Bearer {make_key(app)}"}


def test_the_api_reads_at_once_while_nothing_can_be_written(app, key, caplog, monkeypatch):
    monkeypatch.setattr(
        "app.db.connections.BUSY_TIMEOUT_MS", 200_000
    )  # a read does not wait for it
    client = app.test_client()
    make_monitor(app)
    with locked(app):
        answers = [client.get("/api/v1/monitors", headers=key) for _ in range(5)]
    totals = [(answer.status_code, answer.json["meta"]["total"]) for answer in answers]
    assert totals == [(200, 1)] * 5
    assert [record.getMessage() for record in caplog.records] == [
        "The last use of an API key was not stored; all else went on. The"
        " database is busy: something else has been writing to it for too long. If this is logged "
        "again, run: wakeful doctor"
    ]
    assert client.get("/api/v1/monitors", headers=key).status_code == 200


@pytest.mark.parametrize(
    ("trouble", "sentence"), [(full, faults.FULL), (locked, faults.BUSY)], ids=["full", "locked"]
)
def test_a_write_that_cannot_be_stored_is_a_503_that_says_why(
    app, key, trouble, sentence, monkeypatch
):
    monkeypatch.setattr("app.db.connections.BUSY_TIMEOUT_MS", 200)
    client = app.test_client()
    with trouble(app):
        answer = client.post(
            "/api/v1/monitors", data=FORM | {"request_body": "x" * 60_000}, headers=key
        )
    assert answer.status_code == 503
    assert answer.json == {"message": sentence, "status": 503}
    assert int(answer.headers["Retry-After"]) > 0
    assert client.get("/api/v1/monitors", headers=key).json["meta"]["total"] == 0
    assert client.post("/api/v1/monitors", data=FORM, headers=key).status_code == 201


def test_a_form_that_cannot_be_stored_keeps_what_was_typed(app, monkeypatch):
    monkeypatch.setattr("app.db.connections.BUSY_TIMEOUT_MS", 200)
    make_person(app)
    visitor = Visitor(app).log_in("admin@wakeful.test").open("/monitors/new")
    with locked(app):
        visitor.press("Save", name="Typed with care", url="http://127.0.0.1:9/")
    assert visitor.status == 503
    assert int(visitor.page.headers["Retry-After"]) > 0
    assert faults.BUSY in visitor.text
    assert "was not saved" in visitor.text
    visitor.press("Send it again")
    assert visitor.status == 200
    assert "Typed with care" in visitor.text


def test_a_database_that_cannot_be_opened_is_reported_on_a_complete_page(app):
    make_person(app)
    visitor = Visitor(app).log_in("admin@wakeful.test")
    with app.app_context():
        db.engine.dispose()
    path = Path(app.config["SQLALCHEMY_DATABASE_URI"].removeprefix("sqlite:///"))
    away = path.with_suffix(".away")
    path.rename(away)
    path.mkdir()  # a folder in its place cannot be opened
    try:
        for address in ("/", "/incidents", "/login", "/no/such/page"):
            visitor.open(address)
            if visitor.status == 503:
                assert visitor.text.startswith("The database cannot be used now"), visitor.text
                assert "stylesheet" in visitor.page.text
            else:
                assert (visitor.status, address) == (404, "/no/such/page")
                assert visitor.text.startswith("Not found")
        assert app.test_client().get("/healthz").status_code == 200
        assert app.test_client().get("/readyz").status_code == 503
    finally:
        path.rmdir()
        away.rename(path)
    assert visitor.open("/").status == 200


def test_an_internal_error_is_still_a_500(app, caplog):
    app.testing = False
    make_person(app)
    visitor = Visitor(app).log_in("admin@wakeful.test")
    with app.app_context(), writing() as session:
        session.execute(sa.text("ALTER TABLE incidents RENAME TO elsewhere"))
    visitor.open("/incidents")
    assert visitor.status == 500
    assert "This is a bug in Wakeful" in visitor.text


# --- SQLite


def store(name):
    with writing() as session:
        session.add(SettingRow(name=name, value="x", updated_at=now()))


@contextmanager
def held_open(path):
    """Another process has the database open, and so keeps the files beside it."""
    hold = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
        "c.execute('SELECT 1 FROM settings').fetchall();"
        "print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"open\n"
        yield
        process.stdin.close()


def test_a_part_that_was_started_while_the_file_was_read_only_writes_as_soon_as_it_can(
    folder, installed
):
    """SQLite's connections of one process share what they have open. As long as a read-only
    connection was left in the pool, each new one was read-only too.
    """
    with held_open(folder / "wakeful.db"), bound(), installed.app_context():
        store("before")
        db.session.remove()
        db.engine.dispose()
        with read_only(folder):
            opened = [db.engine.connect() for _ in range(4)]
            for connection in opened:
                connection.execute(sa.text("SELECT 1 FROM settings")).all()
            for connection in opened[1:]:
                connection.close()
            with pytest.raises(sa.exc.OperationalError, match="readonly"):
                store("meanwhile")
            opened[0].close()
        store("after")


def test_a_connection_of_a_time_when_the_file_was_read_only_is_not_kept(folder, installed):
    with bound(), installed.app_context():
        store("before")  # makes the files beside the database's own
        with db.engine.connect():  # keeps those files
            db.session.remove()
            with (
                read_only(folder),
                db.engine.connect(),  # takes the pooled connection, so that the next one is new
                pytest.raises(sa.exc.OperationalError, match="readonly") as error,
            ):
                store("meanwhile")
            assert str(faults.unavailable(error.value)) == faults.READ_ONLY
        db.session.remove()
        for number in range(6):
            store(f"after {number}")


def test_a_disk_that_fails_leaves_no_broken_connection(core):
    with core.app_context():
        store("before")
        with failing(core), pytest.raises(sa.exc.OperationalError) as error:
            store("meanwhile")
        assert str(faults.unavailable(error.value)) in (faults.FAILING, faults.FULL)
        store("after")


# --- PostgreSQL


@pytest.mark.postgres
def test_connections_to_a_server_that_became_a_standby_are_closed(relayed):
    with relayed.app_context():
        with writing() as session:
            first = session.scalar(sa.text("SELECT pg_backend_pid()"))
            session.execute(sa.text("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"))
        with pytest.raises(sa.exc.DBAPIError) as error:
            store("meanwhile")
        assert str(faults.unavailable(error.value)) == faults.READ_ONLY
        store("after")
        assert db.session.scalar(sa.text("SELECT pg_backend_pid()")) != first
