"""Alembic's environment: migrations run on the application's own engine, in one transaction."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from alembic import context

from app.db import db, schema

# Two servers that start at the same time must not both migrate. PostgreSQL: an advisory lock of
# this number; SQLite: the write lock, taken before alembic looks at the version.
MIGRATION_LOCK = 0x77616B65


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
        # Alembic's batch replaces a table by a changed copy and drops the old one. With foreign
        # keys on, that would delete every row that refers to it. SQLite ignores this pragma inside
        # a transaction, so it comes first.
        driver.execute("PRAGMA foreign_keys=OFF")
        try:
            connection = connection.execution_options(immediate=True)
            with connection.begin():
                yield connection
                if broken := connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall():
                    raise RuntimeError(f"The migration broke references between tables: {broken}")
        finally:
            driver.execute("PRAGMA foreign_keys=ON")


with locked() as connection:
    copy = context.config.attributes.get(schema.COPY, False)
    is_new = schema.before_migrating(connection, copy=copy)
    context.configure(connection=connection)
    with context.begin_transaction():
        if is_new:
            schema.make_tables(connection)
            context.get_context().stamp(context.script, "head")
        context.run_migrations()
