"""The server on the results of an agent, which several web processes may take."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from app import create_app
from app.db import db, journal, places, writing
from app.db.tables import AssignmentRow, IncidentRow, ResultRow, SignOfLifeRow
from app.db.types import from_ms, to_ms
from app.engine import recorder
from app.errors import Throttled
from app.lasting import Lasting
from app.records import Verdict
from app.stores.local import LocalStore, agent_results
from app.stores.local.agent_results import MAX_JUDGED
from tests.factories import make_monitor
from tests.support.agents import result, update

DAY = timedelta(days=1)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def at():
    """The time, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def watched(app, place, at):
    """Makes a monitor that the place has checked for a day."""

    def make(**fields):
        return make_monitor(
            app, places=[place[0]], created_at=at - DAY, updated_at=at - DAY, **fields
        )

    return make


class Process:
    """A web process that takes results of the place."""

    def __init__(self, app, token):
        self.app, self.token = app, token

    def take(self, *results):
        with self.app.app_context():
            agents = self.app.extensions["wakeful.agents"]
            return agents.store_results(agents.place_of(self.token), {"results": list(results)})


@pytest.fixture
def process(app, place):
    return Process(app, place[1])


def create_other(settings):
    """As create_app, for an application beside the one of the test."""
    return create_app(settings)


@pytest.fixture
def other(settings, place, applications):
    with applications.opened(create_other, settings) as app:
        yield Process(app, place[1])


def last_result_at(app):
    """When the place brought results last, as the silence watch reads it."""
    with app.app_context():
        return db.session.scalars(select(SignOfLifeRow.last_check_at)).one()


def test_a_web_process_that_starts_again_does_not_forget_when_results_came(
    app, process, other, watched, at
):
    process.take(result(watched(interval=3600), Verdict.UP, at))
    came = last_result_at(app)
    assert came is not None
    other.take()
    assert last_result_at(app) == came, "the place would be told as silent"


def moments(app, monitor):
    """When the stored results of a monitor were made."""
    with app.app_context():
        rows = select(ResultRow.at).where(ResultRow.monitor_id == monitor.id)
        return [from_ms(at) for at in db.session.scalars(rows.order_by(ResultRow.at))]


def incidents(app):
    """The incidents that were not found late."""
    in_time = select(IncidentRow).where(~IncidentRow.found_late)
    with app.app_context():
        rows = db.session.scalars(in_time.order_by(IncidentRow.started_at)).all()
        return [(row.started_at, row.ended_at) for row in rows]


@pytest.fixture
def meanwhile(monkeypatch):
    """Does something just before results are judged: at the first time, or each time."""

    def plan(act, *, each=False):
        record, acts = recorder.record_claimed, [act]

        def record_claimed(*arguments, **options):
            if acts:
                now = acts[0] if each else acts.pop()
                with monkeypatch.context() as patch:
                    patch.setattr(recorder, "record_claimed", record)
                    now()
            return record(*arguments, **options)

        monkeypatch.setattr(recorder, "record_claimed", record_claimed)

    return plan


def test_results_are_judged_again_after_the_clock_was_set_back(app, process, watched, at):
    monitor = watched(confirmations=0)
    with app.app_context(), writing() as session:
        session.scalars(select(AssignmentRow)).one().checked_at = at + DAY
    process.take(result(monitor, Verdict.DOWN, at))
    assert len(incidents(app)) == 1


@pytest.mark.parametrize("edit", [{"interval": 300}, {"timeout": 9}, {"pause": True}])
def test_a_result_whose_monitor_is_changed_while_it_is_taken_is_kept(
    app, process, watched, at, meanwhile, edit
):
    """It says nothing of the monitor as it is now, but belongs to the figures."""
    monitor = watched(confirmations=0)
    meanwhile(lambda: update(app, monitor, edit, at=datetime.now(UTC)))
    answer = process.take(result(monitor, Verdict.DOWN, at))
    assert (answer["taken"], answer["refused"]) == (1, 0)
    assert moments(app, monitor) == [at]
    assert incidents(app) == []


