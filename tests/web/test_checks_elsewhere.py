"""A check on request is made where the monitor is checked (decision 11)."""

import re
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import select, update

from app.access.keys import give_token
from app.checks.prober import Prober
from app.db import db, places, writing
from app.db.tables import AssignmentRow, ChangeRow, IncidentRow, MonitorStateRow, PlaceRow
from app.engine import checker as checkers
from app.engine import elsewhere, own_shards, recorder
from app.engine.agent import link as links
from app.engine.carriers.queue import prober as far
from app.engine.checker import Checker
from app.engine.schedule import REQUEST_LASTS, is_fresh
from app.errors import Conflict, Throttled, Unavailable
from app.records import DEFAULT_PLACE_ID, Assertion, Verdict
from app.records.monitors import TIMEOUT_SECONDS
from app.rules.clocks import SKEW
from app.slots import WAITS_ELSEWHERE
from app.stores import current_store
from tests.api.conftest import Api
from tests.factories import make_key, make_monitor, make_outcome, now
from tests.lab.http import serve
from tests.lab.net import Listener
from tests.support.agents import agent_settings, page, stored
from tests.support.agents import running as agent_running
from tests.support.loopback import serving
from tests.support.service import eventually
from tests.support.store import store_of

SECOND = timedelta(seconds=1)
HERE = DEFAULT_PLACE_ID


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(links, "POST_SECONDS", 0.05)
    monkeypatch.setattr(links, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr(elsewhere, "LOOK_SECONDS", 0.02)


@pytest.fixture(autouse=True)
def no_second_round(monkeypatch):
    """A monitor's place in its minute may come round during a test: one check more than counted."""
    monkeypatch.setattr(
        "app.engine.schedule.next_check",
        lambda _id, _interval, _at: datetime.now(UTC) + timedelta(hours=1),
    )


@pytest.fixture
def api(app):
    return Api(app.test_client(), make_key(app, "write"))


def place(app, name, carrier="agent", last_sign=None, label=None):
    """Its row id and, for an agent, its token."""
    with app.app_context(), writing() as session:
        row = PlaceRow(name=name, label=label, carrier=carrier, created_at=now())
        session.add(row)
        token = give_token(row) if carrier == "agent" else None
        session.flush()
        if last_sign is not None:
            places.store_sign(name, last_sign, process=f"agent:{name}", last_check_at=last_sign)
        return row.id, token


@pytest.fixture
def oslo(app):
    """The id of a place that was heard of just now."""
    return place(app, "oslo", last_sign=now(), label="Oslo office")[0]


@pytest.fixture
def of_oslo(app, oslo):
    """The id of a monitor that is checked from there alone."""
    return make_monitor(app, places=[oslo]).id


def record(app, id, location, at, verdict="up"):
    with app.app_context():
        recorder.record([(id, make_outcome(verdict, at))], at, location=location)


@contextmanager
def clicked(app, id):
    """The answer to a check on request that waits for its places."""

    def click():
        return store_of(app).checks.run(id)

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(click)


def state(app, id):
    with app.app_context():
        return db.session.get(MonitorStateRow, id)


def incident(app, id):
    """The only one of a monitor."""
    with app.app_context():
        return db.session.scalars(select(IncidentRow).where(IncidentRow.monitor_id == id)).one()


def asked(app, id):
    with app.app_context():
        return list(
            db.session.scalars(select(AssignmentRow.asked_at).where(AssignmentRow.monitor_id == id))
        )


def test_an_agent_makes_the_check_and_it_counts(app, api, tmp_path):
    id, token = place(app, "oslo", label="Oslo office")
    with closing(Listener(serve)) as site, serving(app) as url:
        asserted = (Assertion("status", None, "=", "200"), Assertion("size", None, ">", "0"))
        monitor = make_monitor(
            app, places=[id], url=page(site), interval=3600, confirmations=0, assertions=asserted
        )
        path = f"/monitors/{monitor.id}/check"
        with agent_running(agent_settings(tmp_path, url, token)):
            eventually(lambda: stored(app, monitor.id), "the first result")
            answer = api.data("POST", path)
            assert (answer["location"], answer["verdict"]) == ("oslo", "up")
            for result in (answer, answer["places"][0]["result"]):
                checked = [(row["source"], row["ok"]) for row in result["assertions"]]
                assert checked == [("status", True), ("size", True)]
            store_of(app).monitors.update(monitor.id, {"accepted_statuses": "404"})
            eventually(lambda: state(app, monitor.id).verdict == "down", "the check of the change")
            count = len(stored(app, monitor.id))
            answer = api.data("POST", path)
            assert (answer["location"], answer["verdict"]) == ("oslo", "down")
    made = stored(app, monitor.id)
    assert len(made) == count + 1, "one check for one request"
    assert {result.location for result in made} == {"oslo"}
    assert made[-1].id == answer["id"]
    assert state(app, monitor.id).checked_at == made[-1].checked_at, "it has a vote"


@contextmanager
def checking(app, settings):
    """A checker at work, as ``wakeful checker`` runs it but in a thread."""
    checker, stop = Checker(app, settings), threading.Event()
    thread = threading.Thread(target=checker.run, args=[stop])
    thread.start()
    try:
        yield
    finally:
        stop.set()
        checker.checks.wake()
        thread.join(60)
        assert not thread.is_alive()


def test_a_checker_elsewhere_makes_one_check_for_two_clicks(app, settings, monkeypatch):
    """The checker has made this monitor's scheduled check already, and makes one more."""
    id, _token = place(app, "hq", carrier="local")
    with closing(Listener(serve)) as site:
        monitor = make_monitor(app, places=[id], url=page(site), interval=3600)
        with checking(app, replace(settings, location="hq")):
            eventually(lambda: stored(app, monitor.id), "the first result")

            def click(_number):
                return store_of(app).checks.run(monitor.id)

            with ThreadPoolExecutor(2) as pool:
                first, second = pool.map(click, range(2))
            assert first == second
            assert (first.location, first.verdict) == ("hq", Verdict.UP)
            assert len(stored(app, monitor.id)) == 2
            monkeypatch.setattr("app.engine.recorder.assigned.SAME_REQUEST", timedelta(0))
            assert click(0).id != first.id
            assert len(stored(app, monitor.id)) == 3


@pytest.mark.parametrize(
    ("seconds", "sentence"),
    [
        (None, "Nothing was checked: no check has come from its place Oslo office yet."),
        (300, "Nothing was checked: its place Oslo office was last heard from 5 minutes ago."),
    ],
)
def test_a_silent_place_is_named_at_once_and_nothing_is_asked(app, api, editor, seconds, sentence):
    last_sign = None if seconds is None else now() - timedelta(seconds=seconds)
    id, _token = place(app, "oslo", last_sign=last_sign, label="Oslo office")
    monitor = make_monitor(app, places=[id])
    with app.app_context():
        before = db.session.scalar(select(ChangeRow.id).order_by(ChangeRow.id.desc()))
    answer = api("POST", f"/monitors/{monitor.id}/check")
    assert (answer.status_code, answer.json["message"]) == (409, sentence)
    assert asked(app, monitor.id) == [None]
    with app.app_context():
        after = db.session.scalar(select(ChangeRow.id).order_by(ChangeRow.id.desc()))
    assert after == before
    editor.open(f"/monitors/{monitor.id}").press("Check now").shows(sentence)
    assert stored(app, monitor.id) == []


def test_of_a_queue_its_probers_are_heard_and_not_its_checker(app):
    """If the prober was dead and the checker lived, a check on request waited for its whole
    time.
    """
    id, _token = place(app, "eu", carrier="queue")
    monitor = make_monitor(app, places=[id])
    last = now() - 31 * SECOND
    with app.app_context():
        with writing():
            places.store_sign("eu", last, process="prober:host:1", last_check_at=last)
            places.store_sign("eu", now(), process="checker:host:2", last_check_at=last)
        (queue,) = elsewhere.places_of(monitor.id, now())
        assert queue.seen_at == last
        with pytest.raises(Conflict, match="eu was last heard"):
            current_store().checks.run(monitor.id)
    assert asked(app, monitor.id) == [None]


def test_probers_that_live_are_heard_before_they_count_as_ended():
    """A report has all of them that have spoken since the last one. The checker looks whether one
    is due each time it renews its shards.
    """
    between_reports = checkers.REPORT_SECONDS + own_shards.LOOK_SECONDS
    assert between_reports > far.SIGN_SECONDS
    assert between_reports + elsewhere.SIGNS_SECONDS < elsewhere.SIGN_SECONDS


def test_a_place_that_brings_no_result_is_named(app, api, editor, monkeypatch):
    """Such as an agent of an older version, which does not know the request."""
    monkeypatch.setattr(elsewhere, "WAIT_SECONDS", -1.0)
    id, _token = place(app, "oslo", last_sign=now(), label="Oslo office")
    monitor = make_monitor(app, places=[id], timeout=1)
    answer = api("POST", f"/monitors/{monitor.id}/check")
    assert answer.status_code == 503
    assert answer.json["message"].startswith("No result from Oslo office")
    editor.open(f"/monitors/{monitor.id}").press("Check now")
    assert "No result from Oslo office" in editor.text
    assert stored(app, monitor.id) == [], "nothing is checked from here in its place"


def test_all_places_that_are_heard_are_asked_and_the_worst_result_is_the_answer(app, api, editor):
    far, _token = place(app, "far", last_sign=now() - timedelta(minutes=5))
    near, _token = place(app, "near", last_sign=now(), label="Near by")
    new, _token = place(app, "new")
    with closing(Listener(serve)) as site, app.app_context():
        monitor = make_monitor(app, places=[HERE, far, near, new], url=page(site))
        path = f"/monitors/{monitor.id}"
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(api.data, "POST", f"{path}/check")
            eventually(lambda: any(asked(app, monitor.id)), "the request")
            record(app, monitor.id, "near", now() + SECOND, "down")
            answer = answer.result(60)
        rows = db.session.execute(select(AssignmentRow.location_id, AssignmentRow.asked_at))
        assert {row.location_id for row in rows if row.asked_at} == {near}
    assert (answer["location"], answer["verdict"]) == ("near", "down")
    assert [
        (part["name"], part["result"] and part["result"]["verdict"], part["message"])
        for part in answer["places"]
    ] == [
        ("default", "up", None),
        ("far", None, "far was last heard from 5 minutes ago and was not asked."),
        ("near", "down", None),
        ("new", None, "No check has come from new yet, so it was not asked."),
    ]
    assert answer["places"][2]["result"]["id"] == answer["id"]
    assert {result.location for result in stored(app, monitor.id)} == {"default", "near"}
    with app.app_context(), writing() as session:
        session.execute(update(AssignmentRow).values(asked_at=None))
    with ThreadPoolExecutor(1) as pool:
        editor.open(path)
        pressed = pool.submit(editor.press, "Check now")
        eventually(lambda: any(asked(app, monitor.id)), "the request of the page")
        record(app, monitor.id, "near", now() + 2 * SECOND)
        pressed.result(60)
    assert "Checked now from 2 of 4 places." in editor.text
    assert "far was last heard from 5 minutes ago and was not asked." in editor.text
    assert "Near by: Up in" in editor.text


def test_a_place_that_is_late_is_named_if_another_has_answered(app, api, monkeypatch):
    monkeypatch.setattr(elsewhere, "WAIT_SECONDS", -1.0)
    oslo, _token = place(app, "oslo", last_sign=now(), label="Oslo office")
    with closing(Listener(serve)) as site, app.app_context():
        monitor = make_monitor(app, places=[HERE, oslo], url=page(site), timeout=1)
        answer = api.data("POST", f"/monitors/{monitor.id}/check")
    assert (answer["location"], answer["verdict"]) == ("default", "up")
    assert answer["places"][1]["message"] == "No result from Oslo office within 0 s."


def test_the_worst_result_is_unknown_only_if_no_place_can_tell(app, api):
    names = ("oslo", "rome", "york")
    ids = [place(app, name, last_sign=now())[0] for name in names]
    monitor = make_monitor(app, places=ids)

    def worst(*verdicts):
        with app.app_context(), writing() as session:
            session.execute(update(AssignmentRow).values(asked_at=None))
        with clicked(app, monitor.id) as click:
            eventually(lambda: any(asked(app, monitor.id)), "the request")
            at = max(asked(app, monitor.id))
            for name, verdict in zip(names, verdicts, strict=True):
                record(app, monitor.id, name, at, verdict)
            return click.result(60).location

    assert worst("unknown", "up", "up") == "rome", "of equals the first"
    assert worst("up", "degraded", "unknown") == "rome"
    assert worst("up", "degraded", "down") == "york"
    assert worst("unknown", "unknown", "unknown") == "oslo"


def test_two_at_once_share_the_check_that_is_made_here(app, monkeypatch):
    """Such as a double click. A later one is another check."""
    begun, joined = threading.Event(), threading.Event()

    class Watched(Future):
        def result(self, timeout=None):
            joined.set()
            return super().result(timeout)

    def slow(connection):
        begun.set()
        assert joined.wait(60)
        serve(connection)

    monkeypatch.setattr("app.engine.now.Future", Watched)
    with closing(Listener(slow)) as site:
        monitor = make_monitor(app, url=page(site))
        with clicked(app, monitor.id) as first:
            assert begun.wait(60)
            with clicked(app, monitor.id) as second:
                assert first.result(60).id == second.result(60).id
        assert len(stored(app, monitor.id)) == 1
        with clicked(app, monitor.id) as third:
            assert third.result(60).id != first.result(60).id


def test_who_asks_again_while_a_place_is_awaited_gets_new_checks_of_the_others(app, monkeypatch):
    """The places that have answered the first request are asked again, and so is this server."""
    monkeypatch.setattr("app.engine.recorder.assigned.SAME_REQUEST", timedelta(0))
    near, _token = place(app, "near", last_sign=now())
    dead, _token = place(app, "dead", last_sign=now())
    with closing(Listener(serve)) as site:
        monitor = make_monitor(app, places=[HERE, near, dead], url=page(site))

        def asked_of(id):
            with app.app_context():
                return db.session.scalar(
                    select(AssignmentRow.asked_at).where(AssignmentRow.location_id == id)
                )

        def brings(name, verdict):
            """The place makes the check that it was asked for last."""
            record(app, monitor.id, name, max(asked_of(near), now()), verdict)

        with clicked(app, monitor.id) as first:
            eventually(lambda: asked_of(near), "the first request")
            eventually(lambda: len(stored(app, monitor.id)) == 1, "the check that is made here")
            brings("near", "up")
            before = asked_of(near)
            with clicked(app, monitor.id) as second:
                eventually(lambda: asked_of(near) > before, "the second request")
                assert asked_of(dead) == before, "it has the first request to carry out"
                brings("near", "down")
                brings("dead", "up")
                results = [
                    {part.name: part.result for part in click.result(60).places}
                    for click in (first, second)
                ]
    assert [part["near"].verdict for part in results] == ["up", "down"]
    assert results[0]["default"].checked_at < results[1]["default"].checked_at
    assert results[0]["dead"] == results[1]["dead"]


def test_a_place_that_has_ended_is_not_waited_for_to_the_end(app, api, monkeypatch):
    """It was heard within half a minute, so it was asked."""
    monkeypatch.setattr(elsewhere, "SIGN_SECONDS", 2.0)
    near, _token = place(app, "near", last_sign=now())
    dead, _token = place(app, "dead", last_sign=now() - 20 * SECOND, label="Dead office")
    monitor = make_monitor(app, places=[near, dead], timeout=60)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(api.data, "POST", f"/monitors/{monitor.id}/check")
        eventually(lambda: all(asked(app, monitor.id)), "the request")
        record(app, monitor.id, "near", now() + SECOND)
        result = answer.result(30)
    assert (result["location"], result["verdict"]) == ("near", "up")
    assert result["places"][1]["result"] is None
    assert re.fullmatch(
        r"No result from Dead office, last heard from 2\d seconds ago\.",
        result["places"][1]["message"],
    )


def test_a_place_that_has_ended_is_said_to_have_brought_nothing(app, api, monkeypatch):
    monkeypatch.setattr(elsewhere, "SIGN_SECONDS", 0.1)
    dead, _token = place(app, "dead", last_sign=now() - 20 * SECOND, label="Dead office")
    gone, _token = place(app, "gone", last_sign=now() - 10 * SECOND)
    for places_, sentence in (
        ([dead], r"No result from Dead office, last heard from 2\d seconds ago\."
                 r" If one comes later, it is among the monitor's checks\."),
        ([dead, gone], r"No result from Dead office, gone, last heard from 1.*"),
    ):  # fmt: skip
        answer = api("POST", f"/monitors/{make_monitor(app, places=places_).id}/check")
        assert answer.status_code == 503, places_
        assert re.fullmatch(sentence, answer.json["message"]), answer.json


def test_a_check_of_this_server_that_does_not_finish_counts_as_late(app, api, monkeypatch):
    """Nobody else makes checks here, so no sign of this place is stored."""

    def late(_prober, _spec):
        raise TimeoutError

    monkeypatch.setattr(Prober, "check", late)
    id, _token = place(app, "oslo", last_sign=now())
    monitor = make_monitor(app, places=[HERE, id])
    with clicked(app, monitor.id) as click:
        eventually(lambda: any(asked(app, monitor.id)), "the request")
        record(app, monitor.id, "oslo", now() + SECOND)
        here, oslo = click.result(60).places
    assert re.fullmatch(r"No result from default within \d+ s\.", here.message)
    assert oslo.result is not None


def test_a_place_whose_check_lasts_is_waited_for_while_it_is_heard(app):
    id, _token = place(app, "oslo", last_sign=now() - 20 * SECOND)
    monitor = make_monitor(app, places=[id], timeout=60)
    with app.app_context():
        heard = elsewhere.places_of(monitor.id, now())
        request = elsewhere.CheckRequest(monitor.id, heard, {id: now()}, 70.0, 100.0)
        signs = elsewhere._Signs(request)

        def silent(seconds):
            return list(signs.silent(request.began + seconds))

        assert silent(6.9) == []
        places.store_sign("oslo", now(), process="agent:oslo")
        assert silent(7) == [], "it was heard since it was asked"
        assert silent(13.9) == []
        assert silent(14) == [id], "and was not heard again"


@pytest.mark.parametrize("set_by", [-60, 180])
def test_places_are_asked_again_if_the_clock_is_set_while_they_are_waited_for(
    app, monkeypatch, set_by, of_oslo
):
    """They would take the request for one of the future, or for an old one."""

    class Set(datetime):
        @classmethod
        def now(cls, zone):
            return datetime.now(zone) + set_by * SECOND

    with clicked(app, of_oslo) as clicks:
        eventually(lambda: any(asked(app, of_oslo)), "the request")
        (before,) = asked(app, of_oslo)
        monkeypatch.setattr(elsewhere, "datetime", Set)
        eventually(lambda: asked(app, of_oslo) != [before], "the second request")
        (again,) = asked(app, of_oslo)
        assert is_fresh(again, Set.now(UTC))
        assert not is_fresh(before, Set.now(UTC))
        record(app, of_oslo, "oslo", again + SECOND)
        assert clicks.result(60).location == "oslo"


def request(app, monitor_id, place_id, patience, moment):
    """Ask the place for a check; returns when that was asked."""
    with app.app_context():
        return recorder.ask(monitor_id, [place_id], moment, patience.total_seconds())[place_id]


def test_who_asks_while_another_waits_gets_the_same_check(app, oslo, of_oslo):
    start, patience = now(), 40 * SECOND

    def ask(seconds):
        at = start + seconds * SECOND
        return (request(app, of_oslo, oslo, patience, at) - start) / SECOND

    def answered(seconds):
        with app.app_context(), writing() as session:
            session.execute(update(AssignmentRow).values(checked_at=start + seconds * SECOND))

    assert ask(0) == pytest.approx(0, abs=0.001)
    assert ask(39) == ask(0), "nobody has answered yet"
    assert ask(41) == pytest.approx(41, abs=0.001), "who asked first waits no more"
    answered(42)
    assert ask(41.9) == pytest.approx(41, abs=0.001), "a double click"
    assert ask(42.5) == pytest.approx(42.5, abs=0.001)


@pytest.mark.parametrize("timeout", [10, TIMEOUT_SECONDS[1]])
def test_who_joins_a_request_waits_for_one_that_is_carried_out_until_then(app, timeout):
    id, _token = place(app, "oslo", last_sign=now())
    monitor = make_monitor(app, places=[id], timeout=timeout)
    patience, start = (timeout + elsewhere.WAIT_SECONDS) * SECOND, now()
    ask = partial(request, app, monitor.id, id, patience)

    first = ask(start)
    last = start + min(patience, REQUEST_LASTS - patience)  # to join it
    assert ask(last - SECOND) == first
    assert is_fresh(first, last - SECOND + patience), "and as long as the first one waits"
    assert is_fresh(first, start + patience)
    again = ask(last + SECOND)
    assert again > first
    assert is_fresh(again, last + SECOND + patience)


def test_a_request_from_a_clock_that_was_ahead_is_not_joined(app, oslo, of_oslo):
    start, patience = now(), 40 * SECOND
    ask = partial(request, app, of_oslo, oslo, patience)

    ahead = ask(start + SKEW)
    assert ask(start + timedelta(milliseconds=1)) == ahead, "clocks of two machines differ so far"
    assert ask(start - timedelta(milliseconds=5)) < start


def test_a_result_that_a_clock_ahead_wrote_is_no_answer(app, of_oslo):
    """The clock was set back since."""
    record(app, of_oslo, "oslo", now() + timedelta(minutes=30))
    with clicked(app, of_oslo) as clicks:
        eventually(lambda: any(asked(app, of_oslo)), "the request")
        record(app, of_oslo, "oslo", now() + SECOND, "down")
        assert clicks.result(60).verdict is Verdict.DOWN


def test_a_result_that_was_there_before_the_request_is_no_answer(app, oslo, of_oslo):
    """Its place has a clock that is some seconds ahead. It would make no check for a request that
    seems to be older than its last one.
    """
    before = now() + 5 * SECOND
    record(app, of_oslo, "oslo", before)
    with clicked(app, of_oslo) as clicks:
        eventually(lambda: any(asked(app, of_oslo)), "the request")
        (at,) = asked(app, of_oslo)
        assert before < at <= before + SECOND
        record(app, of_oslo, "oslo", before + SECOND, "down")
        assert clicks.result(60).verdict is Verdict.DOWN
    with app.app_context():
        again = recorder.ask(of_oslo, [oslo], now(), 40)[oslo]
    assert again > before + SECOND, "seconds later it is no double click"


def test_a_place_is_asked_if_it_was_heard_within_half_a_minute(app, monkeypatch):
    monkeypatch.setattr(elsewhere, "WAIT_SECONDS", -1.0)
    id, _token = place(app, "oslo")
    monitor, at = make_monitor(app, places=[id], timeout=1), now()
    with app.app_context():

        def check(seconds):
            last_sign = at - seconds * SECOND
            checking = [elsewhere.CheckingPlace(id, "oslo", "Oslo", last_sign)]
            monkeypatch.setattr(elsewhere, "places_of", lambda _id, _now: checking)
            current_store().checks.run(monitor.id)

        with pytest.raises(Conflict, match="Oslo was last heard from"):
            check(31)
        assert asked(app, monitor.id) == [None]
        with pytest.raises(Unavailable, match="No result from Oslo"):
            check(25)
    assert asked(app, monitor.id) != [None]
    heard = elsewhere.CheckingPlace(id, "oslo", "Oslo", at - elsewhere.REACHABLE)
    assert heard.is_reachable(at)
    assert not heard.is_reachable(at + timedelta(milliseconds=1))


def test_who_waits_for_other_places_leaves_slots_to_others(app):
    """Such as for an agent of an older version, which brings nothing for over a minute."""
    id, _token = place(app, "oslo", last_sign=now())
    monitors = [make_monitor(app, places=[id]) for _ in range(WAITS_ELSEWHERE.size)]
    first, second, third = (item.id for item in monitors)

    def throttled(id, why="Too many manual checks"):
        with app.app_context(), pytest.raises(Throttled, match=why):
            current_store().checks.run(id)

    with ExitStack() as stack, closing(Listener(serve)) as site:
        waiting = [
            stack.enter_context(clicked(app, first)) for _ in range(WAITS_ELSEWHERE.max_each)
        ]
        eventually(lambda: WAITS_ELSEWHERE.in_use == WAITS_ELSEWHERE.max_each, "two that wait")
        throttled(first, "This monitor is being checked at this moment")
        waiting.append(stack.enter_context(clicked(app, second)))
        eventually(lambda: WAITS_ELSEWHERE.in_use == WAITS_ELSEWHERE.size, "one more that waits")
        throttled(third)
        here = make_monitor(app, url=page(site))
        assert store_of(app).checks.run(here.id).verdict is Verdict.UP
        eventually(lambda: any(asked(app, second)), "the last request")
        for id in (first, second):
            record(app, id, "oslo", now() + SECOND)
        assert [item.result(60).location for item in waiting] == ["oslo"] * len(waiting)
    assert WAITS_ELSEWHERE.in_use == 0


@pytest.mark.parametrize("here", [True, False])
def test_the_check_of_a_paused_monitor_is_made_here_and_in_no_figure(app, api, editor, here):
    id, _token = place(app, "oslo", last_sign=now())
    with closing(Listener(serve)) as site, app.app_context():
        places = [HERE, id] if here else [id]
        monitor = make_monitor(app, places=places, url=page(site), paused=True)
        before = api.data("GET", f"/monitors/{monitor.id}")
        answer = api.data("POST", f"/monitors/{monitor.id}/check")
        editor.open(f"/monitors/{monitor.id}").press("Check now")
    editor.shows("Checked now from default. Up")
    foreign = "The check was made from default, which is not one of this monitor's places."
    assert (foreign in editor.text) is not here
    assert set(asked(app, monitor.id)) == {None}
    assert (answer["location"], answer["verdict"]) == ("default", "up")
    assert [part["name"] for part in answer["places"]] == ["default"]
    assert api.data("GET", f"/monitors/{monitor.id}") == before
    figures = api.data("GET", f"/monitors/{monitor.id}/statistics?range=24h")
    assert (figures["uptime"], figures["checks"]) == (None, 0)
    assert set(figures["response_time"].values()) == {None}
    assert not any(bucket["checks"] for bucket in figures["buckets"])
    with app.app_context(), writing() as session:
        recorder.resume(session, monitor.id, now())
    again = api.data("GET", f"/monitors/{monitor.id}/statistics?range=24h")
    assert (again["uptime"], again["checks"]) == (None, 0)


@pytest.mark.settings(confirm_seconds=0.2)
def test_an_outage_of_all_places_ends_with_a_check_on_request(app, settings):
    """The monitor is checked hourly, and nobody waits for the next hour."""
    ids = [place(app, name, carrier="local")[0] for name in ("hq", "oslo")]
    broken = threading.Event()
    broken.set()

    def answer(connection):
        if not broken.is_set():
            serve(connection)

    with ExitStack() as stack:
        site = stack.enter_context(closing(Listener(answer)))
        fields = {"interval": 3600, "confirmations": 0, "location_rule": "all"}
        monitor = make_monitor(app, places=[HERE, *ids], url=page(site), **fields)
        for name in ("default", "hq", "oslo"):
            stack.enter_context(checking(app, replace(settings, location=name)))
        eventually(lambda: len(stored(app, monitor.id)) >= 3, "a check of each place")
        eventually(lambda: state(app, monitor.id).verdict == "down", "the outage")
        broken.clear()
        with clicked(app, monitor.id) as click:
            verdicts = {part.name: part.result.verdict for part in click.result(60).places}
        assert verdicts == dict.fromkeys(("default", "hq", "oslo"), "up")
        eventually(lambda: incident(app, monitor.id).ended_at, "its end")
        assert incident(app, monitor.id).ending == "recovered"
        assert state(app, monitor.id).verdict == "up"
