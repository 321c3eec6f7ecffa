"""Good checks that change nothing: one row each, and no state is read or written for them."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, event, select

from app.db import assignments, db, journal, latest, shards, writing
from app.db.tables import (
    AssignmentRow,
    ChangeRow,
    IncidentRow,
    MaintenanceWindowRow,
    MonitorRow,
    MonitorStateRow,
    ResultRow,
    ShardRow,
)
from app.engine import recorder
from app.engine.checker import _standing
from app.engine.recorder.steady import steady_as_read
from app.engine.schedule import Claim, last_scheduled, next_check
from app.records import Verdict
from app.stores.local import LocalStore
from tests.factories import make_incident, make_monitor, make_outcome

ON_POSTGRESQL = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
START = datetime(2026, 11, 21, 8, 0, 0, 250_000, UTC)


def at(seconds):
    return START + timedelta(seconds=seconds)


@pytest.fixture
def owner(core):
    """The owner of a monitor's shard; times are seconds after START."""
    with core.app_context():
        yield Owner(core)


class Owner:
    def __init__(self, core):
        self.core = core
        self.steady = recorder.Steady("default")
        self.id = make_monitor(core, created_at=START, alerts=[["email", "a@example.test"]]).id
        with writing():
            shards.make(1)
        self.check("up", 0)

    def restart(self):
        """Another process takes over, which knows what it reads."""
        self.steady = recorder.Steady("default")
        self.read()

    def read(self):
        self.steady.follow_changes()
        claim = self.claim()
        for assignment in assignments.of_monitors(1, [self.id]):
            self.steady.remember(self.id, steady_as_read(claim, _standing(assignment), assignment))

    def claim(self):
        db.session.rollback()
        number = shards.of(self.id)
        token = db.session.get(ShardRow, (1, number)).token
        generation = db.session.get(AssignmentRow, (self.id, 1)).generation
        db.session.rollback()
        return Claim(self.id, number, token, generation)

    def check(self, verdict, seconds, **fields):
        """A check that is recorded with its monitor's rows; its standing."""
        late = self.steady.write(at(seconds))
        outcomes = [*late, (self.claim(), self.outcome(verdict, seconds, **fields))]
        return recorder.record_claimed(outcomes, at(seconds), steady=self.steady)[-1]

    def outcome(self, verdict, seconds, **fields):
        return make_outcome(verdict, at(seconds), monitor_id=self.id, **fields)

    def take(self, seconds, verdict="up", claim=None, **fields):
        return self.steady.add_if_steady(
            claim or self.claim(), self.outcome(verdict, seconds, **fields)
        )

    def record(self, late, seconds):
        return recorder.record_claimed(late, at(seconds), steady=self.steady)

    def results(self):
        db.session.rollback()
        rows = db.session.execute(select(ResultRow.at, ResultRow.maintenance).order_by("at"))
        return [(row.at / 1000 - START.timestamp(), row.maintenance) for row in rows]

    def times(self):
        return [seconds for seconds, _maintenance in self.results()]

    def state(self):
        db.session.rollback()
        return db.session.get(MonitorStateRow, self.id)

    def assignment(self):
        db.session.rollback()
        return db.session.get(AssignmentRow, (self.id, 1))


