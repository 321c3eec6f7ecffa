"""The whole engine against a real server: from a monitor's row to its incident and back."""

import logging
import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sqlalchemy import select, update

from app.db import db, journal, shards, writing
from app.db.settings import setting, store_setting
from app.db.tables import (
    AssignmentRow,
    DeliveryRow,
    IncidentRow,
    MonitorStateRow,
    ResultRow,
    SettingRow,
    SignOfLifeRow,
)
from app.engine import now, recorder, schedule
from app.engine.checker import NOTICE_NETWORK, Checker
from app.errors import NotFound
from app.records import CheckSpec, Verdict
from app.stores.local import LocalStore
from app.version import __version__
from tests.factories import make_monitor
from tests.lab.net import BlackHole, ClosedPort, Listener
from tests.support.checkers import Place, Site, due_at_once, results, running, until


@pytest.fixture(autouse=True)
def no_second_round(monkeypatch):
    """A monitor's place in its minute may come round during a test: one check more than counted."""
    monkeypatch.setattr(
        "app.engine.schedule.next_check",
        lambda _id, _interval, _at: datetime.now(UTC) + timedelta(hours=1),
    )


@pytest.mark.both_databases
def test_an_outage_is_followed_from_monitor_to_alert(core, settings, site):
    """Decision 4: first failure, confirmations, incident, recovery, its confirmation."""
    id = make_monitor(core, url=site.url, confirmations=2, alerts=[["email", "a@example.test"]]).id
    with running(core, settings):
        until(core, lambda: results(id))
        site.status = 503
        due_at_once(core, id)
        until(core, lambda: db.session.scalar(select(IncidentRow.id)))
        site.status = 200
        due_at_once(core, id)
        until(core, lambda: db.session.scalar(select(IncidentRow.ended_at)))
    with core.app_context():
        verdicts = [result.verdict for result in results(id)]
        assert verdicts == [Verdict.UP] + 3 * [Verdict.DOWN] + 2 * [Verdict.UP]
        incident = db.session.scalars(select(IncidentRow)).one()
        failing, recovery = results(id)[1], results(id)[4]
        assert incident.started_at == failing.checked_at.replace(microsecond=0)
        assert incident.ended_at == recovery.checked_at.replace(microsecond=0)
        assert incident.cause_code == "http_status:503"
        assert "503" in incident.cause
        assert incident.evidence["failing"]["status_code"] == 503
        assert incident.evidence["failing"]["body"] == "ok"
        assert len(incident.evidence["confirming"]) == 2
        assert incident.evidence["last_good"]["status_code"] == 200
        usual = incident.evidence["usual"]
        assert usual["checked_at"] == incident.evidence["last_good"]["checked_at"]
        facts = db.session.scalars(select(DeliveryRow.facts).order_by(DeliveryRow.id)).first()
        assert facts["incident"]["changes"][0]["text"] == "Status 503, was 200"
        events = db.session.scalars(select(DeliveryRow.event).order_by(DeliveryRow.id)).all()
        assert events == ["incident.opened", "incident.resolved"]
        state = db.session.get(MonitorStateRow, id)
        assert state.verdict == "up"
        assert state.unconfirmed_at is None, "back in the schedule"
        sign = db.session.scalars(select(SignOfLifeRow)).one()
        assert sign.name.startswith("checker:")
        assert sign.ended_at is not None, "a checker that was stopped passes for alive"
        assert sign.last_check_at is not None
        assert (sign.location, sign.version) == ("default", __version__)
    assert site.asked == 6, "not one check more"


def checked():
    return set(db.session.scalars(select(ResultRow.monitor_id)))


def test_a_thousand_due_at_once_do_not_start_at_once(core, settings, site):
    """Twenty a second, and five at once. A busy machine makes it slower, never faster."""
    for _ in range(30):
        make_monitor(core, url=site.url)
    began = time.monotonic()

    def all_of_them():
        asked, seconds = site.asked, time.monotonic() - began
        assert asked <= 5 + schedule.MINIMUM_PACE * seconds
        return len(checked()) == 30

    with running(core, settings):
        until(core, all_of_them)
    assert site.asked == 30
    assert time.monotonic() - began >= (30 - 5) / schedule.MINIMUM_PACE


