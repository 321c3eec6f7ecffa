"""An agent against a real server: what it may ask, what it brings, and what a cut leaves behind."""

import base64
import errno
import json
import threading
import time
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from sqlalchemy import select

from app.access.keys import give_token
from app.codec.sealing import ABOUT_ASSIGNED, new_private_key, public_key_of, seal_to, unseal
from app.config import SettingError
from app.db import db, writing
from app.db.tables import AssignmentRow, DeliveryRow, IncidentRow, PlaceRow, SignOfLifeRow
from app.db.types import from_ms, to_ms
from app.engine.agent import link as links
from app.engine.agent.agent import Agent, RefusedChecks
from app.engine.agent.buffer import Buffer, MadeResult
from app.engine.agent.faults import Later
from app.engine.agent.link import Clock, uptime
from app.engine.plan import Job
from app.engine.schedule import Standing, last_scheduled
from app.errors import Conflict
from app.net.client import Network
from app.net.hosts import SystemNames
from app.net.policy import Policy
from app.records import Cause, CheckedAssertion, CheckSpec, Verdict
from app.rules.clocks import MIN
from app.stores.local import agent_results
from app.stores.local.agent_results import MAX_RESULTS, Budget, budget_of
from tests.factories import make_monitor, make_outcome
from tests.lab.ca import Certificates
from tests.lab.http import serve
from tests.lab.net import BlackHole, ClosedPort, Listener
from tests.lab.tls import close_in_handshake, over_tls, plain_http, reset_in_handshake
from tests.support.agents import (
    KEY,
    Gate,
    agent_settings,
    page,
    public,
    result,
    running,
    stored,
    update,
)
from tests.support.loopback import serving
from tests.support.service import eventually

NETWORK = Network(Policy(), SystemNames())

SECRET = "hunter2-in-the-clear"


def opened(answer):
    return unseal(KEY, base64.b64decode(answer["sealed"]), ABOUT_ASSIGNED.format("oslo"))


def incidents(app):
    """The incidents that were not found late."""
    with app.app_context():
        return db.session.scalars(select(IncidentRow).where(~IncidentRow.found_late)).all()


def of_yesterday(app, place, **fields):
    """A monitor of the place that is a day old."""
    times = dict.fromkeys(("created_at", "updated_at"), datetime.now(UTC) - timedelta(days=1))
    return make_monitor(app, places=[place[0]], **times, **fields)


# --- What the server answers


def test_only_a_token_of_a_place_opens_the_agents_addresses(client, ask):
    assert ask("hello", token="wa_wrong", status=401, public_key=public())
    assert client.post("/api/v1/agent/hello").status_code == 401
    assert ask("nothing", status=404)
    assert client.get("/api/v1/agent/hello").status_code == 401


def test_the_key_of_the_first_hello_stays(ask):
    assert ask("hello", public_key=public())["location"] == "oslo"
    assert ask("hello", public_key=public())["location"] == "oslo"
    answer = ask("hello", status=409, public_key=public(new_private_key()))
    assert "make a new token" in answer["message"]
    assert ask("hello", status=422, public_key="short")
    # To keys of this kind nothing can be encrypted.
    assert ask("hello", status=422, public_key=base64.b64encode(bytes(32)).decode())


@pytest.mark.both_databases
def test_of_two_agents_that_come_at_once_the_first_ones_key_stays(app, place):
    """Each has read that the place has no key yet; and one has a token that has ended since."""
    with app.app_context():
        agents = app.extensions["wakeful.agents"]
        read = [agents.place_of(place[1]) for _ in range(3)]
        agents.hello(read[0], {"public_key": public()})
        with pytest.raises(Conflict):
            agents.hello(read[1], {"public_key": public(new_private_key())})
        assert agents.hello(read[1], {"public_key": public()})
        with writing() as session:
            row = session.get_one(PlaceRow, place[0])
            row.public_key = None
            token = give_token(row)
        with pytest.raises(Conflict):
            agents.hello(read[2], {"public_key": public()})
        assert agents.place_of(token).public_key is None


def test_an_agent_gets_its_own_monitors_alone_and_sealed(app, client, place, ask):
    mine = make_monitor(app, places=[place[0]], request_headers=[["X-Token", SECRET]])
    make_monitor(app, url="http://127.0.0.1:9/other")
    assert ask("assigned", status=409)
    ask("hello", public_key=public())
    answer = ask("assigned")
    assert SECRET not in json.dumps(answer)
    assigned = opened(answer)
    assert assigned["whole"]
    assert [assignment["spec"]["monitor_id"] for assignment in assigned["assigned"]] == [mine.id]
    assert assigned["assigned"][0]["spec"]["request_headers"] == [["X-Token", SECRET]]


def test_later_only_changed_monitors_are_sent(app, place, ask):
    ask("hello", public_key=public())
    before = ask("assigned")["change"]
    changed = make_monitor(app, places=[place[0]])
    other = make_monitor(app)
    answer = ask("assigned", since=before)
    assigned = opened(answer)
    assert not assigned["whole"]
    assert [assignment["spec"]["monitor_id"] for assignment in assigned["assigned"]] == [changed.id]
    assert assigned["gone"] == [other.id]
    for odd in (answer["change"] + 10, -1, -(10**30), 10**30, "1", None, 1.5):
        assert opened(ask("assigned", since=odd))["whole"]


