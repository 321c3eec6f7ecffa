"""PostgreSQL accepts packets and never answers: every wait ends, and each part says so."""

import os
import signal
import threading
import time
from contextlib import closing, suppress
from dataclasses import replace

import pytest
import sqlalchemy as sa

from app.commands.doctor import examine
from app.db import connections, db, patience, postgres, schema, writing
from app.engine.checker import Checker
from tests.factories import make_key, make_monitor, make_person
from tests.lab.net import ClosedPort
from tests.support.command import Running, environ_of
from tests.support.service import eventually
from tests.support.swallow import BOTH, TO_CLIENT, TO_SERVER
from tests.web.visitor import Visitor

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120)]


@pytest.fixture(autouse=True)
def short_limits(monkeypatch):
    monkeypatch.setattr(postgres, "CONNECT_SECONDS", 2.0)
    monkeypatch.setattr(postgres, "CANCEL_SECONDS", 0.5)


@pytest.mark.parametrize("directions", [{TO_SERVER}, {TO_CLIENT}], ids=["to", "from"])
def test_a_statement_fails_and_the_next_one_works_when_the_connection_works_again(
    relayed, relay, directions
):
    with relayed.app_context(), patience(1):
        db.session.scalar(sa.text("SELECT 1"))
        relay.swallow(*directions)
        with pytest.raises(sa.exc.OperationalError, match="did not answer within 1 s"):
            db.session.scalar(sa.text("SELECT 2"))
        db.session.rollback()
        with pytest.raises(sa.exc.OperationalError, match="timeout"):
            db.session.scalar(sa.text("SELECT 3"))
        db.session.rollback()
        relay.swallow()
        assert db.session.scalar(sa.text("SELECT 4")) == 4


def test_a_stopped_backend_does_not_hold_a_statement_for_good(relayed):
    with relayed.app_context(), patience(1):
        pid = db.session.scalar(sa.text("SELECT pg_backend_pid()"))
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(sa.exc.OperationalError, match="did not answer"):
                db.session.scalar(sa.text("SELECT 1"))
        finally:
            os.kill(pid, signal.SIGCONT)
        db.session.rollback()
        assert db.session.scalar(sa.text("SELECT pg_backend_pid()")) != pid


def test_a_slow_statement_is_stopped_on_the_server_too(relayed):
    with relayed.app_context():
        with patience(0.5), pytest.raises(sa.exc.OperationalError, match="did not answer"):
            db.session.execute(sa.text("SELECT pg_sleep(60)"))
        db.session.rollback()
        running = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE query LIKE '%pg_sleep(60)' AND state = 'active'"
        )

        def stopped() -> bool:
            db.session.rollback()  # a transaction sees the activity of its first look
            return db.session.scalar(sa.text(running)) == 0

        eventually(stopped, "the server stops it")


def test_a_statement_with_more_patience_is_not_stopped(relayed, monkeypatch):
    with relayed.app_context(), patience(0.3):
        for more in (None, 30):
            with patience(more):
                db.session.execute(sa.text("SELECT pg_sleep(0.6)"))


def test_a_migration_has_no_limit(relayed, monkeypatch):
    """Another migration holds the lock for longer than any statement may take."""
    with relayed.app_context():
        monkeypatch.setattr(schema, "stored_revision", lambda: None)  # else there is nothing to do
        with db.engine.connect() as other, other.begin():
            other.execute(sa.text("SELECT pg_advisory_xact_lock(:n)"), {"n": 0x77616B65})
            done = threading.Event()

            def upgrade():
                with relayed.app_context(), patience(0.3):
                    schema.upgrade()
                    done.set()

            waiting = threading.Thread(target=upgrade)
            waiting.start()
            assert not done.wait(1)
        waiting.join(30)
        assert done.is_set()


def test_readyz_reports_it_soon_and_healthz_still_answers(relayed_app, relay):
    visitor = relayed_app.test_client()
    assert visitor.get("/readyz").status_code == 200
    relay.swallow(*BOTH)
    start = time.monotonic()
    answer = visitor.get("/readyz")
    assert answer.status_code == 503
    assert answer.json["faults"] == ["The database does not answer."]
    assert time.monotonic() - start < 60
    assert visitor.get("/healthz").status_code == 200
    relay.swallow()
    assert visitor.get("/readyz").status_code == 200


