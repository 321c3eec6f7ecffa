"""Bringing the database up to date, and telling whether it is. All need an application context."""

from __future__ import annotations

import logging
from typing import Any

from alembic import command
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from flask import current_app

from app.db import db
from app.paths import MIGRATIONS


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


def _config() -> Any:
    # Not flask_migrate.upgrade: it turns every error into a log line and an exit of the process.
    return current_app.extensions["migrate"].migrate.get_config(str(MIGRATIONS))
