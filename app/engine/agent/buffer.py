"""Results that the server has not taken yet, on disk: a restart or a cut loses none."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

KEPT = timedelta(hours=24)
_TABLES = (
    "CREATE TABLE IF NOT EXISTS results (id INTEGER PRIMARY KEY, at REAL, body TEXT)",
    "CREATE TABLE IF NOT EXISTS done (monitor_id INTEGER PRIMARY KEY, version INTEGER, at REAL)",
)


@dataclass(frozen=True, slots=True)
class Made:
    """A result and its time; ``version`` is that of the monitor."""

    monitor_id: int
    version: int
    at: datetime
    body: Any


class Buffer:
    """Safe from any thread. ``folder`` is the agent's own, and exists."""

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        self._file = sqlite3.connect(
            folder / "agent.db", isolation_level=None, check_same_thread=False
        )
        self._file.execute("PRAGMA journal_mode=WAL")
        self._file.execute("PRAGMA synchronous=NORMAL")
        for table in _TABLES:
            self._file.execute(table)

    def add(self, results: Sequence[Made]) -> None:
        rows = [
            (one.at.timestamp(), json.dumps(one.body, separators=(",", ":"))) for one in results
        ]
        done = [(one.monitor_id, one.version, one.at.timestamp()) for one in results]
        with self._lock:
            self._file.execute("BEGIN")
            self._file.executemany("INSERT INTO results (at, body) VALUES (?, ?)", rows)
            self._file.executemany("INSERT OR REPLACE INTO done VALUES (?, ?, ?)", done)
            self._file.execute("COMMIT")

    def done(self) -> dict[int, tuple[int, datetime]]:
        """The last check of each monitor: the monitor's version, and the time. After a restart
        while the server is away, nobody else knows it.
        """
        with self._lock:
            rows = self._file.execute("SELECT monitor_id, version, at FROM done").fetchall()
        return {id: (version, datetime.fromtimestamp(at, UTC)) for id, version, at in rows}

    def newest(self, count: int, largest: int) -> list[tuple[int, str]]:
        """The newest results as JSON, with their ids: at most ``count``, and ``largest`` characters
        (but at least one). What is happening now comes before what has been.
        """
        with self._lock:
            rows = self._file.execute(
                "SELECT id, body FROM results ORDER BY id DESC LIMIT ?", (count,)
            ).fetchall()
        found: list[tuple[int, str]] = []
        size = 0
        for id, body in rows:
            size += len(body)
            if found and size > largest:
                break
            found.append((id, body))
        return found

    def remove(self, ids: Sequence[int]) -> None:
        with self._lock:
            self._file.execute("BEGIN")
            self._file.executemany("DELETE FROM results WHERE id = ?", [(id,) for id in ids])
            self._file.execute("COMMIT")

    def forget_old(self, now: datetime) -> int:
        """Remove results that are older than KEPT; returns how many."""
        with self._lock:
            old = ((now - KEPT).timestamp(),)
            self._file.execute("DELETE FROM done WHERE at < ?", old)
            return self._file.execute("DELETE FROM results WHERE at < ?", old).rowcount

    def __len__(self) -> int:
        with self._lock:
            return int(self._file.execute("SELECT count(*) FROM results").fetchone()[0])

    def close(self) -> None:
        with self._lock:
            self._file.close()
