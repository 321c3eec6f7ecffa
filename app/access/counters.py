"""Counts within a time window, shared by all processes: requests of a key, attempts to log in,
lines of the audit log.
"""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import chain, islice
from typing import Any

from sqlalchemy import ColumnElement, Row, case, delete, select, update

from app.access import actors, audit
from app.db import DbSession, best_effort, db, writing
from app.db.statements import count_of, delete_rows, inserting
from app.db.tables import CountedFailuresRow, CounterRow
from app.errors import Throttled
from app.i18n import _
from app.records import Action, Actor, ActorKind, AuditedObject, ObjectKind

# Failed attempts allowed in a window. The limit of an account stops a guesser with many addresses;
# the limit of an address stops a guesser who tries one password on many accounts. Anyone can use up
# both, so a device (a browser in which the person has logged in before) has a separate limit.
LOGIN_WINDOW_SECONDS = 300
LOGINS_PER_ACCOUNT = 10
LOGINS_PER_ADDRESS = 50
LOGINS_PER_DEVICE = 10
RETENTION_SECONDS = 24 * 3600  # longer than any window in use
# The prefix of counts whose windows last some seconds: there are thousands of them a day.
SHORT_WINDOWS = "agent:"
SHORT_RETENTION_SECONDS = 3600


def counted_address(address: str | None) -> str:
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
    """The start of the window of this length that contains ``now``, in s since 1970."""
    at = int(now.timestamp())
    return at - at % seconds


def add(session: DbSession, name: str, window: int, number: int = 1) -> int:
    """Add to ``name`` in the window that begins at ``window``; returns the new count. Call this
    inside ``writing()``.
    """
    values = {"name": name, "window": window, "count": number}
    return int(session.execute(_adding(db.engine.dialect.name), values).scalar_one())


@cache
def _adding(dialect: str) -> Any:
    """Built once: each request of a key is counted."""
    statement = inserting(CounterRow)
    return statement.on_conflict_do_update(
        index_elements=[CounterRow.name, CounterRow.window],
        set_={"count": CounterRow.count + statement.excluded.count},
    ).returning(CounterRow.count)


@dataclass(frozen=True, slots=True)
class Limit:
    """At most ``max_attempts``, counted under ``name`` in a window of ``seconds``.

    Windows are aligned to 1970, so all processes use the same ones.
    """

    name: str
    seconds: int
    max_attempts: int


