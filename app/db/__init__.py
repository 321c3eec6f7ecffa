"""The database: tables, migrations and the journal (what the engine asks and writes).

``db`` is the Flask-SQLAlchemy extension. Reads use ``db.session``; every write goes through
``writing()``, which commits or rolls back as a whole. SQLite runs in WAL mode with foreign keys on.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from flask_sqlalchemy import SQLAlchemy
from flask_sqlalchemy.session import Session
from sqlalchemy import Connection, Engine, Executable, MetaData, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, scoped_session

BUSY_TIMEOUT_MS = 10_000
ASIDE_TIMEOUT_MS = 200

log = logging.getLogger(__name__)


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_N_label)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


db = SQLAlchemy(model_class=Base)

if TYPE_CHECKING:
    Model = Base  # type checkers cannot follow the class that the extension builds at run time
else:
    Model = db.Model


def prepare_engine(engine: Engine) -> None:
    """Make SQLite behave:

    WAL, foreign keys, a busy timeout, and transactions that begin when we say so.
    """
    if engine.dialect.name != "sqlite":
        return

    @event.listens_for(engine, "connect")
    def _pragmas(connection: Any, _record: Any) -> None:
        # The driver's own BEGIN comes late and is always deferred: two writers that both read first
        # then fail with "database is locked" at once, without waiting for the busy timeout.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        _write_ahead(cursor)
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA cache_size=-32000")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _write_ahead(cursor: sqlite3.Cursor) -> None:
    """Turn WAL on, or find it on.

    Where another process turns it on at the same moment, SQLite says "locked" without waiting for
    the busy timeout; the first start of two processes on one new file would fail.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as fault:
            if fault.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


DbSession: TypeAlias = scoped_session[Session]


@contextmanager
def writing() -> Iterator[DbSession]:
    """A write transaction on ``db.session``: committed whole, or rolled back when anything raises.

    It takes SQLite's write lock at its start, so what is read inside cannot change before it is
    written. Anything read before belongs to an older transaction, which ends here. Within another
    ``writing()`` it joins that one: what the inner writes stands or falls with the outer.
    """
    session = db.session
    if session.info.get("writing"):
        yield session
        session.flush()
        return
    session.rollback()
    session.info["writing"] = True
    try:
        session.connection(execution_options={"immediate": True})
        yield session
        session.commit()
    except BaseException:
        session.rollback()
        raise
    finally:
        session.info.pop("writing", None)


def write_aside(statement: Executable) -> None:
    """Execute what may be lost, such as a time of last use, in a transaction of its own. A database
    that takes no writes now holds nobody up by it, and fails nobody.

    What was read before belongs to an older transaction, which ends here.
    """
    if db.session.info.get("writing"):
        return
    db.session.rollback()
    try:
        connecting = db.engine.connect().execution_options(immediate=True)
        with connecting as connection, _hurried(connection), connection.begin():
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {ASIDE_TIMEOUT_MS}")
            connection.execute(statement)
    except SQLAlchemyError as fault:
        log.warning("A time of last use could not be written: %s", getattr(fault, "orig", fault))


@contextmanager
def _hurried(connection: Connection) -> Iterator[None]:
    """Let SQLite wait for a moment only where another one writes: outside of a transaction."""
    if connection.dialect.name != "sqlite":
        yield
        return
    driver: Any = connection.connection.dbapi_connection
    driver.execute(f"PRAGMA busy_timeout={ASIDE_TIMEOUT_MS}")
    try:
        yield
    finally:
        driver.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