@pytest.mark.both_databases
def test_a_result_is_recorded_once_however_often_it_is_sent(app, place, ask):
    monitor = make_monitor(app, places=[place[0]])
    sent = result(monitor, Verdict.UP, datetime.now(UTC))
    for _ in range(3):
        ask("results", results=[sent], version="1.0", clock_offset_ms=-5, checks_per_minute=3)
    results = stored(app, monitor.id)
    assert [(result.verdict, result.location) for result in results] == [(Verdict.UP, "oslo")]
    with app.app_context():
        sign = db.session.scalars(select(SignOfLifeRow)).one()
        assert (sign.location, sign.version, sign.clock_offset_ms) == ("oslo", "1.0", -5)
        scheduled = db.session.scalar(select(AssignmentRow.scheduled_at))
        assert scheduled == last_scheduled(monitor.id, 60, results[0].checked_at)


def test_a_token_reports_no_other_monitor_and_nothing_from_the_future(app, place, ask):
    own, other = make_monitor(app, places=[place[0]]), make_monitor(app)
    now = datetime.now(UTC)
    answer = ask(
        "results",
        results=[
            result(other, Verdict.DOWN, now),
            result(own, Verdict.DOWN, now + timedelta(hours=1)),
            {"made_for": 1, "outcome": {"result": {"verdict": "fine"}}},
            "nonsense",
        ],
    )
    assert (answer["taken"], answer["refused"]) == (0, 4)
    assert stored(app, own.id) == stored(app, other.id) == []
    assert ask("results", status=422, results="nonsense")


def test_a_token_fills_no_time_in_which_no_agent_of_its_place_can_have_checked(app, place, ask):
    now = datetime.now(UTC)
    since = now - timedelta(days=9)
    monitor = make_monitor(app, places=[place[0]], created_at=since, updated_at=since)

    def taken(at):
        return ask("results", results=[result(monitor, Verdict.UP, at)])["taken"]

    assert [taken(now - timedelta(hours=hours)) for hours in (1, 24, 26, 24 * 8)] == [1, 1, 0, 0]
    assert [taken(now + timedelta(seconds=seconds)) for seconds in (5, 60)] == [1, 0]
    assert taken(datetime.min.replace(tzinfo=UTC)) == 0


def test_a_place_that_is_made_again_under_its_old_name_gets_its_results(app, place, ask):
    """Another process deletes it, so the one that takes results is not told."""
    ask(
        "results",
        results=[result(make_monitor(app, places=[place[0]]), Verdict.UP, datetime.now(UTC))],
    )
    with app.app_context(), writing() as session:
        session.delete(session.get_one(PlaceRow, place[0]))
        session.flush()
        row = PlaceRow(name="oslo", carrier="agent", created_at=datetime.now(UTC))
        session.add(row)
        token = give_token(row)
        session.flush()
        again = row.id
    monitor = make_monitor(app, places=[again])
    sent = result(monitor, Verdict.UP, datetime.now(UTC))
    assert ask("results", token=token, results=[sent])["standings"][str(monitor.id)]
    assert [result.location for result in stored(app, monitor.id)] == ["oslo"]


def test_a_failure_is_judged_at_once_and_its_repetition_opens_the_incident(app, place, ask):
    monitor = make_monitor(app, places=[place[0]], confirmations=1)
    now = datetime.now(UTC)
    first = ask("results", results=[result(monitor, Verdict.DOWN, now - timedelta(seconds=20))])
    assert first["standings"][str(monitor.id)]["unconfirmed_at"]
    assert not incidents(app)
    ask("results", results=[result(monitor, Verdict.DOWN, now)])
    assert len(incidents(app)) == 1


def test_an_agent_that_comes_back_to_an_outage_brings_its_time_and_alerts_from_then_on(
    app, place, ask
):
    """The newest result comes first, as the agent sends it, and the ones before it after that."""
    since = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)
    monitor = make_monitor(
        app, places=[place[0]], confirmations=1, created_at=since, updated_at=since
    )
    now = datetime.now(UTC).replace(microsecond=0)
    made = [
        result(
            monitor, Verdict.DOWN if minute < 40 else Verdict.UP, now - timedelta(minutes=minute)
        )
        for minute in range(60)
    ]
    ask("results", results=made[:1])
    ask("results", results=made[30:])
    ask("results", results=made[1:30])
    with app.app_context():
        row = db.session.scalars(select(IncidentRow).where(IncidentRow.found_late)).one()
        assert row.started_at == now - timedelta(minutes=39)
        assert row.ended_at > now, "it goes on"
        assert not db.session.scalars(select(DeliveryRow)).all()
    later = datetime.now(UTC)
    ask("results", results=[result(monitor, Verdict.DOWN, later)])
    (incident,) = incidents(app)
    assert incident.started_at == now
    with app.app_context():
        row = db.session.scalars(select(IncidentRow).where(IncidentRow.found_late)).one()
        assert (row.started_at, row.ended_at) == (now - timedelta(minutes=39), now)