class Counters:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock
        self._guard = threading.Lock()
        # By name: the window, and the numbers of this process's share that it has not used.
        self._shares: dict[str, tuple[int, Iterator[int]]] = {}

    def attempt(self, sentence: str, *limits: Limit) -> None:
        """Count one more attempt in each of ``limits``. Raises Throttled, with this sentence."""
        self.refuse(sentence, *limits)
        self.count_attempt(sentence, *limits)

    def refuse(self, sentence: str, *limits: Limit) -> None:
        """Raises Throttled if a limit is reached already. This writes nothing: SQLite has one
        writer, and the results of checks would wait for it.
        """
        reached = (limit for limit in limits if self.counted(limit) >= limit.max_attempts)
        self._throttle(sentence, reached)

    def count_attempt(self, sentence: str, *limits: Limit) -> None:
        """Count an attempt in each limit. Raises Throttled if that exceeds a limit. Call this
        before the password or code is compared, so that a thousand guesses at one moment all count.
        """
        with writing():
            counts = [(limit, self.count(limit.name, limit.seconds)) for limit in limits]
        self._throttle(sentence, (limit for limit, count in counts if count > limit.max_attempts))

    def _throttle(self, sentence: str, exceeded: Iterator[Limit]) -> None:
        """Raises Throttled if a limit is exceeded."""
        limit = next(exceeded, None)
        if limit is not None:
            raise Throttled(_(sentence), self.seconds_left(limit.seconds))

    def count(
        self, name: str, window_seconds: int, number: int = 1, *, share: int | None = None
    ) -> int:
        """Count ``number`` more of ``name``. Returns the new count in the present window.

        ``share``: the process takes this many numbers in one write, and hands them out one by one;
        no two processes hand out the same number. A number counts as soon as it is taken, so the
        count may be too high, by less than a share for each start of a process. It is too low only
        while the database cannot be written: it is 0 then.
        """
        window = window_of(self.clock(), window_seconds)
        if share is None:
            with writing() as session:
                return add(session, name, window, number)
        with self._guard:
            numbers = list(islice(self._unused(name, window), number))
        missing = number - len(numbers)
        return self._take_share(name, window, share, missing) if missing else numbers[-1]

    def _take_share(self, name: str, window: int, share: int, missing: int) -> int:
        """Take a new share, of at least ``missing`` numbers. Returns the last of those that were
        missing.
        """
        size = max(share, missing)

        def take() -> int:
            with writing() as session:
                return add(session, name, window, size)

        last = best_effort("The count of requests", take)
        if last is None:
            return 0
        numbers = range(last - size + 1, last + 1)
        with self._guard:
            # Another thread may have taken a share meanwhile.
            unused = chain(self._unused(name, window), numbers[missing:])
            self._shares = {
                name: entry for name, entry in self._shares.items() if entry[0] == window
            }
            self._shares[name] = window, unused
        return numbers[missing - 1]

    def _unused(self, name: str, window: int) -> Iterator[int]:
        """The numbers that this process has taken in this window, and not handed out yet."""
        window_of_share, numbers = self._shares.get(name, (None, iter(())))
        return numbers if window_of_share == window else iter(())

    def counted(self, limit: Limit) -> int:
        """The count in the present window."""
        return db.session.scalar(select(CounterRow.count).where(*self._row_of(limit))) or 0

    def reset(self, limit: Limit) -> None:
        """Forget what was counted in the present window."""
        delete_rows(CounterRow, *self._row_of(limit))

    def take_back_attempt(self, limit: Limit) -> None:
        """Count one less in the present window."""
        with writing() as session:
            counter = update(CounterRow).where(*self._row_of(limit))
            session.execute(counter.values(count=CounterRow.count - 1))

    def _row_of(self, limit: Limit) -> tuple[ColumnElement[bool], ...]:
        """Conditions for the row of the present window."""
        window = window_of(self.clock(), limit.seconds)
        return CounterRow.name == limit.name, CounterRow.window == window

    def seconds_left(self, window_seconds: int) -> int:
        """Whole seconds until the present window of that length ends; at least 1."""
        return window_seconds - int(self.clock().timestamp()) % window_seconds

    def forget_old(self) -> None:
        """Delete counts of past windows. The engine's housekeeping calls it."""
        now, window = int(self.clock().timestamp()), CounterRow.window
        # A count of a clock that was ahead would count again when its window comes.
        delete_rows(CounterRow, ~window.between(now - RETENTION_SECONDS, now + RETENTION_SECONDS))
        is_short = CounterRow.name.startswith(SHORT_WINDOWS)
        delete_rows(CounterRow, is_short, window < now - SHORT_RETENTION_SECONDS)


# --- Attempts -------------------------------------------------------------------------------------
#
# The audit log has a line for each failure to log in, up to a limit in each window. The failures
# above the limit are counted, and a later line has their count: no failure is lost, and nobody can
# fill the disk by failing.
#
# A failure has a source. For an account that exists, the source is the account; otherwise it is the
# address of the client, because the name of the account is only what somebody typed. In a window,
# each source has a limited number of lines, and a count of the failures above the limit; all
# sources together have a limit as well.
#
# The counts are rows, so all processes share them, and a restart keeps them. The first event in a
# later window writes their lines, or the engine's housekeeping does.

