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
        newest = sa.MetaData()
        newest.reflect(connection)
        rows = {
            name: connection.execute(sa.select(table)).mappings().all()
            for name, table in newest.tables.items()
        }
        newest.drop_all(connection)
        run(connection, connection.dialect.name)
        oldest = sa.MetaData()
        oldest.reflect(connection)
        for table in oldest.sorted_tables:
            values = [
                {key: row[key] for key in row if key in table.c} for row in rows.get(table.name, ())
            ]
            if values:
                connection.execute(sa.insert(table), values)
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{OLDEST}')")


def run(connection: sa.Connection, name: str) -> None:
    """Run the statements of a file in FILES."""
    for statement in (FILES / f"{name}.sql").read_text().split(";\n"):
        if statement:
            connection.exec_driver_sql(statement)