@pytest.mark.parametrize("confirmations", [0, 1])
def test_an_outage_whose_first_checks_come_together_begins_with_the_first(
    app, place, ask, confirmations
):
    monitor = of_yesterday(app, place, confirmations=confirmations)
    now = datetime.now(UTC).replace(microsecond=0)
    first = now - timedelta(seconds=90)
    made = [result(monitor, Verdict.DOWN, at) for at in (now, now - timedelta(seconds=30), first)]
    answer = ask("results", results=made)
    assert answer["taken"] == 3
    (incident,) = incidents(app)
    assert incident.started_at == first
    assert len(stored(app, monitor.id)) == 3
    with app.app_context():
        assert not db.session.scalars(select(IncidentRow).where(IncidentRow.found_late)).all()
        generation = db.session.scalars(select(AssignmentRow.generation)).one()
    up = [result(monitor, Verdict.UP, now + timedelta(seconds=number)) for number in (1, 2)]
    ask("results", results=up)
    (incident,) = incidents(app)
    assert incident.ended_at == now + timedelta(seconds=1)
    with app.app_context():
        assert db.session.scalars(select(AssignmentRow.generation)).one() > generation


@pytest.mark.parametrize("edit", [{"name": "Till"}, {"interval": 30}, {"location_rule": "any"}])
def test_what_an_agent_saw_after_an_edit_that_it_did_not_know_counts(app, place, ask, edit):
    """A cut-off agent goes on with the check that it knows, and the edit has not changed that."""
    monitor = of_yesterday(app, place, confirmations=0)
    edited = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    update(app, monitor, edit, at=edited)
    seen_down = [edited + timedelta(minutes=minute) for minute in (10, 11, 12)]
    made = [result(monitor, Verdict.DOWN, at) for at in seen_down]
    made.append(result(monitor, Verdict.UP, edited + timedelta(minutes=13)))
    assert ask("results", results=made)["taken"] == 4
    with app.app_context():
        outage = db.session.scalars(select(IncidentRow).where(IncidentRow.found_late)).one()
    assert (outage.started_at, outage.ended_at) == (
        seen_down[0],
        seen_down[0] + timedelta(minutes=3),
    )
    newest = result(monitor, Verdict.DOWN, datetime.now(UTC))
    assert str(monitor.id) in ask("results", results=[newest])["standings"]


def test_a_pause_that_an_agent_did_not_know_leaves_its_results_of_before_and_after(app, place, ask):
    monitor = of_yesterday(app, place)
    paused = datetime.now(UTC) - timedelta(minutes=2)
    resumed = paused + timedelta(minutes=1)
    update(app, monitor, {"pause": True}, at=paused)
    update(app, monitor, {"pause": False}, at=resumed)
    before = result(monitor, Verdict.DOWN, resumed - timedelta(seconds=1))
    assert ask("results", results=[before])["standings"] == {}, "it has no vote after the pause"
    after = result(monitor, Verdict.DOWN, resumed + timedelta(seconds=1))
    assert str(monitor.id) in ask("results", results=[after])["standings"]
    assert len(stored(app, monitor.id)) == 2


def test_what_an_agent_saw_of_an_earlier_url_is_left_out_and_logged(app, place, ask, caplog):
    monitor = of_yesterday(app, place)
    changed = datetime.now(UTC) - timedelta(minutes=1)
    update(app, monitor, {"url": "http://127.0.0.1:9/other"}, at=changed)
    before = result(monitor, Verdict.DOWN, changed - timedelta(seconds=1))
    after = result(monitor, Verdict.DOWN, changed + timedelta(seconds=1))
    assert ask("results", results=[before, after])["taken"] == 1
    assert [result.checked_at for result in stored(app, monitor.id)] == [
        from_ms(to_ms(changed - timedelta(seconds=1)))
    ]
    assert "1 results of oslo are left out" in caplog.text


def test_evidence_of_one_place_keeps_no_incident_from_opening_and_breaks_no_list(app, place, ask):
    """Both would be the fault of one agent, for the monitors of all places."""
    monitor = make_monitor(app, places=[place[0]], confirmations=1)
    deep: dict[str, object] = {}
    for _ in range(800):
        deep = {"a": deep}
    now = datetime.now(UTC)
    for seconds in (20, 0):
        sent = result(monitor, Verdict.DOWN, now - timedelta(seconds=seconds))
        odd = {"location": [1], "cause": {}, "url": 5, "resolved": True, "made_up": deep}
        sent["outcome"]["evidence"] = odd | {"ip": "192.0.2.1"}
        assert ask("results", results=[sent])["taken"] == 1
    with app.app_context():
        check = db.session.scalars(select(IncidentRow)).one().evidence["failing"]
    assert (check["location"], check["ip"]) == ("oslo", "192.0.2.1")
    assert "made_up" not in check


def test_the_assertions_of_an_agents_check_are_in_the_evidence(app, place, ask):
    monitor = make_monitor(app, places=[place[0]], confirmations=0)
    row = CheckedAssertion("json", "$.status", "=", "ok", "degraded", False)
    failed = {"cause_code": Cause.ASSERTION_FAILED, "cause": "status is degraded"}
    sent = result(monitor, Verdict.DOWN, datetime.now(UTC), assertions=(row,), **failed)
    assert ask("results", results=[json.loads(json.dumps(sent))])["taken"] == 1
    with app.app_context():
        incident = db.session.scalars(select(IncidentRow)).one()
        assert incident.cause_code == "assertion_failed"
        assert incident.evidence["failing"]["assertions"] == [asdict(row)]


