"""Translate database errors into ``Unavailable``: a sentence, the pause before a retry, and whether
it is certain that nothing was written.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial

from sqlalchemy import exc

from app.db.connections import NoDatabase, NotCurrent, primary_code
from app.errors import RETRY_SECONDS, Unavailable
from app.i18n import N_, _
from app.lasting import Lasting

LOG_EVERY = 60.0  # seconds between two equal lines in the log
NO_ANSWER = N_("The database does not answer.")
AGAIN = N_(" Try again in a moment.")
AWAY = N_("The database does not answer. Try again in a moment.")
BUSY = N_(
    "The database is busy: something else has been writing to it for too long. Try again in a"
    " moment."
)
READ_ONLY = N_("The database can be read but not written: its file or its server is read-only.")
FULL = N_("The disk that the database is on is full, so nothing can be stored. Free some space.")
DAMAGED = N_("The database file is damaged. Restore a backup.")
CANNOT_OPEN = N_(
    "The database at %(path)s cannot be opened. Check that Wakeful can read and write this file,"
    " its folder and the files beside it (%(path)s-wal, %(path)s-shm)."
)
AT = N_("The database is %(path)s.")
FAILING = N_("The disk that the database is on does not work. Check its file, folder and disk.")

_SQLITE = {
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_PROTOCOL: BUSY,  # "locking protocol": the locks of the WAL are held
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR: FAILING,
    sqlite3.SQLITE_CANTOPEN: CANNOT_OPEN,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
}
_DAMAGE = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
_POSTGRES = {"53100": FULL, "25006": READ_ONLY}  # by SQLSTATE
_OF_DISK = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, "53100"}


class _NoAnswer(Unavailable):
    """A database server cannot be used, and gives no reason."""


class DiskFault(Unavailable):
    """The disk that the database is on is full, or does not work."""


def unavailable(fault: BaseException) -> Unavailable | None:
    """A database failure as an ``Unavailable``; None for a bug, such as a wrong statement."""
    if isinstance(fault, exc.TimeoutError):  # all connections of the pool are in use
        return _NoAnswer(_(AWAY), RETRY_SECONDS, unsent=True)
    if not isinstance(fault, exc.DBAPIError):
        return None
    code = primary_code(fault.orig)
    if code is not None:
        sentence = _of_sqlite(fault.orig, code)
        # SQLite runs in this process, so a failed commit has written nothing.
        if sentence and code in _DAMAGE:
            return Unavailable(sentence, unsent=True, passes=False)
        return _refused(code, sentence, unsent=True) if sentence else None
    if isinstance(fault.orig, NotCurrent):
        return Unavailable(str(fault.orig), RETRY_SECONDS, unsent=True)
    state = getattr(fault.orig, "sqlstate", None)
    is_connection_fault = isinstance(fault, exc.OperationalError | exc.InterfaceError)
    if not is_connection_fault and not fault.connection_invalidated and state not in _POSTGRES:
        return None
    # Without a statement, it was the commit that failed, which may have reached the server.
    unsent = fault.statement is not None
    if (sentence := _POSTGRES.get(state or "")) is None:
        return _NoAnswer(_(AWAY), RETRY_SECONDS, unsent=unsent)
    return _refused(state, _(sentence), unsent=unsent)


def _refused(code: int | str | None, sentence: str, *, unsent: bool) -> Unavailable:
    of_disk = code in _OF_DISK
    return (DiskFault if of_disk else Unavailable)(sentence, RETRY_SECONDS, unsent=unsent)


def passes(fault: BaseException) -> bool:
    """Whether the database is the cause and waiting helps, so that a retry makes sense."""
    cause = unavailable(fault)
    return cause is not None and cause.passes


def is_server_away(fault: BaseException) -> bool:
    """Whether a database server does not answer, or refuses connections: it may start after
    Wakeful. False for an SQLite file, which a person must repair.
    """
    driver = getattr(fault, "orig", None)
    return driver is not None and not isinstance(driver, sqlite3.Error) and passes(fault)


def is_damage(fault: BaseException) -> bool:
    """Whether a part of the database file is damaged. Waiting does not help; the rest of the file
    may be intact.
    """
    cause = unavailable(fault)
    return cause is not None and not cause.passes


def _of_sqlite(fault: BaseException | None, code: int) -> str | None:
    if isinstance(fault, NoDatabase):
        return str(fault)
    sentence = _SQLITE.get(code)
    path = getattr(fault, "path", None) or _("its place")
    return sentence and _(sentence, path=path)


def public_cause(fault: BaseException) -> Unavailable:
    """Why the database cannot be used, without the name or address of a server."""
    cause = unavailable(fault)
    if cause is None or isinstance(cause, _NoAnswer):
        return Unavailable(_(NO_ANSWER))
    return cause


def with_path(cause: Unavailable, path: str | None) -> str:
    """The sentence of ``cause``, followed by the path of the database if its disk is at fault."""
    return f"{cause} {_(AT, path=path)}" if path and isinstance(cause, DiskFault) else str(cause)


def _path_of(fault: BaseException) -> str | None:
    return getattr(getattr(fault, "orig", None), "path", None)


def sentence_of(fault: Exception) -> str:
    """Why the database cannot be used, for its operator: with the driver's message if that says
    more, and with the path if the disk is at fault.
    """
    cause = unavailable(fault)
    if cause is not None and not isinstance(cause, _NoAnswer):
        return with_path(cause, _path_of(fault))
    lines = str(getattr(fault, "orig", None) or fault).strip().splitlines()
    why = lines[0] if lines else type(fault).__name__
    return _("The database cannot be used: %(why)s", why=why)


def cause_of(fault: Exception) -> str:
    """``sentence_of`` for the log, without the advice to try again."""
    return f"{sentence_of(fault).removesuffix(_(AGAIN)).rstrip('. ')}."


_lasting = cache(partial(Lasting, seconds=LOG_EVERY))


def log_fault(log: logging.Logger, what: str, fault: Exception) -> None:
    """Log a fault: one line a minute if the database is the cause, otherwise with its traceback.
    Callers retry each second, and a log that fills the disk would make things worse.
    """
    cause = unavailable(fault)
    if cause is None:
        log.error("%s", what, exc_info=fault)
        return
    # The caller tries again, so the advice to do so is removed.
    sentence = f"{what} {with_path(cause, _path_of(fault)).removesuffix(_(AGAIN))}"
    _lasting(log).error("%s", sentence, topic=sentence)


@contextmanager
def isolated(log: logging.Logger, what: str) -> Iterator[None]:
    """Run one of several tasks, and log its fault, so that it does not stop the others. A fault of
    the database that passes is raised, because the other tasks would fail too.
    """
    try:
        yield
    except Exception as fault:
        if passes(fault):
            raise
        log_fault(log, what, fault)
