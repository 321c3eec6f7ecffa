"""The migrations make exactly what app/db/tables says, on both databases."""

from datetime import timedelta

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from app import create_core
from app.config import Settings
from app.db import db, journal, packed, rollups, schema
from app.db.tables import IncidentRow, LocationRow, MaintenanceWindowRow
from app.db.types import to_ms
from app.records import Location, Result, Verdict
from tests.factories import keep_results, make_incident, make_monitor, now
from tests.support.command import start

pytestmark = pytest.mark.both_databases

MINUTE = timedelta(minutes=1)


def shapes(inspector, tables):
    """What alembic's own comparison passes over: types as the database has them, and keys."""
    return {
        table: {
            # A later migration puts its columns last, wherever app/db/tables has them.
            "columns": sorted(
                (column["name"], str(column["type"]), column["nullable"])
                for column in inspector.get_columns(table)
            ),
            "key": inspector.get_pk_constraint(table)["constrained_columns"],
            "unique": sorted(
                unique["column_names"] for unique in inspector.get_unique_constraints(table)
            ),
            "indexes": sorted(
                (index["name"], index["column_names"], index["unique"])
                for index in inspector.get_indexes(table)
            ),
            "references": sorted(
                (
                    key["constrained_columns"],
                    key["referred_table"],
                    key["options"].get("ondelete"),
                )
                for key in inspector.get_foreign_keys(table)
            ),
        }
        for table in tables
    }


def test_migrations_and_tables_agree(core):
    names = {table.name for table in db.metadata.sorted_tables}
    with core.app_context(), db.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, db.metadata) == []
        migrated = shapes(sa.inspect(connection), names)
        statements = sql_of_tables(connection)
        connection.rollback()
        db.drop_all()
        db.create_all()
        assert shapes(sa.inspect(connection), names) == migrated
        connection.rollback()
        assert sql_of_tables(connection) == statements


def sql_of_tables(connection):
    """On SQLite: whether each table never reuses row ids, which SQLAlchemy does not inspect."""
    if connection.dialect.name != "sqlite":
        return None
    rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
    return {
        name: ("AUTOINCREMENT" in sql, "WITHOUT ROWID" in sql, "WHERE" in sql)
        for name, sql in rows
        if name != "alembic_version" and not name.startswith("sqlite_")
    }


def test_a_new_database_has_the_default_location_and_is_current(core):
    with core.app_context():
        rows = db.session.execute(sa.select(LocationRow.id, LocationRow.name)).all()
        assert rows == [(Location.DEFAULT, "default")]
        assert schema.stored_revision() == schema.newest_revision() is not None


def test_upgrading_twice_changes_nothing_and_downgrading_leaves_nothing(core):
    with core.app_context():
        schema.upgrade()
        assert schema.stored_revision() == schema.newest_revision()
        command.downgrade(schema._config(), "base")
        assert sa.inspect(db.engine).get_table_names() == ["alembic_version"]
        assert schema.stored_revision() is None
        schema.upgrade()
        assert schema.stored_revision() == schema.newest_revision()


def test_outages_that_were_found_late_are_incidents_and_count_as_before(core):
    """The part of an outage that an incident takes is counted by what people said of it."""
    monitor, at = make_monitor(core), now().replace(microsecond=0)
    make_incident(core, monitor, started_at=at, ended_at=at + MINUTE, classification="false_alarm")
    begin, end = to_ms(at - MINUTE) + 250, to_ms(at + 3 * MINUTE) + 250
    with core.app_context():
        command.downgrade(schema._config(), "0039")
        with db.engine.begin() as connection:
            connection.execute(
                sa.text(
                    "INSERT INTO locations (id, name, label, carrier, created_at)"
                    " VALUES (7, 'oslo', 'Oslo', 'agent', 0)"
                )
            )
            connection.execute(
                sa.text("INSERT INTO late_outages VALUES (:id,:begin,:end,:code,:cause,:places)"),
                {
                    "id": monitor.id, "begin": begin, "end": end,
                    "code": "connection_refused", "cause": "Refused.", "places": "gone,oslo",
                },
            )  # fmt: skip
        schema.upgrade()
        late = sa.select(IncidentRow).where(IncidentRow.found_late)
        rows = db.session.scalars(late.order_by(IncidentRow.started_at)).all()
        assert [(row.started_at, row.ended_at) for row in rows] == [
            (at - MINUTE, at),
            (at + MINUTE, at + 3 * MINUTE),
        ]
        assert {(row.cause, row.cause_folded, row.cause_code) for row in rows} == {
            ("Refused.", "refused.", "connection_refused")
        }
        assert [row.seen_by for row in rows] == [["gone", "Oslo"]] * 2


def test_windows_that_status_pages_showed_are_shown_under_their_names(core):
    with core.app_context():
        command.downgrade(schema._config(), "0047")
        with db.engine.begin() as connection:
            connection.execute(
                sa.text(
                    "INSERT INTO maintenance_windows"
                    " (name, start_at, end_at, repeat, created_at, updated_at)"
                    " VALUES ('Cables', 0, 1, 'none', 0, 0)"
                )
            )
        schema.upgrade()
        window = db.session.scalars(sa.select(MaintenanceWindowRow)).one()
        assert (window.public, window.public_name) == (True, "Cables")


@pytest.mark.postgres
def test_a_downgrade_makes_packed_results_rows_again(core):
    monitor = make_monitor(core)
    checks = [
        Result(
            now() - number * MINUTE,
            Verdict.DOWN,
            monitor_id=monitor.id,
            cause=f"Cause {number % 3}",
        )
        for number in range(30 * 60)
    ]
    keep_results(core, checks)
    with core.app_context():
        rows = sa.select(*journal.RAW.values()).order_by(*journal.KEY)
        before = db.session.execute(rows).all()
        rollups.roll(now())
        assert packed.pack_old(now(), 60)
        assert len(db.session.execute(rows).all()) < len(before)
        db.session.rollback()
        command.downgrade(schema._config(), "0040")
        assert db.session.execute(rows).all() == before
        db.session.rollback()
        command.upgrade(schema._config(), "head")
        assert db.session.execute(rows).all() == before


def test_two_servers_that_start_at_once_migrate_once(postgres_server, tmp_path):
    migrate_twice_at_once(postgres_server.url(postgres_server.create()), tmp_path)


def test_two_servers_that_start_at_once_on_one_file_migrate_once(tmp_path):
    migrate_twice_at_once(f"sqlite:///{tmp_path / 'fresh.db'}", tmp_path)


# Processes, not threads: alembic's context is one for the whole process.
def migrate(url, instance):
    app = create_core(Settings(instance=instance, database_url=url, secret_key="x" * 16))
    with app.app_context():
        schema.upgrade()
        assert schema.stored_revision() == schema.newest_revision()


def migrate_twice_at_once(url, instance):
    servers = [start(migrate, url, instance) for _ in range(2)]
    for server in servers:
        server.join(100)
    assert [server.exitcode for server in servers] == [0, 0]