# --- The agent itself


def test_a_token_brings_no_more_than_twenty_times_what_its_monitors_make(
    app, client, place, ask, clock, monkeypatch
):
    """1,000 monitors at 60 s make 167 results in 10 s: a day's backlog takes 76 minutes."""
    assert budget_of(1_000 / 6) == Budget(requests=266, results=3_333, kib=13_332)
    monkeypatch.setattr(agent_results, "MIN_RESULTS", 4)
    monitor = make_monitor(app, places=[place[0]], interval=10)
    now = datetime.now(UTC)
    made = [result(monitor, Verdict.UP, now - timedelta(minutes=minute)) for minute in range(25)]
    assert ask("results", results=made[:19])["taken"] == 19
    assert ask("results", results=made[19:20])["taken"] == 1, "the twentieth"
    clock.advance(seconds=3)
    answer = client.post(
        "/api/v1/agent/results", json={"results": made[20:]},
        headers={"Authorization": f"Bearer {place[1]}"},
    )  # fmt: skip
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
    assert "at most 200 requests, 20 results and 2048 KiB in 10 s" in answer.json["message"]
    assert len(stored(app, monitor.id)) == 20
    assert ask("assigned", status=409), "requests have a budget of their own"
    clock.advance(seconds=7)
    assert ask("results", results=made[20:])["taken"] == 5


def test_the_largest_request_fits_into_the_budget_of_a_place_without_monitors(ask, clock):
    """Otherwise no window would ever take it."""
    assert ask("results", results=[{}] * MAX_RESULTS)["refused"] == MAX_RESULTS
    clock.advance(seconds=10)
    more = ask("results", status=422, results=[{}] * (MAX_RESULTS + 1))
    assert more["errors"] == {"results": [f"Send a list of at most {MAX_RESULTS} results."]}


def test_a_token_sends_no_more_requests_than_its_place_needs(ask, clock, monkeypatch):
    monkeypatch.setattr(agent_results, "MIN_REQUESTS", 2)
    monkeypatch.setattr(agent_results, "MIN_RESULTS", 100)
    for _ in range(4):
        ask("hello", public_key=public())
    assert "at most 4 requests" in ask("hello", status=429, public_key=public())["message"]
    assert ask("hello", token="wa_wrong", status=401), "those of strangers are not counted for it"
    clock.advance(seconds=10)
    ask("hello", public_key=public())


def test_a_token_brings_no_more_bytes_than_two_large_requests_or_its_place_needs(
    ask, clock, monkeypatch
):
    """Otherwise it fills the disk of the database with evidence."""
    monkeypatch.setattr(agent_results, "MIN_KIB", 40)
    monkeypatch.setattr(agent_results, "MIN_RESULTS", 5)
    large = {"made_up": "x" * 20_000}
    assert ask("results", results=[large])["refused"] == 1
    assert ask("hello", public_key=public(), **large), "each request counts"
    answer = ask("results", status=429, results=[])["message"]
    assert "5 results and 40 KiB in 10 s" in answer
    clock.advance(seconds=10)
    ask("results", results=[])


