"""A new database and one of the oldest revision have exactly what app/db/tables says."""

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from app import create_core
from app.alerts.outbox import lanes_text
from app.config import Settings
from app.db import db, journal, packed, rollups, schema
from app.db.tables import (
    ContactRow,
    IncidentRow,
    MaintenanceWindowRow,
    MonitorContactRow,
    MonitorRow,
    PlaceRow,
    PostMonitorRow,
    RollupRow,
)
from app.errors import WakefulError
from app.records import DEFAULT_PLACE_ID
from tests.support.command import start
from tests.support.older import make_oldest, run

pytestmark = pytest.mark.both_databases

MINUTE = timedelta(minutes=1)
AT = datetime(2026, 11, 20, 8, tzinfo=UTC)  # the first result of tests/db/revision_0038/data.sql


def shapes(inspector, tables):
    """The parts that alembic's own comparison passes over: types as the database has them, and
    keys.
    """
    return {
        table: {
            # A later migration puts its columns last, wherever app/db/tables has them.
            "columns": sorted(
                (column["name"], str(column["type"]), column["nullable"], column["default"])
                for column in inspector.get_columns(table)
            ),
            "key": named(inspector.get_pk_constraint(table), "constrained_columns"),
            "unique": sorted(
                named(unique, "column_names") for unique in inspector.get_unique_constraints(table)
            ),
            "checks": sorted(
                named(check, "sqltext") for check in inspector.get_check_constraints(table)
            ),
            "indexes": sorted(
                (index["name"], index["column_names"], index["unique"])
                for index in inspector.get_indexes(table)
            ),
            "references": sorted(
                (
                    *named(key, "constrained_columns", "referred_table"),
                    key["options"].get("ondelete"),
                )
                for key in inspector.get_foreign_keys(table)
            ),
        }
        for table in tables
    }


def named(constraint, *parts):
    return constraint["name"], *(constraint[part] for part in parts)


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
        rows = db.session.execute(sa.select(PlaceRow.id, PlaceRow.name)).all()
        assert rows == [(DEFAULT_PLACE_ID, "default")]
        assert schema.stored_revision() == schema.newest_revision() is not None


def test_a_database_of_the_oldest_revision_goes_on_with_all_that_is_in_it(core):
    with core.app_context():
        with db.engine.connect() as connection:
            new = shapes(sa.inspect(connection), db.metadata.tables), sql_of_tables(connection)
        make_oldest()
        with db.engine.begin() as connection:
            run(connection, "data")
        schema.upgrade()
        assert schema.stored_revision() == schema.newest_revision()
        with db.engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            assert compare_metadata(context, db.metadata) == []
            assert new == (
                shapes(sa.inspect(connection), db.metadata.tables), sql_of_tables(connection)
            )  # fmt: skip
        shop = rows_of(MonitorRow)[0]
        assert (shop.name_natural, shop.notes, shop.options) == ("shop 00210", "", None)
        assert (shop.alerts, shop.request_auth_password) == (
            [["email", "ops@example.org"]],
            "a secret",
        )
        assert shop.alert_lanes == lanes_text(shop.alerts), "moved and shared channels are found"
        (contact,) = rows_of(ContactRow)
        assert (contact.channels, contact.time_zone) == (
            [["webhook", "https://hooks.example/1"]],
            None,
        )
        assert [row.contact_id for row in rows_of(MonitorContactRow)] == [contact.id]
        # Status pages showed all windows, under their names.
        (window,) = rows_of(MaintenanceWindowRow)
        assert (window.public, window.public_name) == (True, "Cables")
        assert [row.impact for row in rows_of(PostMonitorRow)] == [None]
        # The part of an outage found late that an incident takes counts by what people said of it.
        ours, *late = rows_of(IncidentRow)
        assert (ours.found_late, ours.classification) == (False, "false_alarm")
        assert [(row.started_at, row.ended_at) for row in late] == [
            (AT + 19 * MINUTE, AT + 20 * MINUTE),
            (AT + 25 * MINUTE, AT + 28 * MINUTE),
        ]
        assert {
            (row.found_late, row.cause, row.cause_folded, row.cause_code, *row.seen_by)
            for row in late
        } == {(True, "Refused.", "refused.", "connection_refused", "gone", "Oslo")}
        results = db.session.execute(sa.select(*journal.RAW.values()).order_by(*journal.KEY)).all()
        assert len(results) == 60
        rollups.roll(AT + timedelta(days=2))
        assert {row.start: row.checks for row in rows_of(RollupRow)}[int(AT.timestamp())] == 60
        assert packed.pack_old(AT + timedelta(days=2), 60)
        assert db.session.execute(sa.select(*journal.RAW.values())).all() == []


def rows_of(table):
    return db.session.scalars(sa.select(table).order_by(*table.__table__.primary_key)).all()


@pytest.mark.parametrize(
    ("revision", "commit"), [("0037", schema.BEFORE_OLDEST), ("0047", schema.BETWEEN)]
)
def test_a_revision_without_a_migration_is_refused_with_the_commit_that_has_it(
    core, revision, commit
):
    with core.app_context():
        with db.engine.begin() as connection:
            connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")
        with pytest.raises(WakefulError, match=f"revision {revision}.* commit {commit} "):
            schema.upgrade()
        assert schema.stored_revision() == revision


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