def test_a_stop_waits_for_running_checks(core, settings, site):
    id = make_monitor(core, url=site.url).id
    site.hold.clear()
    with running(core, settings):
        until(core, lambda: site.asked == 1)
        threading.Timer(0.3, site.hold.set).start()
    with core.app_context():
        assert [result.verdict for result in results(id)] == [Verdict.UP]


def test_a_stop_gives_up_the_shards_of_checks_that_do_not_return(core, settings, site, monkeypatch):
    monkeypatch.setattr("app.engine.checking.STOP_SECONDS", 0.1)
    id = make_monitor(core, url=site.url).id
    site.hold.clear()
    with running(core, settings):
        until(core, lambda: site.asked == 1)
    with core.app_context():
        assert results(id) == []
        assert {shard.owner for shard in shards.read(1)} == {None}
        assert db.session.get(AssignmentRow, (id, 1)).scheduled_at is None, "due at once"


@pytest.mark.both_databases
def test_two_checkers_share_the_work_and_check_nothing_twice(core, settings, site):
    ids = [make_monitor(core, url=site.url).id for _ in range(20)]
    with running(core, settings, paced=False), running(core, settings, paced=False):
        until(core, lambda: checked() == set(ids))
    with core.app_context():
        assert sorted(db.session.scalars(select(ResultRow.monitor_id))) == ids
    assert site.asked == 20


def test_two_places_each_make_their_own_checks(core, settings, site):
    elsewhere = replace(settings, location="oslo")
    with core.app_context():
        oslo = journal.place_id("oslo")
    here = make_monitor(core, url=site.url).id
    there = make_monitor(core, url=site.url, places=[oslo]).id
    both = make_monitor(core, url=site.url, places=[1, oslo]).id

    def checked():
        return sorted(db.session.execute(select(ResultRow.monitor_id, ResultRow.location_id)))

    wanted = sorted([(here, 1), (there, oslo), (both, 1), (both, oslo)])
    with running(core, settings), running(core, elsewhere):
        until(core, lambda: checked() == wanted)
    with core.app_context():
        assert {result.location for result in results(both)} == {"default", "oslo"}


def test_a_place_that_is_taken_off_makes_no_more_checks(core, settings, site):
    id = make_monitor(core, url=site.url).id
    store = LocalStore(settings)
    with core.app_context():
        journal.place_id("oslo")
    with running(core, settings):
        until(core, lambda: results(id))
        with core.app_context():
            assert store.monitors.update(id, {"locations": ("oslo",)}).locations == ("oslo",)
        due_at_once(core, id)
        other = make_monitor(core, url=site.url).id
        until(core, lambda: results(other))
    with core.app_context():
        assert len(results(id)) == 1


def test_a_created_changed_or_resumed_monitor_is_checked_at_once(core, settings, site):
    store = LocalStore(settings)
    fields = {"name": "Shop", "url": site.url, "interval": 3600}
    with running(core, settings):
        until(core, lambda: {shard.owner for shard in shards.read(1)} not in (set(), {None}))
        with core.app_context():
            id = store.monitors.create(fields).id
        until(core, lambda: len(results(id)) == 1)
        changes = {"timeout": 7}, {"interval": 7200}, {"pause": True}, {"pause": False}
        for wanted, change in zip((2, 3, 3, 4), changes, strict=True):
            with core.app_context():
                store.monitors.update(id, change)
            until(core, lambda wanted=wanted: len(results(id)) == wanted)
    assert site.asked == 4


def test_a_changed_monitor_is_checked_although_an_earlier_check_hangs(core, settings, site):
    slow, store = Site(), LocalStore(settings)
    slow.hold.clear()
    id = make_monitor(core, url=slow.url, timeout=60).id
    try:
        with running(core, settings):
            until(core, lambda: slow.asked == 1)
            with core.app_context():
                store.monitors.update(id, {"url": site.url})
            until(core, lambda: results(id))
            slow.hold.set()
    finally:
        slow.close()
    with core.app_context():
        assert len(results(id)) == 1, "the other one says nothing about what is watched now"
    assert site.asked == 1


