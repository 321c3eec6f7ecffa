"""Connections to PostgreSQL: how they are opened, and the time limit of each statement.

A separate module, because psycopg takes 9 MB, which an installation on SQLite does not load.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, event

from app.db.connections import IDLE_MS, LIMITED, patience, statement_seconds

CONNECT_SECONDS = 5.0
CANCEL_SECONDS = 2.0
# A connection that was used within this time gets no ping before the next use, unless it has data
# to read, as when the server has closed it.
FRESH_SECONDS = 10.0
# How long a transaction may be idle: a check on request lasts a minute. After this time the locks
# of a lost process are released.
IDLE_SECONDS = 180
_LIBPQ = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # ms
}


class _Bounded(psycopg.Connection[Any]):
    """A connection that is closed if the server does not answer a statement in time. ``used_at``:
    the time of the last answer (monotonic).
    """

    used_at = float("-inf")

    def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
        answer = super().wait(self._in_time(gen, statement_seconds()), *arguments, **options)
        self.used_at = time.monotonic()
        return answer

    @property
    def is_fresh(self) -> bool:
        if self.closed or time.monotonic() - self.used_at > FRESH_SECONDS:
            return False
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return not poll.poll(0)

    def _in_time(self, gen: Any, seconds: float | None) -> Generator[Any, Any, Any]:
        """``gen`` with a time limit: psycopg resumes it at least every tenth of a second."""
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            wants = next(gen)
            while True:
                ready = yield wants
                if not ready and deadline is not None and time.monotonic() > deadline:
                    self._give_up(seconds or 0)
                wants = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _give_up(self, seconds: float) -> None:
        """Ask the server to cancel the statement, in case it is only slow, and disconnect."""
        with suppress(psycopg.Error):
            self.cancel_safe(timeout=min(CANCEL_SECONDS, seconds))
        self.close()
        raise psycopg.OperationalError(f"the server did not answer within {seconds:g} s")


class _CircuitBreaker:
    """After a failed connection, one thread at a time tries to connect; others fail at once.
    Otherwise all threads of the web server would wait for the database, and none would answer
    ``/healthz``.
    """

    def __init__(self) -> None:
        self._failed = False
        self._trying = threading.Lock()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        if not self._failed:
            with self._noting():
                yield
        elif self._trying.acquire(blocking=False):
            try:
                with self._noting():
                    yield
            finally:
                self._trying.release()
        else:
            raise psycopg.OperationalError("the server did not answer a moment ago")

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._failed = True
            raise
        self._failed = False


def prepare(engine: Engine) -> None:
    """Open the connections of this engine with time limits."""
    breaker = _CircuitBreaker()
    ping = engine.dialect.do_ping

    def _ping(connection: Any) -> bool:
        if connection.is_fresh:
            return True
        with patience(_connect_seconds()):  # a live server answers at once
            return ping(connection)

    engine.dialect.do_ping = _ping  # type: ignore[method-assign,assignment]

    @event.listens_for(engine, "do_connect")
    def _connect(
        _dialect: Any, _record: Any, arguments: Any, options: dict[str, Any]
    ) -> psycopg.Connection[Any]:
        with breaker.guarded():
            return _connected(arguments, options)


def read_singly(engine: Engine) -> None:
    """On new connections, statements outside of ``writing()`` begin no transaction, and idle
    transactions are limited to IDLE_MS.

    A statement sees the same rows inside a transaction or not (READ COMMITTED). But BEGIN and
    ROLLBACK are additional round trips, and psycopg prepares its statements again after a ROLLBACK.
    A checker reads single rows several times a second.
    """

    @event.listens_for(engine, "connect")
    def _autocommit(connection: Any, record: Any) -> None:
        connection.autocommit = True
        connection.execute(f"SET idle_in_transaction_session_timeout = {IDLE_MS}")
        record.info[LIMITED] = True

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if connection.get_execution_options().get("immediate", False):
            driver: Any = connection.connection.driver_connection
            driver.execute("BEGIN")


def _connect_seconds() -> float:
    patient = statement_seconds()
    return CONNECT_SECONDS if patient is None else min(CONNECT_SECONDS, patient)


def _connected(arguments: Any, options: dict[str, Any]) -> psycopg.Connection[Any]:
    limit = _connect_seconds()
    # Options in the URL of the database override these.
    connection = _Bounded.connect(
        *arguments, **{"connect_timeout": max(1, round(limit)), **_LIBPQ, **options}
    )
    try:
        connection.autocommit = True
        # Set by a statement: poolers refuse it among the parameters of the connection.
        connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'")
        connection.autocommit = False
    except psycopg.Error:
        connection.close()
        raise
    return connection
