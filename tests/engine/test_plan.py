"""The schedule in memory, with a clock that the test sets."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.engine.plan import LOST_AFTER, Job, Plan, end_of_round
from app.engine.schedule import Standing, due, last_scheduled, next_check
from app.records import CheckSpec

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
CONFIRM = timedelta(seconds=10)
SECOND = timedelta(seconds=1)
HOURS = timedelta(hours=6)


def at(seconds):
    return START + timedelta(seconds=seconds)


def done(id, interval=60, now=START, **fields):
    """A monitor whose last scheduled check before ``now`` was made."""
    scheduled = last_scheduled(id, interval, now)
    return Standing(
        **{"generation": 1, "scheduled_at": scheduled, "checked_at": scheduled} | fields
    )


def job(id, standing=None, interval=60, token=1, **spec):
    spec = CheckSpec("http://127.0.0.1/", monitor_id=id, **spec)
    return Job(id, spec, interval, id % 64, token, standing or done(id, interval))


@pytest.fixture
def plan():
    return Plan(CONFIRM)


def taken(plan, now, limit=100):
    return [due.monitor_id for due in plan.begin_due(now, limit)]


# --- when a check is due


@pytest.mark.parametrize("interval", [60, 3600])
def test_after_a_slot_comes_the_next_one(interval):
    standing = done(7, interval)
    moment = due(7, interval, standing, START, CONFIRM)
    assert moment == next_check(7, interval, standing.scheduled_at)
    late = due(7, interval, standing, START + 5 * HOURS, CONFIRM)
    assert late == moment, "overdue, since then"


def test_a_monitor_without_a_slot_is_due_at_once():
    assert due(7, 60, Standing(generation=1), START, CONFIRM) == START


@pytest.mark.parametrize(
    ("last", "repeats"), [(-1, True), (0.25, True), (4.9, True), (5.1, False), (7, False)]
)
def test_an_unconfirmed_result_is_repeated_soon_by_a_place_that_has_not_done_so(last, repeats):
    standing = done(7, 3600, checked_at=at(last), unconfirmed_at=START)
    moment = due(7, 3600, standing, at(8), CONFIRM)
    assert (moment == START + CONFIRM) == repeats


def test_a_check_that_somebody_asks_for_is_due_at_once_and_once():
    standing = done(7, 3600, checked_at=at(-60), asked_at=START)
    assert due(7, 3600, standing, at(1), CONFIRM) == START
    assert due(7, 3600, standing, at(120), CONFIRM) == START
    for moment, checked in ((at(121), at(-60)), (at(1), START)):
        answered = replace(standing, checked_at=checked)
        assert due(7, 3600, answered, moment, CONFIRM) > at(121), "too old, or done"
    ahead = replace(standing, asked_at=START + HOURS)
    assert due(7, 3600, ahead, START, CONFIRM) < START + HOURS, "from before a clock was set back"


@pytest.mark.parametrize("came", ["in time", "late"])
def test_a_request_that_waits_too_long_for_its_turn_is_not_carried_out(plan, came):
    standing = done(7, 3600, checked_at=at(-60), asked_at=START)
    plan.put(job(7, interval=3600, standing=standing), START)
    assert taken(plan, at(1), limit=0) == []
    assert taken(plan, at(119) if came == "in time" else at(121)) == (
        [7] if came == "in time" else []
    )
    assert plan.next() > at(121)


def test_a_check_that_our_own_network_failed_is_due_when_it_works_again():
    standing = done(7, 3600, checked_at=at(-60), blind=True)
    assert due(7, 3600, standing, START, CONFIRM, network=False) > at(60)
    assert due(7, 3600, standing, START, CONFIRM) < START
    again = replace(standing, checked_at=START)
    assert due(7, 3600, again, START, CONFIRM) > START, "but not without a pause"


@pytest.mark.parametrize(
    "ahead",
    [
        {"scheduled_at": START + HOURS},
        {"checked_at": START + HOURS, "unconfirmed_at": START + HOURS},
        {"checked_at": START + HOURS, "blind": True},
    ],
    ids=["scheduled_at", "repeat", "blind"],
)
def test_a_time_from_a_clock_that_was_ahead_is_not_waited_for(ahead):
    standing = done(7, 3600, **{"checked_at": at(-60)} | ahead)
    assert due(7, 3600, standing, START, CONFIRM) <= START + CONFIRM


def test_a_small_difference_of_two_clocks_does_not_repeat_a_check():
    standing = done(7)
    behind = standing.scheduled_at - 5 * SECOND
    assert due(7, 60, standing, behind, CONFIRM) == next_check(7, 60, standing.scheduled_at)


# --- the heap


def test_the_longest_overdue_monitors_come_first(plan):
    ids = range(1, 60)
    for id in ids:
        plan.put(job(id, interval=3600), START)
    moments = {id: next_check(id, 3600, START) for id in ids}
    order = sorted(ids, key=moments.get)
    assert plan.next() == end_of_round(moments[order[0]])
    assert taken(plan, moments[order[0]] - SECOND) == []
    assert taken(plan, START + HOURS, 10) == order[:10]
    assert taken(plan, START + HOURS) == order[10:]
    assert taken(plan, START + HOURS) == [], "all are on their way"


def test_a_check_that_came_back_is_due_at_its_next_scheduled_time(plan):
    plan.put(job(7, Standing(generation=1)), START)
    [due] = plan.begin_due(START, 5)
    after = done(7, generation=2)
    assert not plan.end(due.claim(), after, at(1))
    assert plan.next() == end_of_round(next_check(7, 60, START))


def test_a_check_that_does_not_come_back_is_repeated(plan):
    """A carrier may lose it."""
    plan.put(job(7, Standing(generation=1), timeout=20), START)
    [due] = plan.begin_due(START, 5)
    lost = at(20) + LOST_AFTER
    assert taken(plan, lost - SECOND) == []
    [again] = plan.begin_due(lost, 5)
    assert again.claim().generation == due.claim().generation, "whichever comes first counts"


def test_a_changed_monitor_is_due_although_a_check_is_running(plan):
    plan.put(job(7, Standing(generation=1)), START)
    [old] = plan.begin_due(START, 5)
    late = old.claim()
    plan.put(job(7, done(7, generation=1)), at(1))  # its name changed
    assert taken(plan, at(2)) == []
    plan.put(job(7, Standing(generation=2)), at(2))  # its URL changed
    [new] = plan.begin_due(at(2), 5)
    assert not plan.end(late, None, at(3)), "the old one was dropped, which is no news"
    assert taken(plan, at(3)) == [], "the new one is still on its way"
    plan.end(new.claim(), done(7, generation=3), at(4))
    assert plan.next() == end_of_round(next_check(7, 60, START))


def test_a_dropped_check_reloads_its_monitor(plan):
    plan.put(job(7, Standing(generation=1)), START)
    [due] = plan.begin_due(START, 5)
    assert plan.end(due.claim(), None, at(1)), "somebody else has checked it, or changed it"


def test_monitors_of_lost_shards_are_dropped(plan):
    for id in (1, 2, 65):
        plan.put(job(id, Standing(generation=1)), START)
    [first] = plan.begin_due(START, 1)
    plan.drop_shards({1})
    assert plan.checks_per_second == pytest.approx(1 / 60), "of one monitor"
    assert not plan.end(first.claim(), None, at(1))
    assert taken(plan, at(1)) == [2]
    assert plan.next() == at(31) + timedelta(seconds=30)  # the time limit, and a pause
    plan.put(job(1, Standing(generation=1), token=2), at(2))
    assert taken(plan, at(2)) == [1], "taken again, under another token"


@pytest.mark.parametrize("step", [HOURS, -HOURS], ids=["forward", "back"])
def test_after_the_clock_was_set_every_monitor_is_due_within_its_interval(plan, step):
    for id in range(1, 20):
        plan.put(job(id), START)
    now = START + step
    plan.rearrange(now)
    assert plan.next() <= now + timedelta(seconds=60)
    assert sorted(taken(plan, now + timedelta(seconds=60))) == list(range(1, 20))
    assert taken(plan, now + timedelta(seconds=60)) == [], "each once"


def test_when_our_network_works_again_its_failed_checks_come_first(plan):
    plan.set_network(False, START)
    plan.put(job(1, done(1, 3600, blind=True, checked_at=at(-60)), 3600), START)
    plan.put(job(2, interval=3600), START)
    assert taken(plan, at(1)) == []
    plan.set_network(True, at(2))
    assert taken(plan, at(2)) == [1]


def test_checks_of_a_quarter_second_begin_together_at_its_end(plan):
    ids = range(1, 200)
    for id in ids:
        plan.put(job(id), START)
    quarters = sorted({end_of_round(next_check(id, 60, START)) for id in ids})
    assert len(quarters) < len(ids)
    for quarter in quarters:
        assert plan.next() == quarter
        assert taken(plan, quarter - timedelta(milliseconds=1)) == []
        for started in plan.begin_due(quarter, len(ids)):
            wait = quarter - next_check(started.monitor_id, 60, START)
            assert timedelta(0) <= wait < timedelta(milliseconds=250)
            plan.end(started.claim(), done(started.monitor_id, now=quarter), quarter)


@pytest.mark.parametrize(
    "awaited",
    [
        {"scheduled_at": None},
        {"checked_at": at(-3), "unconfirmed_at": at(-2.9)},
        {"checked_at": at(-0.9), "blind": True},
        {"checked_at": at(-60), "asked_at": at(0.1)},
    ],
    ids=["new", "repeat", "blind", "asked"],
)
def test_a_check_that_somebody_waits_for_waits_for_no_others(plan, awaited):
    standing = done(7, 3600, **awaited)
    plan.put(job(7, standing, 3600), START)
    assert plan.next() == due(7, 3600, standing, START, CONFIRM)


def test_many_changes_do_not_fill_the_memory(plan):
    for number in range(2000):
        plan.put(job(7, done(7, generation=number)), START)
    assert len(plan._heap) < 200
    assert taken(plan, at(60)) == [7]
    assert plan.checks_per_second == pytest.approx(1 / 60)


def test_a_new_pause_forgets_no_running_check(plan):
    """An agent learns the pause from its server while its first checks run."""
    plan.put(job(7, Standing(1)), START)
    assert taken(plan, START) == [7]
    plan.set_confirm_delay(3 * SECOND, at(1))
    assert taken(plan, at(2)) == []
