"""Copies of an SQLite file have all that was committed, and leave the locks on it alone."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections import namedtuple
from contextlib import closing

import pytest

from app.db import copying

ROWS = 500
# Another process does the same: the last one to close the file removes the write-ahead log.
CHECKPOINT = (
    "import sqlite3, sys; of = sqlite3.connect(sys.argv[1], timeout=0);"
    "print(of.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone()); of.close()"
)


@pytest.fixture
def file(tmp_path):
    """A database whose rows are in its write-ahead log only."""
    path = tmp_path / "used.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as keeper:
        keeper.execute("PRAGMA journal_mode=WAL")
        keeper.execute("PRAGMA wal_autocheckpoint=0")
        keeper.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, text)")
        keeper.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        keeper.executemany("INSERT INTO t (text) VALUES (?)", [("x" * 200,)] * ROWS)
        yield path


def locked(path):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    return closing(connection)


def elsewhere(path):
    done = subprocess.run(
        [sys.executable, "-c", CHECKPOINT, path], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def rows_of(copy):
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return database.execute("SELECT count(*) FROM t").fetchone()[0]


@pytest.mark.parametrize("way", [copying.copy_in_use, copying.copy_locked])
def test_a_copy_has_what_is_in_the_write_ahead_log_and_is_its_owners_alone(file, way):
    copy = file.with_name("copy.db")
    file.with_name("copy.db.part").write_text("of a copy that was cut off")
    file.with_name("copy.db.part-wal").write_text("of a copy that was cut off")
    before = os.umask(0)
    try:
        with locked(file):
            way(str(file), copy)
    finally:
        os.umask(before)
    assert {path.name for path in file.parent.iterdir()} == {
        "used.db", "used.db-wal", "used.db-shm", "copy.db",
    }  # fmt: skip
    assert copy.stat().st_mode & 0o077 == 0
    assert rows_of(copy) == ROWS


def test_a_checkpoint_between_file_and_log_loses_nothing(file, monkeypatch):
    copy, real = file.with_name("copy.db"), copying._clone_or_copy
    checkpoints = []

    def then_checkpoint(source, target):
        real(source, target)
        checkpoints.append(elsewhere(file))

    monkeypatch.setattr(copying, "_clone_or_copy", then_checkpoint)
    with locked(file):
        copying.copy_locked(str(file), copy)
    assert len(checkpoints) == 2, "after the file and after the log"
    assert rows_of(copy) == ROWS


def test_another_process_that_closes_the_file_does_not_take_the_log_away_from_the_upgrade(tmp_path):
    """A process that closes a file loses its locks on it, whoever took them."""
    path = tmp_path / "used.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as upgrade:
        upgrade.execute("PRAGMA journal_mode=WAL")
        upgrade.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
        upgrade.execute("BEGIN IMMEDIATE")
        copying.copy_locked(str(path), tmp_path / "copy.db")
        elsewhere(path)
        assert path.with_name("used.db-wal").exists()
        upgrade.execute("INSERT INTO t DEFAULT VALUES")
        upgrade.execute("COMMIT")
        assert rows_of(path) == 1


@pytest.mark.parametrize("way", [copying.copy_in_use, copying.copy_locked])
def test_without_a_database_there_is_no_copy(tmp_path, way):
    with pytest.raises((OSError, sqlite3.Error)):
        way(str(tmp_path / "no" / "such.db"), tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [-1, 0])
def test_room_is_asked_for_before_anything_is_copied(file, monkeypatch, left):
    """Otherwise the disk would be full until the copy has failed."""
    monkeypatch.setattr(copying, "MEGABYTE", 1000)
    usage = namedtuple("usage", "free")
    size = max(path.stat().st_size for path in (file, file.with_name("used.db-wal")))
    monkeypatch.setattr(copying.shutil, "disk_usage", lambda _folder: usage(size + left))
    copy = file.with_name("copy.db")
    with locked(file):
        if left == 0:
            copying.copy_locked(str(file), copy)
            assert rows_of(copy) == ROWS
            return
        with pytest.raises(OSError, match=r"it needs \d+ MB, and \d+ MB are free"):
            copying.copy_locked(str(file), copy)
    assert not list(file.parent.glob("copy*"))


def test_what_cp_says_is_in_the_error(file):
    file.with_name("copy.db").mkdir()
    with locked(file), pytest.raises(OSError, match="directory"):
        copying.copy_locked(str(file), file.with_name("copy.db"))