MAX_OF_SOURCE = LOGINS_PER_ACCOUNT  # lines of one source in a window
MAX_OF_ACCOUNTS = 200  # lines of all accounts that exist
MAX_OF_STRANGERS = 50  # lines of all accounts that do not exist
MAX_SOURCES = 20  # addresses with a count each; ``OTHER_SOURCES`` counts all others
OTHER_SOURCES = "elsewhere"
LEFT_OUT = "left_out"


def record_failure(event: str, account: AuditedObject, now: datetime) -> None:
    """Write a line of a failure, or count it. An account that does not exist has no id."""
    actor = actors.actor() or actors.WAKEFUL
    window = window_of(now, LOGIN_WINDOW_SECONDS)
    if account.id is None:
        source, group, max_lines = counted_address(actor.address), "strangers", MAX_OF_STRANGERS
    else:
        source, group, max_lines = f"person:{account.id}", "accounts", MAX_OF_ACCOUNTS
    with writing() as session:
        # A source over its limit must not use up the limit of all.
        if (
            add(session, f"audited:{event}:{source}", window) <= MAX_OF_SOURCE
            and add(session, f"audited:{event}:{group}", window) <= max_lines
        ):
            audit.note(session, Action.LOGIN_FAILED, account)
        else:
            if account.id is None:
                source = _counted_source(session, window, event, source)
            _count(session, CountedFailuresRow(
                window=window, event=event, source=source, number=1, first_at=now, last_at=now,
                actor_kind=actor.kind.value, address=actor.address,
                object_id=account.id, object_name=account.name,
            ))  # fmt: skip


def write_left_out(now: datetime) -> None:
    """Write a line for each count of another window. A window in the future counts as past: the
    clock was set back.
    """
    past = CountedFailuresRow.window != window_of(now, LOGIN_WINDOW_SECONDS)
    if db.session.scalar(select(CountedFailuresRow.window).where(past).limit(1)) is None:
        return  # a refused guess costs no write
    with writing() as session:
        deletion = (
            delete(CountedFailuresRow).where(past).returning(*CountedFailuresRow.__table__.columns)
        )
        for row in session.execute(deletion).all():
            _note(session, row)


def _note(session: DbSession, row: Row[Any]) -> None:
    changes = {LEFT_OUT: row.number, "first": row.first_at, "last": row.last_at}
    kind, name, id = ActorKind(row.actor_kind), "", None
    if kind == ActorKind.PERSON:
        name, id = row.object_name or "", row.object_id
    audit.note(
        session,
        Action.LOGIN_FAILED,
        AuditedObject(ObjectKind.PERSON, row.object_id, row.object_name),
        {name: (None, value) for name, value in changes.items()},
        actor=Actor(kind, name, id, row.address),
    )


def _counted_source(session: DbSession, window: int, event: str, address: str) -> str:
    """``address``, or ``OTHER_SOURCES`` if enough other addresses have a count already."""
    row = CountedFailuresRow
    in_window = (row.window == window, row.event == event, row.object_id.is_(None))
    if session.scalar(select(row.source).where(*in_window, row.source == address)) is not None:
        return address
    return address if count_of(session, row, *in_window) < MAX_SOURCES else OTHER_SOURCES


def _count(session: DbSession, row: CountedFailuresRow) -> None:
    """Add one to the count of the row's source. Fields that differ among the failures are left
    empty.
    """
    table = CountedFailuresRow
    columns = table.__mapper__.columns
    values = {column.name: getattr(row, name) for name, column in columns.items()}
    statement = inserting(table).values(values)
    new = statement.excluded
    statement = statement.on_conflict_do_update(
        index_elements=[table.window, table.event, table.source],
        set_={
            "number": table.number + 1,
            "last_at": new.last_at,
            "address": case((table.address == new.address, table.address), else_=None),
            "object_name": case(
                (table.object_name == new.object_name, table.object_name), else_=None
            ),
        },
    )
    session.execute(statement)
