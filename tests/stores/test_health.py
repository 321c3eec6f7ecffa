"""Monitors that no checker checks are reported by /readyz, /metrics and ``wakeful doctor``."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from app import create_app
from app.commands.doctor import examine
from app.db import db, journal, places, shards, writing
from app.db.tables import AssignmentRow, MonitorRow, PlaceRow
from app.engine.own_shards import OwnShards
from app.records import Verdict
from app.stores import health
from tests.factories import make_monitor

NOW = datetime.now(UTC)


@pytest.fixture
def checker(core):
    """One that runs in the default place."""
    with core.app_context():
        checker = OwnShards("checker:elsewhere:one", "default")
        checker.look(NOW, 0)
        yield checker


def faults(seconds=0.0):
    return health.health(NOW + timedelta(seconds=seconds)).faults


def test_a_checker_with_all_shards_is_healthy(core, checker):
    make_monitor(core)
    assert faults() == faults(15) == ()


@pytest.mark.both_databases
def test_a_place_without_a_checker_is_named_with_its_waiting_monitors(core, checker, settings):
    with core.app_context():
        oslo = journal.place_id("oslo")
    for paused in (False, False, True):
        make_monitor(core, places=[1, oslo], paused=paused)
    [sentence] = faults()
    assert sentence.startswith("No checker runs in the place oslo, from where 2 monitors should be")
    assert "WAKEFUL_LOCATION=oslo" in sentence
    assert health.health(NOW).left_alone == 2
    checker.look(datetime.now(UTC), 0)  # the doctor has a clock of its own
    findings = [finding for finding in examine(core, settings) if finding.label == "checker"]
    assert [(finding.is_problem, finding.sentence) for finding in findings] == [
        (False, "It runs."),
        (True, sentence),
    ]


def test_shards_that_nobody_takes_are_reported_after_a_while(core, checker):
    ids = [make_monitor(core).id for _ in range(3)]
    with writing() as session:
        shards.release(session, 1, [shards.of(ids[0])], checker.name, NOW)
        shards.renew(session, 1, checker.name, NOW + timedelta(seconds=60))
    assert health.left_alone(NOW + timedelta(seconds=29)) == []
    [place] = health.left_alone(NOW + timedelta(seconds=40))
    text = str(place)
    if shards.count() == 1:
        assert text.startswith("No checker runs in the place default")
    else:
        assert text == "In the place default, nobody has checked 1 monitor for 30 s or more."


def test_a_lease_too_far_in_the_future_counts_as_none(core, checker):
    make_monitor(core)
    with writing() as session:
        shards.renew(session, 1, checker.name, NOW + timedelta(hours=6))
    assert len(faults()) == 1


def test_an_installation_is_ready_before_its_first_monitor_and_not_while_monitors_wait(app):
    """This holds even if heartbeats were deleted: none may have run for a day."""

    def figures():
        lines = app.test_client().get("/metrics").text.splitlines()
        return [line for line in lines if line.startswith("wakeful_ready ")]

    def answer():
        ready = app.test_client().get("/readyz")
        return ready.status_code, ready.json["faults"]

    make_monitor(app, paused=True)
    assert answer() == (200, [])
    assert figures() == ["wakeful_ready 1.0"]
    make_monitor(app)
    assert answer() == (503, [health.CHECKER_SILENT])
    assert figures() == ["wakeful_ready 0.0"]
    make_monitor(app, alerts=[("email", "ops@example.org")])
    assert answer() == (503, [health.CHECKER_SILENT, health.WORKER_SILENT])


def test_a_silent_agent_is_no_fault_where_no_other_check_was_due(core, checker):
    with writing() as session:
        place = PlaceRow(name="oslo", carrier="agent", created_at=NOW)
        session.add(place)
        session.flush()
        id = place.id
    make_monitor(core, places=[id])
    before = NOW - timedelta(minutes=4)
    checker.look(NOW, 0)
    places.store_sign("oslo", before, process="agent:oslo", last_check_at=before)
    with writing() as session:
        session.execute(update(MonitorRow).values(updated_at=before))
    assert health.health(NOW).faults == ()


@pytest.mark.both_databases
@pytest.mark.parametrize("carrier", ["agent", "queue"])
def test_a_silent_agent_or_prober_is_a_warning_with_its_waiting_monitors(core, checker, carrier):
    settings = core.extensions["wakeful.settings"]
    with writing() as session:
        place = PlaceRow(name="oslo", carrier=carrier, created_at=NOW)
        session.add(place)
        session.flush()
        id = place.id
    make_monitor(core, places=[1, id])
    checkers = [checker]
    if carrier == "queue":
        checkers.append(OwnShards("checker:elsewhere:two", "oslo"))
    for owner in checkers:
        owner.look(NOW, 0)
    places.store_sign("oslo", NOW, process=f"{carrier}:oslo", last_check_at=NOW)
    assert health.health(NOW).warnings == ()
    before = NOW - timedelta(minutes=4)
    places.store_sign("oslo", before, process=f"{carrier}:oslo", last_check_at=before)
    with writing() as session:
        session.execute(update(MonitorRow).values(updated_at=before))
    checker.look(NOW, 0, NOW)  # others are checked
    report = health.health(NOW)
    sentence = "The place oslo is silent: 1 monitor waits for its checks."
    assert (report.faults, report.warnings) == ((), (sentence,))
    for owner in checkers:
        owner.look(datetime.now(UTC), 0)  # the doctor has a clock of its own
    assert sentence in [
        finding.sentence for finding in examine(core, settings) if finding.is_problem
    ]


@pytest.mark.parametrize("carrier", ["agent", "local"])
def test_a_place_that_may_make_no_check_is_a_warning_that_holds_no_address(core, checker, carrier):
    settings = core.extensions["wakeful.settings"]
    with writing() as session:
        place = PlaceRow(name="oslo", carrier=carrier, created_at=NOW)
        session.add(place)
        session.flush()
        id = place.id
    for _ in range(2):
        make_monitor(core, places=[1, id])
    checkers = [checker]
    if carrier == "local":
        checkers.append(OwnShards("checker:elsewhere:two", "oslo"))
    for owner in checkers:
        owner.look(NOW, 0)
    places.store_sign("oslo", NOW, process=f"{carrier}:oslo", last_check_at=NOW)

    def last_checks(*verdicts):
        with writing() as session:
            of_oslo = select(AssignmentRow).where(AssignmentRow.location_id == id)
            for row, verdict in zip(session.scalars(of_oslo), verdicts, strict=True):
                row.verdict = verdict

    last_checks(Verdict.UNKNOWN, Verdict.UP)
    assert health.health(NOW).warnings == ()
    assert health.unable_places(NOW) == []
    last_checks(Verdict.UNKNOWN, Verdict.UNKNOWN)
    sentence = "The place oslo can check none of its 2 monitors. The list of places says why."
    assert (health.health(NOW).faults, health.health(NOW).warnings) == ((), (sentence,))
    assert health.unable_places(NOW) == [sentence]
    if carrier == "local":
        gone = NOW + timedelta(minutes=2)
        assert health.unable_places(gone) == [], "that its checker is gone is told instead"
    now = datetime.now(UTC)  # the doctor has a clock of its own
    for owner in checkers:
        owner.look(now, 0)
    places.store_sign("oslo", now, process=f"{carrier}:oslo", last_check_at=now)
    assert sentence in [
        finding.sentence for finding in examine(core, settings) if finding.is_problem
    ]


def test_a_queue_that_no_prober_has_ever_served_is_not_called_silent(core, checker):
    before = NOW - timedelta(minutes=4)
    with writing() as session:
        place = PlaceRow(name="oslo", carrier="queue", created_at=before)
        session.add(place)
        session.flush()
        id = place.id
    make_monitor(core, places=[1, id], updated_at=before)
    OwnShards("checker:elsewhere:two", "oslo").look(NOW, 0)
    places.store_sign("oslo", NOW, process="checker:elsewhere:two")
    sentence = "Nobody has checked from the place oslo yet: 1 monitor waits for its checks."
    assert health.health(NOW).warnings == (sentence,)


def test_a_dashboard_over_remote_servers_is_ready_while_one_answers(settings, core, httpserver):
    """Callers of /readyz have no key: the servers are asked once for all of them."""
    monitors = httpserver.expect_request(
        "/api/v1/monitors", headers={"Authorization": "Bearer right-key"}
    )
    monitors.respond_with_json({"data": []})
    here = f"http://127.0.0.1:{httpserver.port}"

    def ready(*keys):
        remotes = tuple((here, key) for key in keys)
        remote = create_app(replace(settings, store="remote", remotes=remotes))
        answers = [remote.test_client().get("/readyz") for _ in range(3)]
        assert len({answer.text for answer in answers}) == 1
        with remote.app_context():
            db.engine.dispose()
        last = answers[-1]
        return last.status_code, len(last.json["faults"]), len(last.json["warnings"])

    assert ready("right-key") == (200, 0, 0)
    assert ready("wrong-key") == (503, 1, 0)
    before = len(httpserver.log)
    assert ready("right-key") == (200, 0, 0)
    assert (
        len([line for line in httpserver.log[before:] if line[0].path == "/api/v1/monitors"]) == 1
    )
