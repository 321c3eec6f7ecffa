"""Bring the database up to date, and check whether it is. All functions need an application
context.

Every process checks at its start. Alembic, which takes a third of a second to import, is imported
only if tables must be created or changed.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from flask import current_app
from sqlalchemy import Connection, event, insert, inspect, text
from sqlalchemy.exc import OperationalError

from app.config import SettingError
from app.db import copying, db, patience, unreadable
from app.db.connections import NotCurrent, creating
from app.db.tables import PlaceRow
from app.errors import WakefulError
from app.i18n import N_, _
from app.paths import MIGRATIONS

log = logging.getLogger(__name__)

# Tables whose values decide what is checked, who is alerted and who may do what
IN_USE = (
    "monitors", "monitor_states", "contacts", "maintenance_windows", "settings", "people",
)  # fmt: skip
OLD = N_("The database is not up to date. Run: wakeful db upgrade")
NO_TABLES = N_(
    "The database has no Wakeful tables. Check whether WAKEFUL_DATABASE_URL names the right"
    " one. To prepare a new database, run: wakeful db upgrade"
)
NEWER = N_(
    "The database was written by a newer version of Wakeful (revision %(present)s; this version"
    " knows %(wanted)s). Install the newer version, or restore a backup."
)
OLDER = N_(
    "The database is of revision %(present)s, which this version cannot upgrade. Check out commit"
    " %(commit)s of Wakeful, run there: wakeful db upgrade. Then start this version."
)
# The commits that upgrade databases of a revision before the oldest one, and of a revision between
# the stored migrations, which 0055 replaced. The first commit may lead to a revision of the second.
BEFORE_OLDEST, BETWEEN = "3b374abe621b", "e38fcfee3e67"
COPY_BESIDE = N_("The upgrade has left a copy of the database from before it: %(copy)s")
UNVERSIONED = N_(
    "The database has tables of Wakeful but not their version: its table alembic_version"
    " is missing or empty. Restore a backup."
)
# A process does not scan for unreadable values if its parent did so within this time.
SCAN_VALID_SECONDS = 30.0
_scanned = 0, float("-inf")  # the process that scanned last (this one or its parent), and when
COPY = "copy"  # the attribute of alembic's configuration that says whether to copy the file first
# Logged, because a first start looks like one without the disk of the instance folder mounted.
NEW = "No database was found. Creating a new one: %s"
NO_COPY = N_(
    "The database could not be copied to %(copy)s before its upgrade: %(reason)s. Nothing was"
    " changed. Make room there, or make a backup elsewhere (wakeful backup FILE) and upgrade"
    " without the copy: wakeful db upgrade --no-copy"
)


def upgrade(*, new: bool = False, copy: bool = True) -> None:
    """Run the missing migrations. If another process does so at the same time, one of them waits.

    Migrations have no time limit, but a database that does not answer fails earlier. Raises
    WakefulError for a database of a newer or unknown version. A missing SQLite file is created,
    unless this installation had one at this path: that file was moved or lost, and only ``new``
    creates another.

    ``copy``: whether an older SQLite file is copied first. Raises WakefulError if it cannot be
    copied.
    """
    may_create = new or str(db.engine.url.database) not in _made_before()
    with suppress(OSError):  # with SECRET_KEY in the environment, nothing else creates the folder
        Path(current_app.instance_path).mkdir(mode=0o700, parents=True, exist_ok=True)
    with creating() if may_create else nullcontext():
        _migrate(copy)
    _remember()


def _migrate(copy: bool) -> None:
    refuse_unknown()
    present = stored_revision()
    if present == newest_revision():
        return
    if present is None:
        log.info(NEW, location())
    from alembic import command

    # Alembic logs each step at INFO; only its failures matter here.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    with patience(None):
        config = _config()
        config.attributes[COPY] = copy
        command.upgrade(config, "head")


def location() -> str:
    """The location of the database, for people: the path of a file, or name and server."""
    url = db.engine.url
    if db.engine.dialect.name == "sqlite":
        return os.path.abspath(url.database) if url.database else _("in memory")
    return _("%(database)s on %(host)s", database=url.database, host=url.host or _("this machine"))


def stored_revision() -> str | None:
    """The number of the last migration of this database; None before the first."""
    with db.engine.connect() as connection:
        return _revision(connection)


def newest_revision() -> str:
    """The number of the newest migration of this version."""
    return max(revisions())


@cache
def revisions() -> frozenset[str]:
    """The numbers of all migrations: each file's name begins with its own."""
    files = (MIGRATIONS / "versions").glob("[0-9]*.py")
    return frozenset(path.name.partition("_")[0] for path in files)


def fault() -> str | None:
    """Why this version cannot work with the database as it is, as a sentence; None if it can."""
    with db.engine.connect() as connection:
        return _fault(connection)


def require() -> None:
    """Raises WakefulError unless this version can work with the database."""
    if sentence := fault():
        raise WakefulError(_(sentence))


def refuse_unknown() -> None:
    """Raises WakefulError for a database of a newer version or without one; accepts older ones."""
    with db.engine.connect() as connection:
        _refuse_unknown(connection)


