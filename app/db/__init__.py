"""The database: tables, migrations, and the statements that the engine and the stores share.

``db`` is the Flask-SQLAlchemy extension. Reads use ``db.session``; every write goes through
``writing()``, which commits or rolls back as a whole. SQLite runs in WAL mode with foreign keys on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from blinker import Signal
from flask import current_app
from flask_sqlalchemy import SQLAlchemy
from flask_sqlalchemy.session import Session
from sqlalchemy import Engine, MetaData, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, scoped_session
from sqlalchemy.orm import Session as OrmSession

from app.db import faults
from app.db.connections import CACHE_KB, drop_unusable, patience, prepare_sqlite
from app.db.locks import Pauses

__all__ = [
    "AnySession", "Base", "DbSession", "Model", "best_effort", "db", "is_writing", "patience",
    "prepare_engine", "writing", "written",
]  # fmt: skip

log = logging.getLogger(__name__)

BEST_EFFORT_SECONDS = 1.0
BEST_EFFORT_AGAIN = 10.0  # the pause after a failed write, so that not every request waits
NOT_STORED = "%s was not stored; all else went on. %s If this is logged again, run: wakeful doctor"
_BEST_EFFORT = "wakeful.best_effort"
_PAUSES = "wakeful.pauses"
T = TypeVar("T")


# Sent with the application after each transaction of this process that has written.
written = Signal()


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


DbSession: TypeAlias = scoped_session[Session]
AnySession: TypeAlias = OrmSession | scoped_session[Any]  # also one that a test makes


def prepare_engine(engine: Engine, cache_kb: int = CACHE_KB) -> None:
    """Limit all waits, and drop connections that cannot recover. ``cache_kb``: how many KB of its
    file each SQLite connection caches.
    """
    if engine.dialect.name == "sqlite":
        prepare_sqlite(engine, cache_kb)
    else:
        from app.db import postgres  # here, because psycopg takes 9 MB

        postgres.prepare(engine)
    event.listen(engine, "handle_error", drop_unusable)


def is_writing() -> bool:
    """Whether this is called inside ``writing()``."""
    return bool(db.session.info.get("writing"))


@contextmanager
def writing() -> Iterator[DbSession]:
    """A write transaction on ``db.session``: it is committed as a whole, or rolled back if the
    block raises.

    On SQLite it takes the write lock at its start, so that nothing that is read in the block
    changes before it is written. Rows that were read before belong to an older transaction, which
    ends here. Within another ``writing()`` it joins that transaction. A process that has held the
    lock for long pauses first, so that other processes get it (``app/db/locks.py``).
    """
    session = db.session
    if is_writing():
        yield session
        session.flush()
        return
    session.rollback()
    session.info["writing"] = True
    try:
        with _pausing(lambda: _take_lock(session)), _or_rolled_back(session):
            yield session
            session.commit()
    finally:
        session.info.pop("writing", None)
    written.send(current_app._get_current_object())  # type: ignore[attr-defined]


def _take_lock(session: DbSession) -> None:
    with _or_rolled_back(session):
        session.connection(execution_options={"immediate": True})


@contextmanager
def _or_rolled_back(session: DbSession) -> Iterator[None]:
    try:
        yield
    except BaseException:
        session.rollback()
        raise


def _pausing(take: Callable[[], object]) -> AbstractContextManager[None]:
    if db.engine.dialect.name != "sqlite":
        take()  # PostgreSQL gives locks in the order of the requests
        return nullcontext()
    pauses: Pauses = current_app.extensions.setdefault(_PAUSES, Pauses())
    return pauses.around(take)


def best_effort(what: str, write: Callable[[], T]) -> T | None:
    """Do a write that a read causes, such as that of a key's last use. Returns None if it fails.
    ``what``: the written value, as the subject of a sentence.

    While the disk is full, or another process holds the lock, reads must work without a long wait.
    After a failure, no such write is tried for ``BEST_EFFORT_AGAIN`` seconds.
    """
    not_before: float = current_app.extensions.get(_BEST_EFFORT, float("-inf"))
    if time.monotonic() < not_before:
        return None
    try:
        with patience(BEST_EFFORT_SECONDS):
            return write()
    except SQLAlchemyError as fault:
        current_app.extensions[_BEST_EFFORT] = time.monotonic() + BEST_EFFORT_AGAIN
        log.warning(NOT_STORED, what, faults.cause_of(fault))
        return None
