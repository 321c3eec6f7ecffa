"""The recorder on the pings of a heartbeat, and on deadlines that pass (decision 18)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from app.db import db, liveness, writing
from app.db.tables import (
    DeliveryRow,
    HeartbeatStateRow,
    IncidentRow,
    MonitorRow,
    MonitorStateRow,
    PingRow,
    ResultRow,
)
from app.engine import recorder
from app.engine.deadlines import DeadlineWatch
from app.engine.recorder import sign_web
from app.records import ArrivedPing, PingKind
from tests.factories import make_heartbeat


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-05-01T{clock}").replace(tzinfo=UTC)


class Job:
    """A heartbeat, to which things happen at times of one day."""

    def __init__(self, app, **fields):
        fields = {
            "alerts": [["webhook", "https://hooks.example.com/a"]],
            "created_at": at("00:00"),
        } | fields
        self.id = make_heartbeat(app, **fields).id

    def ping(self, clock, kind="success", **more):
        recorder.record_pings(
            [(self.id, ArrivedPing(at(clock), PingKind(kind), **more))], at(clock)
        )

    def until(self, clock, **more):
        recorder.record_deadlines(at(clock), **more)

    @property
    def state(self):
        return db.session.get(MonitorStateRow, self.id, populate_existing=True)

    @property
    def heartbeat(self):
        return db.session.get(HeartbeatStateRow, self.id, populate_existing=True)

    def incidents(self):
        rows = select(IncidentRow).where(IncidentRow.monitor_id == self.id).order_by(IncidentRow.id)
        return [
            (row.cause_code, row.started_at, row.ended_at)
            for row in db.session.scalars(rows.execution_options(populate_existing=True))
        ]

    def change(self, clock, **fields):
        with writing() as session:
            row = session.get(MonitorRow, self.id)
            for name, value in fields.items():
                setattr(row, name, value)
            recorder.apply_changes(session, row, set(fields), at(clock))

    def pause(self, clock):
        with writing() as session:
            recorder.pause(session, self.id, at(clock))

    def resume(self, clock):
        with writing() as session:
            recorder.resume(session, self.id, at(clock))


@pytest.fixture
def job(core):
    with core.app_context():
        yield Job(core)


def events():
    return list(db.session.scalars(select(DeliveryRow.event).order_by(DeliveryRow.id)))


@pytest.mark.both_databases
def test_a_missed_deadline_opens_an_incident_from_the_deadline_and_one_ping_ends_it(job):
    job.ping("03:00")
    assert (job.state.verdict, job.heartbeat.expected_at) == ("up", at("04:00"))
    job.until("04:04:59")
    assert job.incidents() == []
    job.until("04:05")
    assert job.incidents() == [("heartbeat_missed", at("04:00"), None)]
    assert (job.state.verdict, job.state.cause) == (
        "down",
        "No ping since 03:00; one was due by 04:05.",
    )
    job.ping("04:20")
    assert job.incidents() == [("heartbeat_missed", at("04:00"), at("04:20"))]
    assert events() == ["incident.opened", "incident.resolved"]
    assert job.state.cause is None


def test_a_failure_opens_an_incident_at_once_and_keeps_what_it_wrote(job):
    job.ping("03:00", "fail", exit_status=3, body="disk full")
    assert job.incidents() == [("heartbeat_failed", at("03:00"), None)]
    assert job.state.cause == "It reported failure: exit status 3."
    incident = db.session.scalars(select(IncidentRow)).one()
    assert incident.evidence["failing"]["body"] == "disk full"
    assert job.heartbeat.expected_at == at("04:00"), "fail sets the next deadline too"


def test_a_ping_after_the_deadline_ends_what_nobody_had_noticed_yet(job):
    job.ping("03:00")
    job.ping("04:30")
    assert job.incidents() == [("heartbeat_missed", at("04:00"), at("04:30"))]


def test_a_run_is_timed_and_a_long_run_is_down(core):
    with core.app_context():
        job = Job(core, max_run=600)
        job.ping("03:00", "start")
        assert job.state.verdict is None, "pending until the first success or failure"
        job.ping("03:00:30")
        assert job.state.response_time == 30_000
        job.ping("03:30", "start", rid="00000000-0000-0000-0000-000000000001")
        job.until("03:40")
        assert job.incidents() == [("heartbeat_overran", at("03:40"), None)]
        job.ping("03:50", rid="00000000-0000-0000-0000-000000000001")
        assert job.incidents() == [("heartbeat_overran", at("03:40"), at("03:50"))]
        pings = db.session.execute(select(PingRow.kind, PingRow.duration).order_by(PingRow.id))
        assert list(pings) == [
            ("start", None), ("success", 30_000), ("start", None), ("success", 1_200_000),
        ]  # fmt: skip


def test_between_pings_a_result_of_each_interval_keeps_the_time_watched(job):
    job.change("00:00", period=86_400)
    job.ping("03:00")
    for hour in range(4, 9):
        job.until(f"0{hour}:00")
    rows = db.session.execute(select(ResultRow.verdict, ResultRow.covers_s)).all()
    assert len(rows) == 6
    assert {covers for _verdict, covers in rows} == {3600 + 30 + 60}
    assert job.state.verdict == "up"


@pytest.mark.both_databases
def test_pings_of_the_same_moment_are_all_kept_in_one_transaction(job):
    pings = [(job.id, ArrivedPing(at("00:00"), PingKind.SUCCESS)) for _ping in range(60)]
    recorder.record_pings(pings, at("00:00:01"))
    assert len(db.session.scalars(select(PingRow.id)).all()) == 60
    assert job.state.verdict == "up"


@pytest.mark.both_databases
def test_of_one_heartbeat_the_newest_pings_are_kept_and_fewer_bodies(core, monkeypatch):
    monkeypatch.setattr("app.engine.recorder.pings.PINGS_KEPT", 3)
    monkeypatch.setattr("app.engine.recorder.pings.BODIES_KEPT", 2)
    with core.app_context():
        job, other = Job(core), Job(core)
        other.ping("03:00", body="other")
        for minute in range(5):
            job.ping(f"03:0{minute}", body=f"run {minute}")
        pings = db.session.execute(select(PingRow.at, PingRow.body).order_by(PingRow.id)).all()
        assert [tuple(ping) for ping in pings] == [
            (at("03:00"), "other"),
            (at("03:02"), None), (at("03:03"), "run 3"), (at("03:04"), "run 4"),
        ]  # fmt: skip
        results = select(ResultRow.at).where(ResultRow.monitor_id == job.id)
        assert len(db.session.scalars(results).all()) == 5, "what they meant is kept"


def test_a_paused_heartbeat_keeps_pings_that_change_nothing_and_resumes_pending(job):
    job.ping("03:00", "fail")
    job.pause("03:10")
    assert job.incidents() == [("heartbeat_failed", at("03:00"), at("03:10"))]
    job.ping("03:20", "fail")
    job.until("09:00")
    assert len(job.incidents()) == 1
    assert job.heartbeat.last_ping_at == at("03:20")
    job.resume("10:00")
    assert (job.state.verdict, job.heartbeat.expected_at) == (None, at("11:00"))
    job.until("11:05")
    assert job.incidents()[1] == ("heartbeat_missed", at("11:00"), None)


def test_in_maintenance_nothing_opens(core):
    with core.app_context():
        window = {"maintenance_start_at": at("03:30"), "maintenance_end_at": at("05:30")}
        job = Job(core, **window)
        job.ping("03:00")
        job.until("04:05")
        job.ping("04:10", "fail")
        assert job.incidents() == []
        job.until("05:30")
        assert job.incidents() == [("heartbeat_failed", at("05:30"), None)]


@pytest.mark.both_databases
def test_without_a_web_process_nothing_is_missed_and_the_time_is_added(job):
    clock = [at("03:00")]
    watch = DeadlineWatch(lambda: clock[0])

    def look(moment):
        clock[0] = at(moment)
        watch.look()

    sign_web(at("03:00"))
    job.ping("03:00")
    look("03:00:10")
    assert job.state.verdict == "up"
    look("03:01")
    assert (job.state.verdict, job.state.cause_code) == ("unknown", "not_listening")
    look("04:30")
    assert job.incidents() == [], "no deadline passes while no ping can arrive"
    sign_web(at("04:31"))
    look("04:31")
    assert job.heartbeat.expected_at == at("05:31")
    assert job.state.verdict == "unknown", "its ping may have been lost"
    look("05:35")  # still nobody: signs are missing again
    sign_web(at("05:35"))
    assert db.session.scalar(select(liveness.SignOfLifeRow.at)) == at("05:35")
    sign_web(at("05:35:10"))
    job.ping("05:35:10")
    assert (job.state.verdict, job.incidents()) == ("up", [])


def test_a_ping_that_waited_while_the_machine_was_suspended_is_not_late(job):
    sign_web(at("03:00"))
    job.ping("03:00")
    job.ping("05:00")  # read before the web process has signed again
    assert (job.state.verdict, job.incidents()) == ("up", [])
    assert db.session.scalar(select(liveness.SignOfLifeRow.at)) == at("05:00")


def test_a_short_absence_leaves_the_status_and_the_deadline_moves(job):
    sign_web(at("03:00"))
    job.ping("03:00")
    sign_web(at("03:10"))
    job.until("03:10")
    assert (job.state.verdict, job.heartbeat.expected_at) == ("up", at("04:10"))


def test_a_change_of_the_period_counts_from_now_on(job):
    job.ping("03:00")
    job.change("03:30", period=600, grace=60)
    assert job.heartbeat.expected_at == at("03:30")
    job.until("03:31")
    assert job.incidents() == [("heartbeat_missed", at("03:30"), None)]


def test_a_run_longer_than_slow_after_is_degraded_until_the_next_one(core):
    with core.app_context():
        job = Job(core, slow_after=1000, slow_alert_after=60, period=600)
        for clock in ("03:00", "03:10"):
            job.ping(clock, took=4000)
        assert (job.state.verdict, job.state.response_time) == ("degraded", 4000)
        assert job.state.cause == "The run took 4 s; above 1 s is slow."
        job.until("03:20")
        assert (job.state.verdict, job.state.response_time) == ("degraded", 4000), "said again"
        assert job.incidents() == []
        job.ping("03:20:01", took=5000)
        assert job.incidents() == [("slow_response", at("03:00"), None)]
        for clock in ("03:30", "03:40", "03:50", "04:00"):
            job.ping(clock, took=100)
        assert job.state.verdict == "up"
        assert job.incidents() == [("slow_response", at("03:00"), at("04:00"))]
