"""Counts within a time window, shared by all processes: requests of a key, attempts to log in."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from itertools import chain, islice
from typing import Any

from sqlalchemy import delete, select, update

from app.db import DbSession, best_effort, db, writing
from app.db.statements import inserting
from app.db.tables import CounterRow

# Failed attempts allowed in a window. The limit of an account stops a guesser with many addresses,
# that of an address stops one who tries one password on many accounts. Anyone can use up both, so
# a browser in which the person has logged in before has a limit of its own instead.
LOGIN_WINDOW_SECONDS = 300
LOGINS_PER_ACCOUNT = 10
LOGINS_PER_ADDRESS = 50
LOGINS_PER_DEVICE = 10
KEPT_SECONDS = 24 * 3600  # longer than any window in use
BRIEF = "agent:"  # counts whose names begin so have windows of seconds, thousands a day
BRIEF_KEPT_SECONDS = 3600


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


def window_of(now: datetime, seconds: int) -> int:
    """Where the window of this length begins that ``now`` is in, in s since 1970."""
    at = int(now.timestamp())
    return at - at % seconds


def add(session: DbSession, name: str, window: int, number: int = 1) -> int:
    """Add to ``name`` in the window that begins there; returns the new count. To be called while
    writing.
    """
    values = {"name": name, "window": window, "count": number}
    return int(session.execute(_adding(db.engine.dialect.name), values).scalar_one())


@cache
def _adding(_dialect: str) -> Any:
    """Built once: each request of a key is counted."""
    statement = inserting(CounterRow)
    return statement.on_conflict_do_update(
        index_elements=[CounterRow.name, CounterRow.window],
        set_={"count": CounterRow.count + statement.excluded.count},
    ).returning(CounterRow.count)


class Counters:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock

    def count(self, name: str, window_seconds: int) -> int:
        """Add one to ``name`` in the present window of that length; returns the new count.

        Windows are aligned to 1970, so all processes use the same ones.
        """
        with writing() as session:
            return add(session, name, self.window(window_seconds))

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
                CounterRow.name == name, CounterRow.window == self.window(window_seconds)
            )
        ).scalar_one_or_none()
        return found or 0

    def uncount(self, name: str, window_seconds: int, by: int | None = None) -> None:
        """Subtract ``by`` from the count of ``name``, or delete the count."""
        here = (CounterRow.name == name, CounterRow.window == self.window(window_seconds))
        with writing() as session:
            if by is None:
                session.execute(delete(CounterRow).where(*here))
            else:
                session.execute(update(CounterRow).where(*here).values(count=CounterRow.count - by))

    def seconds_left(self, window_seconds: int) -> int:
        """Whole seconds until the present window of that length ends; at least 1."""
        return window_seconds - int(self.clock().timestamp()) % window_seconds

    def forget_old(self) -> None:
        """Delete counts of past windows. The engine's housekeeping calls it."""
        with writing() as session:
            horizon = int(self.clock().timestamp()) - KEPT_SECONDS
            # Counts of a clock that was ahead would count again when their time comes.
            later = horizon + 2 * KEPT_SECONDS
            session.execute(delete(CounterRow).where(~CounterRow.window.between(horizon, later)))
            horizon += KEPT_SECONDS - BRIEF_KEPT_SECONDS
            brief = CounterRow.name.startswith(BRIEF), CounterRow.window < horizon
            session.execute(delete(CounterRow).where(*brief))

    def window(self, window_seconds: int) -> int:
        """Where the present window of that length begins, in s since 1970."""
        return window_of(self.clock(), window_seconds)


class Shares:
    """Counts of ``counters``, of which this process has taken a share.

    Each number is handed out once, by whichever process. Those that a process has left count too:
    so a count is never too low, and it is too high by less than a share for each process, and for
    each start of one.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._guard = threading.Lock()
        # Of each name: the window, and the numbers that are left.
        self._left: dict[str, tuple[int, Iterator[int]]] = {}

    def count(self, name: str, window_seconds: int, share: int, number: int = 1) -> int:
        """Count ``number`` more of ``name``; returns the last one's number in the present window,
        or 0 if the database cannot be written. One in ``share`` writes.
        """
        window = self._counters.window(window_seconds)
        with self._guard:
            taken = list(islice(self._of(name, window), number))
        missing = number - len(taken)
        return self._more(name, window, share, missing) if missing else taken[-1]

    def _more(self, name: str, window: int, share: int, missing: int) -> int:
        at_once = max(share, missing)

        def take() -> int:
            with writing() as session:
                return add(session, name, window, at_once)

        last = best_effort("The count of requests", take)
        if last is None:
            return 0
        numbers = range(last - at_once + 1, last + 1)
        with self._guard:
            # Another thread may have taken a share meanwhile.
            left = chain(self._of(name, window), numbers[missing:])
            self._left = {one: its for one, its in self._left.items() if its[0] == window}
            self._left[name] = window, left
        return numbers[missing - 1]

    def _of(self, name: str, window: int) -> Iterator[int]:
        of, numbers = self._left.get(name, (None, iter(())))
        return numbers if of == window else iter(())