@pytest.mark.settings(confirm_seconds=0.5)
def test_a_failure_that_was_being_confirmed_is_confirmed_by_the_next_checker(core, settings, site):
    """A failure that waits to be repeated outlives the process that has seen it."""
    id = make_monitor(core, url=site.url, confirmations=1).id
    site.status = 503
    with core.app_context():
        now.check_now(id)
        assert db.session.scalar(select(IncidentRow.id)) is None
        with writing() as session:
            session.execute(update(AssignmentRow).values(scheduled_at=datetime.now(UTC)))
    with running(core, settings):
        until(core, lambda: db.session.scalar(select(IncidentRow.id)))


@pytest.mark.settings(allow_networks="")
def test_policy_blocks_checks_and_the_result_says_what_to_allow(core, settings, site):
    id = make_monitor(core, url=site.url, confirmations=0).id
    with running(core, settings):
        (result,) = until(core, lambda: results(id))
    assert result.verdict == Verdict.UNKNOWN
    assert result.cause_code == "blocked_by_policy"
    assert site.asked == 0
    with core.app_context():
        assert db.session.scalar(select(IncidentRow.id)) is None


@pytest.mark.settings(allow_networks=None)
def test_changed_networks_apply_without_a_restart(core, settings, site, monkeypatch):
    monkeypatch.setattr("app.engine.checker.POLICY_SECONDS", 0.0)
    id = make_monitor(core, url=site.url).id
    with running(core, settings) as checker:
        until(core, lambda: results(id))
        with core.app_context():
            store_setting("allow_networks", "loopback", datetime.now(UTC))
        until(core, lambda: checker._policies.current().allows("127.0.0.1"))
        due_at_once(core, id)
        until(core, lambda: len(results(id)) == 2)
    with core.app_context():
        assert [result.verdict for result in results(id)] == [Verdict.UNKNOWN, Verdict.UP]


def closed_port():
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.server_close()
    return server.server_port


def test_a_failure_of_our_own_network_opens_no_incident_and_checks_are_repeated_afterwards(
    core, settings, monkeypatch
):
    monkeypatch.setattr("app.engine.network.DEAD_SECONDS", 0.2)
    monkeypatch.setattr("app.engine.network.HOLD_SECONDS", 0.2)
    alive = threading.Event()
    ids = [
        make_monitor(core, url=f"http://127.0.0.1:{closed_port()}/", confirmations=0).id
        for _ in range(3)
    ]
    with running(core, settings, works=alive.is_set):
        until(core, lambda: all(results(id) for id in ids))
        until(core, lambda: db.session.get(SettingRow, NOTICE_NETWORK))
        with core.app_context():
            for id in ids:
                (result,) = results(id)
                assert (result.verdict, result.cause_code) == (Verdict.UNKNOWN, "network_down")
            assert db.session.scalar(select(IncidentRow.id)) is None
        alive.set()
        until(core, lambda: len(db.session.scalars(select(IncidentRow.id)).all()) == 3)
    with core.app_context():
        assert setting(NOTICE_NETWORK) is None


def test_our_network_counts_as_down_only_while_every_canary_fails(core, settings, monkeypatch):
    """One dead canary does not blind us; all of them dead, nothing opens, and nothing is lost."""
    monkeypatch.setattr("app.engine.network.DEAD_SECONDS", 0.5)
    canaries, target = [Place(), Place()], Place()
    addresses = ",".join(f"127.0.0.1:{canary.port}" for canary in canaries)
    url = f"http://127.0.0.1:{target.port}/good"
    ids = [make_monitor(core, url=url, confirmations=0).id for _ in range(2)]

    def verdicts():
        return {db.session.get(MonitorStateRow, id).verdict for id in ids}

    def incidents():
        return db.session.scalars(select(IncidentRow)).all()

    try:
        with running(core, replace(settings, canaries=addresses)):
            until(core, lambda: verdicts() == {"up"})
            canaries[0].be(BlackHole)
            target.be(ClosedPort)
            due_at_once(core, ids[0])
            until(core, lambda: len(incidents()) == 1)
            target.be(Listener)
            due_at_once(core, ids[0])
            until(core, lambda: incidents()[0].ended_at)

            canaries[1].be(BlackHole)
            target.be(ClosedPort)
            for id in ids:
                due_at_once(core, id)
            until(core, lambda: verdicts() == {"unknown"})
            until(core, lambda: db.session.get(SettingRow, NOTICE_NETWORK))
            target.be(Listener)
            canaries[1].be(Listener)
            until(core, lambda: verdicts() == {"up"})
            until(core, lambda: not db.session.get(SettingRow, NOTICE_NETWORK))
    finally:
        for place in (*canaries, target):
            place.part.close()
    with core.app_context():
        assert len(incidents()) == 1


