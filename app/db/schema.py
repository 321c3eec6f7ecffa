"""Bringing the database up to date, and telling whether it is. All need an application context."""

from __future__ import annotations

import logging
from typing import Any

from alembic import command
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from flask import current_app

from app.config import SettingError
from app.db import db, unreadable
from app.paths import MIGRATIONS

log = logging.getLogger(__name__)

IN_USE = ("monitors", "settings")  # tables whose values decide what is checked and who is told


def upgrade() -> None:
    """Run the migrations that are missing. Safe while another process does the same: one waits."""
    # Alembic tells each step at INFO; only a failure is worth a line among the server's own.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    command.upgrade(_config(), "head")


def present() -> str | None:
    """The number of the newest migration that this database has had; None before the first."""
    with db.engine.connect() as connection:
        revision: str | None = MigrationContext.configure(connection).get_current_revision()
        return revision


def wanted() -> str | None:
    """The number of the newest migration that this code comes with."""
    return ScriptDirectory(str(MIGRATIONS)).get_current_head()


def check_key() -> None:
    """Refuse another WAKEFUL_SECRET_KEY than the database was written with: it shows at the start
    and not at 3 a.m. Raises SettingError.
    """
    if unreadable.key_is_wrong():
        # The usual reason is a lost or changed key file.
        raise SettingError(
            "The stored secrets cannot be read: WAKEFUL_SECRET_KEY is not the one"
            " that this database was written with."
        )


def read_secrets() -> None:
    """``check_key``, and log what cannot be read of what is used each day. A single broken value
    must not keep the service from starting.
    """
    check_key()
    for broken in unreadable.scan(IN_USE):
        log.error("%s. The rest works. wakeful doctor says what to do.", broken)
    db.session.rollback()


def _config() -> Any:
    # Not flask_migrate.upgrade: it turns every error into a log line and an exit of the process.
    return current_app.extensions["migrate"].migrate.get_config(str(MIGRATIONS))
