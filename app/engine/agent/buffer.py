"""Results that the server has not taken yet, on disk: a restart or a cut loses none.

While they cannot be written, as on a full disk, the newest are kept in memory: what happens now is
still sent. A damaged file is set aside, and a new one begun: an agent that ended because of it
would end again at each start.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

KEPT = timedelta(hours=24)
MOST_UNWRITTEN = 10_000  # results in memory
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TABLES = (
    "CREATE TABLE IF NOT EXISTS results (id INTEGER PRIMARY KEY, at REAL, body TEXT)",
    "CREATE TABLE IF NOT EXISTS done (monitor_id INTEGER PRIMARY KEY, version INTEGER, at REAL)",
)


class InUse(Exception):
    """Another agent works in the folder: each would send and delete the other's results."""


@dataclass(frozen=True, slots=True)
class Made:
    """A result and its time; ``version`` is that of the monitor."""

    monitor_id: int
    version: int
    at: datetime
    body: Any


@dataclass(frozen=True, slots=True)
class _Unwritten:
    """``id`` is below 0; those of the file are above."""

    id: int
    made: Made
    body: str


class Buffer:
    """Safe from any thread. ``folder`` is the agent's own, and exists. Raises InUse."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "agent.db"
        self._lock = threading.Lock()
        self._unwritten: list[_Unwritten] = []
        self._ids = count(-1, -1)
        self._told = False
        self._alone = os.open(folder / "agent.lock", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._alone)
            raise InUse from None
        try:
            self._file = _opened(self._path)
        except sqlite3.DatabaseError as fault:
            if not _is_damaged(fault):
                raise
            self._file = self._anew()

    def add(self, results: Sequence[Made]) -> None:
        with self._lock:
            self._unwritten += [
                _Unwritten(next(self._ids), one, json.dumps(one.body, separators=(",", ":")))
                for one in results
            ]
            self._write()

    def done(self) -> dict[int, tuple[int, datetime]]:
        """The last check of each monitor: the monitor's version, and the time. After a restart
        while the server is away, nobody else knows it.
        """
        with self._lock:
            rows = self._do(lambda file: file.execute("SELECT * FROM done").fetchall())
        return {id: (version, datetime.fromtimestamp(at, UTC)) for id, version, at in rows}

    def newest(self, count: int, largest: int) -> list[tuple[int, str]]:
        """The newest results as JSON, with their ids: at most ``count``, and ``largest`` characters
        (but at least one). What is happening now comes before what has been.
        """
        with self._lock:
            rows = [(one.id, one.body) for one in reversed(self._unwritten[-count:])]
            if len(rows) < count:
                query = "SELECT id, body FROM results ORDER BY id DESC LIMIT ?"
                left = count - len(rows)
                rows += self._do(lambda file: file.execute(query, (left,)).fetchall())
        found: list[tuple[int, str]] = []
        size = 0
        for id, body in rows:
            size += len(body)
            if found and size > largest:
                break
            found.append((id, body))
        return found

    def remove(self, ids: Sequence[int]) -> None:
        gone, statement = set(ids), "DELETE FROM results WHERE id = ?"
        written = [(id,) for id in ids if id > 0]
        with self._lock:
            self._unwritten = [one for one in self._unwritten if one.id not in gone]
            if written:
                self._do(lambda file: file.executemany(statement, written))

    def forget_old(self, now: datetime) -> int:
        """Remove results that are older than KEPT; returns how many."""
        old = ((now - KEPT).timestamp(),)

        def forget(file: sqlite3.Connection) -> int:
            file.execute("DELETE FROM done WHERE at < ?", old)
            return file.execute("DELETE FROM results WHERE at < ?", old).rowcount

        with self._lock:
            try:
                return self._do(forget)
            except sqlite3.Error as fault:
                self._trouble(fault)
                return 0

    def __len__(self) -> int:
        with self._lock:
            found = len(self._unwritten)
            with suppress(sqlite3.Error):  # whoever reads or writes them says why
                query = "SELECT count(*) FROM results"
                found += self._do(lambda file: int(file.execute(query).fetchone()[0]))
            return found

    def close(self) -> None:
        with self._lock:
            self._write()
            self._file.close()
            os.close(self._alone)

    # --- with the lock

    def _write(self) -> None:
        """Write what is in memory. It stays there while that fails, up to MOST_UNWRITTEN."""
        if not self._unwritten:
            return
        made = [one.made for one in self._unwritten]
        rows = [(one.made.at.timestamp(), one.body) for one in self._unwritten]
        done = [(one.monitor_id, one.version, one.at.timestamp()) for one in made]

        def write(file: sqlite3.Connection) -> None:
            file.executemany("INSERT INTO results (at, body) VALUES (?, ?)", rows)
            file.executemany("INSERT OR REPLACE INTO done VALUES (?, ?, ?)", done)

        try:
            self._do(write)
        except sqlite3.Error as fault:
            self._trouble(fault)
            del self._unwritten[:-MOST_UNWRITTEN]
        else:
            self._unwritten.clear()
            if self._told:
                log.warning("The file of results works again.")
            self._told = False

    def _trouble(self, fault: Exception) -> None:
        """Log a fault once: a disk may be full for hours."""
        if not self._told:
            log.error(
                "The file of results, %s, fails (%s). The newest %d are kept in memory until it "
                "works again.", self._path, fault, MOST_UNWRITTEN,
            )  # fmt: skip
        self._told = True

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run statements in a transaction; with an empty file, if this one is damaged. Raises
        sqlite3.Error.
        """
        try:
            return _transaction(self._file, work)
        except sqlite3.DatabaseError as fault:
            if not _is_damaged(fault):
                raise
            self._file.close()
            self._file = self._anew()
            return _transaction(self._file, work)

    def _anew(self) -> sqlite3.Connection:
        aside = self._path.with_name("agent.db.damaged")
        log.error(
            "The file of results, %s, is damaged. It was set aside as %s, with the results that "
            "were not sent yet.", self._path, aside.name,
        )  # fmt: skip
        self._path.replace(aside)
        for more in ("-wal", "-shm"):
            Path(f"{self._path}{more}").unlink(missing_ok=True)
        return _opened(self._path)


def _opened(path: Path) -> sqlite3.Connection:
    file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA synchronous=NORMAL")
        for table in _TABLES:
            file.execute(table)
    except BaseException:
        file.close()
        raise
    return file


def _transaction(file: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    try:
        file.execute("BEGIN")
        found = work(file)
        file.execute("COMMIT")
        return found
    except BaseException:
        with suppress(sqlite3.Error):
            file.execute("ROLLBACK")  # otherwise no other transaction could begin
        raise


def _is_damaged(fault: sqlite3.DatabaseError) -> bool:
    return getattr(fault, "sqlite_errorcode", 0) & 0xFF in DAMAGED
