"""A checker with many monitors starts: the first checks do not wait for the last row."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from psycopg.pq import TransactionStatus
from sqlalchemy import event, select, text

from app.commands.opened import ready
from app.db import assignments, changes, db, writing
from app.db.connections import CACHE_KB, SMALL_CACHE_KB
from app.db.tables import ResultRow
from app.engine import outcomes
from app.engine.checker import Checker
from app.engine.own_shards import Piece, UnreadShards
from app.records import Outcome, Result, Verdict
from tests.factories import make_monitor

HOME = Path(__file__).parent.parent.parent
# Four threads that allocate at the same time; then the number of glibc's heaps.
HEAPS = """
import ctypes, sys, threading
if sys.argv[1] == "one":
    from app.commands.processes import use_one_heap
    use_one_heap()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
all_there = threading.Barrier(4)
def allocate():
    held = libc.malloc(100_000)
    all_there.wait()
    libc.free(held)
threads = [threading.Thread(target=allocate) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc.fopen.restype, libc.fopen.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_char_p]
libc.fclose.argtypes = [ctypes.c_void_p]
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
file = libc.fopen(sys.argv[2].encode(), b"w")
libc.malloc_info(0, file)
libc.fclose(file)
print(open(sys.argv[2]).read().count("<heap nr="))
"""


class Carrier:
    """A carrier that notes what is started in ``events``, and ends each check with ``verdict``
    (None: it brings nothing back).
    """

    def __init__(self, verdict=None):
        self.verdict, self.events = verdict, []

    def submit(self, spec, done):
        self.events.append(f"check of {spec.monitor_id}")
        if self.verdict:
            done(Outcome(Result(datetime.now(UTC), self.verdict, monitor_id=spec.monitor_id)))

    def close(self, _timeout):
        pass


@pytest.mark.both_databases
def test_checks_of_what_was_read_start_before_the_rest_is_read(core, settings, monkeypatch):
    ids = [make_monitor(core).id for _ in range(5)]
    carrier, read = Carrier(), assignments.piece

    def noted(place, numbers, after):
        assigned = read(place, numbers, after)
        carrier.events.append(f"read {[assignment.spec.monitor_id for assignment in assigned]}")
        return assigned

    monkeypatch.setattr(assignments, "PIECE", 2)
    monkeypatch.setattr(assignments, "piece", noted)
    checker = Checker(core, settings, paced=False)
    checker.checks.carrier = carrier
    for _turn in range(4):
        checker._turn()
    first, second, third, fourth, fifth = ids
    assert carrier.events == [
        f"read {[first, second]}", f"check of {first}", f"check of {second}",
        f"read {[third, fourth]}", f"check of {third}", f"check of {fourth}",
        f"read {[fifth]}", f"check of {fifth}",
    ]  # fmt: skip


@pytest.mark.both_databases
def test_first_checks_of_monitors_that_were_good_write_their_results_alone(core, settings):
    then = datetime.now(UTC) - timedelta(hours=3)
    for _ in range(5):
        make_monitor(
            core,
            state={"verdict": "up", "checked_at": then, "status_since": then},
            assignment={
                "scheduled_at": then,
                "checked_at": then,
                "generation": 7,
                "verdict": Verdict.UP,
            },
        )
    checker, statements = Checker(core, settings, paced=False), []
    checker.checks.carrier = Carrier(Verdict.UP)
    with core.app_context():
        checker._keep_shards(time.monotonic())  # takes the shards, and reads what is checked
        event.listen(db.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
        checker._turn()
        checker._outcomes.record()
        assert len(db.session.execute(select(ResultRow.at)).all()) == 5
    written = [text.split()[2] for text in statements if text.startswith(("INSERT", "UPDATE"))]
    assert written == ["results"]
    assert not any("monitor_states" in text or " monitors " in text for text in statements)


def test_a_shard_that_is_gained_while_others_are_read_is_read_from_its_beginning():
    unread = UnreadShards()
    unread.add([1, 2])
    unread.done(unread.next(), 700)
    unread.add([3])
    assert unread.next() == Piece(frozenset({3}), 0)
    unread.done(unread.next(), 800)
    assert unread.next() == Piece(frozenset({1, 2}), 700)
    unread.done(unread.next(), None)
    unread.add([3])  # its rows must be read anew: the lease had lapsed
    assert unread.next() == Piece(frozenset({3}), 0)
    unread.done(unread.next(), None)
    assert unread.next() is None


def test_a_shard_that_is_lost_is_not_read_on():
    unread = UnreadShards()
    unread.add([1, 2])
    unread.keep({2: 5})
    assert unread.next() == Piece(frozenset({2}), 0)
    unread.keep({})
    assert not unread


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
def test_the_threads_of_a_checker_share_one_heap(tmp_path):
    def heaps(kind: str) -> int:
        command = [sys.executable, "-c", HEAPS, kind, str(tmp_path / kind)]
        completed = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=True)
        return int(completed.stdout)

    assert heaps("many") > 1
    assert heaps("one") == 1


def test_a_checker_on_sqlite_loads_nothing_that_only_others_use(tmp_path):
    """Alert senders, domain look-ups, forms, pages: together 20 MB of each checker's memory."""
    asks = (
        "import sys; from app import create_core; from app.config import read;"
        " from app.engine.checker import Checker; settings = read();"
        " Checker(create_core(settings), settings); print(*sys.modules)"
    )
    environ = {"WAKEFUL_INSTANCE": str(tmp_path)}
    command = [sys.executable, "-c", asks]
    completed = subprocess.run(
        command, cwd=HOME, env=environ, capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in completed.stdout.split()}
    assert "sqlalchemy" in loaded
    others = {"requests", "httpx", "whoisit", "wtforms", "apprise", "celery", "psycopg"}
    assert not loaded & others


