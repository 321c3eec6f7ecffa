"""Whatever keeps Wakeful from storing, checking or alerting is reported with its cause by /readyz,
``wakeful doctor``, the home page and one line of the log.
"""

import logging
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from app.access.settings import Policies
from app.alerts.worker import Worker
from app.commands.doctor import examine
from app.db import connections, db, faults, liveness, shards, writing
from app.db.tables import ShardRow, SignOfLifeRow
from app.engine.checker import Checker, in_process
from app.engine.housekeeping import Chore, Housekeeper
from app.records import Verdict
from app.stores import health
from app.web.frame import notices
from tests.factories import make_monitor, make_outcome, make_person, now
from tests.support.command import environ_of, wakeful
from tests.support.troubles import bound, locked, read_only
from tests.web.visitor import Visitor


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(health, "PROBE_EVERY", 0.0)
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", 100)


def heartbeat(app, name, at):
    with app.app_context(), writing() as session:
        session.merge(SignOfLifeRow(name=name, at=at, last_check_at=at))
        if name.startswith("checker:"):  # it has all shards
            shards.make(1)
            session.execute(sa.update(ShardRow).values(owner=name, until=at + shards.LEASE))


def findings(app, subject):
    settings = app.extensions["wakeful.settings"]
    return [finding for finding in examine(app, settings) if finding.label == subject]


def ready(app):
    answer = app.test_client().get("/readyz")
    return answer.status_code, answer.json["faults"]


# --- A database that takes no writes


def test_readyz_doctor_and_home_report_a_locked_database(app, monkeypatch):
    make_monitor(app, state={"verdict": Verdict.UP})
    visitor = Visitor(app).let_in(make_person(app)).open("/")
    assert "Everything is up" in visitor.text
    # Its checker and worker cannot write either: their signs grow old, and they are not blamed.
    heartbeat(app, "checker:here:1", now() - timedelta(minutes=5))
    heartbeat(app, "worker:here:2", now() - timedelta(minutes=5))
    with locked(app):
        assert ready(app) == (503, [faults.BUSY])
        assert (faults.BUSY, True) in [
            (finding.sentence, finding.is_problem) for finding in findings(app, "database")
        ]
        assert [finding.is_problem for finding in findings(app, "checker")] == [False]
        visitor.open("/")
        assert f"{faults.BUSY} {notices.STUCK}" in visitor.text
        assert "Everything is up" not in visitor.text
    assert ready(app) == (200, []), "they have not had the time to try again"
    monkeypatch.setattr(health, "SETTLE_SECONDS", 0.0)
    assert ready(app) == (503, [health.CHECKER_SILENT, health.WORKER_SILENT])
    heartbeat(app, "checker:here:1", now())
    heartbeat(app, "worker:here:2", now())
    assert ready(app) == (200, [])
    assert "Everything is up" in visitor.open("/").text


def test_a_file_without_write_permission_is_reported(folder, installed):
    with bound():
        assert ready(installed) == (200, [])
        with installed.app_context():
            db.engine.dispose()
        with read_only(folder):
            code, [sentence] = ready(installed)
        assert code == 503
        assert sentence in (faults.READ_ONLY, faults.CANNOT_OPEN % {"path": folder / "wakeful.db"})


def test_a_file_without_read_permission_is_reported_with_its_path(folder, installed):
    file = folder / "wakeful.db"
    with bound():
        with installed.app_context():
            db.engine.dispose()
        file.chmod(0)
        try:
            assert ready(installed) == (503, [faults.CANNOT_OPEN % {"path": file}])
            [row] = findings(installed, "database")
            assert (row.sentence, row.is_problem) == (faults.CANNOT_OPEN % {"path": file}, True)
        finally:
            file.chmod(0o600)


@pytest.mark.both_databases
def test_one_thread_at_a_time_tries_to_write(app, monkeypatch):
    tries, trying, go_on = [], threading.Event(), threading.Event()

    def write():
        tries.append(1)
        trying.set()
        assert go_on.wait(30)
        return "It is locked."

    monkeypatch.setattr(health, "_write", write)

    def ask():
        with app.app_context():
            return health.cannot_write()

    first = threading.Thread(target=ask)
    first.start()
    assert trying.wait(30)
    assert ask() is None, "the others do not wait for it"
    go_on.set()
    first.join()
    assert len(tries) == 1
    monkeypatch.setattr(health, "PROBE_EVERY", 60.0)
    assert (ask(), len(tries)) == ("It is locked.", 1)


# --- The log


@contextmanager
def first_error(name):
    """An event that is set by the first error in the log of this name."""
    logged = threading.Event()
    watch = logging.Handler(logging.ERROR)
    watch.emit = lambda _record: logged.set()
    log = logging.getLogger(name)
    log.addHandler(watch)
    try:
        yield logged
    finally:
        log.removeHandler(watch)


@pytest.mark.parametrize("part", [Checker, Worker])
def test_a_part_logs_one_line_with_the_cause(core, settings, caplog, monkeypatch, part):
    monkeypatch.setattr(sys.modules[part.__module__], "RETRY_SECONDS", 0.0)
    make_monitor(core)
    with locked(core), first_error(part.__module__) as first:
        part(core, settings).run(first)
    said_in_one_line(caplog)


def test_a_chore_logs_one_line_with_the_cause(core, settings, caplog):
    def write(_now):
        with writing():
            raise AssertionError("it is locked")

    keeper = Housekeeper(core, settings, Policies(settings))
    with locked(core):
        keeper._do(Chore(write, 60.0))
    said_in_one_line(caplog)