def refuse_until_current() -> None:
    """Until the database is up to date, let all connections to it fail as if it did not answer. A
    web server may start before an upgrade has made the tables that it reads.
    """
    current = False

    def look(connection: Connection) -> None:
        nonlocal current
        if current:
            return
        sentence = _fault(connection)
        connection.rollback()
        if sentence is not None:
            connection.close()
            raise OperationalError(None, None, NotCurrent(_(sentence)))
        current = True

    event.listen(db.engine, "engine_connect", look)


def before_migrating(connection: Connection, *, copy: bool) -> bool:
    """Refuse a database of a newer version, or one with tables but no version; ``copy`` an older
    SQLite file. Returns whether the database is new, without tables.

    Called with the lock of migrations: of two processes that start at the same time, the second
    sees the changes of the first, which may be of a newer version.
    """
    _refuse_unknown(connection)
    revision = _revision(connection)
    if revision is None or revision == newest_revision():
        return revision is None
    path = _copied(revision) if copy else None
    how = "without a copy of it" if path is None else f"with a copy of it in {path}"
    log.warning("Upgrading the database from %s to %s, %s.", revision, newest_revision(), how)
    return False


def make_tables(connection: Connection) -> None:
    """Make the tables of a new database, and the place that is always there."""
    db.metadata.create_all(connection)
    default = {"name": "default", "created_at": datetime.now(UTC)}
    connection.execute(insert(PlaceRow).values(default))


def _copied(revision: str) -> Path | None:
    """Copy the SQLite file, which has this revision, and return the path of the copy; None for
    other databases.
    """
    file = db.engine.url.database
    if db.engine.dialect.name != "sqlite" or not file:
        return None
    copy = _copy_of(file, revision)
    try:
        copying.copy_locked(file, copy)
    except (OSError, sqlite3.Error) as fault:
        reason = getattr(fault, "strerror", None) or fault
        raise WakefulError(_(NO_COPY, copy=copy, reason=reason)) from fault
    return copy


def check_key() -> None:
    """Raises SettingError if the database was written with another WAKEFUL_SECRET_KEY: otherwise
    this would be noticed only when the first alert cannot be sent.
    """
    if unreadable.key_is_wrong():
        # The usual reason is a lost or changed key file.
        raise SettingError(
            _(
                "The stored secrets cannot be read: WAKEFUL_SECRET_KEY is not the one"
                " that this database was written with. Put back the file secret_key in the instance"
                " folder, or the setting."
            )
        )


def read_secrets() -> None:
    """``check_key``, then log each value of the tables IN_USE that cannot be read. A single
    unreadable value does not keep the service from starting.

    The parts of ``wakeful serve`` start just after their supervisor has scanned. They need not read
    ten thousand monitors again, nor log each value once more.
    """
    global _scanned
    check_key()
    process, at = _scanned
    if process != os.getppid() or time.monotonic() - at > SCAN_VALID_SECONDS:
        for value in unreadable.scan(IN_USE):
            log.error("%s. The rest works. wakeful doctor says what to do.", value)
        db.session.rollback()
    _scanned = os.getpid(), time.monotonic()


def _refuse_unknown(connection: Connection) -> None:
    sentence = _fault(connection)
    if sentence not in (None, OLD, NO_TABLES):
        raise WakefulError(_(sentence))


def _fault(connection: Connection) -> str | None:
    revision = _revision(connection)
    if revision == newest_revision():
        return None
    if revision is None:
        return UNVERSIONED if _has_tables(connection) else NO_TABLES
    if revision in revisions():
        return OLD
    sentence = unknown_revision(revision)
    if revision > newest_revision() and (copy := _newest_copy()):
        return f"{sentence} {_(COPY_BESIDE, copy=copy)}"
    return sentence


def unknown_revision(revision: str) -> str:
    """Why this version cannot work with a database of a revision that it has no migration for."""
    if revision > newest_revision():
        return _(NEWER, present=revision, wanted=newest_revision())
    commit = BEFORE_OLDEST if revision < min(revisions()) else BETWEEN
    return _(OLDER, present=revision, commit=commit)


def _newest_copy() -> Path | None:
    """The newest copy that ``before_migrating`` has left beside the file and that this version can
    use or upgrade.
    """
    file = db.engine.url.database
    if db.engine.dialect.name != "sqlite" or not file:
        return None
    copies = (_copy_of(file, revision) for revision in sorted(revisions(), reverse=True))
    return next((copy for copy in copies if copy.exists()), None)


def _copy_of(file: str, revision: str) -> Path:
    return Path(f"{file}.{revision}.bak")


def _has_tables(connection: Connection) -> bool:
    return not db.metadata.tables.keys().isdisjoint(inspect(connection).get_table_names())


def _made() -> Path:
    """The file that lists the SQLite databases of this installation, one in each line. If a
    database is lost, this file shows that it is not a first start.
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
    with suppress(OSError), _made().open("a") as file:  # everything else works without this file
        file.write(f"{path}\n")


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


def _config() -> Any:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config
