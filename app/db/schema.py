"""Bringing the database up to date, and telling whether it is. All need an application context.

Every process asks at its start, so alembic, which takes a third of a second to import, is imported
only where tables are to be made or changed.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import closing, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

from flask import current_app
from sqlalchemy import Connection, inspect, text

from app.config import SettingError
from app.db import db, patience, unreadable
from app.db.connections import creating
from app.errors import WakefulError
from app.paths import MIGRATIONS

log = logging.getLogger(__name__)

# Tables whose values decide what is checked, who is told and who may do what
IN_USE = ("monitors", "monitor_states", "maintenance_windows", "settings", "people")
OLD = "The database is not up to date. Do: wakeful db upgrade"
NO_TABLES = (
    "The database has no tables of Wakeful's. Look whether WAKEFUL_DATABASE_URL names the right"
    " one. A new one is made ready for use by: wakeful db upgrade"
)
NEWER = (
    "The database was written by a newer version of Wakeful (revision {present}; this version knows"
    " {wanted}). Install the newer version, or restore a backup."
)
COPY_BESIDE = " The upgrade has left a copy of the database from before it: {copy}"
UNVERSIONED = (
    "The database has tables of Wakeful but does not tell their version: its table alembic_version"
    " is missing or empty. Restore a backup."
)
# Where the disk of the instance folder is not mounted, a start cannot tell this from a first one.
NEW = "No database was here, so a new one is made: %s"
NO_COPY = (
    "The database could not be copied to {copy} before its upgrade: {reason} Nothing was changed."
)


def upgrade(*, new: bool = False) -> None:
    """Run the migrations that are missing. Safe while another process does the same: one waits.

    A migration may take as long as it takes; a database that does not answer is told before.
    Raises WakefulError for a database that no migration of this version fits. An SQLite file that
    is missing is made, unless there was one before: that one was moved or lost, and only ``new``
    makes another.
    """
    may_create = new or str(db.engine.url.database) not in _made_before()
    with suppress(OSError):  # with a key of its own, nothing else makes the folder
        Path(current_app.instance_path).mkdir(mode=0o700, parents=True, exist_ok=True)
    with creating() if may_create else nullcontext():
        _migrate()
    _remember()


def _migrate() -> None:
    refuse_unknown()
    before = present()
    if before == wanted():
        return
    if before is None:
        log.info(NEW, place())
    from alembic import command

    # Alembic tells each step at INFO; only a failure is worth a line among the server's own.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    with patience(None):
        command.upgrade(_config(), "head")


def place() -> str:
    """Where the database is, for people: the path of a file, or name and server."""
    url = db.engine.url
    if db.engine.dialect.name == "sqlite":
        return os.path.abspath(url.database) if url.database else "in memory"
    return f"{url.database} on {url.host or 'this machine'}"


def present() -> str | None:
    """The number of the newest migration that this database has had; None before the first."""
    with db.engine.connect() as connection:
        return _revision(connection)


def wanted() -> str:
    """The number of the newest migration that this code comes with."""
    return max(known())


@cache
def known() -> frozenset[str]:
    """The numbers of all migrations: each file's name begins with its own."""
    files = (MIGRATIONS / "versions").glob("[0-9]*.py")
    return frozenset(path.name.partition("_")[0] for path in files)


def fault() -> str | None:
    """Why this code cannot work on this database as it is, in a sentence; None when it can."""
    with db.engine.connect() as connection:
        return _fault(connection)


def require() -> None:
    """Raises WakefulError unless the database is what this code works on."""
    if sentence := fault():
        raise WakefulError(sentence)


def refuse_unknown() -> None:
    """Raises WakefulError for a database of a newer version, or of none. An older one passes."""
    with db.engine.connect() as connection:
        _refuse_unknown(connection)


