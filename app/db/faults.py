"""What a database that cannot be used now means for who asked: wait, and what became of a write."""

from __future__ import annotations

import sqlite3

from sqlalchemy import exc

from app.db.connections import primary_code
from app.errors import Unavailable

RETRY_SECONDS = 5
AWAY = "The database does not answer. Try again in a moment."
BUSY = (
    "The database is busy: something else has been writing to it for too long. Try again in a"
    " moment."
)
READ_ONLY = "The database can be read but not written: its file or its server is read-only."
FULL = "The disk that the database is on is full, so nothing can be stored. Make room there."
FAILING = "The disk that the database is on does not work. Look at its file, folder and disk."

_SQLITE = {
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR: FAILING,
    sqlite3.SQLITE_CANTOPEN: FAILING,
}
_POSTGRES = {"53100": FULL, "25006": READ_ONLY}  # by SQLSTATE


def unavailable(fault: BaseException) -> Unavailable | None:
    """The database's own trouble as an ``Unavailable``; None for what is a fault of ours, such
    as a statement that is wrong.
    """
    if isinstance(fault, exc.TimeoutError):  # all connections of the pool are in use
        return Unavailable(AWAY, RETRY_SECONDS, unsent=True)
    if not isinstance(fault, exc.DBAPIError):
        return None
    code = primary_code(fault.orig)
    if code is not None:
        sentence = _SQLITE.get(code)
        # SQLite is here: what it did not commit is not there.
        return Unavailable(sentence, RETRY_SECONDS, unsent=True) if sentence else None
    state = getattr(fault.orig, "sqlstate", None)
    away = isinstance(fault, exc.OperationalError | exc.InterfaceError)
    if not away and not fault.connection_invalidated and state not in _POSTGRES:
        return None
    # Without a statement it may have been the commit, which may have arrived.
    unsent = fault.statement is not None
    return Unavailable(_POSTGRES.get(state or "", AWAY), RETRY_SECONDS, unsent=unsent)
