"""The rows that the recorder writes for checks and actions of people (decision 4)."""

import threading
from datetime import timedelta
from hashlib import sha256

import pytest
from sqlalchemy import func, select

from app.db import db, journal, shards, writing
from app.db.tables import (
    ChangeRow,
    DeliveryRow,
    IncidentRow,
    MaintenanceWindowMonitorRow,
    MaintenanceWindowRow,
    MarkerRow,
    MonitorEvidenceRow,
    MonitorRow,
    ResultContextRow,
    ResultRow,
    RollupRow,
)
from app.db.types import to_ms
from app.engine import recorder
from app.engine.recorder import alerting
from app.engine.recorder.monitors import WATCHING_STOPPED
from app.engine.schedule import Standing, last_scheduled, next_check
from app.errors import Conflict, Invalid, NotFound
from app.records import Timings
from tests.factories import make_outcome
from tests.support.recorders import START, WHOLE, Engine, at


@pytest.fixture
def engine(core):
    """The recorder, driven check by check; times are seconds after START."""
    with core.app_context():
        yield Engine(core)


def count(table):
    return db.session.scalar(select(func.count()).select_from(table))


@pytest.mark.both_databases
def test_an_outage_opens_one_incident_and_its_recovery_ends_it(engine):
    id = engine.monitor(confirmations=2)
    engine.checks(id, [("up", 0), ("down", 60), ("down", 70)])
    assert engine.incidents(id) == []
    engine.check(id, "down", 80, cause="It timed out.", cause_code="timeout:ttfb")
    (incident,) = engine.incidents(id)
    assert incident.started_at == WHOLE + timedelta(seconds=60), "the first failing check"
    assert incident.ended_at is None
    assert incident.cause == "The server refused.", "the first failing check's"
    assert incident.cause_code == "connection_refused"
    assert engine.events() == ["incident.opened"] * 2, "one message a channel"

    engine.checks(id, [("down", 120), ("up", 180), ("up", 190)])
    (incident,) = engine.incidents(id)
    assert incident.ended_at == WHOLE + timedelta(seconds=180), "the first good check"
    assert engine.events() == ["incident.opened"] * 2 + ["incident.resolved"] * 2


def test_an_incident_keeps_what_the_checks_saw(engine):
    id = engine.monitor(confirmations=1)
    engine.check(id, "up", 0, evidence={"status_line": "HTTP/1.1 200 OK"})
    engine.check(id, "down", 60, evidence={"note": "first"}, ip="192.0.2.1")
    engine.check(id, "down", 70, evidence={"note": "second"})
    (incident,) = engine.incidents(id)
    evidence = incident.evidence
    assert evidence["last_good"]["status_line"] == "HTTP/1.1 200 OK"
    assert evidence["failing"]["note"] == "first"
    assert evidence["failing"]["ip"] == "192.0.2.1"
    assert evidence["failing"]["checked_at"] == "2026-11-21T08:01:00Z"
    assert [check["note"] for check in evidence["confirming"]] == ["second"]


def test_an_incident_keeps_what_was_usual_and_its_alert_says_what_changed(engine):
    id = engine.monitor(confirmations=0)
    db.session.get(MonitorRow, id).updated_at = at(-3600)
    db.session.commit()
    for seconds, ms in enumerate((300, 380, 9_000, 400, 390)):
        engine.check(id, "up", seconds, response_time=ms, timings=Timings(ttfb=ms - 20))
    slow = Timings(connect=1, ttfb=900)
    engine.check(id, "down", 60, ip="192.0.2.1", response_time=902, timings=slow)
    (incident,) = engine.incidents(id)
    usual = incident.evidence["usual"]
    assert usual["response_time"] == 390, "the median: one slow check does not count"
    assert usual["timings"]["ttfb"] == 370
    assert usual["addresses"] == ["127.0.0.1"]
    assert usual["checked_at"] == "2026-11-21T08:00:04Z"
    facts = db.session.scalars(select(DeliveryRow.facts)).first()
    assert [change["text"] for change in facts["incident"]["changes"]] == [
        "Address 192.0.2.1, was 127.0.0.1",
        "902 ms, 900 ms of it first byte; usually 390 ms",
    ]