def test_a_result_after_which_the_monitor_is_deleted_is_refused(
    app, process, watched, at, meanwhile
):
    monitor, stays = watched(), watched()
    meanwhile(lambda: delete(app, monitor))
    answer = process.take(*(result(each, Verdict.UP, at) for each in (monitor, stays)))
    assert (answer["taken"], answer["refused"]) == (1, 1)
    assert list(answer["standings"]) == [str(stays.id)]


def delete(app, monitor):
    with app.app_context():
        LocalStore(app.extensions["wakeful.settings"]).monitors.delete(monitor.id)


@pytest.mark.both_databases
@pytest.mark.parametrize("first", [1, 3])
def test_two_web_processes_that_take_the_same_results_judge_each_once(
    app, process, other, watched, at, meanwhile, first
):
    """The other process has recorded so many of them when the first one begins to judge."""
    failing, good = watched(confirmations=2), watched()
    sent = [result(failing, Verdict.DOWN, at - number * 10 * SECOND) for number in range(3)]
    sent += [result(good, Verdict.UP, at - number * 10 * SECOND) for number in range(3)]
    meanwhile(lambda: other.take(*sorted(sent, key=made)[: 2 * first]))
    answer = process.take(*sent)
    assert (answer["taken"], answer["refused"]) == (6, 0)
    assert set(answer["standings"]) == {str(failing.id), str(good.id)}
    made_at = [at - number * 10 * SECOND for number in (2, 1, 0)]
    assert moments(app, failing) == moments(app, good) == made_at
    assert incidents(app) == [(made_at[0], None)]
    assert last_judged(app, failing) == last_judged(app, good) == at


def made(sent):
    return sent["outcome"]["result"]["checked_at"]


def last_judged(app, monitor):
    with app.app_context():
        its = AssignmentRow.monitor_id == monitor.id
        return db.session.scalar(select(AssignmentRow.checked_at).where(its))


def test_older_results_than_those_of_another_process_are_kept_as_late_results(
    app, process, other, watched, at, meanwhile
):
    monitor = watched(confirmations=0)
    meanwhile(lambda: other.take(result(monitor, Verdict.UP, at - 10 * SECOND)))
    older, newer = at - 20 * SECOND, at
    answer = process.take(
        result(monitor, Verdict.DOWN, older), result(monitor, Verdict.DOWN, newer)
    )
    assert answer["taken"] == 2
    assert moments(app, monitor) == [older, at - 10 * SECOND, newer]
    assert incidents(app) == [(newer, None)]


def test_an_agent_keeps_results_whose_monitor_changes_each_time_they_are_judged(
    app, process, other, watched, at, monkeypatch
):
    monitor, late = watched(confirmations=0), watched()
    sent = [result(monitor, Verdict.DOWN, at), result(late, Verdict.UP, at - HOUR)]
    with monkeypatch.context() as patch:
        patch.setattr(recorder, "record_claimed", lambda claims, *_more, **_else: [None])
        with pytest.raises(Throttled) as caught:
            process.take(*sent)
    assert caught.value.retry_after == 1
    assert moments(app, monitor) == [], "it is neither late nor judged"
    assert other.take(*sent)["taken"] == 2
    assert moments(app, monitor) == [at]
    assert moments(app, late) == [at - HOUR]
    assert incidents(app) == [(at, None)]


@pytest.mark.both_databases
def test_web_processes_that_take_results_at_the_same_time_lose_and_double_none(
    app, process, other, watched, at
):
    monitors = [watched(confirmations=1) for _number in range(3)]
    made_at = [at - number * 10 * SECOND for number in range(5)] + [at - HOUR]
    sent = [result(monitor, Verdict.DOWN, when) for monitor in monitors for when in made_at]

    def bring(process):
        while True:
            with suppress(Throttled):
                return process.take(*sent)

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(bring, (process, other)))
    assert [each["taken"] for each in answers] == [len(sent)] * 2
    for monitor in monitors:
        assert moments(app, monitor) == sorted(made_at)
    assert incidents(app) == [(min(made_at[:5]), None)] * 3


class Killed(BaseException):
    """The process ends here."""


def killed(*_arguments, **_options):
    raise Killed