def test_while_one_thread_connects_the_others_fail_at_once(relayed_app, relay):
    relay.swallow(*BOTH)
    assert relayed_app.test_client().get("/readyz").status_code == 503
    answers, start = [], threading.Barrier(8)

    def connect():
        with relayed_app.app_context():
            start.wait()
            try:
                db.engine.connect()
            except sa.exc.OperationalError as fault:
                answers.append(str(fault.orig))

    threads = [threading.Thread(target=connect) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [
        "connection timeout expired",
        *["the server did not answer a moment ago"] * 7,
    ]


def test_pages_and_api_answer_503_with_a_time_to_come_back(relayed_app, relay, monkeypatch):
    monkeypatch.setattr(connections, "_patience", connections.ContextVar("patience", default=1.0))
    make_person(relayed_app)
    key = make_key(relayed_app)
    visitor = Visitor(relayed_app).log_in("admin@wakeful.test")
    assert visitor.open("/").status == 200
    relay.swallow(*BOTH)
    page = visitor.open("/").page
    assert page.status_code == 503
    assert int(page.headers["Retry-After"]) > 0
    assert "The database cannot be used now" in page.text
    assert "bug in Wakeful" not in page.text
    answer = relayed_app.test_client().get(
        "/api/v1/monitors", headers={"Authorization": f"Bearer {key}"}
    )
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.json == {
        "message": "The database does not answer. Try again in a moment.",
        "status": 503,
    }
    relay.swallow()
    assert visitor.open("/").status == 200


def test_the_checker_continues_when_the_connection_works_again(
    relayed, relay, relayed_settings, monkeypatch, caplog
):
    monkeypatch.setattr(connections, "_patience", connections.ContextVar("patience", default=1.0))
    id = make_monitor(relayed).id
    checker, stop = Checker(relayed, relayed_settings), threading.Event()
    running = threading.Thread(target=checker.run, args=[stop])
    relay.swallow(*BOTH)
    running.start()
    try:
        eventually(
            lambda: "Trying again" in caplog.text, "the checker says that it has trouble", 60
        )
        relay.swallow()

        def checked():
            # Refused while another thread tries to connect
            with relayed.app_context(), suppress(sa.exc.OperationalError):
                return db.session.scalar(
                    sa.text(f"SELECT checked_at FROM monitor_states WHERE monitor_id = {id}")
                )

        eventually(checked, "a check is recorded", 60)
    finally:
        stop.set()
        running.join(60)
    assert not running.is_alive()


def test_what_a_lost_process_had_locked_is_free_after_a_while(relayed, monkeypatch):
    monkeypatch.setattr(postgres, "IDLE_SECONDS", 1)
    with relayed.app_context(), db.engine.connect() as lost:
        lost.execute(sa.text("CREATE TABLE locked (x int)"))
        lost.execute(sa.text("INSERT INTO locked VALUES (1)"))
        lost.commit()
        lost.execute(sa.text("SELECT x FROM locked FOR UPDATE"))
        with patience(20), writing() as session:
            session.execute(sa.text("UPDATE locked SET x = 2"))
        lost.invalidate()


def test_the_doctor_waits_for_a_silent_database_once_and_guesses_nothing(
    relayed, relay, relayed_settings, monkeypatch
):
    """Every look that reads a table used to wait for a connection of its own, a minute in all."""
    relay.swallow(*BOTH)
    tried, connect = [], postgres._connected
    monkeypatch.setattr(postgres, "_connected", lambda *a: tried.append(a) or connect(*a))
    with closing(ClosedPort()) as port:
        name = f"127.0.0.1:{port.port}"
        findings = list(examine(relayed, replace(relayed_settings, canaries=name)))
    assert len(tried) == 1
    faults = [finding.label for finding in findings if finding.is_problem]
    assert faults[:2] == ["database", "not examined"]
    sentences = {finding.label: finding.sentence for finding in findings}
    assert "the stored values, the clock, checkers, alert workers" in sentences["not examined"]
    assert sentences["canary"] == f"{name} refuses. Whether it ever accepted is unknown."
    assert sentences["mail"].endswith("no email can be sent."), (
        "which monitors use email is not known"
    )


def test_every_command_ends_with_a_sentence(relay, relayed_settings):
    relay.swallow(*BOTH)
    commands = [["key", "list"], ["db", "upgrade"], ["checker"], ["worker"]]
    environ = environ_of(relayed_settings)
    for words, process in [(words, Running(words, environ)) for words in commands]:
        with process.stdout as stdout:
            printed = stdout.read()
        assert process.wait(90) == 1, (words, printed)
        last = printed.strip().splitlines()[-1]
        assert last.startswith("The database cannot be used: "), (words, printed)
