"""A database of the oldest revision that is upgraded."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from app.db import db

OLDEST = "0038"
# Its tables as its own migration made them, and rows that a version of then wrote
FILES = Path(__file__).parents[1] / "db" / "revision_0038"


def make_oldest() -> None:
    """Make the database one of the oldest revision, with those of its rows and columns that fit."""
    db.session.remove()
    with db.engine.begin() as connection:
        # Reading the columns of all tables would take longer than all else that such a test does.
        names = [
            table.name
            for table in db.metadata.sorted_tables
            if connection.scalar(sa.select(sa.literal(1)).select_from(table).limit(1))
        ]
        newest, oldest = sa.MetaData(), sa.MetaData()
        newest.reflect(connection, only=names, resolve_fks=False)
        rows = {
            name: connection.execute(sa.select(newest.tables[name])).mappings().all()
            for name in names
        }
        db.metadata.drop_all(connection)
        connection.exec_driver_sql("DROP TABLE alembic_version")
        run(connection, connection.dialect.name)
        oldest.reflect(connection, only=lambda name, _: name in rows, resolve_fks=False)
        for name in [name for name in names if name in oldest.tables]:
            table = oldest.tables[name]
            values = [{key: row[key] for key in row if key in table.c} for row in rows[name]]
            connection.execute(sa.insert(table), values)
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{OLDEST}')")


def run(connection: sa.Connection, name: str) -> None:
    """Run the statements of a file in FILES."""
    for statement in (FILES / f"{name}.sql").read_text().split(";\n"):
        if statement:
            connection.exec_driver_sql(statement)