@pytest.mark.parametrize("step", range(1, 6))
def test_after_a_kill_at_any_step_the_agent_sends_again_and_nothing_is_lost_or_doubled(
    app, process, other, watched, at, monkeypatch, step
):
    """Steps: three results of the monitor are judged, late ones are recorded, the heartbeat."""
    monitor = watched(confirmations=2)
    made_at = [at - number * 10 * SECOND for number in range(3)] + [at - HOUR]
    sent = [result(monitor, Verdict.DOWN, when) for when in made_at]
    steps = []

    def ends(call):
        def until_killed(*arguments, **options):
            result = call(*arguments, **options)
            steps.append(call)
            if len(steps) == step:
                raise Killed
            return result

        return until_killed

    with monkeypatch.context() as patch:
        for module, name in (
            (recorder, "record_claimed"), (recorder, "record_late"), (places, "store_sign"),
        ):  # fmt: skip
            patch.setattr(module, name, ends(getattr(module, name)))
        with pytest.raises(Killed):
            process.take(*sent)
    answer = other.take(*sent)
    assert (answer["taken"], answer["refused"]) == (4, 0)
    assert answer["standings"].keys() == {str(monitor.id)}
    assert moments(app, monitor) == sorted(made_at)
    assert incidents(app) == [(made_at[2], None)]
    assert last_result_at(app) is not None


@pytest.fixture
def unrecordable(monkeypatch):
    """Lets results of a monitor fail in the middle of their transaction."""

    def plan(monitor, fault):
        row_of = journal.row_of

        def fail(result, *more):
            if result.monitor_id == monitor.id:
                raise fault
            return row_of(result, *more)

        monkeypatch.setattr(journal, "row_of", fail)

    return plan


@pytest.mark.parametrize("age", [timedelta(0), HOUR], ids=["judged", "late"])
def test_a_result_that_we_cannot_record_is_refused_and_costs_no_other(
    app, process, watched, at, unrecordable, caplog, age, monkeypatch
):
    """Its agent sent it again, with all others, for a day."""
    # The fault of another case was logged in this process within the last minute.
    monkeypatch.setattr(agent_results, "_log", Lasting(agent_results.log, 60.0))
    bad, *good = (watched(confirmations=0) for _number in range(6))
    monitors = [*good[:2], bad, *good[2:]]
    unrecordable(bad, ZeroDivisionError("a fault of ours"))
    sent = [
        result(monitor, Verdict.DOWN, at - age - number * SECOND)
        for number in range(2)
        for monitor in monitors
    ]
    answer = process.take(*sent)
    assert (answer["taken"], answer["refused"]) == (10, 2)
    assert [len(moments(app, monitor)) for monitor in monitors] == [2, 2, 0, 2, 2, 2]
    assert len(incidents(app)) == (0 if age else 5)
    assert caplog.text.count("ZeroDivisionError: a fault of ours") == 1, "one trace for a request"
    assert "A result of oslo cannot be recorded" in caplog.text
    assert process.take(*sent)["refused"] == 2


@pytest.mark.both_databases
def test_a_database_that_is_away_for_a_moment_refuses_no_result(
    app, process, watched, at, unrecordable
):
    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
    monitor = watched()
    unrecordable(monitor, OperationalError("INSERT", {}, busy))
    with pytest.raises(OperationalError):
        process.take(result(monitor, Verdict.DOWN, at), result(watched(), Verdict.DOWN, at))


def test_a_late_outage_ends_though_the_server_was_killed_before_it_looked(
    app, process, other, watched, at, monkeypatch
):
    monitor = watched(confirmations=1)
    back = at - 40 * SECOND
    process.take(result(monitor, Verdict.UP, at - 50 * MINUTE))
    # Together they come too late, and the second one's outage goes on while it counts.
    down = [
        result(monitor, Verdict.DOWN, at - 10 * MINUTE + number * MINUTE) for number in range(9)
    ]
    process.take(*down)
    ends = late_outages(app)
    assert len(ends) == 1
    assert ends[0] > back
    good = result(monitor, Verdict.UP, back)
    with monkeypatch.context() as patch:
        patch.setattr(recorder, "record_late", killed)
        with pytest.raises(Killed):
            process.take(good)
    other.take(good)
    assert late_outages(app) == [back.replace(microsecond=0)]


