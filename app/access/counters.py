"""Counts within a time window, shared by all processes: requests of a key, attempts to log in."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from app.db import best_effort, db, writing
from app.db.tables import CounterRow

KEPT_SECONDS = 24 * 3600  # longer than any window in use


def origin_of(address: str | None) -> str:
    """How a client's address is counted."""
    try:
        parsed = ipaddress.ip_address(address or "")
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv6Address) and not parsed.ipv4_mapped:
        # One subscriber can use any address of a /64.
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


class Counters:
    clock: Callable[[], datetime]

    def count(self, name: str, window_seconds: int) -> int:
        """Add one to ``name`` in the present window of that length; returns the new count.

        Windows are aligned to 1970, so all processes use the same ones.
        """
        insert: Any = sqlite.insert if db.engine.dialect.name == "sqlite" else postgresql.insert
        statement = insert(CounterRow).values(
            name=name, window=self._window(window_seconds), count=1
        )
        statement = statement.on_conflict_do_update(
            index_elements=[CounterRow.name, CounterRow.window],
            set_={"count": CounterRow.count + 1},
        ).returning(CounterRow.count)
        with writing() as session:
            return int(session.execute(statement).scalar_one())

    def count_if_possible(self, name: str, window_seconds: int) -> int:
        """Like ``count``, but returns 0 if the database cannot be written."""
        return best_effort("The count of requests", lambda: self.count(name, window_seconds)) or 0

    def is_too_many(self, name: str, window_seconds: int, most: int) -> bool:
        """Count one more attempt of a stranger; whether there are more than ``most``. One that is
        over already costs no write: SQLite has one writer, and the results of checks would wait.
        """
        if self.counted(name, window_seconds) >= most:
            return True
        return self.count(name, window_seconds) > most

    def counted(self, name: str, window_seconds: int) -> int:
        """The count of ``name`` in the present window."""
        found = db.session.execute(
            select(CounterRow.count).where(
                CounterRow.name == name, CounterRow.window == self._window(window_seconds)
            )
        ).scalar_one_or_none()
        return found or 0

    def uncount(self, name: str, window_seconds: int, by: int | None = None) -> None:
        """Subtract ``by`` from the count of ``name``, or delete the count."""
        here = (CounterRow.name == name, CounterRow.window == self._window(window_seconds))
        with writing() as session:
            if by is None:
                session.execute(delete(CounterRow).where(*here))
            else:
                session.execute(update(CounterRow).where(*here).values(count=CounterRow.count - by))

    def seconds_left(self, window_seconds: int) -> int:
        """Whole seconds until the present window of that length ends; at least 1."""
        return window_seconds - int(self.clock().timestamp()) % window_seconds

    def forget_old_counts(self) -> None:
        """Delete counts of past windows. The engine's housekeeping calls it."""
        with writing() as session:
            horizon = int(self.clock().timestamp()) - KEPT_SECONDS
            # Counts of a clock that was ahead would count again when their time comes.
            later = horizon + 2 * KEPT_SECONDS
            session.execute(delete(CounterRow).where(~CounterRow.window.between(horizon, later)))

    def _window(self, window_seconds: int) -> int:
        now = int(self.clock().timestamp())
        return now - now % window_seconds
