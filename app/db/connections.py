"""The connections of the database: how they are opened, their time limits, and which are dropped.

A wait for a database that is out of reach, stuck or full ends with an error. The kernel ends a
connection whose peer sends nothing. A stopped pooler, however, still acknowledges packets, so each
statement has a time limit here too.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event, exc
from sqlalchemy.engine import ExceptionContext
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from app.db.types import SQLITE_TYPES, decoded
from app.i18n import N_, _

BUSY_TIMEOUT_MS = 10_000
ANSWER_SECONDS = 15.0  # for a statement on PostgreSQL, unless it sets its own limit
# How much of an SQLite file each connection caches: little in a process that writes single rows,
# such as a checker with its three connections; much in all others.
SMALL_CACHE_KB, CACHE_KB = 4_000, 32_000
IDLE_MS = 10_000  # after this, PostgreSQL ends an idle transaction, whose locks stop others
LIMITED = "limited"  # in the info of a connection: IDLE_MS applies to all its transactions
POOL_SECONDS = 5.0  # how long a thread waits for a free connection

# A connection that was opened while the file was read-only or its disk failed does not recover,
# because SQLite does not open the file again.
_UNUSABLE_SQLITE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR}
ABSENT = N_(
    "No database exists at %(path)s. Put it back, or create a new one: wakeful db upgrade --new"
)
EMPTY = N_(
    "The database at %(path)s is empty. Put the right one there, or prepare this one for use: "
    "wakeful db upgrade --new"
)
# The server became a standby; another one accepts writes now.
_READ_ONLY_SERVER = "25006"

_patience: ContextVar[float | None] = ContextVar("patience", default=ANSWER_SECONDS)
_creating: ContextVar[bool] = ContextVar("creating", default=False)


class NoDatabase(sqlite3.OperationalError):
    """The SQLite database does not exist, or is empty. The text is a sentence for people."""

    sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    sqlite_errorname = "SQLITE_CANTOPEN"


class NotCurrent(Exception):
    """The server answers, but its tables are of another version. The text is a sentence."""


@contextmanager
def creating() -> Iterator[None]:
    """Create a missing SQLite database in this block. Otherwise none is created: an empty file
    would take the place of one that was moved, and the installation would have two databases.
    """
    token = _creating.set(True)
    try:
        yield
    finally:
        _creating.reset(token)


@contextmanager
def patience(seconds: float | None) -> Iterator[None]:
    """In this block and thread, limit the time of a statement to so many ``seconds`` (None: no
    limit), and the wait for SQLite's lock to these or the busy timeout.
    """
    token = _patience.set(seconds)
    try:
        yield
    finally:
        _patience.reset(token)


def statement_seconds() -> float | None:
    """How many seconds a statement may take now; None: any time."""
    return _patience.get()


# The log of a failed statement must not have its values, such as password hashes and addresses.
_PRIVATE = {"hide_parameters": True}


def _is_no_row(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("Row ")


# At the level DEBUG, SQLAlchemy logs the rows that it reads, with every secret decrypted.
logging.getLogger("sqlalchemy.engine.Engine").addFilter(_is_no_row)


def pool_options(url: str) -> dict[str, Any]:
    """The options for the engine of this database."""
    if url.partition("?")[0] in ("sqlite://", "sqlite:///:memory:"):
        return _PRIVATE
    # With the 5 of the pool, there is a connection for each thread of the web server that waits for
    # no slot. The last used one is used next: its caches have the statements and pages.
    options = _PRIVATE | {"pool_timeout": POOL_SECONDS, "max_overflow": 15, "pool_use_lifo": True}
    # A ping before each use finds a connection that broke while nobody used it.
    return options | {"pool_pre_ping": True} if url.startswith("postgresql") else options


def drop_unusable(context: ExceptionContext) -> None:
    """Drop a connection that cannot recover, when a statement on it fails."""
    fault = context.original_exception
    if _is_unusable(fault) or getattr(fault, "sqlstate", None) == _READ_ONLY_SERVER:
        context.is_disconnect = True
    if isinstance(fault, sqlite3.OperationalError) and context.engine is not None:
        fault.path = context.engine.url.database  # type: ignore[attr-defined] # for its sentence


def _is_unusable(fault: BaseException | None) -> bool:
    return primary_code(fault) in _UNUSABLE_SQLITE


def primary_code(fault: BaseException | None) -> int | None:
    """SQLite's result code without its extension; None for any other fault."""
    code: int | None = getattr(fault, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


# --- SQLite


def prepare_sqlite(engine: Engine, cache_kb: int) -> None:
    """Turn on WAL, foreign keys and a busy timeout, and begin each transaction explicitly."""
    engine.dialect.colspecs = {**engine.dialect.colspecs, **SQLITE_TYPES}
    path = file_of(engine)
    if path is not None:
        _keep_to_file(engine, path)

    @event.listens_for(engine, "connect")
    def _pragmas(connection: Any, _record: Any) -> None:
        # The BEGIN of the driver comes late and is always deferred: of two writers that both read
        # first, one fails with "database is locked" at once, without the busy timeout.
        connection.isolation_level = None
        connection.text_factory = decoded
        # lower() of SQLite folds only ASCII.
        connection.create_function("casefold", 1, str.casefold, deterministic=True)
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={_busy_ms()}")
        _write_ahead(cursor)
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute(f"PRAGMA cache_size=-{cache_kb}")
        version = cursor.execute("PRAGMA schema_version").fetchone()[0]  # 0 without any table
        cursor.close()
        if version == 0 and path is not None and not _creating.get():
            raise NoDatabase(_(EMPTY, path=path))

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        wait = _busy_ms()
        driver: Any = connection.connection.driver_connection
        # These two statements do not touch the file, so they need no error handling by SQLAlchemy.
        # Without it they take a tenth of the time, and each request has some.
        if connection.info.get("busy_ms") != wait:
            driver.execute(f"PRAGMA busy_timeout={wait}")
            connection.info["busy_ms"] = wait
        if connection.get_execution_options().get("immediate", False):
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            driver.execute("BEGIN")


def file_of(engine: Engine) -> str | None:
    """The path of the database; None if it is in memory, or named by a URI of SQLite."""
    name = engine.url.database or ":memory:"
    return None if name == ":memory:" or name.startswith("file:") else os.path.abspath(name)


def _keep_to_file(engine: Engine, path: str) -> None:
    """Open the file without creating it, and drop connections to a file that was moved, deleted or
    replaced, to which writes would be lost.
    """

    @event.listens_for(engine, "do_connect")
    def _open(dialect: Any, record: Any, _arguments: Any, options: dict[str, Any]) -> Any:
        mode = "rwc" if _creating.get() else "rw"
        if mode == "rw" and _is_missing(path):
            raise NoDatabase(_(ABSENT, path=path))
        opened = dialect.connect(f"{Path(path).as_uri()}?mode={mode}", **options, uri=True)
        if record is not None:
            record.info |= {"file": _identity(path), "opened": time.monotonic()}
        return opened

    @event.listens_for(engine, "checkout")
    def _look(_connection: Any, record: Any, _fairy: Any) -> None:
        if record.info.get("file") != _identity(path):
            raise exc.DisconnectionError(f"{path} is not the file that is open.")

    unusable_at = float("-inf")

    @event.listens_for(engine, "handle_error")
    def _close_idle(context: ExceptionContext) -> None:
        """Close the connections in the pool; ``_close`` closes the others when they are returned.
        All connections of a process share the files that SQLite has open: a new connection can
        write only after all unusable ones are closed.
        """
        nonlocal unusable_at
        if _is_unusable(context.original_exception):
            unusable_at = time.monotonic()
            engine.dispose()
            cursor = getattr(context.execution_context, "cursor", None)
            if cursor is not None:  # the exception refers to it, which keeps the connection open
                cursor.close()

    @event.listens_for(engine, "checkin")
    def _close(connection: Any, record: Any) -> None:
        if connection is not None and record.info.get("opened", 0.0) <= unusable_at:
            record.invalidate()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_missing(path: str) -> bool:
    """Whether there is no file. In a folder without permission to read, it counts as existing."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _busy_ms() -> int:
    seconds = _patience.get()
    return BUSY_TIMEOUT_MS if seconds is None else min(BUSY_TIMEOUT_MS, int(seconds * 1000))


def _write_ahead(cursor: sqlite3.Cursor) -> None:
    """Turn WAL on, if it is off.

    If another process does so at the same moment, SQLite fails with "locked" at once, without the
    busy timeout. Without retries, two processes that start on a new file at the same time would
    fail.
    """
    patient = Retrying(
        retry=retry_if_exception(lambda fault: primary_code(fault) == sqlite3.SQLITE_BUSY),
        wait=wait_fixed(0.02),
        stop=stop_after_delay(_busy_ms() / 1000),
        reraise=True,
    )
    patient(cursor.execute, "PRAGMA journal_mode=WAL")