def late_outages(app):
    with app.app_context():
        return db.session.scalars(select(IncidentRow.ended_at).where(IncidentRow.found_late)).all()


def test_an_agent_that_got_no_answer_repeats_the_check_after_its_next_try(
    process, other, watched, at
):
    monitor = watched(confirmations=2, interval=3600)
    failing = result(monitor, Verdict.DOWN, at)
    first, again = (
        process.take(failing)["standings"][str(monitor.id)] for process in (process, other)
    )
    since, since_again = (
        to_ms(datetime.fromisoformat(answer.pop("unconfirmed_at"))) for answer in (first, again)
    )
    assert (again, since_again) == (first, since)


@pytest.mark.both_databases
def test_a_result_that_is_sent_twice_in_one_request_is_taken_once(app, process, watched, at):
    monitor = watched(confirmations=1)
    assert process.take(*[result(monitor, Verdict.DOWN, at)] * 2)["taken"] == 2
    assert moments(app, monitor) == [at]
    assert incidents(app) == [], "the failure is not confirmed"


REFUSED = {
    "of another place": lambda at, own, other: result(other, Verdict.UP, at),
    "from the future": lambda at, own, other: result(own, Verdict.UP, at + HOUR),
    "unreadable": lambda at, own, other: "nonsense",
    "hours old": lambda at, own, other: result(own, Verdict.UP, at - 3 * HOUR),
    "before the monitor's change": lambda at, own, other: (
        result(own, Verdict.UP, at) | {"made_for": to_ms(at - 2 * DAY)}
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_place_whose_results_do_not_count_brings_none(app, process, watched, at, kind):
    """Otherwise nobody is notified that it says nothing of its monitors any more."""
    process.take(REFUSED[kind](at, watched(), make_monitor(app)))
    assert last_result_at(app) is None
    process.take(result(watched(), Verdict.UP, at))
    assert last_result_at(app) is not None


def test_a_place_brings_results_though_the_answer_to_them_was_lost(
    app, process, other, watched, at, monkeypatch
):
    monitor = watched()
    with monkeypatch.context() as patch:
        patch.setattr(places, "store_sign", lambda *_arguments, **_options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            process.take(result(monitor, Verdict.UP, at))
    other.take(result(monitor, Verdict.UP, at))
    assert last_result_at(app) is not None


def test_an_outage_begins_with_the_first_of_all_checks_that_an_agent_makes_in_two_intervals(
    app, process, watched, at
):
    """Its failure is confirmed, its recovery too, and then it fails again."""
    monitor = watched(interval=3600, confirmations=5)
    start = at - 2 * HOUR + MINUTE
    confirmed = [start + number * 10 * SECOND for number in range(6)]
    recovering = [start + 59 * MINUTE, start + 59 * MINUTE + 10 * SECOND]
    again = [at - number * 10 * SECOND for number in range(6)]
    sent = [result(monitor, Verdict.DOWN, when) for when in (*confirmed, *again)]
    process.take(*sent, *(result(monitor, Verdict.UP, when) for when in recovering))
    assert incidents(app) == [(start, recovering[0]), (min(again), None)]


def test_of_the_results_of_one_monitor_so_many_are_judged_and_all_are_kept(
    app, process, watched, at, monkeypatch
):
    """Each is a transaction. An owner of a token keeps the server busy for no longer."""
    monitor, judged, record = watched(interval=3600, confirmations=5), [], recorder.record_claimed

    def record_claimed(outcomes, *arguments, **options):
        judged.extend(outcomes)
        return record(outcomes, *arguments, **options)

    monkeypatch.setattr(recorder, "record_claimed", record_claimed)
    made_at = [at - number * SECOND for number in range(MAX_JUDGED + 2)]
    assert process.take(*(result(monitor, Verdict.UP, when) for when in made_at))["taken"] == 50
    assert len(judged) == MAX_JUDGED == 48
    assert moments(app, monitor) == made_at[::-1]
