"""Results that the server has not taken yet, on disk, so that neither a restart nor an outage of
the network loses them.

While they cannot be written, as on a full disk, the newest are kept in memory: new results are
still sent, and this process sends none twice. A damaged file is renamed, and a new one is created:
otherwise the agent would fail at each start.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

RETENTION = timedelta(hours=24)
MAX_UNWRITTEN = 10_000  # results in memory
FAULTS = (sqlite3.Error, OSError)  # of the file
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
READ, WRITE = "read", "write"
MAX_ID = 2**53  # no agent makes so many results: a file with a larger id is damaged
_TABLES = (
    "CREATE TABLE IF NOT EXISTS results (id INTEGER PRIMARY KEY, at REAL, body TEXT)",
    "CREATE TABLE IF NOT EXISTS done (monitor_id INTEGER PRIMARY KEY, version INTEGER, at REAL)",
)
_LAST_CHECKS = "SELECT monitor_id, version, at FROM done"
_BETWEEN = "SELECT id, body FROM results WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?"


class InUse(Exception):
    """Another agent uses the folder. Both would send and delete each other's results."""


class _Damaged(sqlite3.DatabaseError):
    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


@dataclass(frozen=True, slots=True)
class MadeResult:
    """A result for the server (``body``), and its time. ``version``: the version of the monitor."""

    monitor_id: int
    version: int
    at: datetime
    body: Any


@dataclass(frozen=True, slots=True)
class Batch:
    """The unsent results with ids from ``first`` to ``last``, as JSON, the newest first. ``last``:
    the newest id when the batch was made. ``more``: older results wait.
    """

    first: int
    last: int
    bodies: Sequence[str]
    more: bool


@dataclass(frozen=True, slots=True)
class _Unwritten:
    id: int
    made: MadeResult
    body: str