def before_migrating(connection: Connection) -> None:
    """Refuse a database of a newer version, or of none, and keep a copy of an older one where it is
    a file.

    Called under the migrations' lock: of two processes that start at once, the second one finds the
    work of the first, which may be a newer version's.
    """
    _refuse_unknown(connection)
    found = _revision(connection)
    file = db.engine.url.database
    if found in (None, wanted()) or db.engine.dialect.name != "sqlite" or not file:
        return
    copy = _copy_of(file, found)
    try:
        _copy(file, copy)
    except (OSError, sqlite3.Error) as trouble:
        raise WakefulError(NO_COPY.format(copy=copy, reason=f"{trouble}.")) from trouble
    log.warning("Upgrading the database from %s to %s. Its copy: %s", found, wanted(), copy)


def check_key() -> None:
    """Refuse another WAKEFUL_SECRET_KEY than the database was written with: it shows at the start
    and not at 3 a.m. Raises SettingError.
    """
    if unreadable.key_is_wrong():
        # The usual reason is a lost or changed key file.
        raise SettingError(
            "The stored secrets cannot be read: WAKEFUL_SECRET_KEY is not the one"
            " that this database was written with. Put back the file secret_key in the instance"
            " folder, or the setting."
        )


def read_secrets() -> None:
    """``check_key``, and log what cannot be read of what is used each day. A single broken value
    must not keep the service from starting.
    """
    check_key()
    for broken in unreadable.scan(IN_USE):
        log.error("%s. The rest works. wakeful doctor says what to do.", broken)
    db.session.rollback()


def _refuse_unknown(connection: Connection) -> None:
    sentence = _fault(connection)
    if sentence not in (None, OLD, NO_TABLES):
        raise WakefulError(sentence)


def _fault(connection: Connection) -> str | None:
    found = _revision(connection)
    if found == wanted():
        return None
    if found is None:
        return UNVERSIONED if _has_tables(connection) else NO_TABLES
    return OLD if found in known() else _newer(found)


def _newer(found: str) -> str:
    copy = _newest_copy()
    beside = COPY_BESIDE.format(copy=copy) if copy else ""
    return NEWER.format(present=found, wanted=wanted()) + beside


def _newest_copy() -> Path | None:
    """The newest copy that ``before_migrating`` has left beside the file and that fits this code or
    can be upgraded to it.
    """
    file = db.engine.url.database
    if db.engine.dialect.name != "sqlite" or not file:
        return None
    copies = (_copy_of(file, revision) for revision in sorted(known(), reverse=True))
    return next((copy for copy in copies if copy.exists()), None)


def _copy_of(file: str, revision: str) -> Path:
    return Path(f"{file}.{revision}.bak")


def _has_tables(connection: Connection) -> bool:
    return not db.metadata.tables.keys().isdisjoint(inspect(connection).get_table_names())


def _made() -> Path:
    """The file that names the SQLite databases of this installation, one a line. It outlives them:
    so a start can tell a first start from one whose database is lost.
    """
    return Path(current_app.instance_path) / "databases"


def _made_before() -> list[str]:
    try:
        return _made().read_text().splitlines()
    except OSError:
        return []


def _remember() -> None:
    path = str(db.engine.url.database)
    if db.engine.dialect.name != "sqlite" or path in _made_before():
        return
    with suppress(OSError), _made().open("a") as file:  # without it, all works as well
        file.write(f"{path}\n")


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found


def _copy(file: str, copy: Path) -> None:
    """Copy a SQLite database that others may be using. Only its owner may read the copy."""
    unfinished = copy.with_name(f"{copy.name}.part")
    unfinished.unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(unfinished)) as to:
            source.backup(to)
        unfinished.replace(copy)  # a whole copy or none, whenever the process ends
    finally:
        unfinished.unlink(missing_ok=True)


def _config() -> Any:
    from flask_migrate import Migrate

    # Not flask_migrate.upgrade: it turns every error into a log line and an exit of the process.
    return Migrate(current_app, db, directory=str(MIGRATIONS)).get_config(str(MIGRATIONS))
