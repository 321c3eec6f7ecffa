"""A backup of two days ago is restored: old messages are given up visibly, and the time without
checks is shown as not watched.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event

from app.alerts import by_hand, chores, claims, lanes, log, messages, outbox
from app.db import db, writing
from app.db.tables import DeliveryRow, IncidentRow, MonitorRow
from app.engine import recorder
from app.engine.recorder import gaps
from app.records import DeliveryStatus, Event, IncidentQuery
from app.rules.time import iso
from app.stores import current_store
from tests.factories import make_monitor, make_outcome, make_person
from tests.web.visitor import Visitor

PENDING, FAILED = DeliveryStatus.PENDING, DeliveryStatus.FAILED
HELD, DELIVERED = DeliveryStatus.HELD, DeliveryStatus.DELIVERED
DAY = 86_400.0
UNSENT = "Not sent: it could not be sent within 24 hours."  # as databases have stored it
NIGHT = {"quiet_start": "07:00", "quiet_end": "09:00", "quiet_zone": "UTC"}  # it is 08:00


# --- Alerts


def test_what_waited_for_more_than_a_day_is_given_up_unsent_and_can_be_sent_by_hand(box, sink):
    monitor = box.monitor(("webhook", sink.url))
    box.close(monitor, box.open(monitor))
    (certificate,) = box.tell(Event.CERTIFICATE_EXPIRING, monitor, extra={"days_left": 3})
    box.turn(2 * DAY)
    assert sink.requests == []
    assert [(row.status, row.reason) for row in box.rows()] == [(FAILED, UNSENT)] * 3

    with box.app.app_context():
        by_hand.retry(certificate, box.clock.now)
    box.turn()
    assert box.row(certificate).status == DELIVERED
    assert len(sink.requests) == 1


@pytest.mark.parametrize("messages", [1, 20])
def test_messages_that_are_too_old_are_read_by_one_query(box, sink, messages):
    monitor = box.monitor(("webhook", sink.url))
    for _ in range(messages):
        box.tell(Event.CERTIFICATE_EXPIRING, monitor, extra={"days_left": 3})
    box.clock.advance(seconds=2 * DAY)
    asked = []
    with box.app.app_context(), writing() as session:
        engine = session.connection().engine
        ids = chores.expired(session, box.clock.now)

        @event.listens_for(engine, "before_cursor_execute")
        def note(_connection, _cursor, statement, *_others):
            asked.append(statement)

        chores.give_up_expired(session, ids, box.clock.now)
        event.remove(engine, "before_cursor_execute", note)
    assert len([request for request in asked if request.startswith("SELECT")]) == 1
    assert {row.status for row in box.rows()} == {FAILED}


@pytest.mark.both_databases
def test_more_messages_than_a_statement_names_are_given_up(box, sink):
    box.tell(Event.CERTIFICATE_EXPIRING, box.monitor(("webhook", sink.url)), extra={"days_left": 3})
    box.clock.advance(seconds=2 * DAY)
    with box.app.app_context(), writing() as session:
        ids = [*range(10**6, 10**6 + 70_000), *chores.expired(session, box.clock.now)]
        chores.give_up_expired(session, ids, box.clock.now)
    assert {row.status for row in box.rows()} == {FAILED}


def test_a_message_is_given_up_just_after_24_hours_and_not_before(box, sink):
    monitor = box.monitor(("webhook", sink.url))
    (id,) = box.tell(Event.CERTIFICATE_EXPIRING, monitor, extra={"days_left": 3})
    box.turn(DAY)
    assert box.row(id).status == DELIVERED
    (id,) = box.tell(Event.CERTIFICATE_EXPIRING, monitor, extra={"days_left": 3})
    box.turn(DAY + 0.001)
    assert (box.row(id).status, box.row(id).reason) == (FAILED, UNSENT)
    with box.app.app_context():
        by_hand.retry(id, box.clock.now)  # begins new 24 hours
    box.clock.advance(seconds=DAY - 1)
    with box.app.app_context(), writing() as session:
        chores.give_up_expired(session, chores.expired(session, box.clock.now), box.clock.now)
    assert box.row(id).status == PENDING
    attempt = {"at": "2026-11-21T08:00:00Z", "ok": False, "answer": "503 Busy"}
    with box.app.app_context(), writing() as session:
        session.get_one(DeliveryRow, id).attempts = [attempt]
    box.turn(2)
    assert box.row(id).reason == "Given up after 24 hours. The last answer: 503 Busy"
    assert len(sink.requests) == 1


def test_a_grouped_message_that_was_written_before_is_given_up_as_one(box, sink):
    members = [box.monitor(("webhook", sink.url), name=f"Shop {n}") for n in range(20)]
    for member in members:
        box.open(member)
    with box.app.app_context(), writing() as session:
        lane = outbox.lane_of("webhook", sink.url)
        later = box.clock.now + timedelta(seconds=3)
        turn = claims.claim_next(session, lane, box.worker.alert_lanes.health(lane), later)
        assert turn.claim is not None
        group = turn.claim.id
    box.turn(2 * DAY)
    assert sink.requests == []
    assert (box.row(group).status, box.row(group).reason) == (FAILED, UNSENT)
    assert {(row.status, row.reason) for row in box.rows() if row.id != group} == {(HELD, "burst")}


def test_old_messages_are_not_grouped_into_a_new_one(box, sink):
    for n in range(20):
        box.open(box.monitor(("webhook", sink.url), name=f"Shop {n}"))
    box.turn(2 * DAY)
    assert sink.requests == []
    assert {row.status for row in box.rows()} == {FAILED}
    assert len(box.rows()) == 20


def test_messages_held_for_quiet_hours_and_their_digest_are_given_up(box, sink):
    monitor = box.monitor(("webhook", sink.url), **NIGHT)
    box.open(monitor)
    on_hold = box.rows()[0]
    assert (on_hold.status, on_hold.reason) == (HELD, "quiet hours")
    box.turn(2 * DAY + 2 * 3600)
    assert [(row.status, row.reason) for row in box.rows()] == [(FAILED, UNSENT)]

    box.clock.advance(seconds=DAY - 2 * 3600)  # 08:00 once more
    other = box.monitor(("webhook", sink.url), name="Other", **NIGHT)
    box.open(other)
    box.clock.advance(seconds=2 * 3600)
    with box.app.app_context():
        box.worker._do_chores(box.clock.now)
    digest = box.rows()[-1]
    assert (digest.event, digest.status) == (Event.INCIDENTS_DIGEST, PENDING)
    box.turn(2 * DAY)
    assert (box.row(digest.id).status, box.row(digest.id).reason) == (FAILED, UNSENT)
    assert sink.requests == []


def test_what_a_restore_holds_waits_for_a_person_who_releases_outage_and_recovery(box, sink):
    """Decision 16"""
    monitor = box.monitor(("webhook", sink.url))
    incident = box.open(monitor)
    box.clock.advance(seconds=3700)
    with box.app.app_context(), writing() as session:
        assert chores.hold_after_restore(session, box.clock.now) == 1
    box.close(monitor, incident)
    box.turn(1)
    box.turn(2 * DAY)
    assert [(row.status, row.reason) for row in box.rows()] == [(HELD, "restored")] * 2
    assert sink.requests == []
    with box.app.app_context():
        assert len(log.lost_messages(db.session, box.clock.now)) == 2

    for row in box.rows():
        with box.app.app_context():
            by_hand.retry(row.id, box.clock.now)
    box.turn()
    assert [request.json["type"] for request in sink.requests] == [
        "incident.opened",
        "incident.resolved",
    ]
    with box.app.app_context():
        assert log.lost_messages(db.session, box.clock.now) == []


# --- Times without checks

START = datetime(2026, 11, 19, 8, tzinfo=UTC)
BACK = datetime(2026, 11, 21, 9, 10, tzinfo=UTC)
SENTENCE = "No checks ran from 2026-11-19 08:00 UTC to 2026-11-21 09:10 UTC."
ALERTS = [["webhook", "http://127.0.0.1/hook"]]


def check(id, verdict, at):
    recorder.record([(id, make_outcome(verdict, at))], at)


def down(core, at=START, **fields):
    """A monitor with an open incident, last checked at ``at``."""
    fields = {"alerts": ALERTS, "confirmations": 0, "interval": 60} | fields
    monitor = make_monitor(core, created_at=at - timedelta(days=1), **fields)
    check(monitor.id, "up", at - timedelta(minutes=2))
    check(monitor.id, "down", at - timedelta(minutes=1))
    check(monitor.id, "down", at)
    return monitor


def recover(id, at):
    check(id, "up", at)
    check(id, "up", at + timedelta(seconds=10))


def incident_of(id):
    db.session.expire_all()
    return db.session.query(IncidentRow).filter_by(monitor_id=id).one()


def recovery():
    rows = db.session.query(DeliveryRow).filter_by(event=Event.INCIDENT_RESOLVED).all()
    context = messages.MessageContext("http://wakeful.test", lambda _id: "token")
    return messages.compose(rows[-1].facts, context)


def test_a_recovery_after_a_gap_says_what_was_not_watched_and_no_exact_length(core):
    with core.app_context():
        monitor = down(core)
        recover(monitor.id, BACK)
        assert incident_of(monitor.id).ended_at == BACK
        message = recovery()
    assert message.summary == f"It was down for at most 2 days 1 hour. {SENTENCE}"
    assert "Down" not in dict(message.details), "of the gap nobody knows that"
    assert dict(message.details)["At most"] == "2026-11-19 07:59 UTC to 2026-11-21 09:10 UTC"
    gap = {"from": "2026-11-19T08:00:00Z", "to": "2026-11-21T09:10:00Z"}
    assert message.data["incident"]["unwatched"] == [gap]


def test_a_recovery_without_a_gap_says_its_length_and_an_empty_list(core):
    with core.app_context():
        monitor = down(core)
        recover(monitor.id, START + timedelta(minutes=1))
        message = recovery()
    assert message.summary == "It was down for 2 minutes."
    assert message.data["incident"]["unwatched"] == []


@pytest.mark.parametrize(("interval", "longest"), [(60, 600), (3600, 3 * 3600)])
def test_a_gap_is_longer_than_three_intervals_and_ten_minutes(core, interval, longest):
    with core.app_context():
        short = down(core, interval=interval)
        check(short.id, "down", START + timedelta(seconds=longest))
        assert incident_of(short.id).unwatched is None
        long = down(core, interval=interval)
        check(long.id, "down", START + timedelta(seconds=longest, milliseconds=1))
        assert len(incident_of(long.id).unwatched) == 1


def test_an_interval_that_was_made_shorter_makes_no_gap_of_the_last_one(core):
    with core.app_context():
        monitor = down(core, interval=3600)
        with writing() as session:
            session.get_one(MonitorRow, monitor.id).interval = 60
        check(monitor.id, "down", START + timedelta(minutes=50))
        assert incident_of(monitor.id).unwatched is None
        asked = down(core, interval=3600)
        at = START + timedelta(minutes=5)
        # In a place that does not watch the monitor, a check counts for its moment alone.
        recorder.record([(asked.id, make_outcome("down", at))], at, location="oslo")
        with writing() as session:
            session.get_one(MonitorRow, asked.id).interval = 60
        check(asked.id, "down", START + timedelta(minutes=50))
        assert incident_of(asked.id).unwatched is None


def test_several_gaps_are_all_named(core):
    with core.app_context():
        monitor = down(core)
        check(monitor.id, "down", START + timedelta(hours=8))
        check(monitor.id, "unknown", START + timedelta(hours=8, minutes=1))
        recover(monitor.id, START + timedelta(hours=20))
        summary = recovery().summary
    assert summary.endswith(
        "No checks ran from 2026-11-19 08:00 UTC to 2026-11-19 16:00 UTC"
        " and from 2026-11-19 16:01 UTC to 2026-11-20 04:00 UTC."
    )


def test_of_many_gaps_the_newest_are_kept():
    incident = IncidentRow()
    for hour in range(gaps.MAX_GAPS + 2):
        since = START + timedelta(hours=hour)
        gaps.add(incident, since, since + timedelta(minutes=30))
    assert len(incident.unwatched) == gaps.MAX_GAPS
    assert incident.unwatched[0]["from"] == iso(START + timedelta(hours=2))


def test_a_gap_between_the_first_good_check_and_its_repeat_is_not_the_incidents(core):
    with core.app_context():
        monitor = down(core)
        check(monitor.id, "up", START + timedelta(minutes=1))
        check(monitor.id, "up", BACK)
        assert incident_of(monitor.id).ended_at == START + timedelta(minutes=1)
        assert incident_of(monitor.id).unwatched is None
        assert recovery().summary == "It was down for 2 minutes."


def test_a_failure_that_was_not_confirmed_before_a_gap_opens_nothing_after_it(core):
    with core.app_context():
        monitor = make_monitor(core, alerts=ALERTS, confirmations=1)
        check(monitor.id, "down", START)
        check(monitor.id, "down", BACK)
        assert db.session.query(IncidentRow).count() == 0
        check(monitor.id, "down", BACK + timedelta(seconds=10))
        assert incident_of(monitor.id).started_at == BACK
        assert incident_of(monitor.id).unwatched is None


def test_a_pause_is_not_a_gap(core):
    with core.app_context():
        monitor = down(core)
        with writing() as session:
            recorder.pause(session, monitor.id, START + timedelta(minutes=1))
        with writing() as session:
            recorder.resume(session, monitor.id, BACK)
        check(monitor.id, "down", BACK)
        rows = db.session.query(IncidentRow).all()
        assert [row.unwatched for row in rows] == [None, None]


def test_page_record_and_api_show_the_gap(app):
    person = make_person(app, "viewer")
    with app.app_context():
        monitor = down(app)
        recover(monitor.id, BACK)
        id = incident_of(monitor.id).id
        assert current_store().incidents.get(id).unwatched == ((START, BACK),)
        listed = current_store().incidents.list(IncidentQuery(per_page=10)).items
        assert listed[0].unwatched == ((START, BACK),)
    page = Visitor(app).log_in(person.email).open(f"/incidents/{id}")
    assert "at most 2 d 1 h" in page.text
    assert "No checks ran" in page.text
    assert "From 19 Nov 2026 08:00:00 UTC to 21 Nov 2026 09:10:00 UTC." in page.text


# --- What still lasts when watching resumes


def given_up(box):
    """Let the worker find, at ``BACK``, what has waited for two days."""
    box.clock.now = BACK
    box.turn()


def openings(id):
    rows = db.session.query(DeliveryRow).filter_by(event=Event.INCIDENT_OPENED, monitor_id=id)
    return [(row.status, row.reason) for row in rows.order_by(DeliveryRow.id)]


def requests_to(sink):
    return [(request.json["type"], request.json["data"]) for request in sink.requests]


@pytest.mark.both_databases
def test_an_outage_that_still_lasts_is_alerted_again_once_and_its_recovery_as_usual(
    box, sink, caplog
):
    with box.app.app_context():
        monitor = down(box.app, alerts=[["webhook", sink.url]])
        given_up(box)
        assert openings(monitor.id) == [(FAILED, UNSENT)]
        assert sink.requests == []
        for minute in range(3):
            check(monitor.id, "down", BACK + timedelta(minutes=minute))
        assert openings(monitor.id) == [(FAILED, UNSENT), (PENDING, None)]
        facts = db.session.query(DeliveryRow).order_by(DeliveryRow.id.desc()).first().facts
        message = messages.compose(facts, messages.MessageContext("http://wakeful.test", str))
        assert message.title == f"Still down: {monitor.name}"
        assert message.summary.endswith(SENTENCE)
        box.turn(180)
        recover(monitor.id, BACK + timedelta(minutes=4))
        box.turn(120)
    (first, opened), (second, resolved) = requests_to(sink)
    assert (first, second) == ("incident.opened", "incident.resolved")
    assert opened["incident"]["started_at"] == "2026-11-19T07:59:00Z"
    assert len(opened["incident"]["unwatched"]) == len(resolved["incident"]["unwatched"]) == 1
    assert "1 message was given up: it was not sent within 24 hours" in caplog.text
    assert "still lasts, and its opening was given up unsent: 1 message tells of it" in caplog.text


def test_a_check_before_the_message_is_given_up_does_not_alert_again(box, sink):
    with box.app.app_context():
        monitor = down(box.app, alerts=[["webhook", sink.url]])
        check(monitor.id, "down", BACK)
        assert openings(monitor.id) == [(PENDING, None)]
        given_up(box)
        check(monitor.id, "down", BACK + timedelta(minutes=1))
        assert openings(monitor.id) == [(FAILED, UNSENT), (PENDING, None)]


def test_an_outage_that_is_over_is_not_alerted_again(box, sink):
    with box.app.app_context():
        monitor = down(box.app, alerts=[["webhook", sink.url]])
        given_up(box)
        recover(monitor.id, BACK)
        box.turn(60)
        assert openings(monitor.id) == [(FAILED, UNSENT)]
    assert box.rows()[-1].reason == "outage not delivered"
    assert sink.requests == []


def test_a_burst_that_was_given_up_as_one_message_is_alerted_again_as_one(box, sink, monkeypatch):
    monkeypatch.setattr(lanes, "BURST_MONITORS", 5)
    with box.app.app_context():
        monitors = [down(box.app, alerts=[["webhook", sink.url]]) for _ in range(5)]
        box.clock.now = START + timedelta(seconds=3)
        with writing() as session:
            lane = outbox.lane_of("webhook", sink.url)
            claims.claim_next(session, lane, box.worker.alert_lanes.health(lane), box.clock.now)
        given_up(box)
        for minute in range(2):
            outcomes = [
                (monitor.id, make_outcome("down", BACK + timedelta(minutes=minute)))
                for monitor in monitors
            ]
            recorder.record(outcomes, BACK + timedelta(minutes=minute))
        assert {len(openings(monitor.id)) for monitor in monitors} == {2}
        box.turn(120)
    ((event, data),) = requests_to(sink)
    assert (event, data["count"]) == ("incidents.opened", 5)


@pytest.mark.parametrize("reason", ["410 Gone", lanes.reason_after_24_hours("503 Busy")])
def test_an_opening_that_the_service_refused_is_not_alerted_again(box, sink, reason):
    with box.app.app_context():
        monitor = down(box.app, alerts=[["webhook", sink.url]])
        with writing() as session:
            row = session.query(DeliveryRow).one()
            row.status, row.reason = FAILED, reason
        check(monitor.id, "down", BACK)
        assert openings(monitor.id) == [(FAILED, reason)]


def test_only_channels_that_were_not_alerted_are_alerted_again(box, sink):
    with box.app.app_context():
        alerts = [["webhook", f"{sink.url}/one"], ["webhook", f"{sink.url}/other"]]
        monitor = down(box.app, alerts=alerts)
        with writing() as session:
            row = session.query(DeliveryRow).order_by(DeliveryRow.id).first()
            row.status, row.delivered_at = DELIVERED, START
        given_up(box)
        check(monitor.id, "down", BACK)
        box.turn(3)
    assert len(sink.to("/one")) == 0
    assert len(sink.to("/other")) == 1


def test_maintenance_delays_the_second_alert(box, sink):
    with box.app.app_context():
        monitor = down(box.app, alerts=[["webhook", sink.url]])
        with writing() as session:
            row = session.get_one(MonitorRow, monitor.id)
            row.maintenance_start_at, row.maintenance_end_at = BACK, BACK + timedelta(minutes=5)
        given_up(box)
        check(monitor.id, "down", BACK)
        assert openings(monitor.id) == [(FAILED, UNSENT)]
        check(monitor.id, "down", BACK + timedelta(minutes=6))
        assert openings(monitor.id) == [(FAILED, UNSENT), (PENDING, None)]


def test_reminders_count_from_the_second_alert(box, sink):
    with box.app.app_context():
        monitor = down(box.app, alerts=[["webhook", sink.url]], remind_after=30)
        given_up(box)
        check(monitor.id, "down", BACK)
        assert recorder.remind(BACK + timedelta(minutes=29)) == 0
        assert recorder.remind(BACK + timedelta(minutes=30)) == 1