def test_an_alert_says_what_was_deployed_shortly_before(engine):
    id = engine.monitor(confirmations=0, tags="\nshop\n")
    for name, seconds, tags in (
        ("shop v2.1", -180, "\napi\nshop\n"),
        ("mail v3", -120, "\nmail\n"),
        ("all", -60, ""),
        ("long ago", -3_700, ""),
        ("later", 1, ""),
    ):
        times = dict.fromkeys(("time", "created_at", "updated_at"), at(seconds))
        db.session.add(MarkerRow(name=name, tags=tags, **times))
    db.session.commit()
    engine.check(id, "down", 0)
    facts = db.session.scalars(select(DeliveryRow.facts)).first()
    assert [deployment["name"] for deployment in facts["incident"]["deployed"]] == [
        "all",
        "shop v2.1",
    ]


def test_checks_of_an_earlier_url_are_not_usual(engine):
    id = engine.monitor(confirmations=0)
    for seconds in range(5):
        engine.check(id, "up", seconds, response_time=10)
    db.session.get(MonitorRow, id).updated_at = at(30)
    db.session.commit()
    engine.check(id, "down", 60)
    assert engine.incidents(id)[0].evidence["usual"] is None


def test_a_cancelled_failure_leaves_no_evidence_for_the_next_incident(engine):
    id = engine.monitor(confirmations=1)
    engine.check(id, "down", 0, evidence={"note": "cancelled"})
    engine.check(id, "up", 10)
    assert db.session.get(MonitorEvidenceRow, id).failing is None
    engine.check(id, "down", 60, evidence={"note": "real"})
    engine.check(id, "down", 70)
    (incident,) = engine.incidents(id)
    assert incident.evidence["failing"]["note"] == "real"


def test_a_failing_check_is_repeated_soon_and_good_ones_keep_their_slots(engine):
    id = engine.monitor(confirmations=1)
    standing = engine.scheduled(engine.claim(id), "up", 0)
    regular = engine.due(id, standing, 0)
    assert regular == next_check(id, 60, START)
    now = 0
    for verdict, pause in (("down", 7), ("down", None), ("up", 7), ("up", None)):
        now = (engine.due(id, standing, now) - START).total_seconds()
        standing = engine.scheduled(engine.claim(id), verdict, now)
        soon = engine.due(id, standing, now)
        if pause:
            assert soon == at(now) + timedelta(seconds=7)
        else:
            assert (soon - regular).total_seconds() % 60 == pytest.approx(0, abs=0.001)


def test_a_failure_of_a_person_s_check_is_repeated_by_the_schedule(engine):
    id = engine.monitor(confirmations=1)
    before = engine.scheduled(engine.claim(id), "up", 0)
    engine.check(id, "down", 1)
    assert count(ChangeRow) == 2, "the checker hears of it"
    assignment, state = engine.assignment(id), engine.state(id)
    assert (assignment.generation, assignment.scheduled_at) == (
        before.generation,
        before.scheduled_at,
    ), "it takes no scheduled check's place"
    assert state.unconfirmed_at == at(1)
    assert engine.scheduled(engine.claim(id), "down", 8).unconfirmed_at is None
    assert len(engine.incidents(id)) == 1


@pytest.mark.both_databases
def test_results_come_back_as_they_were(engine):
    id = engine.monitor()
    full = {
        "status_code": 200,
        "redirects": ("http://127.0.0.1/a", "http://127.0.0.1/b"),
        "warnings": ("redirect_downgrade",),
    }
    recorded = [
        engine.check(id, "up", 0, **full),
        engine.check(id, "degraded", 60, cause_code="slow_response", cause="It took 42 ms."),
        engine.check(id, "down", 120, cause_code="http_status:503", cause="The answer was 503."),
        engine.check(id, "unknown", 180),
    ]
    rows = db.session.execute(select(*journal.RAW.values()).order_by(ResultRow.at)).all()
    assert journal.decode(rows) == recorded
    assert recorded[0].id == f"{id}-{round(START.timestamp() * 1000)}-1"
    assert recorded[0].redirects == full["redirects"]
    assert recorded[2].cause_code == "http_status:503"
    assert count(ResultContextRow) == 2, "what stays the same is kept once"