def said_in_one_line(caplog):
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert errors
    for record in errors:
        assert record.getMessage().endswith(faults.BUSY.removesuffix(faults.AGAIN))
        assert record.exc_info is None


def test_the_same_cause_is_logged_once_a_minute_and_a_fault_of_ours_with_its_traceback(
    core, caplog
):
    log = logging.getLogger("app.engine.checker")
    away = sa.exc.TimeoutError("the pool is used up")
    for _ in range(3):
        faults.log_fault(log, "It failed.", away)
    assert [record.getMessage() for record in caplog.records] == [f"It failed. {faults.NO_ANSWER}"]
    faults._lasting.cache_clear()  # as a minute later
    faults.log_fault(log, "It failed.", away)
    assert len(caplog.records) == 2
    faults.log_fault(log, "It failed.", ValueError("of ours"))
    assert "ValueError: of ours" in caplog.text


# --- Parts that are dead


def test_readyz_and_doctor_report_a_worker_without_heartbeats(app, settings):
    make_monitor(app, alerts=[("email", "ops@example.org")])
    heartbeat(app, "checker:here:1", now())
    assert ready(app) == (503, [health.WORKER_SILENT])
    heartbeat(app, "worker:here:2", now() - timedelta(minutes=1))
    assert ready(app) == (503, [health.WORKER_SILENT])
    [row] = findings(app, "alert worker")
    assert row.is_problem
    assert row.sentence.startswith("None is running. The last sign of one is from ")
    worker = Worker(app, settings)
    with app.app_context():
        worker._write_sign_of_life()
    assert ready(app) == (200, [])
    assert [finding.sentence for finding in findings(app, "alert worker")] == ["It runs."]


def test_a_worker_that_was_stopped_counts_as_ended_at_once(app, settings):
    """A person who stops Wakeful to restore a backup, or to change the secret key, need not
    wait.
    """
    make_monitor(app)
    heartbeat(app, "checker:here:1", now())
    worker, stop = Worker(app, settings), threading.Event()
    worker.on_turn = stop.set
    worker.run(stop)
    assert ready(app) == (503, [health.WORKER_SILENT])
    with app.app_context():
        [row] = db.session.scalars(
            sa.select(SignOfLifeRow).where(SignOfLifeRow.name == worker.name)
        )
        assert row.ended_at is not None
        assert liveness.signs_of(liveness.WORKER, now()).silent


def test_a_missing_checker_is_a_fault_only_on_installations_that_check(app):
    for subject in ("checker", "alert worker"):
        assert [finding.is_problem for finding in findings(app, subject)] == [False]
    make_monitor(app)
    for subject in ("checker", "alert worker"):
        [row] = findings(app, subject)
        assert row.is_problem
        assert row.sentence.startswith("None has run yet.")


# --- The doctor


@pytest.mark.parametrize("own", [True, False], ids=["a key of one's own", "no key"])
def test_the_doctor_writes_nothing_and_says_what_is_missing(tmp_path, own):
    instance = tmp_path / "mount" / "instance"
    environ = environ_of(INSTANCE=str(instance), CANARIES="")
    environ |= {"WAKEFUL_SECRET_KEY": "a key of one's own"} if own else {}
    for address in (None, "sqlite:///other.db"):
        environ |= {"WAKEFUL_DATABASE_URL": address} if address else {}
        file = instance / ("other.db" if address else "wakeful.db")
        done = wakeful(["doctor"], environ)
        assert list(tmp_path.iterdir()) == []
        assert done.returncode == 1
        assert f"WRONG  folder: The folder {instance} does not exist." in done.stdout
        assert f"WRONG  database: {connections.ABSENT % {'path': file}}" in done.stdout
        assert (f"WRONG  secret key: The file {instance / 'secret_key'}" in done.stdout) != own
        assert "Error" not in done.stdout
        assert done.stdout.count("No database exists at") == 1, "it is said once"


def test_the_doctor_counts_in_words_and_misses_the_mail_that_monitors_need(app):
    assert [finding.is_problem for finding in findings(app, "mail")] == [False]
    make_monitor(app, alerts=[["email", "ops@example.test"]])
    [mail] = findings(app, "mail")
    assert mail.is_problem
    assert mail.sentence.endswith("and 1 monitor alerts by email.")
    assert [finding.sentence for finding in findings(app, "monitors")] == ["1 is stored."]


# --- Results that wait for the database


def test_results_from_meanwhile_are_recorded_by_the_next_turn(core, settings):
    """The first turn fails at the sign of life and takes nothing in: the results stay in line."""
    id = make_monitor(core).id
    checker = Checker(core, settings)
    carrier = checker.checks.carrier = in_process(settings, Policies(settings))
    try:
        with core.app_context():
            checker._keep_shards(time.monotonic())
            [job] = checker._plan.begin_due(datetime.now(UTC), 1)
            assert job.monitor_id == id
            checker.checks.put_outcome(job.claim(), make_outcome(at=now()))
            checker._shards_at = float("-inf")  # its heartbeat is due, and comes first
            with locked(core), pytest.raises(sa.exc.OperationalError):
                checker._turn()
            checker._turn()
            assert db.session.scalar(sa.text("SELECT count(*) FROM results")) == 1
    finally:
        carrier.close(1)
