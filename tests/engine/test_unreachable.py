"""A monitor whose parent is down opens nothing (decision 20)."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from sqlalchemy import select

from app.alerts.messages import compose
from app.alerts.messages.message import MessageContext
from app.db import db, dependencies, writing
from app.db.tables import (
    DeliveryRow,
    HeartbeatStateRow,
    IncidentRow,
    MonitorStateRow,
    UnreachableRow,
)
from app.engine import recorder
from app.judge.verdict import State, is_failing
from app.records import Cause, Outcome, Result, Verdict
from app.stores.local.page_states import counted_states
from tests.factories import make_heartbeat
from tests.support.queries import queries
from tests.support.recorders import WHOLE, Engine, at, change


class Router(Engine):
    """A ``router``, and monitors that are reached through it."""

    def start(self, children=1, **fields):
        self.router = self.monitor(name="Router", confirmations=1)
        self.children = [
            self.behind(self.router, name=f"Child {number}", **fields) for number in range(children)
        ]
        self.child = self.children[0]
        return self

    def behind(self, *parents, **fields):
        id = self.monitor(**({"confirmations": 1} | fields))
        with writing() as session:
            dependencies.replace_parents(session, id, parents)
        return id

    def open(self, id):
        return [incident for incident in self.incidents(id) if incident.ended_at is None]

    def is_behind(self, id):
        return self.state(id).behind_id

    def was_asked(self, id):
        return self.assignment(id).asked_at


@pytest.fixture
def engine(core):
    with core.app_context():
        yield Router(core)


@pytest.mark.both_databases
def test_nothing_opens_while_the_parent_is_down_and_one_incident_lists_the_others(engine):
    engine.start(children=5)
    for id in engine.children:
        engine.check(id, "down", 0)
        assert engine.was_asked(engine.router), "the parent is checked at once"
    engine.check(engine.router, "down", 1)
    for id in engine.children:
        state = engine.state(id)
        assert state.behind_id == engine.router, "as soon as the parent fails too"
        assert (state.verdict, state.cause_code) == ("down", Cause.UNREACHABLE)
        assert "Router" in state.cause
    engine.check(engine.router, "down", 11)
    for id in engine.children:
        engine.checks(id, [("down", 10), ("down", 20), ("down", 60)])
        assert engine.incidents(id) == []
    (incident,) = engine.incidents(engine.router)
    (affected,) = dependencies.affected(db.session, [incident]).values()
    assert [monitor.id for monitor in affected] == engine.children
    assert engine.events() == ["incident.opened"] * 2, "one message a channel"


@pytest.mark.parametrize("confirmations", [0, 1])
def test_a_monitor_that_fails_first_waits_for_its_parent(engine, confirmations):
    engine.start(confirmations=confirmations)
    engine.check(engine.child, "down", 0)
    engine.check(engine.child, "down", 10)
    assert engine.incidents(engine.child) == [], "the parent has not answered"
    engine.check(engine.router, "up", 11)
    assert engine.was_asked(engine.child) == at(11).replace(microsecond=250_000), "no wait more"
    engine.check(engine.child, "down", 12)
    (incident,) = engine.incidents(engine.child)
    assert incident.started_at == WHOLE, "the first failing check"


def test_a_monitor_without_parents_opens_at_once(engine):
    id = engine.monitor(confirmations=0)
    engine.check(id, "down", 0)
    assert len(engine.open(id)) == 1


def test_a_parent_that_does_not_answer_is_waited_for_as_long_as_a_check_takes(engine):
    engine.start(confirmations=0)
    engine.check(engine.child, "down", 0)
    engine.check(engine.child, "down", 40)
    assert engine.incidents(engine.child) == []
    engine.check(engine.child, "down", 41)  # its time limit of 30 s, and 10 s
    assert len(engine.open(engine.child)) == 1


def test_a_wait_that_was_interrupted_begins_again(engine):
    """Nothing was checked for minutes: the parent was not asked in the end, and nobody knows."""
    engine.start(confirmations=0, interval=3600)
    engine.check(engine.child, "down", 0)
    engine.check(engine.child, "down", 300)
    assert engine.incidents(engine.child) == []
    assert engine.was_asked(engine.router) == at(300)
    engine.check(engine.router, "down", 301)
    assert engine.is_behind(engine.child) == engine.router


@pytest.mark.parametrize("how", ["other parents", "deleted", "paused"])
def test_a_monitor_that_is_behind_no_other_any_more_shows_its_own_cause(engine, settings, how):
    engine.start()
    engine.checks(engine.router, [("down", 0), ("down", 10)])
    engine.check(engine.child, "down", 20)
    if how == "other parents":
        change(settings, engine.child, {"depends_on": ()}, at(30))
    elif how == "deleted":
        with writing() as session:
            recorder.delete_monitor(session, engine.router, at(30))
    else:
        change(settings, engine.child, {"pause": True}, at(30))
    state = engine.state(engine.child)
    assert state.behind_id is None
    assert (state.cause_code, state.cause) == ("connection_refused", "The server refused.")
    assert engine.open(engine.child) == []


def test_a_failure_that_goes_on_opens_its_own_incident_when_the_parent_is_good_again(engine):
    engine.start()
    engine.checks(engine.router, [("down", 0), ("down", 10)])
    engine.check(engine.child, "down", 20)
    engine.checks(engine.router, [("up", 60)])
    engine.check(engine.child, "down", 61)
    assert engine.is_behind(engine.child), "the recovery is not confirmed"
    assert engine.was_asked(engine.child) is None
    engine.check(engine.router, "up", 70)
    assert engine.was_asked(engine.child), "checked at once"
    engine.check(engine.child, "down", 71)
    assert engine.is_behind(engine.child) is None
    assert engine.incidents(engine.child) == [], "it is confirmed first"
    engine.check(engine.router, "up", 72)
    engine.check(engine.child, "down", 81)
    (incident,) = engine.incidents(engine.child)
    assert incident.started_at == WHOLE + timedelta(seconds=71), "it starts then"
    assert incident.cause_code == "connection_refused", "its own"


@pytest.mark.both_databases
def test_a_status_page_shows_an_outage_once_that_of_the_parent_is_confirmed(engine):
    engine.start()

    def shown():
        ids = select(MonitorStateRow.monitor_id).where(MonitorStateRow.monitor_id == engine.child)
        return counted_states(ids, at(100))[engine.child].state

    engine.checks(engine.child, [("up", -120), ("up", -60), ("down", 0)])
    engine.check(engine.router, "down", 1)
    assert (engine.is_behind(engine.child), shown()) == (engine.router, "operational")
    engine.check(engine.router, "down", 11)
    assert shown() == "outage"


@pytest.mark.both_databases
def test_what_recovers_with_the_parent_opens_nothing(engine):
    engine.start()
    engine.checks(engine.router, [("down", 0), ("down", 10)])
    engine.check(engine.child, "down", 20)
    engine.checks(engine.router, [("up", 60), ("up", 70)])
    engine.check(engine.child, "up", 71)
    assert engine.incidents(engine.child) == []
    state = engine.state(engine.child)
    assert (state.verdict, state.behind_id, state.cause_code) == ("up", None, None)
    (span,) = db.session.scalars(select(UnreachableRow))
    assert (span.started_at, span.ended_at) == (at(20), at(71))


def test_the_message_says_how_many_are_behind_the_parent_and_that_of_its_end_who(engine):
    engine.start(children=15)
    *failing, good = engine.children
    for id in failing[:-1]:
        engine.check(id, "down", 0)
    engine.checks(engine.router, [("down", 1)])
    engine.check(failing[-1], "up", 2)  # just before it breaks too
    engine.check(good, "up", 11)  # it is reached by another way
    engine.check(engine.router, "down", 11)
    engine.check(failing[-1], "down", 12)
    engine.checks(engine.router, [("up", 60), ("up", 70)])
    facts = db.session.scalars(select(DeliveryRow.facts).order_by(DeliveryRow.id)).all()
    context = MessageContext("http://w.test", str)
    opened, resolved = (compose(facts[number], context) for number in (0, -1))
    assert opened.title == "Down: Router, and 14 monitors behind it"
    affected, behind = (opened.data["incident"][name] for name in ("affected", "behind"))
    assert (affected, behind) == (failing[:-1], failing), "a webhook gets all that are named"
    names = ", ".join(f"Child {number}" for number in range(14))
    assert dict(resolved.details)["Were unreachable"] == names
    assert resolved.data["incident"]["affected"] == failing


@pytest.mark.both_databases
def test_what_is_behind_many_incidents_takes_no_more_statements_than_behind_one(engine):
    """A network that breaks opens hundreds at once, in the transaction of their results."""
    engine.start(confirmations=2)
    others = [engine.monitor(name=f"Switch {number}", confirmations=0) for number in range(2)]
    children = [engine.behind(switch) for switch in others]
    engine.check(children[1], "up", 2)  # it is reached by another way
    engine.checks(engine.router, [("down", 0), ("down", 10)])
    for switch in others:
        engine.check(switch, "down", 1)
    first, *more = engine.open(engine.router) + engine.open(others[0]) + engine.open(others[1])
    with queries() as of_first:
        assert ids_in(dependencies.unreachable_at_opening(db.session, [first])) == [[engine.child]]
    with queries() as of_all:
        named = ids_in(dependencies.unreachable_at_opening(db.session, [first, *more]))
    assert named == [[engine.child], children[:1], []]
    assert len(of_all) == len(of_first)


def ids_in(behind):
    return [[monitor.id for monitor in monitors] for monitors in behind.values()]


@pytest.mark.both_databases
def test_parents_of_parents_count_and_the_first_that_failed_is_named(engine):
    engine.start()
    grandchild = engine.behind(engine.child, name="Grandchild")
    engine.check(grandchild, "down", 0)
    assert engine.was_asked(engine.router)
    assert engine.was_asked(engine.child)
    engine.check(engine.child, "down", 1)
    assert engine.is_behind(grandchild) == engine.child
    engine.checks(engine.router, [("down", 2), ("down", 12)])
    assert engine.is_behind(engine.child) == engine.router
    engine.check(grandchild, "down", 20)
    assert engine.is_behind(grandchild) == engine.router
    assert not [id for id in (engine.child, grandchild) if engine.incidents(id)]
    (incident,) = engine.incidents(engine.router)
    (affected,) = dependencies.affected(db.session, [incident]).values()
    assert {monitor.id for monitor in affected} == {engine.child, grandchild}


@pytest.mark.parametrize("why", ["paused", "maintenance", "unknown"])
def test_parents_that_are_not_watched_hide_nothing(engine, settings, why):
    engine.start()
    engine.checks(engine.router, [("down", 0), ("down", 10)])
    engine.check(engine.child, "down", 20)
    assert engine.is_behind(engine.child)
    if why == "paused":
        change(settings, engine.router, {"pause": True}, at(30))
        assert engine.was_asked(engine.child), "checked at once"
    elif why == "maintenance":
        window = {"maintenance_start_at": at(30), "maintenance_end_at": at(3600)}
        change(settings, engine.router, window, at(30))
    else:
        engine.check(engine.router, "unknown", 30)
    engine.checks(engine.child, [("down", 31), ("down", 41)])
    (incident,) = engine.incidents(engine.child)
    assert incident.started_at == WHOLE + timedelta(seconds=31)


@pytest.mark.both_databases
def test_a_parent_that_is_deleted_hides_nothing_any_more(engine):
    engine.start()
    engine.checks(engine.router, [("down", 0), ("down", 10)])
    engine.check(engine.child, "down", 20)
    with writing() as session:
        recorder.delete_monitor(session, engine.router, at(30))
    assert engine.is_behind(engine.child) is None
    assert engine.was_asked(engine.child)
    assert dependencies.parents(db.session, [engine.child]) == {}
    engine.checks(engine.child, [("down", 31), ("down", 41)])
    assert len(engine.open(engine.child)) == 1


def test_an_incident_that_was_open_before_stays(engine):
    engine.start()
    engine.check(engine.child, "down", 0)
    engine.check(engine.router, "up", 1)
    engine.check(engine.child, "down", 10)
    engine.checks(engine.router, [("down", 20), ("down", 30)])
    engine.check(engine.child, "down", 60)
    assert len(engine.open(engine.child)) == 1
    assert engine.is_behind(engine.child) is None
    engine.checks(engine.child, [("up", 70), ("up", 80)])
    assert engine.open(engine.child) == []


@pytest.mark.both_databases
def test_a_heartbeat_that_is_missed_waits_for_what_it_is_reached_through(engine):
    engine.start()
    heartbeat = make_heartbeat(engine.core, name="Nightly").id
    with writing() as session:
        dependencies.replace_parents(session, heartbeat, [engine.router])

    def failing(seconds):
        result = Result(at(seconds), Verdict.DOWN, cause_code=Cause.HEARTBEAT_MISSED, cause="No.")
        recorder.record([(heartbeat, Outcome(result, conclusive=True))], at(seconds))

    def due():
        db.session.rollback()
        return db.session.get(HeartbeatStateRow, heartbeat).due_at

    failing(0)
    assert engine.incidents(heartbeat) == []
    assert due() > at(0), "its deadline is recorded again"
    engine.check(engine.router, "up", 1)
    assert due() == at(1), "as soon as the parent has answered"
    failing(1)
    (incident,) = engine.incidents(heartbeat)
    assert incident.started_at == WHOLE


def test_a_heartbeat_that_was_missed_hides_what_is_reached_through_it_and_is_not_waited_for(engine):
    engine.start()
    heartbeat = make_heartbeat(engine.core, name="Tunnel").id
    child = engine.behind(heartbeat, confirmations=0)
    engine.check(child, "down", 0)
    assert len(engine.open(child)) == 1, "nothing to wait for: it says so by itself"
    engine.checks(child, [("up", 1), ("up", 2)])
    missed = Result(at(3), Verdict.DOWN, cause_code=Cause.HEARTBEAT_MISSED, cause="No ping.")
    recorder.record([(heartbeat, Outcome(missed, conclusive=True))], at(3))
    engine.check(child, "down", 10)
    assert engine.open(child) == []
    assert engine.is_behind(child) == heartbeat


def test_results_of_one_batch_are_judged_with_the_parents_first(engine):
    engine.start(confirmations=0)
    outcomes = [
        (id, Outcome(Result(at(0), Verdict.DOWN, cause="Refused."), None))
        for id in (engine.child, engine.router)
    ]
    results = recorder.record(outcomes, at(1))
    assert [result.monitor_id for result in results] == [engine.child, engine.router]
    assert engine.is_behind(engine.child) == engine.router


def test_a_parent_that_fails_hides_none_whose_newest_check_could_not_tell(engine):
    engine.start(confirmations=2)
    for verdict, seconds in (("down", 0), ("unknown", 1)):
        engine.check(engine.child, verdict, seconds)
    engine.check(engine.router, "down", 2)
    assert engine.is_behind(engine.child) is None
    engine.check(engine.child, "down", 3)
    assert engine.is_behind(engine.child) == engine.router


# --- Any order of arrival

VERDICTS = st.one_of(st.just("down"), st.sampled_from(["up", "down", "degraded", "unknown"]))
# Whose result comes, how long after the one before, and what it says.
ARRIVALS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([1, 5, 10, 30, 60]), VERDICTS),
    min_size=5,
    max_size=40,
)


@given(ARRIVALS, st.lists(st.integers(0, 2), min_size=4, max_size=4))
@examples(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_incident_opens_while_a_parent_is_down_or_failing(engine, arrivals, confirmations):
    """0 is the router of 1 and 2, and 3 is reached through 1 and 2."""
    ids = [engine.monitor(confirmations=number) for number in confirmations]
    with writing() as session:
        for id, parents in ((ids[1], ids[:1]), (ids[2], ids[:1]), (ids[3], ids[1:3])):
            dependencies.replace_parents(session, id, parents)
    above = dependencies.above(db.session, ids)
    seconds, earlier = 0, set()
    for index, pause, verdict in arrivals:
        seconds += pause
        engine.check(ids[index], verdict, seconds)
        states, incidents = states_of(ids)
        for id in (id for number, id in incidents.items() if number not in earlier):
            assert not [parent for parent in above.get(id, ()) if is_failing(states[parent])]
        earlier |= incidents.keys()
        for state in states.values():
            assert state.behind is None or (state.verdict == "down" and not state.down_since)
        spans = select(UnreachableRow.monitor_id, UnreachableRow.parent_id).where(
            UnreachableRow.monitor_id.in_(ids), UnreachableRow.ended_at.is_(None)
        )
        behind = [(id, state.behind) for id, state in states.items() if state.behind]
        assert sorted(map(tuple, db.session.execute(spans))) == sorted(behind)


def states_of(ids):
    """The states of the monitors, and of all their incidents the monitor."""
    db.session.expire_all()
    incidents = db.session.scalars(select(IncidentRow).where(IncidentRow.monitor_id.in_(ids))).all()
    started = {row.monitor_id: row.started_at for row in incidents if row.ended_at is None}
    rows = db.session.scalars(
        select(MonitorStateRow).where(MonitorStateRow.monitor_id.in_(ids))
    ).all()
    states = {
        row.monitor_id: State(
            verdict=row.verdict and Verdict(row.verdict),
            failing_since=row.failing_since,
            recovering_since=row.recovering_since,
            down_since=started.get(row.monitor_id),
            behind=row.behind_id,
        )
        for row in rows
    }
    return states, {row.id: row.monitor_id for row in incidents}
