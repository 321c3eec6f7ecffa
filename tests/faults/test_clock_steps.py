"""The clock is set back or forward by hours: nothing waits until the old time comes again.

Such a clock leaves times in the future in the database, so the tests store those and check what is
done at the real time.
"""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from app.access import Access
from app.access.settings import Policies
from app.alerts import by_hand, lanes
from app.alerts.answers import Acceptance, Answer
from app.alerts.worker import Worker
from app.commands.doctor import examine
from app.db import db, rollups, shards, writing
from app.db.tables import (
    DeliveryRow,
    DomainRow,
    IncidentRow,
    MonitorStateRow,
    ResultRow,
    RollupRow,
    SignOfLifeRow,
)
from app.db.types import to_ms
from app.engine import checker as checker_module
from app.engine import domains, recorder
from app.engine.checker import Checker
from app.engine.housekeeping import Housekeeper
from app.engine.own_shards import OwnShards
from app.engine.schedule import Claim
from app.judge import verdict as judge
from app.records import DeliveryStatus, Event, LocationRule
from app.rules.time import iso
from app.stores import health
from tests.factories import make_incident, make_key, make_monitor, make_outcome, now
from tests.support.service import eventually

HOURS = timedelta(hours=6)


@pytest.fixture
def running(core, settings):
    """A checker, until the test ends."""
    stop = threading.Event()
    checker = Checker(core, settings)
    thread = threading.Thread(target=checker.run, args=[stop])
    yield thread.start
    stop.set()
    thread.join(60)
    assert not thread.is_alive()


def checked(core, id):
    def look():
        with core.app_context():
            state = db.session.get(MonitorStateRow, id)
            return state.verdict

    return look


# --- checks


@pytest.mark.both_databases
def test_what_a_clock_that_was_ahead_has_planned_done_or_leased_is_due_now(core, running):
    done = {"scheduled_at": now() + HOURS, "checked_at": now() + HOURS}
    ids = [make_monitor(core, assignment=done, interval=interval).id for interval in (60, 3600)]
    before = {"scheduled_at": now(), "checked_at": now() - timedelta(minutes=1)}
    repeat = {"unconfirmed_at": now() + HOURS, "failing_since": now(), "failures": 1}
    ids += [make_monitor(core, assignment=before, state=repeat, interval=3600).id]
    with core.app_context():
        OwnShards("checker:elsewhere:gone", "default").look(now() + HOURS, 0)
    running()
    for id in ids:
        eventually(checked(core, id), "it is checked")


def test_a_slot_and_a_lease_within_their_time_are_left_alone(core, running):
    with core.app_context(), writing() as session:
        shards.make(1)
        shard = [shard for shard in shards.read(1) if shard.number == 1]
        shards.take(session, 1, shard, "checker:elsewhere:alive", now() + timedelta(seconds=25))
    make_monitor(core)
    leased = make_monitor(core, id=65)
    planned = make_monitor(
        core, assignment={"scheduled_at": now(), "checked_at": now()}, interval=3600
    )
    late = make_monitor(core, assignment={"scheduled_at": now() + HOURS})
    running()
    eventually(checked(core, late.id), "the other is checked")
    assert not checked(core, planned.id)()
    with core.app_context():
        several = shards.count() > 1
    if several:
        assert not checked(core, leased.id)()


def test_a_checker_may_still_record_after_the_clock_was_set_back(core, settings):
    id = make_monitor(core).id
    with core.app_context():
        ahead, mine = now() + HOURS, OwnShards("checker:elsewhere:mine", "default")
        mine.look(ahead, 0)
        claim = Claim(id, shards.of(id), mine.tokens[shards.of(id)], 0)
        assert mine.look(now(), 2).lost == frozenset()
        [stands] = recorder.record_claimed([(claim, make_outcome(at=now()))], now())
        assert stands is not None


def test_a_checker_continues_after_the_clock_was_set_back(core, settings, monkeypatch):
    """What it keeps in memory was planned by the clock before."""
    id = make_monitor(core).id
    checker = Checker(core, settings)
    with core.app_context():
        real, ahead = checker_module._now, timedelta(0)
        monkeypatch.setattr("app.engine.checker._now", lambda: real() + ahead)
        ahead = HOURS
        checker._keep_shards(time.monotonic())
        [job] = checker._plan.begin_due(real() + ahead, 5)
        outcome = make_outcome(at=real() + ahead)
        [stands] = recorder.record_claimed([(job.claim(), outcome)], real() + ahead)
        checker._on_result(job.claim(), stands)
        ahead = timedelta(0)
        assert checker._plan.next() > now() + HOURS - timedelta(minutes=2)
        checker.checks._ahead += HOURS.total_seconds()
        checker._notice_step()
        assert [
            item.monitor_id for item in checker._plan.begin_due(now() + timedelta(seconds=1), 5)
        ] == [id]


