"""A monitor is changed while the engine waits for the lock on its state. PostgreSQL goes on then
with the locked row as it is now, and with the rows of all other tables as they were before the
wait.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from app.db import db, rollups, writing
from app.db.tables import DeliveryRow, DomainRow, ResultRow, RollupRow
from app.engine import domains, recorder
from app.engine.recorder.rows import lock_state
from app.stores.local.part import lock_monitor
from tests.factories import make_outcome
from tests.support.locks import until_somebody_waits
from tests.support.recorders import ALERTS, START, WHOLE, Engine, at

pytestmark = pytest.mark.both_databases

OTHER = "b@example.test"


@pytest.fixture
def engine(core):
    with core.app_context():
        if db.engine.dialect.name != "postgresql":
            pytest.skip("SQLite has one writer at a time")
        yield Waiting(core)


class Waiting(Engine):
    def changed_before(self, id, changes, call):
        """Set the fields ``changes`` of a monitor while ``call``, whose result this returns, waits
        for the lock on its state.
        """

        def change(session, row):
            if changes.get("paused"):
                recorder.pause(session, id, at(60))
            else:
                for name, value in changes.items():
                    setattr(row, name, value)
                recorder.apply_changes(session, row, set(changes), at(60))

        return self.before(id, change, call)

    def before(self, id, change, call):
        """``change`` the monitor, whose row and state are locked, while ``call`` waits for that."""

        def wait():
            with self.core.app_context():
                return call()

        with ThreadPoolExecutor(1) as pool:
            with writing() as session:
                row = lock_monitor(session, id)
                lock_state(session, id)
                waiting = pool.submit(wait)
                until_somebody_waits()
                change(session, row)
            return waiting.result(60)

    def read(self, what):
        db.session.rollback()
        return db.session.scalars(select(what)).all()

    @property
    def channels(self):
        """To whom alerts go."""
        return sorted(row.value for row in self.read(DeliveryRow))


def test_a_check_of_a_monitor_that_was_just_paused_opens_no_incident(engine):
    id = engine.monitor(confirmations=0)
    outcome = make_outcome("down", at(61))
    engine.changed_before(id, {"paused": True}, lambda: recorder.record([(id, outcome)], at(61)))
    assert engine.incidents(id) == []
    (result,) = engine.read(ResultRow)
    assert result.covers_s == 0, "it counts for no time"


@pytest.mark.parametrize(
    "changes",
    [{"confirmations": 2}, {"maintenance_start_at": at(0), "maintenance_end_at": at(3600)}],
)
def test_a_check_is_judged_by_what_was_just_changed(engine, changes):
    id = engine.monitor(confirmations=0)
    claim, outcome = engine.claim(id), make_outcome("down", at(61))
    stood = engine.changed_before(
        id, dict(changes), lambda: recorder.record_claimed([(claim, outcome)], at(61))
    )
    assert stood[0] is not None, "it was recorded"
    assert engine.incidents(id) == []


def test_a_late_result_of_a_monitor_that_was_just_paused_counts_for_no_time(engine):
    id = engine.monitor()
    late = replace(make_outcome("up", at(90)).result, monitor_id=id)
    engine.changed_before(
        id, {"paused": True}, lambda: recorder.record_late([late], at(200), location="default")
    )
    (result,) = engine.read(ResultRow)
    assert result.covers_s == 0


def test_an_hour_is_summed_without_the_maintenance_that_was_just_cancelled(engine):
    window = {"maintenance_start_at": WHOLE, "maintenance_end_at": at(3600)}
    id = engine.monitor(updated_at=START, **window)
    late = replace(make_outcome("up", at(90)).result, monitor_id=id)
    recorder.record_late([late], at(200), location="default")
    with writing() as session:
        for row in session.scalars(select(ResultRow)):
            row.maintenance = False
    engine.changed_before(id, dict.fromkeys(window), lambda: rollups.roll(at(2 * 3600)))
    sums = {(row.up_s > 0, row.maintenance_s) for row in engine.read(RollupRow)}
    assert sums == {(True, 0)}


@pytest.mark.parametrize(
    ("changes", "expected"), [({"paused": True}, []), ({"alerts": [["email", OTHER]]}, [OTHER])]
)
def test_the_expiry_of_a_domain_is_alerted_as_the_monitor_was_just_changed(
    engine, changes, expected
):
    id = engine.monitor(domain_alert_days=30, state={"domain": "shop.test"})
    with writing() as session:
        session.add(DomainRow(domain="shop.test", expires_at=at(0) + timedelta(days=3)))
    engine.changed_before(id, dict(changes), lambda: domains.alert_expiring(at(61)))
    assert engine.channels == expected


def test_an_incident_by_hand_alerts_those_whom_the_monitor_was_just_set_to_alert(engine):
    id = engine.monitor(alerts=ALERTS)

    def report():
        with writing() as session:
            fields = {"monitor_id": id, "started_at": WHOLE}
            recorder.create_incident(session, fields, at(61))

    engine.changed_before(id, {"alerts": [["email", OTHER]]}, report)
    assert engine.channels == [OTHER]


def test_a_state_that_a_check_has_just_changed_is_not_set_back_to_an_older_one(engine):
    """Good checks that change nothing write their states within a minute."""
    id, steady = engine.monitor(confirmations=1), recorder.Steady("default")
    recorder.record_claimed([(engine.claim(id), make_outcome("up", at(0)))], at(0), steady=steady)
    again = make_outcome("up", at(60), response_time=30)
    again = replace(again, result=replace(again.result, monitor_id=id))
    assert steady.add_if_steady(engine.claim(id), again)
    assert steady.write(at(60)) == []

    def check(_session, _row):
        recorder.record([(id, make_outcome("down", at(61), response_time=40))], at(61))

    def save():
        with engine.core.app_context():
            steady.save(all=True)

    if db.engine.dialect.name == "postgresql":
        with ThreadPoolExecutor(1) as pool, writing() as session:
            lock_state(session, id)
            pool.submit(save).result(60)  # it does not wait for who has locked the state
            check(session, None)
        save()
    else:
        engine.before(id, check, save)
    state = engine.state(id)
    assert (state.checked_at, state.response_time) == (at(61), 40)
