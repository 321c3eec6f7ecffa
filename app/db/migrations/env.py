"""Alembic's environment: migrations run on the application's own engine, in one transaction.

Flask-Migrate's template asks Flask-SQLAlchemy for ``get_engine``, which is deprecated there and an
error in our tests; ``db.engine`` is the same. Offline mode (SQL on paper) is not offered: the
batches that SQLite needs would not come out right.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlalchemy.types import TypeDecorator

from app.db import db, schema

# Two servers that start at once must not both migrate. PostgreSQL: an advisory lock of this number;
# SQLite: the write lock, taken before alembic looks at the version.
MIGRATION_LOCK = 0x77616B65


def plain_types(kind: str, value: Any, _context: AutogenContext) -> str | bool:
    """A migration names columns as the database has them, not our types, which may change later."""
    if kind == "type" and isinstance(value, TypeDecorator):
        return f"sa.{value.impl_instance!r}"
    return False


@contextmanager
def locked() -> Iterator[sa.Connection]:
    """A connection in a transaction that no other migration shares."""
    with db.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            with connection.begin():
                lock = sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK))
                connection.execute(lock)
                yield connection
            return
        driver: Any = connection.connection.dbapi_connection
        # A batch drops the old table for its changed copy; with foreign keys on, that deletes every
        # row that refers to it. SQLite ignores this pragma inside a transaction, so it comes first.
        driver.execute("PRAGMA foreign_keys=OFF")
        try:
            connection = connection.execution_options(immediate=True)
            with connection.begin():
                yield connection
                if broken := connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall():
                    raise RuntimeError(f"The migration broke references between tables: {broken}")
        finally:
            driver.execute("PRAGMA foreign_keys=ON")


def run() -> None:
    with locked() as connection:
        schema.before_migrating(connection, copy=context.config.attributes.get(schema.COPY, False))
        context.configure(
            connection=connection,
            target_metadata=db.metadata,
            render_item=plain_types,
            compare_type=True,
            render_as_batch=True,
        )
        with context.begin_transaction():
            context.run_migrations()


if context.is_offline_mode():
    raise SystemExit("Wakeful's migrations run on a live database only: wakeful db upgrade")
run()