def test_a_checker_keeps_little_of_an_sqlite_file_in_memory(core, settings):
    """Its memory would grow with the file, by 32 MB for each of its threads."""
    sizes = []
    for app in (core, ready(settings)):
        with app.app_context():
            sizes.append(-db.session.scalar(text("PRAGMA cache_size")))
            db.engine.dispose()
    assert sizes == [CACHE_KB, SMALL_CACHE_KB]


def test_a_change_during_an_outage_of_many_waits_for_one_batch_alone(core, settings, monkeypatch):
    """All that waits may take minutes to write. The shards' leases would end meanwhile."""
    monkeypatch.setattr(outcomes, "TRANSACTION_SECONDS", 1e9)  # batches of one size
    monkeypatch.setattr(outcomes, "MAX_BATCH", 10)
    ids = [make_monitor(core).id for _ in range(3 * outcomes.MAX_BATCH)]
    checker = Checker(core, settings, paced=False)
    checker.checks.carrier = Carrier(Verdict.DOWN)
    with core.app_context():
        checker._keep_shards(time.monotonic())
        checker._start_due(time.monotonic())
        checker._outcomes.add(checker.checks.collect(0.0))
        with writing() as session:
            for id in ids:
                changes.note(session, id)
        checker._reload_changed(time.monotonic())
        assert len(db.session.scalars(select(ResultRow.at)).all()) == outcomes.MAX_BATCH
        changed = checker._outdated
        assert len(changed) == 2 * outcomes.MAX_BATCH, "those whose results wait are reloaded later"
        for _batch in range(2):
            checker._feed_at = float("-inf")
            checker._outcomes.record()
            checker._reload_changed(time.monotonic())
        assert len(db.session.scalars(select(ResultRow.at)).all()) == 3 * outcomes.MAX_BATCH
        assert checker._outdated == set()


def _write_half():
    with writing() as session:
        session.execute(text("CREATE TABLE half (x int)"))
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
def test_on_postgresql_a_checker_reads_without_a_transaction_and_writes_in_one(settings):
    app = ready(settings)
    with app.app_context():
        driver = db.session.connection().connection.driver_connection
        assert db.session.scalar(text("SHOW idle_in_transaction_session_timeout")) == "10s"
        assert driver.info.transaction_status == TransactionStatus.IDLE
        with pytest.raises(ZeroDivisionError):
            _write_half()
        assert db.session.scalar(text("SELECT to_regclass('half')")) is None
        with writing() as session:
            session.execute(text("CREATE TABLE whole (x int)"))
        assert db.session.scalar(text("SELECT to_regclass('whole')")) == "whole"
        db.session.remove()
        db.engine.dispose()