class Buffer:
    """The results in the existing ``folder``. Its methods may be called on any thread. Raises
    InUse, and OSError if nothing can be written there.

    Each result has an id, so that it may be written to the file while it is sent. The ids of this
    process begin with 1, and are not used again if the file is replaced. Results of earlier
    processes have ids of 0 and less. An id in the file is larger by ``_first_id``.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "agent.db"
        self._lock = threading.Lock()
        self._unwritten: list[_Unwritten] = []
        self._newest = self._written = 0  # the last id, and the last id in the file
        self._sent: list[tuple[int, int]] = []  # ranges of sent ids that the file may still have
        self._file: sqlite3.Connection | None = None  # opened at the first use
        self._first_id: int | None = None  # the last id in the file when this process started
        self._failing: set[str] = set()  # READ, WRITE
        self._aside: Path | None = None  # the renamed damaged file, until that is logged
        self._closed = False
        self._lock_file = os.open(folder / "agent.lock", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock_file)
            raise InUse from None

    def add(self, results: Sequence[MadeResult]) -> None:
        with self._lock:
            for made in results:
                self._newest += 1
                body = json.dumps(made.body, separators=(",", ":"))
                self._unwritten.append(_Unwritten(self._newest, made, body))
            self._write()

    def last_checks(self) -> dict[int, tuple[int, datetime]]:
        """The last check of each monitor: the monitor's version, and the time. After a restart,
        they are newer than what the server says until it has the results.
        """
        with self._lock:
            rows: list[Any] = self._try(
                lambda file: file.execute(_LAST_CHECKS).fetchall(), READ, []
            )
        checks: dict[int, tuple[int, datetime]] = {}
        for id, version, at in rows:
            with suppress(TypeError, ValueError, OverflowError, OSError):  # a damaged value
                checks[int(id)] = int(version), datetime.fromtimestamp(at, UTC)
        return checks

    def newest(self, count: int, largest: int) -> Batch:
        """The newest unsent results: at most ``count`` results and ``largest`` characters, but at
        least one result if any waits.
        """
        with self._lock:
            last = self._newest
            waiting = reversed(self._unwritten[-count - 1 :])
            rows: list[tuple[int, Any]] = [(result.id, result.body) for result in waiting]
            if missing := count + 1 - len(rows):
                rows += self._try(lambda file: self._unsent(file, missing), READ, [])
        size, fitting = 0, 0
        for _id, body in rows[:count]:
            size += len(str(body))
            if fitting and size > largest:
                break
            fitting += 1
        first = rows[fitting - 1][0] if fitting else last + 1
        bodies = [body for _id, body in rows[:fitting] if _is_json(body)]
        if len(bodies) < fitting:
            log.error("%d results on disk are damaged and left out.", fitting - len(bodies))
        return Batch(first, last, bodies, more=fitting < len(rows))

    def remove(self, batch: Batch) -> None:
        """Delete the results of a batch that was sent. While the file cannot be written, they are
        not sent again by this process.
        """
        with self._lock:
            self._unwritten = [
                result for result in self._unwritten if not batch.first <= result.id <= batch.last
            ]
            self._sent = _united([*self._sent, (batch.first, min(batch.last, self._written))])
            self._write()

    def delete_old(self, now: datetime) -> int:
        """Remove results that are older than RETENTION; returns how many."""
        old = now - RETENTION

        def delete(file: sqlite3.Connection) -> int:
            file.execute("DELETE FROM done WHERE at < ?", (old.timestamp(),))
            deleted = file.execute("DELETE FROM results WHERE at < ?", (old.timestamp(),))
            return deleted.rowcount

        with self._lock:
            self._write()
            recent = [result for result in self._unwritten if result.made.at >= old]
            deleted, self._unwritten = len(self._unwritten) - len(recent), recent
            return deleted + self._try(delete, WRITE, 0)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._write()
            if self._unwritten:
                log.error("%d results could not be written and are lost.", len(self._unwritten))
            self._shut()
            self._closed = True
            os.close(self._lock_file)

    # --- with the lock

    def _unsent(self, file: sqlite3.Connection, count: int) -> list[tuple[int, Any]]:
        """The newest unsent rows of the file: their ids and texts."""
        rows: list[tuple[int, Any]] = []
        first_id = self._first_id or 0
        above = self._written
        for first, last in [*reversed(self._sent), (-first_id, -first_id)]:
            between = (first_id + last + 1, first_id + above, count - len(rows))
            rows += [(id - first_id, body) for id, body in file.execute(_BETWEEN, between)]
            above = first - 1
        return rows

    def _write(self) -> None:
        """Write the unsent results in memory to the file, and delete the sent ones there. While
        that fails, up to MAX_UNWRITTEN results stay in memory.
        """
        if not self._unwritten and not self._sent:
            return
        if self._try(self._write_all, WRITE, False):
            self._unwritten.clear()
            self._sent.clear()
            self._written = self._newest
        else:
            del self._unwritten[:-MAX_UNWRITTEN]

    def _write_all(self, file: sqlite3.Connection) -> bool:
        first_id = self._first_id or 0
        sent_ranges = [(first_id + first, first_id + last) for first, last in self._sent]
        file.executemany("DELETE FROM results WHERE id BETWEEN ? AND ?", sent_ranges)
        waiting = [(result.made, first_id + result.id, result.body) for result in self._unwritten]
        # "Or replace": an earlier transaction may have reported a failure after its commit.
        results = [(id, made.at.timestamp(), body) for made, id, body in waiting]
        file.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", results)
        last_checks = [
            (made.monitor_id, made.version, made.at.timestamp()) for made, *_rest in waiting
        ]
        file.executemany("INSERT OR REPLACE INTO done VALUES (?, ?, ?)", last_checks)
        return True

    def _try(self, work: Callable[[sqlite3.Connection], T], what: str, otherwise: T) -> T:
        """The value that ``work`` returns, or ``otherwise`` if the file fails. A failure is logged
        once, because a disk may be full for hours. ``what``: READ or WRITE.
        """
        try:
            result = self._do(work)
        except FAULTS as fault:
            if not self._failing:
                log.error(
                    "The file of results, %s, fails (%s). The newest %d are kept in memory until"
                    " it works again.", self._path, fault, MAX_UNWRITTEN,
                )  # fmt: skip
            self._failing.add(what)
            return otherwise
        if what in self._failing:
            self._failing.remove(what)
            if not self._failing:
                log.warning("The file of results works again.")
        return result

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run statements in a transaction. If the file is damaged, rename it and use an empty one.
        Raises FAULTS.
        """
        try:
            result = _transaction(self._opened(), work)
        except sqlite3.DatabaseError as fault:
            if getattr(fault, "sqlite_errorcode", 0) & 0xFF not in DAMAGED:
                raise
            self._set_aside()
            result = _transaction(self._opened(), work)
        if self._aside is not None:
            log.error(
                "The file of results, %s, is damaged. It was set aside as %s, with the results that"
                " were not sent yet.", self._path, self._aside.name,
            )  # fmt: skip
        self._aside = None
        return result

    def _opened(self) -> sqlite3.Connection:
        if self._closed:  # another agent may use the folder now
            raise sqlite3.ProgrammingError("closed")
        if self._file is None:
            self._file, newest = _open(self._path)
            if self._first_id is None:
                self._first_id = newest
        return self._file

    def _shut(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _set_aside(self) -> None:
        """Rename the damaged file. If the new file is damaged too, it is deleted: the first one has
        the results.
        """
        self._shut()
        aside = self._path.with_name("agent.db.damaged")
        # The file itself comes last: SQLite would apply the others to a new file.
        for suffix in ("-shm", "-wal", ""):
            source, target = Path(f"{self._path}{suffix}"), Path(f"{aside}{suffix}")
            if self._aside is None:
                target.unlink(missing_ok=True)
                with suppress(FileNotFoundError):
                    source.replace(target)
            else:
                source.unlink(missing_ok=True)
        self._aside, self._first_id = aside, 0


def _open(path: Path) -> tuple[sqlite3.Connection, int]:
    """The file, and its newest id."""
    file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    # A damaged text must not raise: the other rows would be lost.
    file.text_factory = partial(str, encoding="utf-8", errors="replace")
    try:
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA synchronous=NORMAL")
        for table in _TABLES:
            file.execute(table)
        (newest,) = file.execute("SELECT coalesce(max(id), 0) FROM results").fetchone()
        if not 0 <= newest <= MAX_ID:
            raise _Damaged(f"id {newest}")
    except BaseException:
        file.close()
        raise
    return file, newest


def _transaction(file: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    try:
        file.execute("BEGIN")
        result = work(file)
        file.execute("COMMIT")
        return result
    except BaseException:
        with suppress(sqlite3.Error):
            file.execute("ROLLBACK")  # otherwise no other transaction could begin
        raise


def _united(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """These ids in as few ranges as possible, the lowest first."""
    united: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if united and first <= united[-1][1] + 1:
            united[-1] = united[-1][0], max(last, united[-1][1])
        elif first <= last:
            united.append((first, last))
    return united


def _is_json(body: object) -> bool:
    """Whether a result is JSON: a damaged one would make the whole request invalid."""
    try:
        json.loads(body)  # type: ignore[arg-type] # a damaged file has any
    except (TypeError, ValueError, RecursionError):
        return False
    return isinstance(body, str)
