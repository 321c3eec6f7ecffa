"""Restore a backup (``wakeful restore``).

An SQLite file is unpacked, checked, upgraded and prepared beside the present one, which is replaced
at the end and kept. On PostgreSQL, pg_restore loads everything in one transaction.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from sqlalchemy import MetaData, delete, make_url

from app.access import actors, audit
from app.alerts.chores import hold_after_restore
from app.commands.opened import opened
from app.config import PREFIX, SettingError, Settings, split_keys
from app.db import db, liveness, schema, writing
from app.db.tables import PendingLoginRow, RecoveryRow, SessionRow, SignOfLifeRow
from app.errors import WakefulError
from app.i18n import N_, _
from app.paths import new_private_file
from app.records import Action, AuditedObject, ObjectKind
from app.stores.keeping import archive, backup, postgres

KEY_FILE = "secret_key"
RUNNING = N_("Wakeful is running on this database. Stop all its processes first.")
GO_BACK = N_("To bring back the previous database, run pg_restore on %(file)s.")
OTHER_KIND = N_("This is a backup of %(source)s, but %(setting)s names %(target)s.")
KINDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore. ``on_hold``: how many messages wait for a person. ``copies``: the
    copies of replaced files.
    """

    manifest: archive.Manifest
    on_hold: int
    copies: tuple[Path, ...]


def restore(settings: Settings, file: BinaryIO, *, passphrase: str = "", force: bool) -> Restored:
    """Replace the database and the secret key by those of a backup. Raises WakefulError and
    SettingError. After such an error nothing is changed, or, on PostgreSQL, it names the dump of
    the previous database.

    ``settings`` were read without making a key. ``force``: also replace a database that is not
    empty, and another key; copies of both are kept.
    """
    kind = make_url(settings.database_url).get_backend_name()
    settings.instance.mkdir(mode=0o700, parents=True, exist_ok=True)
    parent = _file(settings).parent if kind == "sqlite" else settings.instance
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".restore-", dir=parent) as folder:
        manifest, database, key = archive.unpack(file, Path(folder), passphrase)
        if manifest.database != kind:
            kinds = {"source": KINDS[manifest.database], "target": KINDS[kind]}
            raise WakefulError(_(OTHER_KIND, setting=f"{PREFIX}DATABASE_URL", **kinds))
        if manifest.revision not in schema.revisions():
            raise WakefulError(schema.unknown_revision(manifest.revision))
        first, *old_keys = _keys(settings, split_keys(key), force=force)
        settings = replace(settings, secret_key=first, old_keys=tuple(old_keys))
        on_hold, copies = (_sqlite if kind == "sqlite" else _postgres)(
            settings, database, force, datetime.now(UTC)
        )
    return Restored(manifest, on_hold, tuple(copies))


def _file(settings: Settings) -> Path:
    name = make_url(settings.database_url).database
    if not name or name == ":memory:":
        raise WakefulError(_("A backup cannot be restored into memory."))
    return Path(name).absolute()


def _keys(settings: Settings, from_backup: tuple[str, ...], *, force: bool) -> tuple[str, ...]:
    """The secret keys of the restored database. ``from_backup``: the keys in the backup; it may
    have none.
    """
    present = settings.secret_keys
    if not from_backup and not present:
        raise SettingError(
            _("This backup has no secret key. Put the file secret_key into %(folder)s, or set"
              " %(setting)s.", folder=settings.instance, setting=f"{PREFIX}SECRET_KEY")
        )  # fmt: skip
    if set(from_backup) <= set(present) or not present:
        return present or from_backup
    if _key_is_set():
        raise SettingError(
            _("%(setting)s is not the secret key of this backup. Set it to the one in the backup,"
              " or unset it.", setting=f"{PREFIX}SECRET_KEY")
        )  # fmt: skip
    if not force:
        raise WakefulError(
            _("%(file)s is not the secret key of this backup. Use --force to replace it; a copy is"
              " kept.",
              file=settings.instance / KEY_FILE)
        )  # fmt: skip
    return from_backup


def _key_is_set() -> bool:
    """Whether the secret key is in the environment, and not in the instance folder."""
    return bool(os.environ.get(f"{PREFIX}SECRET_KEY", "").strip())