def test_a_target_whose_address_keeps_changing_does_not_fill_the_memory(engine, monkeypatch):
    monkeypatch.setattr(journal, "MAX_CACHED_CONTEXTS", 2)
    ids = [engine.monitor() for _ in range(3)]
    for turn in range(3):
        outcomes = [
            (id, make_outcome("up", at(60 * turn), ip=f"192.0.2.{10 * turn + place}"))
            for place, id in enumerate(ids)
        ]
        assert all(recorder.record(outcomes, at(60 * turn)))
    rows = db.session.execute(
        select(*journal.RAW.values()).order_by(ResultRow.at, ResultRow.monitor_id)
    ).all()
    wanted = [f"192.0.2.{10 * turn + place}" for turn in range(3) for place in range(3)]
    assert [result.ip for result in journal.decode(rows)] == wanted


@pytest.mark.both_databases
@pytest.mark.parametrize("paused", [False, True])
def test_each_check_of_one_millisecond_is_a_result(engine, paused):
    """This includes one that begins at the time of an older result, of a batch or of requests."""
    id = engine.monitor(paused=paused)
    results = [engine.check(id, "up", seconds) for seconds in (0, 0.001, 5, 0, 5)]
    together = [(id, make_outcome("up", at(0))), (id, make_outcome("up", at(0)))]
    results += recorder.record(together, at(5))
    assert len({result.id for result in results}) == 7
    stored = db.session.scalars(select(ResultRow.at).order_by(ResultRow.at)).all()
    moments = (0, 0.001, 0.002, 0.003, 0.004, 5, 5.001)
    assert stored == [to_ms(at(seconds)) for seconds in moments]


def test_a_batch_of_many_with_two_results_of_one_monitor_counts_each(engine):
    ids = [engine.monitor(confirmations=1) for _ in range(5)]
    batch = [(id, make_outcome("down", at(0))) for id in ids]
    batch += [(id, make_outcome("down", at(10))) for id in ids[:2]]
    results = recorder.record(batch, at(10))
    assert len(results) == 7
    opened = db.session.scalars(select(IncidentRow.monitor_id).order_by(IncidentRow.id)).all()
    assert opened == ids[:2]


@pytest.mark.both_databases
def test_an_owner_that_has_lost_the_shard_records_nothing(engine):
    id = engine.monitor(confirmations=0)
    late = engine.claim(id)
    with writing() as session:
        [shard] = [shard for shard in shards.read(1) if shard.number == late.shard]
        taken = shards.take(session, 1, [shard], "another", at(20))
    assert taken == {late.shard: late.token + 1}
    assert engine.scheduled(late, "down", 0) is None
    assert engine.incidents(id) == []
    assert count(ResultRow) == 0
    assert engine.scheduled(engine.claim(id), "down", 1) is not None
    assert count(ResultRow) == 1


def test_no_slot_is_recorded_twice(engine):
    id = engine.monitor()
    claim = engine.claim(id)
    standing = engine.scheduled(claim, "up", 0)
    assert standing.scheduled_at == last_scheduled(id, 60, START)
    assert engine.scheduled(claim, "up", 1) is None, "somebody has done it"
    both = [(engine.claim(id), make_outcome("up", at(second))) for second in (60, 61)]
    assert [bool(recorded) for recorded in recorder.record_claimed(both, at(61))] == [True, False]
    assert count(ResultRow) == 2


@pytest.mark.both_databases
def test_a_shard_is_not_taken_while_a_result_of_it_is_being_recorded(engine, monkeypatch):
    """Otherwise an owner that was suspended beyond its lease could record under an old token."""
    if db.engine.dialect.name == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    id = engine.monitor()
    claim = engine.claim(id)
    [shard] = [shard for shard in shards.read(1) if shard.number == claim.shard]
    keep, taken = journal.insert_results, []

    def take_meanwhile(rows):
        def take():
            with engine.core.app_context(), writing() as session:
                taken.append(shards.take(session, 1, [shard], "another", at(20)))

        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
        keep(rows)

    monkeypatch.setattr("app.engine.recorder.results.journal.insert_results", take_meanwhile)
    assert engine.scheduled(claim, "up", 0) is not None
    assert taken == [{}]