@pytest.mark.both_databases
@pytest.mark.parametrize("path", ["results", "assigned"])
def test_requests_of_one_place_do_not_wait_for_each_other(app, place, ask, path):
    """They would take all threads of the web server."""
    ask("hello", public_key=public())
    with app.extensions["wakeful.agents"]._locks[place[0]]:
        assert "again in a second" in ask(path, status=429, results=[])["message"]
    ask(path, results=[])


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(links, "POST_SECONDS", 0.05)
    monkeypatch.setattr(links, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr(links, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(links, "MAX_PAUSE", 0.1)


def waiting(agent):
    """How many results the server has not taken."""
    return len(agent._buffer.newest(1_000_000, 10**9).bodies)


def test_an_agent_checks_what_it_is_given_and_follows_changes(app, place, tmp_path):
    id, token = place
    with closing(Listener(serve)) as site, serving(app) as url:
        first = make_monitor(app, places=[id], url=page(site))
        with running(agent_settings(tmp_path, url, token)) as agent:
            eventually(lambda: stored(app, first.id), "the first result")
            second = make_monitor(app, places=[id], url=page(site, 503), confirmations=0)
            eventually(lambda: incidents(app), "an incident of the second")
            made = len(stored(app, first.id))
            assert made <= 2
            update(app, first, {"interval": 3600}, at=datetime.now(UTC))
            eventually(lambda: len(stored(app, first.id)) > made, "a check of the new interval")
    assert stored(app, first.id)[0].location == "oslo"
    assert stored(app, second.id)[0].cause_code == "http_status:503"
    assert agent._figures()["checks_per_minute"] >= 2


def test_a_cut_loses_no_result_and_doubles_none(app, place, tmp_path):
    id, token = place
    gate = Gate(app)
    with closing(Listener(serve)) as site, serving(gate) as url:
        monitor = make_monitor(app, places=[id], url=page(site), interval=1)
        with running(agent_settings(tmp_path, url, token)) as agent:
            eventually(lambda: stored(app, monitor.id), "the first result")
            gate.cut = True
            eventually(lambda: waiting(agent) >= 3, "results wait on disk")
        # The agent starts again while the server is away: it knows what to check.
        with running(agent_settings(tmp_path, url, token)) as agent:
            before = waiting(agent)
            eventually(lambda: waiting(agent) > before, "it goes on")
            gate.cut = False
            eventually(lambda: not waiting(agent), "all are sent")
    scheduled = [
        last_scheduled(monitor.id, 1, result.checked_at) for result in stored(app, monitor.id)
    ]
    assert len(scheduled) == len(set(scheduled))
    assert len(scheduled) >= 4
    assert max(later - earlier for earlier, later in pairwise(scheduled)) <= timedelta(seconds=12)


def test_what_a_server_allows_opens_no_network_to_an_agent(app, place, tmp_path, caplog):
    """The server's own setting allows loopback; the agent's allows nothing, and its log says so."""
    id, token = place
    with closing(Listener(serve)) as site, serving(app) as url:
        monitor = make_monitor(app, places=[id], url=page(site), interval=1)
        with running(agent_settings(tmp_path, url, token, allow_networks="")) as agent:
            eventually(lambda: len(stored(app, monitor.id)) > 1, "two results")
            assert agent._figures() == {"checks_per_minute": 0}, "they were not made"
    (result,) = stored(app, monitor.id)[:1]
    assert result.cause_code == Cause.BLOCKED_BY_POLICY
    assert "of this agent" in result.cause
    (message,) = [
        message
        for message in caplog.messages
        if "ALLOW_NETWORKS of this agent allows no" in message
    ]
    assert message.endswith(result.cause)


def test_the_log_names_the_setting_only_if_it_refuses_every_monitor(caplog):
    def note(**verdicts):
        results = [
            (id, make_outcome(verdict, datetime.now(UTC), cause_code=cause).result)
            for id, (verdict, cause) in enumerate(verdicts.values(), 1)
        ]
        closed.note(results, [1, 2])
        return len(caplog.messages)

    refused, made = (Verdict.UNKNOWN, Cause.BLOCKED_BY_POLICY), (Verdict.UP, None)
    closed = RefusedChecks()
    assert note(first=refused) == 0, "the second has not been checked yet"
    assert note(first=refused, second=made) == 0
    assert note(first=refused, second=refused) == note(first=refused) == 1, "it is said once"
    assert note(first=made) == 1
    assert note(first=refused) == 2, "and again after a check was made"


def test_a_proxy_is_for_the_server_and_never_for_checks(app, place, tmp_path, monkeypatch):
    id, token = place
    with closing(ClosedPort()) as nowhere, closing(Listener(serve)) as site, serving(app) as url:
        proxy = f"http://127.0.0.1:{nowhere.port}"
        for name in ("HTTPS_PROXY", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy)
        monitor = make_monitor(app, places=[id], url=page(site))
        with running(agent_settings(tmp_path, url, token)) as agent:
            eventually(lambda: stored(app, monitor.id), "a result")
            assert agent._link._session.proxies == {"https": proxy}
    assert stored(app, monitor.id)[0].verdict is Verdict.UP


def test_an_agent_waits_as_long_as_the_server_says_and_loses_no_result(
    app, place, tmp_path, caplog, monkeypatch
):
    for name, value in (("WINDOW_SECONDS", 1), ("MIN_RESULTS", 3), ("ROOM", 0)):
        monkeypatch.setattr(agent_results, name, value)
    monkeypatch.setattr(links, "MAX_RESULTS", 3)
    monitor = of_yesterday(app, place)
    version, now = to_ms(monitor.updated_at), datetime.now(UTC)
    times = [now - timedelta(minutes=minute) for minute in range(10, 0, -1)]
    tries = []

    def stored_times():
        return [to_ms(result.checked_at) for result in stored(app, monitor.id)]

    def server(environ, start_response):
        tries.append(environ["PATH_INFO"])
        return app(environ, start_response)

    with serving(server) as url:
        settings = agent_settings(tmp_path, url, place[1])
        settings.instance.mkdir()
        with closing(Buffer(settings.instance)) as buffer:
            buffer.add(
                [
                    MadeResult(monitor.id, version, at, result(monitor, Verdict.UP, at))
                    for at in times
                ]
            )
        with running(settings):
            eventually(lambda: {to_ms(at) for at in times} <= set(stored_times()), "all are taken")
            eventually(lambda: "works again" in caplog.text, "the log says it")
    assert len(stored_times()) == len(set(stored_times()))
    # Four for ten results, and hardly more that were refused: it does not try in between.
    assert 4 <= sum(path.endswith("results") for path in tries) <= 14
    sentence = "takes no more requests now (429: The agent of oslo sends too much: at most "
    # Once for the backlog, not for each of its pauses; again at most for a result that comes later.
    assert 1 <= caplog.text.count(sentence) == caplog.text.count("(429") <= 2


@pytest.mark.parametrize(("asked", "waited"), [(59, 59), (60, 60), (61, 60), (86_400, 60)])
def test_an_agent_waits_a_minute_at_most_because_the_server_says_so(
    asked, waited, tmp_path, monkeypatch
):
    def server(environ, start_response):
        start_response("429 Too Many", [("Retry-After", str(asked)), ("Content-Length", "0")])
        return []

    waits, options = [], {"network": NETWORK, "wake": int, "figures": dict}
    with serving(server) as url, closing(Buffer(tmp_path)) as buffer:
        link = links.ServerLink(url, "wa_token", tmp_path, buffer, Clock(), **options)
        monkeypatch.setattr(link._ended, "wait", waits.append)
        with pytest.raises(Later) as caught:
            link._turn()
        link._pause_after(caught.value)
    assert waits == [waited]


def test_a_revoked_agent_waits_longer_from_try_to_try_while_results_come(
    app, place, tmp_path, caplog
):
    """Otherwise each result would be a request, and the log of the server full of them."""
    tries = []

    def server(environ, start_response):
        tries.append(time.monotonic())
        agent._link.send_soon()  # another result has come
        return app(environ, start_response)

    with serving(server) as url:
        agent = Agent(agent_settings(tmp_path, url, "wa_revoked"))
        stop = threading.Event()
        thread = threading.Thread(target=agent.run, args=[stop])
        thread.start()
        eventually(lambda: len(tries) >= 4, "four tries")
        stop.set()
        agent.checks.wake()
        thread.join(60)
    pauses = [later - attempt for attempt, later in pairwise(tries[:4])]
    assert all(pause >= least for pause, least in zip(pauses, (0.05, 0.1, 0.1), strict=True))
    assert f"The server {url} refuses the agent: 401: No place has this token" in caplog.text
    assert caplog.text.count("refuses the agent") == 1


def away(connection):
    """A proxy whose server is stopped."""
    connection.read_until(b"\r\n\r\n")
    connection.send(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
    connection.finish()


# The fault depends on how much of the request was sent.
LOST = ("it closed the connection without an answer.", "connection reset by peer.", "broken pipe.")
UNREACHED = [
    (ClosedPort, "http", "connection refused."),
    (BlackHole, "http", "no connection in time."),
    (lambda: Listener(plain_http), "https", "this port speaks no TLS."),
    (lambda: Listener(close_in_handshake), "https", "TLS failed ("),
    (lambda: Listener(close_in_handshake), "http", LOST),
    (lambda: Listener(reset_in_handshake), "http", LOST),
    (lambda: Listener(serve), "http", "what answers there is not Wakeful's API (status 404)."),
    (lambda: Listener(away), "http", "a proxy before it answers 502: "),
]


def said_of(url, tmp_path, caplog, **more):
    """The lines in the log on a server that is not reached."""
    buffer, options = Buffer(tmp_path), {"network": NETWORK, "wake": int, "figures": dict} | more
    with closing(buffer):
        link = links.ServerLink(url, "wa_token", tmp_path, buffer, Clock(), **options)
        link.start()
        eventually(lambda: caplog.text, "the log says it")
        link.close(10)
    assert "Traceback" not in caplog.text
    return caplog.messages[0].removeprefix(f"The server {url} cannot be reached: ")


@pytest.mark.parametrize(("server", "scheme", "expected"), UNREACHED)
def test_the_log_says_which_server_is_not_reached_and_why(
    server, scheme, expected, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(links, "CONNECT_SECONDS", 1.0)
    with closing(server()) as there:
        reason = said_of(f"{scheme}://127.0.0.1:{there.port}", tmp_path, caplog)
    assert reason.startswith(expected)


def test_the_log_says_that_a_name_is_not_found_or_a_certificate_not_trusted(tmp_path, caplog):
    assert said_of("https://wakeful.invalid", tmp_path, caplog) == "its name is not found."
    caplog.clear()
    context = Certificates(tmp_path).context("self_signed")
    with closing(Listener(over_tls(context, serve))) as there:
        reason = said_of(f"https://127.0.0.1:{there.port}", tmp_path, caplog)
    assert reason.startswith("its certificate is not trusted (self")


def refuse(connection):
    connection.read_until(b"\r\n\r\n")
    connection.send(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
    connection.finish()


@pytest.mark.parametrize(
    ("proxy", "why"),
    [(ClosedPort, "connection refused."), (lambda: Listener(refuse), "it answers 407.")],
)
def test_the_log_says_that_a_proxy_does_not_serve(proxy, why, tmp_path, caplog, monkeypatch):
    with closing(proxy()) as there:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{there.port}")
        reason = said_of("https://wakeful.invalid", tmp_path, caplog)
    assert reason == f"the proxy of HTTPS_PROXY: {why}"


API, PAGE = b'{"status": 429, "message": "Send the rest in 7 s."}', b"<h1>Slow down</h1>"
LATER = (
    "The server {url}, or a proxy before it, takes no more requests now ({why}). Results are kept"
    " here for a day, and are sent later."
)


@pytest.mark.parametrize(
    ("status", "body", "expected", "why"),
    [
        (429, API, LATER, "429: Send the rest in 7 s."),
        (429, PAGE, LATER, "429"),
        (503, API, "The server {url} has a fault: {why}", "503: Send the rest in 7 s."),
        (403, API, "The server {url} refuses the agent: {why}", "403: Send the rest in 7 s."),
    ],
)
def test_the_log_says_of_an_answer_what_is_known(status, body, expected, why, tmp_path, caplog):
    def server(environ, start_response):
        start_response(f"{status} X", [("Content-Length", str(len(body)))])
        return [body]

    with serving(server) as url:
        assert said_of(url, tmp_path, caplog) == expected.format(url=url, why=why)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "no space left on device."),
        (KeyError("standings"), "KeyError."),
    ],
)
def test_the_log_does_not_blame_the_server_for_the_agents_own_faults(
    fault, why, tmp_path, caplog, monkeypatch
):
    def fail(_self):
        raise fault

    monkeypatch.setattr(links.ServerLink, "_hello", fail)
    with closing(Buffer(tmp_path)) as buffer:
        link = links.ServerLink(
            "http://127.0.0.1:9", "wa_token", tmp_path, buffer, Clock(),
            network=NETWORK, wake=int, figures=dict,
        )  # fmt: skip
        link.start()
        eventually(lambda: caplog.messages, "the log says it, and has the traceback")
        link.close(10)
    prefix = "The agent's exchange with the server http://127.0.0.1:9 failed: "
    assert caplog.messages[0] == prefix + why
    assert caplog.records[0].exc_info


@pytest.mark.parametrize("missing", ["server", "agent_token"])
def test_a_missing_setting_is_named(tmp_path, missing):
    settings = agent_settings(tmp_path, "http://127.0.0.1:9", "wa_token")
    with pytest.raises(SettingError, match=missing.upper()):
        Agent(replace(settings, **{missing: None}))


def test_a_clock_follows_the_quickest_answer():
    clock, sent, at = Clock(), uptime(), datetime.now(UTC)
    for took, received, answered in ((4.0, 64, 64), (3.0, 60.1, 62.9), (2.0, 62, 62)):
        moments = (at + timedelta(seconds=seconds) for seconds in (received, answered))
        clock.measure(sent, took, *moments)
    assert clock.offset.total_seconds() == pytest.approx(60, abs=MIN)
    assert (clock.corrected(at) - at).total_seconds() == pytest.approx(60, abs=MIN)


def test_two_agents_do_not_share_a_folder(tmp_path):
    settings = agent_settings(tmp_path, "http://127.0.0.1:9", "wa_token")
    first = Agent(settings)
    with pytest.raises(SettingError, match="another agent works in"):
        Agent(settings)
    first._buffer.close()
    Agent(settings)._buffer.close()


@pytest.mark.parametrize("name", ["agent.lock", "agent_key"])
def test_a_folder_that_cannot_be_used_is_named(name, tmp_path):
    settings = agent_settings(tmp_path, "http://127.0.0.1:9", "wa_token")
    (settings.instance / name).mkdir(parents=True)
    with pytest.raises(SettingError, match=r"agent\S* cannot be .*\(Is a directory\)"):
        Agent(settings)


def test_all_outcomes_of_the_last_checks_are_kept_when_an_agent_stops(tmp_path):
    """Outcomes above 200 were dropped. The first 200 wait for an answer, which comes after them."""
    settings = agent_settings(tmp_path, "http://127.0.0.1:9", "wa_token", canaries="127.0.0.1:9")
    agent = Agent(settings)
    job = Job(1, CheckSpec(url="http://127.0.0.1:9/", monitor_id=1), 60, 0, 0, Standing(5))
    agent._jobs[1] = job
    for number in range(450):
        verdict = Verdict.DOWN if number < 200 else Verdict.UP
        fields = {"answered": verdict is Verdict.UP, "ip": "127.0.0.1"}
        agent.checks.put_outcome(job.claim(), make_outcome(verdict, datetime.now(UTC), **fields))
    stop = threading.Event()
    stop.set()
    agent.run(stop)
    with closing(Buffer(tmp_path / "agent")) as buffer:
        assert len(buffer.newest(1000, 10**9).bodies) == 450


def test_a_damaged_key_is_named_with_the_way_out(tmp_path):
    settings = agent_settings(tmp_path, "http://127.0.0.1:9", "wa_token")
    settings.instance.mkdir()
    (settings.instance / "agent_key").write_bytes(b"\0\xff garbage")
    with pytest.raises(SettingError, match="make a new token"):
        Agent(settings)


SMUGGLED = "\r\nSET smuggled yes\r\n"  # a command for a Redis beside the agent
LIES = [
    *({"interval": value} for value in (0, -60, 10**30, "often", None, True, float("nan"))),
    *({"version": value} for value in (None, "x", 10**30)),
    *({"standing": value} for value in (None, [], {"slot": 5, "checked_at": [], "blind": "x"})),
    {"standing": dict.fromkeys(("slot", "checked_at", "unconfirmed_at"), "9999-12-31T23:59:59Z")},
    *({"spec": value} for value in (None, [], {}, "x")),
    *({"monitor_id": value} for value in (None, 0, -1, 2**63, "x", True)),
    *(
        {"url": value}
        for value in (5, None, "nonsense", "file:///etc/passwd", "http://[", "x" * 10**4)
    ),
    *({"timeout": value} for value in (0, -1, 10**30, "x", None, float("nan"))),
    *({name: 5} for name in ("request_headers", "auth", "request_body", "accepted_statuses")),
    {"request_headers": [["A\r\nB", "C\r\nD"]]},
    {"request_headers": [["X", f"a{SMUGGLED}"]]},
    {"request_headers": [[5, None]]},
    {"auth": ["a", 5]},
    {"request_method": "GET / HTTP/1.1\r\nX: y\r\n\r\n"},
    {"request_method": f"SET{SMUGGLED}"},
    {"accepted_statuses": "nonsense"},
    {"alert_condition": "nonsense", "alert_text_lookup": "x"},
    {"slow_after": "x"},
    {"ssl_alert_days": "x"},
    {"made_up": 5},
]


NOW_AND_NOW = b'"received": "2026-11-23T18:00:00Z", "now": "9999-12-31T23:59:59Z"'
ODD = [
    b"<html>Please log in to this network</html>",
    b"[]",
    b'{"data": []}',
    b'{"data": {}}',
    b'{"data": {%s}}' % NOW_AND_NOW,
    b'{"data": {"taken": 1, "refused": 0, "change": 1e999, "standings": {}, %s}}' % NOW_AND_NOW,
    b'{"data": {"refused": 0, "change": 1, "standings": {"x": 1}, %s}}' % NOW_AND_NOW,
    b'{"data": {"refused": 0, "change": 1, "standings": {"1": {"unconfirmed_at": 1}}}}',
    b'{"data": {"sealed": "AAAA", "change": 1}}',
    b'{"data": {"sealed": 5, "change": 1}}',
    b"[" * 100_000,
    b"\xff\xfe",
    b"",
]


class Liar:
    """A server in whose ``assigned`` are monitors as it likes them, around a good one; and which
    may answer anything to ``odd``, a path.
    """

    def __init__(self, app, lies):
        self.app, self.lies, self.spec, self.odd, self.heard = app, lies, {}, {}, 0
        self.version = 0

    def __call__(self, environ, start_response):
        self.heard += 1
        path = environ["PATH_INFO"].rpartition("/")[2]
        if path in self.odd:
            start_response("200 OK", [("Content-Type", "text/html")])
            return [self.odd[path]]
        if path != "assigned":
            return self.app(environ, start_response)
        lies = [self.assignment(lie, 1_000_000 + number) for number, lie in enumerate(self.lies)]
        lies.insert(len(lies) // 2, self.assignment())
        answer = {"whole": True, "assigned": lies, "gone": []}
        public = public_key_of(KEY)
        sealed = base64.b64encode(seal_to(public, answer, ABOUT_ASSIGNED.format("oslo"))).decode()
        now = datetime.now(UTC).isoformat()
        data = {"change": 0, "sealed": sealed, "received": now, "now": now}
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps({"data": data, "status": 200}).encode()]

    def assignment(self, lie=None, id=0):
        standing = {"slot": None, "checked_at": None, "unconfirmed_at": None, "blind": False}
        assignment = {
            "spec": dict(self.spec),
            "interval": 1,
            "version": self.version,
            "standing": standing,
        }
        if lie is None:
            return assignment
        assignment["spec"]["monitor_id"] = id
        for name, value in lie.items():
            (assignment if name in assignment else assignment["spec"])[name] = value
        return assignment


def with_our_key(tmp_path, place):
    settings = agent_settings(tmp_path, "", place[1])
    settings.instance.mkdir()
    (settings.instance / "agent_key").write_text(base64.b64encode(KEY).decode())
    return settings


def test_an_agent_survives_a_server_that_lies(app, place, tmp_path, caplog):
    """And sends nothing that no monitor sends."""
    received = []

    def listen(connection):
        received.append(connection.read_until(b"\r\n\r\n"))
        connection.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    liar, settings = Liar(app, LIES), with_our_key(tmp_path, place)
    with closing(Listener(listen)) as site, serving(liar) as url:
        monitor = make_monitor(app, url=page(site), places=[place[0]], interval=1)
        liar.spec = {"url": page(site), "monitor_id": monitor.id}
        liar.version = to_ms(monitor.updated_at)
        with running(replace(settings, server=url)) as agent:
            eventually(lambda: len(stored(app, monitor.id)) >= 2, "results of the good monitor")
            for path in ("assigned", "results"):
                for odd in ODD:
                    heard = liar.heard
                    liar.odd = {path: odd}
                    agent._link.reload()
                    eventually(lambda heard=heard: liar.heard > heard + 1, "it asked again")
            liar.odd, before = {}, len(stored(app, monitor.id))
            eventually(lambda: len(stored(app, monitor.id)) > before, "results come again")
    # Lies of fields with a default are checked as the good monitor is; the site hears no others.
    assert {request.split()[0] for request in received} == {b"GET"}
    assert b"smuggled" not in b"".join(received)
    assert "monitors that the server sent cannot be read" in caplog.text
    assert "If their versions of Wakeful differ, run the same on both." in caplog.text


def test_a_slow_answer_that_fits_the_known_difference_changes_nothing():
    clock, sent = Clock(), uptime()
    late = datetime.now(UTC) + timedelta(seconds=1.9)
    clock.measure(sent, 2.0, late, late)  # it waited on its way to the server
    assert abs(clock.offset) < timedelta(seconds=0.05)


def test_setting_this_machines_clock_does_not_change_the_servers_time(monkeypatch):
    """An agent whose clock was set back by an hour while its server was away stood still for it."""
    clock, real = Clock(), time.time
    at = datetime.now(UTC)
    clock.measure(uptime(), 0.0, at, at)
    monkeypatch.setattr("app.engine.agent.link.time.time", lambda: real() - 3600)
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=5)
    assert clock.offset.total_seconds() == pytest.approx(3600, abs=5)