def test_a_result_that_cannot_be_recorded_does_not_lose_the_others(
    core, settings, site, monkeypatch
):
    bad, good = (make_monitor(core, url=site.url).id for _ in range(2))
    real = recorder.record_claimed

    def record(batch, *arguments, **options):
        if any(claim.monitor_id == bad for claim, _outcome in batch):
            raise ValueError("cannot be recorded")
        return real(batch, *arguments, **options)

    monkeypatch.setattr("app.engine.outcomes.recorder.record_claimed", record)
    with running(core, settings, paced=False):
        until(core, lambda: results(good))


# --- Checks by hand


def test_a_check_by_hand_is_recorded_and_counts(core, site):
    id = make_monitor(core, url=site.url, confirmations=0).id
    site.status = 500
    with core.app_context():
        result = now.check_now(id)
        assert result.cause_code == "http_status:500"
        assert result.id
        assert results(id) == [place.result for place in result.places]
        assert db.session.scalar(select(IncidentRow.monitor_id)) == id
        with pytest.raises(NotFound):
            now.check_now(404)


@pytest.mark.settings(canaries="127.255.255.255:9")
def test_a_check_on_request_while_our_own_network_is_down_opens_no_incident(core):
    id = make_monitor(core, url=f"http://127.0.0.1:{closed_port()}/", confirmations=0).id
    with core.app_context():
        assert now.check_now(id).cause_code == "network_down"
        assert db.session.scalar(select(IncidentRow.id)) is None


def test_a_check_of_unsaved_fields_leaves_no_trace(core, site):
    with core.app_context():
        outcome = now.check_fields(CheckSpec(url=site.url))
        assert outcome.result.verdict == Verdict.UP
        assert db.session.scalar(select(ResultRow.monitor_id)) is None


@pytest.mark.settings(canaries="127.255.255.255:9")
def test_a_check_of_unsaved_fields_while_our_own_network_is_down_is_unknown(core):
    with core.app_context():
        outcome = now.check_fields(CheckSpec(url=f"http://127.0.0.1:{closed_port()}/"))
    assert outcome.result.verdict == Verdict.UNKNOWN
    assert outcome.result.cause_code == "network_down"


def test_who_asks_when_a_check_has_ended_gets_a_newer_one(monkeypatch):
    flight, answers = now.SingleFlight(), []

    class Asked(Future):
        def set_result(self, answer):
            super().set_result(answer)
            if answer == "first":
                answers.append(flight.get("shop", lambda: "second"))

    monkeypatch.setattr(now, "Future", Asked)
    assert flight.get("shop", lambda: "first") == "first"
    assert answers == ["second"]


def test_a_checker_without_a_shard_logs_that_it_stands_by(app, settings, caplog):
    """SQLite has one shard for each place, so a second ``wakeful serve`` has nothing to check."""
    caplog.set_level(logging.INFO, "app.engine.checker")
    with app.app_context():
        for name in ("first", "second", "second"):
            checker = Checker(app, settings)
            checker._shards.name = f"checker:elsewhere:{name}"
            for _turn in range(2):
                checker._look_at_shards(time.monotonic())
    standing_by = "Standing by: another checker checks for the place default."
    assert caplog.messages == ["Checking for the place default.", standing_by, standing_by]