@pytest.mark.both_databases
def test_a_good_check_writes_its_result_and_nothing_else(owner):
    standing = owner.take(60, evidence=None)
    assert standing.scheduled_at == last_scheduled(owner.id, 60, at(60))
    assert owner.times() == [0], "it waits for others"
    statements = []
    event.listen(db.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    assert owner.steady.write(at(61)) == []
    assert owner.times() == [0, 60]
    written = [text for text in statements if text.startswith(("UPDATE", "INSERT", "DELETE"))]
    assert [text.split()[2] for text in written] == ["results"]
    assert not any("monitor_states" in text or " monitors " in text for text in statements)


def test_what_people_see_is_as_new_as_the_results(owner):
    owner.take(60, response_time=120)
    owner.steady.write(at(61))
    assert owner.state().checked_at == START, "the row follows later"
    shown = LocalStore(owner.core.extensions["wakeful.settings"]).monitors.get(owner.id)
    assert (shown.last_checked_at, shown.response_time) == (at(60), 120)
    assert shown.next_check_at == next_check(owner.id, 60, at(60))


@pytest.mark.both_databases
def test_states_and_slots_are_stored_when_the_checker_ends(owner):
    owner.take(60, response_time=120)
    owner.steady.write(at(61))
    owner.steady.save(all=True)
    state, assignment = owner.state(), owner.assignment()
    assert (state.checked_at, state.response_time) == (at(60), 120)
    assert (assignment.checked_at, assignment.scheduled_at) == (
        at(60),
        last_scheduled(owner.id, 60, at(60)),
    )


def test_the_evidence_of_a_good_check_is_stored_for_comparison_with_the_next_failure(owner):
    owner.take(60, evidence={"status_line": "HTTP/1.1 200 OK"})
    owner.steady.write(at(61))
    owner.steady.save()
    for seconds in (120, 130, 140):
        owner.check("down", seconds)
    incident = db.session.scalar(select(IncidentRow))
    assert incident.evidence["last_good"]["status_line"] == "HTTP/1.1 200 OK"


def test_a_failure_of_another_url_is_not_compared_with_a_good_check_of_the_old_one(owner):
    owner.take(60, evidence={"status_line": "HTTP/1.1 200 OK"})
    owner.steady.write(at(61))
    owner.steady.save()
    store = LocalStore(owner.core.extensions["wakeful.settings"])
    store.now = lambda: at(90)
    store.monitors.update(owner.id, {"url": "https://other.example.test/"})
    for seconds in (120, 130, 140):
        owner.check("down", seconds)
    incident = db.session.scalar(select(IncidentRow))
    assert incident.evidence["last_good"] is None


def test_a_new_owner_does_not_repeat_a_slot_that_the_assignment_does_not_know_of(owner):
    done = owner.take(60).scheduled_at
    owner.steady.write(at(61))
    (assignment,) = assignments.of_monitors(1, [owner.id])
    assert assignment.scheduled_at < done
    assert _standing(assignment).scheduled_at == done
    assert _standing(assignment).checked_at == at(60)


def test_a_check_that_came_back_after_it_was_given_up_is_recorded_once(owner):
    claim = owner.claim()
    first = owner.take(60, claim=claim)
    assert owner.take(60.5, claim=claim).scheduled_at == first.scheduled_at
    owner.steady.write(at(61))
    assert owner.times() == [0, 60]


@pytest.mark.parametrize(
    "outcome",
    [
        {"verdict": "down"},
        {"verdict": "degraded"},
        {"verdict": "unknown"},
        {"ssl_fingerprint": "ab" * 32, "ssl_expires_at": at(9e6), "ssl_issued_at": START},
        {"warnings": ("tls_expiring",)},
    ],
    ids=["down", "degraded", "unknown", "new certificate", "certificate expires"],
)
def test_what_may_change_something_is_recorded_with_the_rows(owner, outcome):
    assert owner.take(60, **outcome) is None
    assert owner.take(120) is None, "nor is what follows it, before it is recorded"


def test_a_good_check_after_a_gap_changes_nothing_either(owner):
    assert owner.take(3600) is not None
    owner.steady.write(at(3601))
    for seconds in (3660, 3670, 3680):
        owner.check("down", seconds)
    incident = db.session.scalar(select(IncidentRow))
    assert incident.started_at == at(3660).replace(microsecond=0)
    assert not incident.unwatched


def test_after_a_restart_the_first_good_check_reads_and_writes_no_state(owner):
    done = owner.take(60).scheduled_at
    owner.steady.write(at(61))  # the state row does not follow: this process is killed
    owner.restart()
    assert owner.take(60.5).scheduled_at == done, "this check was made before"
    assert owner.take(120, response_time=80) is not None
    statements = []
    event.listen(db.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    assert owner.steady.write(at(121)) == []
    assert not any("monitor_states" in text or " monitors " in text for text in statements)
    assert owner.times() == [0, 60, 120]
    owner.steady.save(all=True)
    assert (owner.state().checked_at, owner.state().response_time) == (at(120), 80)
    assert owner.state().status_since == START


def test_after_a_restart_a_failing_first_check_begins_an_incident(owner):
    owner.restart()
    assert owner.take(60, "down") is None
    for seconds in (60, 70, 80):
        owner.check("down", seconds)
    incident = db.session.scalar(select(IncidentRow))
    assert incident.started_at == at(60).replace(microsecond=0)


def test_after_a_long_stop_an_open_incident_notes_that_nobody_watched(owner):
    for seconds in (60, 70, 80):
        owner.check("down", seconds)
    owner.restart()
    assert owner.take(7200) is None
    owner.check("up", 7200)
    gap = {"from": "2026-11-21T08:01:20Z", "to": "2026-11-21T10:00:00Z"}
    assert db.session.scalar(select(IncidentRow)).unwatched == [gap]


def test_a_change_that_was_read_gives_no_check_back(owner):
    with writing() as session:
        monitor = session.get(MonitorRow, owner.id)
        monitor.maintenance_start_at, monitor.maintenance_end_at = at(50), at(90)
        recorder.apply_changes(
            session, monitor, {"maintenance_start_at", "maintenance_end_at"}, at(0)
        )
    owner.read()
    assert owner.take(60) is not None
    assert owner.steady.write(at(61)) == []
    assert owner.results() == [(0, False), (60, True)]


def test_only_monitors_whose_good_check_changes_nothing_are_remembered(core):
    """What the rows say of each of the others is the one thing that it differs in."""
    good = {"verdict": "up", "checked_at": START, "status_since": START}
    done = {"scheduled_at": START, "checked_at": START, "verdict": Verdict.UP}
    with core.app_context():
        with writing():
            oslo = journal.place_id("oslo")
        steady = make_monitor(core, state=good, assignment=done).id
        others = {
            "never checked": make_monitor(core),
            "down": make_monitor(core, state=good | {"verdict": "down"}, assignment=done),
            "slow": make_monitor(core, state=good | {"verdict": "degraded"}, assignment=done),
            "confirming": make_monitor(
                core, state=good | {"failing_since": START}, assignment=done
            ),
            "to be repeated": make_monitor(
                core, state=good | {"unconfirmed_at": START}, assignment=done
            ),
            "due at once": make_monitor(core, state=good, assignment=done | {"scheduled_at": None}),
            "blind": make_monitor(core, state=good, assignment=done | {"blind": True}),
            "unknown in its place, from when it had others": make_monitor(
                core, state=good, assignment=done | {"verdict": Verdict.UNKNOWN}
            ),
            "failed in its place, in maintenance": make_monitor(
                core, state=good, assignment=done | {"failures": 1}
            ),
            "in two places": make_monitor(core, state=good, assignment=done, places=(1, oslo)),
            "reported by a person": make_monitor(core, state=good, assignment=done),
        }
        make_incident(core, others["reported by a person"], by_hand=True)
        make_incident(core, make_monitor(core, state=good, assignment=done), ended_at=START)
        names = {row.id: name for name, row in others.items()} | {steady: "steady"}
        remembered = {
            names.get(assignment.spec.monitor_id, "after an incident")
            for assignment in assignments.of_place(1)
            if steady_as_read(Claim(assignment.spec.monitor_id), _standing(assignment), assignment)
        }
    assert remembered == {"steady", "after an incident"}


def test_a_failure_after_hours_of_good_checks_finds_no_gap(owner):
    for minute in range(1, 30):
        assert owner.take(minute * 60) is not None
        owner.steady.write(at(minute * 60 + 1))
    assert owner.state().checked_at == START, "this test is about a row that lags behind"
    for seconds in (1800, 1810, 1820):
        owner.check("down", seconds)
    incident = db.session.scalar(select(IncidentRow))
    assert incident.started_at == at(1800).replace(microsecond=0)
    assert not incident.unwatched


@pytest.mark.both_databases
def test_good_checks_that_wait_and_a_failing_one_after_them_are_all_recorded(owner):
    """This happens after the database was away: of two results at one generation, the second would
    be dropped.
    """
    claim = owner.claim()
    assert owner.take(60, claim=claim)
    assert owner.take(120, claim=claim)
    assert owner.take(180, "down", claim=claim) is None
    assert owner.take(240, claim=claim) is None, "it follows the failing one"
    assert owner.steady.write(at(181)) == []
    [stands] = owner.record([(claim, owner.outcome("down", 180))], 181)
    assert stands is not None
    assert owner.times() == [0, 60, 120, 180]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_monitor_that_was_paused_meanwhile_is_not_recorded(owner, restarted):
    """This holds even if a new process has read it, and this is its first check."""
    if restarted:
        owner.restart()
    owner.take(60)
    with writing() as session:
        recorder.pause(session, owner.id, at(60.5))
    late = owner.steady.write(at(61))
    assert owner.record(late, 61) == [None]
    assert owner.times() == [0]


def test_a_check_is_not_lost_because_its_monitor_was_renamed(owner):
    owner.take(60)
    with writing() as session:
        monitor = session.get(MonitorRow, owner.id)
        monitor.name = "Another"
        recorder.apply_changes(session, monitor, {"name"}, at(0))
    late = owner.steady.write(at(61))
    assert [standing is not None for standing in owner.record(late, 61)] == [True]
    assert owner.times() == [0, 60]
    assert owner.take(120) is not None, "it is steady again"


def test_a_check_on_request_in_another_process_is_noticed(owner):
    recorder.record([(owner.id, owner.outcome("degraded", 30))], at(30))
    owner.take(60)
    (late,) = owner.steady.write(at(61))
    owner.record([late], 61)
    assert owner.state().verdict == "up"
    assert owner.state().status_since == at(60)


def test_what_a_former_owner_of_the_shard_brings_is_dropped(owner):
    owner.take(60)
    with writing() as session:
        row = session.get(ShardRow, (1, shards.of(owner.id)))
        row.token += 1
    late = owner.steady.write(at(61))
    owner.steady.save(all=True)
    assert owner.record(late, 61) == [None]
    assert owner.times() == [0]
    assert owner.state().checked_at == START


def test_nothing_remembered_survives_the_restore_of_a_backup(owner):
    """The numbers of the change feed begin again, so what was remembered cannot be compared."""
    with writing() as session:
        recorder.apply_changes(session, session.get(MonitorRow, owner.id), {"name"}, at(0))
    owner.take(20)
    owner.steady.write(at(21))  # reads the change
    owner.check("up", 30)
    owner.take(60)
    with writing() as session:
        session.execute(delete(ChangeRow))
    assert len(owner.steady.write(at(61))) == 1
    assert 60 not in owner.times()


def test_maintenance_that_began_after_the_last_check_counts(owner):
    with writing() as session:
        window = {"start_at": at(50), "end_at": at(90), "created_at": START, "updated_at": START}
        session.add(MaintenanceWindowRow(name="Now", repeat="none", zone="UTC", tags="", **window))
    owner.take(60)
    owner.take(120)
    owner.steady.write(at(121))
    assert owner.results() == [(0, False), (60, True), (120, False)]


@pytest.mark.both_databases
def test_a_list_by_response_time_goes_by_the_newest_results(owner):
    slow = owner.id
    owner.take(60, response_time=900)
    owner.steady.write(at(61))
    other = make_monitor(owner.core, created_at=START).id
    with writing() as session:
        session.get(MonitorStateRow, other).response_time = 500
    db.session.rollback()
    ids = db.session.scalars(
        select(MonitorStateRow.monitor_id).order_by(latest.response_time()),
        {"until": latest.last_moment(at(62))},
    )
    assert list(ids) == [other, slow]


@ON_POSTGRESQL
def test_a_state_that_somebody_has_locked_is_saved_the_next_time(owner):
    """Sums lock the states of many monitors in turn, and checks must not wait for them."""
    owner.take(60)
    owner.steady.write(at(61))
    owner.steady._save_at = float("-inf")
    lock = select(MonitorStateRow.checked_at).with_for_update()
    with db.engine.connect() as other:
        other.execute(lock)
        owner.steady.save()
        other.rollback()
    assert owner.state().checked_at == START
    owner.steady._save_at = float("-inf")
    owner.steady.save()
    assert owner.state().checked_at == at(60)