# --- alerts


def worker(core, settings, answers=(), clock=lambda: datetime.now(UTC)):
    sent = []
    answers = iter(answers)

    def send(outgoing, _tools):
        sent.append(outgoing)
        return next(answers, Answer(Acceptance.DELIVERED, "200"))

    made = Worker(core, settings, clock=clock, senders={"webhook": send})
    return made, sent


def step_until(made, look):
    def step():
        made.take_turn(0.05)
        return look()

    return eventually(step, "the outbox is worked on")


def deliver(core, **columns):
    """A waiting message, with these columns changed."""
    with core.app_context(), writing() as session:
        [id] = by_hand.send_test_to([("webhook", "http://127.0.0.1:9/")], now())
        for name, value in columns.items():
            setattr(session.get(DeliveryRow, id), name, value)
        return id


def deliver_notice(core):
    """A waiting message that is retried, as a test is not."""
    id = deliver(core)
    with core.app_context(), writing() as session:
        row = session.get(DeliveryRow, id)
        extra = {"expires_at": "2027-01-01T00:00:00Z", "days_left": 7, "domain": "shop.example"}
        monitor = {"id": 1, "name": "Shop", "url": "https://shop.example"}
        row.event = Event.DOMAIN_EXPIRING
        row.facts = {**row.facts, "event": row.event, "monitor": monitor, "extra": extra}
    return id


def status(core, id):
    with core.app_context():
        return db.session.scalar(sa.select(DeliveryRow.status).where(DeliveryRow.id == id))


@pytest.mark.parametrize(
    "columns",
    [
        {"created_at": now() + HOURS, "next_attempt_at": now() + HOURS},
        {"lease_until": now() + HOURS, "lease_token": "x"},
        {
            "next_attempt_at": now() + HOURS,
            "attempts": [{"at": iso(now() + HOURS), "ok": False, "answer": "500"}],
        },
        {"next_attempt_at": now() + HOURS, "reason": lanes.Reason.BY_HAND},
        {"next_attempt_at": now() + 5 * HOURS},
    ],
    ids=["new", "leased", "to be retried", "retried by hand", "further than any pause"],
)
def test_a_message_delayed_by_a_clock_that_was_ahead_is_sent_now(core, settings, columns):
    id = deliver(core, **columns)
    made, _sent = worker(core, settings)
    step_until(made, lambda: status(core, id) == DeliveryStatus.DELIVERED)


def test_a_pause_that_a_service_asked_for_is_kept(core, settings):
    attempt = {"at": iso(now() - timedelta(minutes=1)), "ok": False, "answer": "429"}
    waits = deliver(core, next_attempt_at=now() + HOURS, attempts=[attempt])
    free = deliver(core, lane="another")
    made, _sent = worker(core, settings)
    step_until(made, lambda: status(core, free) == DeliveryStatus.DELIVERED)
    assert status(core, waits) == DeliveryStatus.PENDING


def test_a_worker_continues_after_the_clock_was_set_back(core, settings):
    """What it remembers of lanes and of its own rounds is of the later time."""
    clock = {"now": now() + HOURS}
    slow = Answer(Acceptance.RETRY, "503", retry_after=3600.0)
    made, sent = worker(core, settings, [slow], clock=lambda: clock["now"])
    first = deliver_notice(core)
    step_until(made, lambda: sent and made.idle)
    assert status(core, first) == DeliveryStatus.PENDING
    clock["now"] -= HOURS
    step_until(made, lambda: status(core, first) == DeliveryStatus.DELIVERED)
    assert len(sent) == 2


def test_a_reminder_that_was_sent_in_the_future_does_not_put_off_the_next(core):
    monitor = make_monitor(core, remind_after=60, alerts=[["webhook", "http://127.0.0.1:9/"]])
    make_incident(core, monitor, reminded_at=now() + HOURS)
    with core.app_context():
        assert recorder.remind(now()) == 1
        assert recorder.remind(now()) == 0
        assert db.session.scalar(sa.select(IncidentRow.reminded_at)) <= now() + timedelta(seconds=1)


# --- what is reported