@pytest.mark.both_databases
def test_a_batch_that_fails_leaves_nothing(engine, monkeypatch):
    id = engine.monitor(confirmations=0)

    def broken(*_arguments):
        raise OSError("the disk is full")

    monkeypatch.setattr("app.engine.recorder.results.journal.insert_results", broken)
    with pytest.raises(OSError, match="full"):
        engine.check(id, "down", 0)
    monkeypatch.undo()
    assert (count(ResultRow), count(IncidentRow), count(DeliveryRow)) == (0, 0, 0)
    assert engine.state(id).verdict is None
    engine.check(id, "down", 0)
    assert (count(ResultRow), count(IncidentRow), count(DeliveryRow)) == (1, 1, 2)


@pytest.mark.both_databases
def test_two_recorders_at_once_open_one_incident(engine):
    id = engine.monitor(confirmations=0)
    start = threading.Barrier(2)
    faults = []

    def run(seconds):
        with engine.core.app_context():
            start.wait()
            try:
                engine.check(id, "down", seconds)
            except Exception as fault:
                faults.append(fault)

    threads = [threading.Thread(target=run, args=[seconds]) for seconds in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(engine.incidents(id)) == 1
    assert count(ResultRow) == 2


# --- Maintenance


def window(engine, *monitors, start=0, end=100, **fields):
    with writing() as session:
        row = MaintenanceWindowRow(
            name="Deploy", start_at=at(start), end_at=at(end), repeat="none",
            created_at=START, updated_at=START, **fields,
        )  # fmt: skip
        session.add(row)
        session.flush()
        for id in monitors:
            session.add(MaintenanceWindowMonitorRow(window_id=row.id, monitor_id=id))
        return row.id


@pytest.mark.parametrize(
    "kind",
    ["own", "window", "window of all", "window of another", "window of its tag", "of another tag"],
)
def test_in_maintenance_checks_are_recorded_and_nothing_opens(engine, kind):
    own = {}
    if kind == "own":
        own = {"maintenance_start_at": at(0), "maintenance_end_at": at(100)}
    id = engine.monitor(confirmations=0, tags="\nprod\neu\n", **own)
    tags = {"window of its tag": "\nshop\neu\n", "of another tag": "\npro\nEU\n"}.get(kind, "")
    if kind != "own":
        members = {"window": [id], "window of another": [engine.monitor()]}.get(kind, [])
        window(engine, *members, tags=tags)
    result = engine.check(id, "down", 50)
    quiet = kind not in ("window of another", "of another tag")
    assert result.maintenance == quiet
    assert (engine.incidents(id) == []) == quiet
    engine.check(id, "down", 110)
    (incident,) = engine.incidents(id)
    assert incident.started_at == WHOLE + timedelta(seconds=110 if quiet else 50)


# --- Pause, resume, change, delete


def test_pausing_ends_the_open_incident_says_why_and_sends_nothing(engine):
    id = engine.monitor(confirmations=0)
    engine.check(id, "down", 0)
    before = engine.events()
    with writing() as session:
        session.scalars(select(IncidentRow)).one().comment = "Looking into it"
        recorder.pause(session, id, at(30))
    (incident,) = engine.incidents(id)
    assert incident.ended_at == WHOLE + timedelta(seconds=30)
    assert incident.comment == f"Looking into it\n{WATCHING_STOPPED}"
    assert engine.events() == before
    state = engine.state(id)
    assert (state.unconfirmed_at, state.failing_since) == (None, None)


def test_a_check_on_its_way_when_the_monitor_is_paused_is_dropped(engine):
    id = engine.monitor(confirmations=0)
    claim = engine.claim(id)
    with writing() as session:
        recorder.pause(session, id, at(0))
    assert engine.scheduled(claim, "down", 1) is None
    assert count(ResultRow) == 0


def test_a_check_by_hand_while_paused_is_kept_and_counts_for_nothing(engine):
    id = engine.monitor(confirmations=0, paused=True)
    assert engine.check(id, "down", 0) is not None
    assert count(ResultRow) == 1
    assert engine.incidents(id) == []
    assert engine.state(id).verdict is None


def test_resuming_checks_at_once(engine):
    id = engine.monitor()
    engine.scheduled(engine.claim(id), "up", 0)
    with writing() as session:
        recorder.pause(session, id, at(0))
        recorder.resume(session, id, at(0))
    assert engine.assignment(id).scheduled_at is None
    assert not db.session.get(MonitorRow, id).paused


def test_pausing_twice_does_not_touch_an_incident_reported_meanwhile(engine):
    id = engine.monitor(paused=True)
    with writing() as session:
        recorder.create_incident(session, {"monitor_id": id, "started_at": WHOLE}, at(0))
    with writing() as session:
        recorder.pause(session, id, at(10))
    assert engine.incidents(id)[0].ended_at is None


@pytest.mark.parametrize(
    ("changed", "at_once"),
    [({"url"}, True), ({"timeout"}, True), ({"name"}, False), ({"interval"}, True)],
)
def test_a_change_of_what_is_checked_or_how_often_is_checked_at_once(engine, changed, at_once):
    id = engine.monitor()
    engine.scheduled(engine.claim(id), "up", 0)
    on_its_way, changes = engine.claim(id), count(ChangeRow)
    with writing() as session:
        recorder.apply_changes(session, session.get(MonitorRow, id), changed, at(30))
    assert (engine.assignment(id).scheduled_at is None) == at_once
    assert count(ChangeRow) == changes + 1
    assert (engine.scheduled(on_its_way, "up", 60) is None) == at_once


@pytest.mark.both_databases
def test_a_deleted_monitor_leaves_nothing_behind_and_silences_nobody(engine):
    id, other = engine.monitor(confirmations=0), engine.monitor(confirmations=0)
    for each in (id, other):
        engine.check(each, "down", 0)
    window(engine, id)
    shared, tagged = window(engine, id, other), window(engine, id, start=-9, end=-8, tags="\nx\n")
    with writing() as session:
        session.add(
            RollupRow(
                monitor_id=id, period=3600, start=0, checks=1, up_s=0, down_s=0, unknown_s=0,
                maintenance_s=0, response_count=0, response_sum=0,
            )
        )  # fmt: skip
    with writing() as session:
        recorder.delete_monitor(session, id, START)
    assert engine.check(id, "down", 60) is None, "a check on its way"
    for table, rows in ((MonitorRow, 1), (ResultRow, 1), (IncidentRow, 1), (DeliveryRow, 2)):
        assert count(table) == rows
    assert count(RollupRow) == 0
    assert db.session.scalars(select(MaintenanceWindowRow.id)).all() == [shared, tagged]
    with pytest.raises(NotFound), writing() as session:
        recorder.delete_monitor(session, id, START)


# --- Incidents by hand


def report(id, seconds=0, **fields):
    with writing() as session:
        row = recorder.create_incident(
            session, {"monitor_id": id, "started_at": WHOLE, **fields}, at(seconds)
        )
        return row.id


def change(id, seconds=0, **fields):
    with writing() as session:
        row = recorder.lock_incident(session, id)
        recorder.change_incident(session, row, fields, at(seconds), by="Ada")


def test_an_incident_stored_by_hand_is_not_ended_by_good_checks(engine):
    id = engine.monitor(confirmations=0)
    report(id, cause="Slow for some")
    engine.checks(id, [("up", 60), ("up", 70), ("down", 120), ("up", 180), ("up", 190)])
    (incident,) = engine.incidents(id)
    assert (incident.by_hand, incident.ended_at, incident.cause_code) == (True, None, None)
    assert engine.events() == ["incident.opened"] * 2


def test_an_incident_stored_ended_alerts_nobody(engine):
    id = engine.monitor()
    report(id, ended_at=WHOLE)
    assert engine.events() == []


@pytest.mark.both_databases
def test_there_is_one_open_incident_at_most(engine):
    id = engine.monitor(confirmations=0)
    engine.check(id, "down", 0)
    (first,) = engine.incidents(id)
    with pytest.raises(Conflict) as conflict:
        report(id)
    assert conflict.value.details == {"open_incident_id": first.id}
    ended = report(id, ended_at=WHOLE)
    with pytest.raises(Conflict):
        change(ended, ended_at=None)
    change(first.id, ended_at=WHOLE)
    change(ended, ended_at=None)
    assert [row.ended_at is None for row in engine.incidents(id)] == [False, True]


def test_an_unknown_monitor_is_named(engine):
    with pytest.raises(Invalid) as invalid:
        report(404)
    assert list(invalid.value.errors) == ["monitor_id"]


def test_closing_by_hand_sends_a_recovery_and_failing_checks_open_a_new_incident(engine):
    id = engine.monitor(confirmations=1)
    engine.checks(id, [("down", 0), ("down", 10)])
    change(engine.incidents(id)[0].id, 20, ended_at=WHOLE + timedelta(seconds=20))
    assert engine.events() == ["incident.opened"] * 2 + ["incident.resolved"] * 2
    facts = db.session.scalars(select(DeliveryRow.facts).order_by(DeliveryRow.id)).all()
    assert [message.get("extra") for message in facts] == [None] * 2 + [{"resolved_by": "Ada"}] * 2
    engine.checks(id, [("down", 60), ("down", 70)])
    first, second = engine.incidents(id)
    assert second.started_at == WHOLE + timedelta(seconds=60)
    assert first.ended_at < second.started_at


def test_a_reopened_incident_ends_again_with_the_next_recovery(engine):
    id = engine.monitor(confirmations=0)
    engine.checks(id, [("down", 0), ("up", 60), ("up", 70)])
    change(engine.incidents(id)[0].id, 80, ended_at=None)
    engine.checks(id, [("up", 120), ("up", 130)])
    (incident,) = engine.incidents(id)
    assert incident.ended_at == WHOLE + timedelta(seconds=120)


def test_an_acknowledgement_names_who_and_goes_to_every_channel(engine):
    id = engine.monitor(confirmations=0)
    engine.check(id, "down", 0)
    change(engine.incidents(id)[0].id, 5, acknowledged_at=WHOLE + timedelta(seconds=5))
    (incident,) = engine.incidents(id)
    assert incident.acknowledged_by == "Ada"
    assert engine.events() == ["incident.opened"] * 2 + ["incident.acknowledged"] * 2
    channels = db.session.scalars(
        select(DeliveryRow.channel).where(DeliveryRow.event == "incident.acknowledged")
    ).all()
    assert len(set(channels)) == 2


@pytest.mark.parametrize("ended", ["by a recovery", "by a pause"])
def test_no_incident_is_acknowledged_after_its_end(engine, ended):
    """Between the first good check and its confirmation somebody may; editing would refuse it."""
    id = engine.monitor(confirmations=0)
    engine.checks(id, [("down", 0), ("up", 60)])
    change(engine.incidents(id)[0].id, 65, acknowledged_at=WHOLE + timedelta(seconds=65))
    if ended == "by a recovery":
        engine.check(id, "up", 70)
    else:
        with writing() as session:
            recorder.pause(session, id, at(62))
    (incident,) = engine.incidents(id)
    assert incident.ended_at is not None
    assert incident.acknowledged_at == incident.ended_at
    change(incident.id, 100, ended_at=incident.ended_at, comment="It was the disk.")


def test_deleting_an_open_incident_lets_a_new_one_open(engine):
    id = engine.monitor(confirmations=0)
    engine.check(id, "down", 0)
    with writing() as session:
        row = recorder.lock_incident(session, engine.incidents(id)[0].id)
        recorder.delete_incident(session, row, at(500))
    assert (count(IncidentRow), count(DeliveryRow)) == (0, 0)
    engine.check(id, "down", 60)
    assert engine.incidents(id)[0].started_at == WHOLE + timedelta(seconds=60)


# --- Locations


def places(*names):
    return {name: journal.place_id(name) for name in names}


def test_an_unconfirmed_result_is_repeated_in_every_place(engine):
    ids = places("berlin", "oslo")
    id = engine.monitor(confirmations=1, places=[*ids.values()])
    for name in ids:
        engine.scheduled(engine.claim(id, ids[name]), "up", 0, name)
    engine.scheduled(engine.claim(id, ids["berlin"]), "down", 5, "berlin")
    changes = count(ChangeRow)
    engine.scheduled(engine.claim(id, ids["oslo"]), "down", 6, "oslo")
    assert count(ChangeRow) == changes + 1, "the other place's checker hears of it"
    unconfirmed = engine.state(id).unconfirmed_at
    for place in ids.values():
        assignment = engine.assignment(id, place)
        standing = Standing(
            assignment.generation, assignment.scheduled_at, assignment.checked_at, unconfirmed
        )
        assert engine.due(id, standing, 6) == at(13)


@pytest.mark.both_databases
def test_a_place_that_began_first_and_is_recorded_last_has_a_vote(engine):
    """All places check at the same moment."""
    ids = places("berlin", "oslo")
    id = engine.monitor(confirmations=0, places=[*ids.values()])
    for seconds, verdict in ((0, "up"), (60, "down")):
        for name, later in (("oslo", 0.01), ("berlin", 0)):
            engine.scheduled(engine.claim(id, ids[name]), verdict, seconds + later, name, took=1)
    assert len(engine.incidents(id)) == 1


def test_a_place_that_is_no_longer_assigned_has_no_vote(engine):
    ids = places("berlin", "oslo")
    id = engine.monitor(confirmations=0, places=[*ids.values()])
    engine.scheduled(engine.claim(id, ids["oslo"]), "up", 0, "oslo")
    late = engine.claim(id, ids["oslo"])
    with writing() as session:
        recorder.set_places(session, id, [ids["berlin"]], at(1))
    assert engine.scheduled(late, "up", 2, "oslo") is None
    engine.scheduled(engine.claim(id, ids["berlin"]), "down", 3, "berlin")
    assert len(engine.incidents(id)) == 1
    with writing() as session:
        recorder.set_places(session, id, ids.values(), at(4))
    assert engine.scheduled(late, "up", 5, "oslo") is None, "of before it watched again"


# --- Certificates


def test_a_certificate_is_alerted_once_and_again_after_a_renewal(engine):
    id = engine.monitor(ssl_alert_days=7)

    def certificate(seconds, days, fingerprint, **fields):
        expires = START + timedelta(days=days)
        engine.check(
            id, "up", seconds, ssl_expires_at=expires, ssl_fingerprint=fingerprint, **fields
        )
        return len(engine.events()) // 2

    assert certificate(0, 8, "a") == 0
    assert certificate(60, 7, "a") == 1
    assert certificate(120, 6, "a") == 1
    assert certificate(180, 300, "b") == 1
    assert certificate(240, 2, "b") == 2
    assert set(engine.events()) == {"certificate.expiring"}
    state = engine.state(id)
    assert state.ssl_fingerprint == "b"
    assert state.ssl_expires_at == START + timedelta(days=2)


def test_auto_alerts_when_a_third_of_the_certificates_life_remains(engine):
    id = engine.monitor(ssl_alert_days="auto")
    issued = START - timedelta(days=30)

    def certificate(seconds, days):
        expires = START + timedelta(days=days)
        life = {"ssl_issued_at": issued, "ssl_expires_at": expires}
        engine.check(id, "up", seconds, ssl_fingerprint=str(days), **life)
        return len(engine.events()) // 2

    assert certificate(0, 17) == 0  # of 47 days
    assert certificate(60, 15) == 1  # of 45 days
    assert engine.state(id).ssl_issued_at == issued


def test_certificates_of_servers_that_answer_in_turn_are_alerted_once_each(engine):
    id = engine.monitor(ssl_alert_days=7)
    expires = START + timedelta(days=5)
    for turn in range(12):
        fingerprint = sha256(b"%d" % (turn % 4)).hexdigest()
        engine.check(id, "up", 60 * turn, ssl_expires_at=expires, ssl_fingerprint=fingerprint)
    assert len(engine.events()) // 2 == 4
    engine.check(id, "up", 3600, ssl_expires_at=expires, ssl_fingerprint="9" * 64)
    assert len(engine.events()) // 2 == 5


def test_what_was_alerted_is_bounded():
    column = None
    for number in range(1_200):
        column = alerting.with_mark(column, sha256(b"%d" % number).hexdigest())
    assert len(column) < 20_000
    assert alerting.was_alerted(column, sha256(b"1199").hexdigest())
    assert not alerting.was_alerted(column, sha256(b"0").hexdigest())
