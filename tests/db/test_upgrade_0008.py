"""The upgrade to assignments and shards keeps which checks are due and which are not."""

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from alembic import command

from app.db import assignments, db, schema
from app.db.tables import AssignmentRow, LocationRow, MonitorStateRow
from app.db.types import to_ms
from app.engine.schedule import Standing, due, last_slot, next_check
from tests.factories import make_monitor

CONFIRM = timedelta(seconds=10)
NOW = datetime.now(UTC).replace(microsecond=0)
AGO, SOON = NOW - timedelta(minutes=5), NOW + timedelta(hours=2)


@pytest.fixture
def before(core):
    """The database as it was, filled by its own columns, then upgraded."""
    with core.app_context():
        ids = [make_monitor(core, interval=86400, paused=n == 4).id for n in range(7)]
        command.downgrade(schema._config(), "0007")
        yield ids


def state(id, **columns):
    values = {name: to_ms(value) if isinstance(value, datetime) else value
              for name, value in columns.items()}  # fmt: skip
    with db.engine.begin() as connection:
        names = ", ".join(f"{name} = :{name}" for name in values)
        connection.execute(
            sa.text(f"UPDATE monitor_states SET {names} WHERE monitor_id = :id"),
            values | {"id": id},
        )


def results(id, *places):
    """One a minute, the newest last, from these places."""
    with db.engine.begin() as connection:
        for minute, place in enumerate(places):
            connection.execute(
                sa.text(
                    "INSERT INTO results (monitor_id, at, location_id, verdict, maintenance)"
                    " VALUES (:id, :at, :place, 0, :no)"
                ),
                {"id": id, "at": to_ms(AGO) + 60_000 * minute, "place": place, "no": False},
            )


def place(name):
    with db.engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO locations (name) VALUES (:name)"), {"name": name})
        found = sa.text("SELECT id FROM locations WHERE name = :name")
        return connection.execute(found, {"name": name}).scalar_one()


def upgraded():
    schema.upgrade()
    db.session.rollback()
    rows = db.session.scalars(sa.select(AssignmentRow)).all()
    return {row.monitor_id: row for row in rows if row.location_id == 1}


def due_at(row):
    unconfirmed = db.session.get(MonitorStateRow, row.monitor_id).unconfirmed_at
    standing = Standing(row.turn, row.slot, row.checked_at, unconfirmed, row.blind)
    return due(row.monitor_id, 86400, standing, NOW, CONFIRM, network=False)


def test_due_checks_stay_due_and_no_other_is_checked_early(before):
    waiting, overdue, new, edited, paused, failing, blind = before
    for id in (waiting, blind):
        state(id, checked_at=AGO, next_check_at=next_check(id, 86400, NOW), verdict="up")
    state(blind, verdict="unknown", cause_code="network_down")
    state(overdue, checked_at=AGO, next_check_at=AGO + timedelta(minutes=1), verdict="up")
    state(new, checked_at=None, next_check_at=NOW)
    state(edited, checked_at=AGO, next_check_at=NOW - timedelta(seconds=1), verdict="up")
    state(paused, checked_at=AGO, next_check_at=None, verdict="up")
    repeat = NOW + timedelta(seconds=9)
    state(failing, checked_at=AGO, next_check_at=repeat, verdict="down", failing_since=AGO,
          failures=1)  # fmt: skip
    rows = upgraded()
    assert set(rows) == set(before)
    for id in (waiting, blind):
        assert rows[id].slot == last_slot(id, 86400, AGO)
        assert due_at(rows[id]) == next_check(id, 86400, AGO)
    for id in (overdue, new, edited):
        assert due_at(rows[id]) == NOW
    assert rows[blind].blind
    # The clock of the upgrade is a little later than this file's.
    assert timedelta(0) <= repeat - due_at(rows[failing]) <= timedelta(seconds=60)
    assert [row.verdict for row in rows.values()] == [0, 0, None, 0, 0, 2, 3]
    watched = {one.spec.monitor_id for one in assignments.of_monitors(1, before)}
    assert watched == set(before) - {paused}


def test_monitors_are_assigned_to_the_places_that_checked_them(before):
    """An instance that runs with WAKEFUL_LOCATION set has no checker in the default place."""
    foo, bar = place("foo"), place("bar")
    mostly, by_hand, both, moved, _paused, never, few = before
    results(mostly, *[foo] * 12)
    results(by_hand, *[foo] * 9, 1)
    results(both, *[foo, bar] * 6)
    results(moved, *[bar] * 20, *[foo] * 10)
    results(few, foo)
    upgraded()
    rows = db.session.execute(
        sa.select(AssignmentRow.monitor_id, LocationRow.name).join(
            LocationRow, LocationRow.id == AssignmentRow.location_id
        )
    ).all()
    places = {id: sorted(name for of, name in rows if of == id) for id in before}
    assert places[mostly] == places[by_hand] == places[moved] == places[few] == ["foo"]
    assert places[both] == ["bar", "foo"]
    assert places[never] == ["foo"], "where most others go"


def test_places_have_every_required_column(before):
    place("foo")
    upgraded()
    rows = db.session.scalars(sa.select(LocationRow)).all()
    assert [(row.name, row.carrier, row.label) for row in rows] == [
        ("default", "local", None),
        ("foo", "local", None),
    ]
    assert all(row.created_at >= NOW for row in rows)


def test_a_new_database_can_be_downgraded_and_upgraded(before):
    command.upgrade(schema._config(), "0008")
    command.downgrade(schema._config(), "0007")
    with db.engine.connect() as connection:
        waits = sa.text("SELECT count(*) FROM monitor_states WHERE next_check_at IS NOT NULL")
        assert connection.scalar(waits) == len(before) - 1, "all but the paused one are due"