def _sqlite(
    settings: Settings, database: Path, force: bool, now: datetime
) -> tuple[int, list[Path]]:
    path = _file(settings)
    is_used = path.exists() and path.stat().st_size > 0
    if is_used and not force:
        raise _not_empty(path)
    if damage := backup.damage_of(database):
        raise WakefulError(_("The database in the backup is damaged: %(damage)s.", damage=damage))
    # In another instance folder, because the preparation writes files beside the database.
    temporary = replace(
        settings, instance=database.parent, database_url=f"sqlite:///{database.as_posix()}"
    )
    with opened(temporary):
        on_hold = _prepare(now)
    copies = []
    if path.exists():
        _refuse_if_open(path)
        copies.append(_set_aside(path, now))
    copies += _write_key(settings, now)
    database.rename(path)
    with opened(settings):
        schema.upgrade()
    return on_hold, copies


def _refuse_if_open(path: Path) -> None:
    """Raise WakefulError if another process uses the file. This also moves the write-ahead log into
    it: SQLite would apply a log that is left over to the restored database, and destroy it.
    """
    try:
        with closing(sqlite3.connect(path, timeout=1)) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode=DELETE").fetchone()
    except sqlite3.OperationalError:
        raise WakefulError(_(RUNNING)) from None
    except sqlite3.DatabaseError:
        mode = "delete"  # damaged, which is a reason to restore
    if mode != "delete":
        raise WakefulError(_(RUNNING))


def _postgres(
    settings: Settings, database: Path, force: bool, now: datetime
) -> tuple[int, list[Path]]:
    postgres.check(database)
    url = make_url(settings.database_url)
    copies = []
    with opened(settings):
        our_tables = MetaData()
        our_tables.reflect(db.engine, only=_is_ours)
        tables = our_tables.tables
        if tables and not force:
            raise _not_empty(schema.location())
        if "heartbeats" in tables and _is_running(now):
            raise WakefulError(_(RUNNING))
        if tables:
            copies.append(_unused(settings.instance / f"database.{_stamp(now)}.dump"))
            postgres.dump(url, copies[0])
            our_tables.drop_all(db.engine)
        try:
            postgres.load(url, database)
            on_hold = _prepare(now)
        except WakefulError as fault:
            sentences = [str(fault), *(_(GO_BACK, file=dump) for dump in copies)]
            raise WakefulError(" ".join(sentences)) from fault
        copies += _write_key(settings, now)
    return on_hold, copies


def _is_ours(table: str, _metadata: MetaData) -> bool:
    return table in db.metadata.tables or table == "alembic_version"


def _is_running(now: datetime) -> bool:
    try:
        return not all(
            liveness.signs_of(role, now).silent for role in (liveness.CHECKER, liveness.WORKER)
        )
    finally:
        db.session.remove()


def _not_empty(database: object) -> WakefulError:
    return WakefulError(
        _("The database %(database)s is not empty. Use --force to replace it; a copy is kept.",
          database=database)
    )  # fmt: skip


def _prepare(now: datetime) -> int:
    """Upgrade the restored database, and delete or hold what is out of date since the backup.
    Returns the number of messages that are on hold.
    """
    schema.upgrade(copy=False)  # the backup itself is a copy
    schema.check_key()
    with writing() as session:
        session.execute(delete(SignOfLifeRow))  # of processes that have ended
        # A session that was ended after the backup, because its cookie was stolen, would be valid
        # again.
        for table in (SessionRow, PendingLoginRow, RecoveryRow):
            session.execute(delete(table))
        installation = AuditedObject(ObjectKind.INSTALLATION)
        audit.note(session, Action.RESTORED, installation, actor=actors.by_command())
        return hold_after_restore(session, now)


def _write_key(settings: Settings, now: datetime) -> list[Path]:
    """Write the file of the secret key, unless the environment has the key. Returns the copy of a
    replaced file.
    """
    path, copies = settings.instance / KEY_FILE, []
    if _key_is_set():
        return []
    if path.exists():
        if split_keys(path.read_text()) == settings.secret_keys:
            return []
        copies.append(_set_aside(path, now))
    with new_private_file(path) as new:
        new.write("\n".join(settings.secret_keys).encode())
    return copies


def _set_aside(path: Path, now: datetime) -> Path:
    copy = _unused(path.with_name(f"{path.name}.{_stamp(now)}.bak"))
    path.rename(copy)
    return copy


def _stamp(now: datetime) -> str:
    return f"{now:%Y%m%dT%H%M%SZ}"


def _unused(path: Path) -> Path:
    """``path``, with a number if such a file exists: two restores may run in one second."""
    numbered = (path.with_name(f"{path.name}.{number}") for number in count(1))
    return next(candidate for candidate in chain((path,), numbered) if not candidate.exists())
