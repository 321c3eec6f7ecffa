"""Make a backup while the service runs, for ``wakeful backup`` and the button in the settings.
Needs an application context.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from sqlalchemy.exc import DBAPIError

from app.access import actors, audit
from app.config import Settings
from app.db import best_effort, copying, db, schema, writing
from app.db import settings as settings_table
from app.db.faults import is_damage
from app.errors import WakefulError
from app.i18n import N_, _
from app.paths import new_private_file
from app.records import LAST_BACKUP, Action, AuditedObject, ObjectKind
from app.rules.time import iso
from app.stores.keeping import archive, postgres
from app.version import __version__

DOWNLOAD = ".download-"
ABANDONED_AFTER_SECONDS = 24 * 3600
EXISTS = N_("%(file)s exists already. Choose another name.")


def make(settings: Settings, target: Path, *, passphrase: str = "", with_key: bool = True) -> None:
    """Write a backup to the new file ``target``, which only its owner can read. ``passphrase``:
    empty for a backup that is not encrypted. Raises WakefulError and then leaves no file.
    """
    if target.exists():
        raise WakefulError(_(EXISTS, file=target))
    with _damage_reported():
        schema.refuse_unknown()
        revision = schema.stored_revision()
    if revision is None:
        raise WakefulError(_(schema.NO_TABLES))
    with _writing(target), TemporaryDirectory(prefix=".backup-", dir=target.parent) as folder:
        database = Path(folder) / archive.DATABASES[db.engine.dialect.name]
        _copy(database)
        manifest = archive.Manifest(
            database=db.engine.dialect.name,
            revision=revision,
            made_at=iso(datetime.now(UTC)),
            with_key=with_key,
            sha256=archive.digest_of(database),
            wakeful=__version__,
        )
        unfinished = Path(folder) / "backup"
        with new_private_file(unfinished) as file:
            archive.write(file, manifest, database, "\n".join(settings.secret_keys), passphrase)
            file.flush()
            os.fsync(file.fileno())
        _move_into_place(unfinished, target)
    best_effort("The time of the last backup", _note_backup)


def open_new(settings: Settings) -> BinaryIO:
    """Make a backup, and return it as an open file without a name, which the system deletes when it
    is closed. Raises WakefulError.
    """
    folder = settings.instance
    with _writing(folder):
        _delete_abandoned(folder)
        _check_room(folder)
        with TemporaryDirectory(prefix=DOWNLOAD, dir=folder) as private:
            target = Path(private) / "wakeful.backup"
            make(settings, target)
            return target.open("rb")


def _delete_abandoned(folder: Path) -> None:
    """Delete the files of downloads whose process was killed."""
    for unfinished in folder.glob(f"{DOWNLOAD}*"):
        if time.time() - unfinished.stat().st_mtime > ABANDONED_AFTER_SECONDS:
            shutil.rmtree(unfinished, ignore_errors=True)


def _check_room(folder: Path) -> None:
    """Raise WakefulError if the disk has too little free space. The database may be on this disk,
    and if a download filled it, no check could be stored.
    """
    if db.engine.dialect.name != "sqlite" or not db.engine.url.database:
        return
    needed = 2 * Path(db.engine.url.database).stat().st_size  # a copy, and the backup of it
    copying.check_room(needed, folder)


def _move_into_place(unfinished: Path, target: Path) -> None:
    """Give the file its name, unless another file got this name meanwhile."""
    try:
        os.link(unfinished, target)
    except FileExistsError:
        raise WakefulError(_(EXISTS, file=target)) from None
    except OSError:  # a file system without hard links
        unfinished.rename(target)


def _note_backup() -> None:
    now = datetime.now(UTC)
    with actors.acting_as(actors.actor() or actors.by_command()), writing() as session:
        settings_table.store_setting(LAST_BACKUP, iso(now), now)
        audit.note(session, Action.BACKED_UP, AuditedObject(ObjectKind.INSTALLATION))


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        values = {"file": target, "reason": fault.strerror or fault}
        sentence = _("The backup could not be written to %(file)s: %(reason)s.", **values)
        raise WakefulError(sentence) from fault


def _copy(path: Path) -> None:
    """Copy the database as it is at one moment, with the changes that are only in its log."""
    if db.engine.dialect.name == "postgresql":
        postgres.dump(db.engine.url, path)
        return
    file = db.engine.url.database
    if not file:
        raise WakefulError(_("A database in memory cannot be backed up."))
    copying.copy_in_use(file, path)
    if damage := damage_of(path):
        raise _damaged(damage)


@contextmanager
def _damage_reported() -> Iterator[None]:
    """Raise WakefulError for a file that is too damaged to be opened or read."""
    try:
        yield
    except DBAPIError as fault:
        if not is_damage(fault):
            raise
        raise _damaged(str(fault.orig)) from fault


def _damaged(damage: str) -> WakefulError:
    values = {"file": db.engine.url.database, "damage": damage}
    return WakefulError(
        _("The database %(file)s is damaged: %(damage)s. Restore a backup.", **values)
    )


def damage_of(path: Path) -> str:
    """The fault that SQLite reports for a database; empty if there is none."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            (report,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        except sqlite3.DatabaseError as fault:
            report = str(fault)
    return "" if report == "ok" else " ".join(str(report).split())