def heartbeat(core, at, checked_at=None, name="checker:gone:1"):
    with core.app_context(), writing() as session:
        session.merge(SignOfLifeRow(name=name, at=at, last_check_at=checked_at))


def faults(core):
    with core.app_context():
        return health.health(now()).faults


@pytest.mark.parametrize("step", [HOURS, -HOURS], ids=["back", "forward"])
def test_readyz_and_doctor_tell_that_no_checker_runs_whichever_way_the_clock_went(
    core, settings, step
):
    heartbeat(core, now() + step, now() + step)
    assert health.CHECKER_SILENT in faults(core)
    sentences = [
        finding.sentence for finding in examine(core, settings) if finding.label == "checker"
    ]
    assert [sentence.partition(".")[0] for sentence in sentences] == ["None is running"]
    heartbeat(core, now(), now(), name="checker:here:2")
    assert faults(core) == ()


def test_late_checks_are_reported_even_if_the_last_one_is_in_the_future(core):
    make_monitor(core, assignment={"scheduled_at": now() - timedelta(minutes=10)})
    heartbeat(core, now(), now() + HOURS)
    heartbeat(core, now(), now() - timedelta(minutes=10), name="checker:here:2")
    assert health.CHECKS_LATE in faults(core)


def test_a_heartbeat_from_the_future_has_no_age_and_doctor_reports_it(core, settings):
    def fault_of_clock():
        return [
            finding.is_problem for finding in examine(core, settings) if finding.label == "clock"
        ]

    heartbeat(core, now() + HOURS, now() + HOURS)
    assert fault_of_clock() == [True]
    with core.app_context():
        report = health.health(now())
        assert (report.heartbeat_age, report.last_check_age) == (None, None)
        with writing() as session:
            session.execute(sa.delete(SignOfLifeRow))
    assert fault_of_clock() == [False]


# --- the rest of what is stored


def test_a_domain_that_was_asked_in_the_future_is_asked_now(core):
    make_monitor(core, state={"domain": "example.org"})
    with core.app_context():
        with writing() as session:
            session.add(DomainRow(domain="example.org", asked_at=now() + HOURS))
        assert domains.claim_domain(now()) == "example.org"
        assert domains.claim_domain(now()) is None


def test_a_last_use_in_the_future_is_replaced_by_the_present_one(app):
    secret = make_key(app)
    access = app.extensions["wakeful.access"]
    with app.app_context():
        real = access.clock
        access.clock = lambda: now() + HOURS
        access.keys.authenticate(secret)
        access.clock = real
        access.keys.authenticate(secret)
        [key] = access.keys.all()
    assert key.last_used_at <= now() + timedelta(seconds=1)


def test_counters_and_heartbeats_from_the_future_are_deleted(core, settings):
    heartbeat(core, now() + 10 * HOURS)
    access_counts = sa.text("SELECT count(*) FROM counters")
    with core.app_context():
        Access(clock=lambda: now() + 10 * HOURS).counters.count("login:account:x", 300)
        assert db.session.scalar(access_counts) == 1
        Housekeeper(core, settings, Policies(settings)).delete_old(now())
        assert db.session.scalar(access_counts) == 0
        assert db.session.scalar(sa.select(sa.func.count()).select_from(SignOfLifeRow)) == 0


def test_a_location_whose_results_are_of_the_future_has_no_vote():
    votes = [judge.Vote(2, now() + HOURS, judge.Verdict.DOWN)]
    counted = judge.valid_votes(votes, now(), timedelta(minutes=3), maintenance=True)
    assert judge.verdict_of_votes(counted, LocationRule.ANY) is judge.Verdict.UNKNOWN


def test_hours_summed_by_a_clock_that_was_ahead_are_summed_again_after_their_end(core):
    hour = timedelta(hours=1)
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    id = make_monitor(core).id

    def result(at):
        with writing() as session:
            session.add(
                ResultRow(
                    monitor_id=id,
                    at=to_ms(at),
                    location_id=1,
                    verdict=judge.Verdict.UP,
                    maintenance=False,
                    covers_s=60,
                )
            )

    def hours():
        starts = sa.select(RollupRow.start).where(RollupRow.period == 3600)
        return set(db.session.scalars(starts))

    with core.app_context():
        result(noon - 2 * hour)
        rollups.roll(noon + 6 * hour)  # the clock is six hours ahead
        rollups.roll(noon)  # and is set back
        assert max(hours(), default=0) < int(noon.timestamp())
        result(noon + hour)
        rollups.roll(noon + 3 * hour)
        assert int((noon + hour).timestamp()) in hours()
