"""Bringing the database up to date, and telling whether it is. All need an application context."""

from __future__ import annotations

import logging
from typing import Any

from alembic import command
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from flask import current_app
from sqlalchemy import select

from app.db import db, patience
from app.db.types import Encrypted
from app.paths import MIGRATIONS


def upgrade() -> None:
    """Run the migrations that are missing. Safe while another process does the same: one waits.

    A migration may take as long as it takes; a database that does not answer is told before.
    """
    if present() == wanted():
        return
    # Alembic tells each step at INFO; only a failure is worth a line among the server's own.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    with patience(None):
        command.upgrade(_config(), "head")


def present() -> str | None:
    """The number of the newest migration that this database has had; None before the first."""
    with db.engine.connect() as connection:
        revision: str | None = MigrationContext.configure(connection).get_current_revision()
        return revision


def wanted() -> str | None:
    """The number of the newest migration that this code comes with."""
    return ScriptDirectory(str(MIGRATIONS)).get_current_head()


def read_secrets() -> None:
    """Read one of each kind, if there are any: a changed WAKEFUL_SECRET_KEY shows at the start and
    not at 3 a.m. Raises SettingError.
    """
    for table in db.metadata.sorted_tables:
        for column in table.c:
            if isinstance(column.type, Encrypted):
                db.session.execute(select(column).where(column.is_not(None)).limit(1)).all()


def _config() -> Any:
    # Not flask_migrate.upgrade: it turns every error into a log line and an exit of the process.
    return current_app.extensions["migrate"].migrate.get_config(str(MIGRATIONS))
