"""The outbox loses nothing, keeps its order, and groups or holds messages (decision 5)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.alerts import by_hand, claims, lanes
from app.alerts.answers import Answer, retry
from app.alerts.channels.base import Outgoing, Tools
from app.alerts.lanes import AttemptOutcome, LaneHealth
from app.alerts.log import covered_ids, to_record
from app.alerts.worker import Worker
from app.db import db, writing
from app.db.tables import DeliveryRow, MonitorRow
from app.errors import Conflict, NotFound
from app.records import DeliveryStatus, Event, mask
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import HttpSink, MailSink, Reply

DELIVERED, FAILED = DeliveryStatus.DELIVERED, DeliveryStatus.FAILED
HELD, PENDING = DeliveryStatus.HELD, DeliveryStatus.PENDING


def types(sink: HttpSink, path: str = "/hook") -> list[str]:
    return [request.json["type"] for request in sink.to(path)]


@pytest.mark.both_databases
def test_each_channel_value_gets_one_row_for_each_event(box: Outbox, sink: HttpSink) -> None:
    hook = ("webhook", f"{sink.url}/hook")
    monitor = box.monitor(hook, ("slack", f"{sink.url}/slack"), hook)
    incident = box.open(monitor)
    box.tell(Event.INCIDENT_ACKNOWLEDGED, monitor, incident)
    box.turn(1)
    assert [(row.channel, row.event, row.status) for row in box.rows()] == [
        ("webhook", "incident.opened", DELIVERED),
        ("slack", "incident.opened", DELIVERED),
        ("webhook", "incident.acknowledged", DELIVERED),
        ("slack", "incident.acknowledged", DELIVERED),
    ]
    assert len({row.lane for row in box.rows()}) == 2
    assert all(sink.url not in row.lane for row in box.rows())


@pytest.mark.parametrize(
    ("status", "headers", "body", "after"),
    [
        (500, (), "oops", (0, 5)),
        (408, (), "", (0, 5)),
        (429, (("Retry-After", "42"),), "slow down", (42, 42)),
        (429, (), '{"message": "slow", "retry_after": 7.5}', (7.5, 7.5)),
        (429, (), '{"ok": false, "parameters": {"retry_after": 33}}', (33, 33)),
        (503, (("Retry-After", "Sat, 21 Nov 2026 08:05:00 GMT"),), "", (300, 300)),
    ],
)
def test_a_temporary_failure_is_retried_and_retry_after_wins(
    box: Outbox,
    sink: HttpSink,
    status: int,
    headers: tuple[tuple[str, str], ...],
    body: str,
    after: tuple[float, float],
) -> None:
    sink.replies["/hook"] = [Reply(status, body, headers), Reply()]
    row = box.send("webhook", f"{sink.url}/hook")
    assert row.status == PENDING
    assert row.attempts[0]["answer"].startswith(f"HTTP {status}")
    pause = box.pause()
    assert after[0] <= pause <= after[1]
    box.turn(pause - 0.1)
    assert len(sink.requests) == 1
    box.turn(0.2)
    (row,) = box.rows()
    assert row.status == DELIVERED
    first, second = sink.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == row.message_id


@pytest.mark.parametrize(
    ("busy", "same"),
    [(Reply(500), False), (Reply(429, "", (("Retry-After", "3600"),)), True)],
    ids=["another monitor's", "its monitor's"],
)
def test_a_test_is_sent_at_once_even_if_the_channel_fails(
    box: Outbox, sink: HttpSink, busy: Reply, same: bool
) -> None:
    sink.replies["/hook"] = [busy]
    monitor = box.monitor(("webhook", f"{sink.url}/hook"))
    box.open(monitor)
    box.turn(1)
    assert types(sink) == ["incident.opened"]
    other = monitor if same else box.monitor(("webhook", f"{sink.url}/hook"))
    (test,) = box.tell(Event.TEST, other)
    box.turn(1)
    assert types(sink) == ["incident.opened", "test"], "somebody waits for its answer"
    assert box.row(test).attempts[0]["answer"].startswith(f"HTTP {busy.status}")


@pytest.mark.parametrize("status", [400, 410])
def test_a_permanent_refusal_is_not_retried_and_the_reason_is_shown(
    box: Outbox, sink: HttpSink, status: int
) -> None:
    sink.replies["/hook"] = [Reply(status, "no_service")]
    box.send("slack", f"{sink.url}/hook")
    box.turn(86_000)
    (row,) = box.rows()
    assert (row.status, row.reason) == (FAILED, f"HTTP {status}: no_service")
    assert len(sink.requests) == 1


def test_a_greylisted_mail_arrives_later_with_the_same_id_and_a_550_stops(
    box: Outbox, mail: MailSink
) -> None:
    box.configure(smtp_url=f"smtp://127.0.0.1:{mail.port}")
    mail.script = {
        "grey@example.com": ["450 4.7.1 greylisted, try again", "250 OK"],
        "gone@example.com": ["550 5.1.1 no such user"],
    }
    monitor = box.monitor(("email", "grey@example.com"), ("email", "gone@example.com"))
    box.notice(monitor)
    box.turn()
    grey, gone = box.rows()
    answer = "SMTP 450: 4.7.1 greylisted, try again"
    assert (grey.status, grey.attempts[0]["answer"]) == (PENDING, answer)
    assert (gone.status, gone.reason) == (FAILED, "SMTP 550: 5.1.1 no such user")
    box.turn(5)
    assert box.rows()[0].status == DELIVERED
    assert grey.message_id in mail.mails[0]["Message-ID"]


def test_pauses_grow_to_two_minutes_and_the_message_fails_after_a_day(
    box: Outbox, sink: HttpSink
) -> None:
    sink.replies["/hook"] = [Reply(500)]
    box.notice(box.monitor(("webhook", f"{sink.url}/hook")))
    began = box.clock.now
    pauses = []
    box.turn()
    for _ in range(8):
        pauses.append(box.pause())
        box.turn(pauses[-1])
    assert pauses[0] <= 5
    assert sum(pauses[:2]) <= 15
    assert pauses == sorted(pauses[:4]) + pauses[4:]
    assert all(80 <= pause <= 120 for pause in pauses[4:])
    while box.row(1).status == PENDING:
        box.turn(3 * 3600)
    assert box.clock.now - began <= timedelta(hours=26)
    assert "Given up after 24 hours" in (box.row(1).reason or "")


DATE_IN_9999 = "Fri, 31 Dec 9999 23:59:59 GMT"
PAST_DATE = "Sat, 21 Nov 2026 07:00:00 GMT"


def busy(box: Outbox, sink: HttpSink, asked: str) -> None:
    """A service that answers 503 and asks for such a pause, each time, got its message."""
    sink.replies["/hook"] = [Reply(503, "", (("Retry-After", asked),))]
    box.send("webhook", f"{sink.url}/hook")


@pytest.mark.parametrize(
    ("asked", "hours"), [("86401", (1, 1, 20)), ("9" * 6000, (1,)), (DATE_IN_9999, (1,))],
    ids=["a day", "endless", "in 9999"],
)  # fmt: skip
def test_a_retry_after_beyond_the_24_hours_does_not_end_the_retries_early(
    box: Outbox, sink: HttpSink, asked: str, hours: tuple[int, ...]
) -> None:
    busy(box, sink, asked)
    for tries, pause in enumerate(hours, 1):
        row = box.row(1)
        assert (row.status, len(row.attempts)) == (PENDING, tries)
        assert row.next_attempt_at - box.clock.now == timedelta(hours=1)
        box.turn(pause * 3600)
    sink.replies["/hook"] = [Reply()]
    box.turn(3600)
    assert box.row(1).status == DELIVERED


def test_a_pause_of_which_only_a_part_is_left_is_given_up_at_the_end_of_the_24_hours(
    box: Outbox, sink: HttpSink
) -> None:
    busy(box, sink, "3000")
    for pauses in (1, 26, 1):
        box.turn(pauses * 3000)
    assert box.row(1).status == PENDING
    assert box.row(1).next_attempt_at == box.row(1).created_at + timedelta(hours=24)
    box.turn(2399)
    assert box.row(1).status == PENDING
    box.turn(10)
    assert box.row(1).status == FAILED
    assert box.row(1).reason.startswith("Given up after 24 hours. The last answer: HTTP 503")


@pytest.mark.parametrize("asked", ["0", PAST_DATE])
def test_a_service_that_always_asks_for_zero_seconds_is_retried_with_growing_pauses(
    box: Outbox, sink: HttpSink, asked: str
) -> None:
    busy(box, sink, asked)
    pauses = []
    for _ in range(9):
        pauses.append(box.pause())
        box.turn(pauses[-1])
    assert all(80 <= pause <= 120 for pause in pauses[5:])
    if asked == PAST_DATE:
        assert sum(pauses[:2]) > 8, "as if nothing were asked"
    else:
        assert pauses[:5] == [1.0] * 5


def test_a_hanging_lane_does_not_delay_others(box: Outbox, sink: HttpSink) -> None:
    sink.replies["/slow"] = [Reply(act="hang")]
    slow = box.monitor(("slack", f"{sink.url}/slow"))
    fast = box.monitor(("slack", f"{sink.url}/fast"))
    for _ in range(5):
        box.notice(slow)
        box.notice(fast)
    box.settle(until=lambda: len(sink.to("/fast")) == 5)
    assert len(sink.to("/slow")) == 1
    assert not any(row.attempts for row in box.rows() if row.monitor_id == slow.id), "it hangs"


def test_one_message_that_a_service_cannot_take_does_not_close_the_channel(
    box: Outbox, sink: HttpSink
) -> None:
    send = box.worker.senders["webhook"]

    def choking(outgoing: Outgoing, tools: Tools) -> Answer:
        bad = outgoing.message.data["monitor"]["name"] == "bad"
        return retry("HTTP 500") if bad else send(outgoing, tools)

    box.worker.senders = {**box.worker.senders, "webhook": choking}
    for name in ("bad", "good"):
        box.notice(box.monitor(("webhook", f"{sink.url}/hook"), name=name))
    for _ in range(20):
        box.turn(10)
    assert [row.status for row in box.rows()] == [PENDING, DELIVERED]


# --- A recovery and its outage


def test_a_recovery_waits_for_its_outage(box: Outbox, sink: HttpSink) -> None:
    sink.replies["/hook"] = [Reply(500), Reply(500), Reply()]
    monitor = box.monitor(("webhook", f"{sink.url}/hook"))
    incident = box.open(monitor)
    box.turn(1)
    box.close(monitor, incident)
    box.turn(1)
    box.turn(15)
    box.turn(15)
    assert types(sink) == ["incident.opened"] * 3 + ["incident.resolved"]


def test_a_recovery_is_held_when_its_outage_was_refused(box: Outbox, sink: HttpSink) -> None:
    sink.replies["/hook"] = [Reply(410), Reply()]
    monitor = box.monitor(("webhook", f"{sink.url}/hook"))
    incident = box.open(monitor)
    box.turn(1)
    box.close(monitor, incident)
    box.turn(1)
    opened, resolved = box.rows()
    assert opened.status == FAILED
    assert (resolved.status, resolved.reason) == (HELD, "outage not delivered")
    assert types(sink) == ["incident.opened"]


def test_retry_now_sends_a_refused_message_again_with_the_same_id(
    box: Outbox, sink: HttpSink
) -> None:
    sink.replies["/hook"] = [Reply(404), Reply(500), Reply()]
    box.open(box.monitor(("webhook", f"{sink.url}/hook")))
    box.turn(1)
    id = box.rows()[0].id
    assert box.row(id).status == FAILED
    box.clock.advance(seconds=2 * 86_400)  # its 24 hours begin again
    with box.app.app_context():
        by_hand.retry(id, box.clock.now)
    box.turn()
    row = box.row(id)
    assert row.status == PENDING
    assert row.next_attempt_at - box.clock.now <= timedelta(seconds=5)
    box.turn(5)
    assert box.row(id).status == DELIVERED
    assert len({request.headers["webhook-id"] for request in sink.requests}) == 1
    with box.app.app_context():
        with pytest.raises(Conflict):
            by_hand.retry(id, box.clock.now)
        with pytest.raises(NotFound):
            by_hand.retry(99, box.clock.now)


def test_a_test_is_tried_once(box: Outbox, sink: HttpSink) -> None:
    sink.replies["/hook"] = [Reply(503), Reply()]
    (id,) = box.tell(Event.TEST, box.monitor(("webhook", f"{sink.url}/hook")))
    box.turn()
    row = box.row(id)
    assert (row.status, len(row.attempts)) == (FAILED, 1)
    box.turn(3600)
    assert len(sink.requests) == 1


def test_a_waiting_message_that_is_given_up_is_never_sent(box: Outbox, sink: HttpSink) -> None:
    sink.replies["/hook"] = [Reply(503), Reply()]
    monitor = box.monitor(("webhook", f"{sink.url}/hook"))
    incident = box.open(monitor)
    box.turn(1)
    [row] = box.rows()
    with box.app.app_context():
        by_hand.give_up(row.id, box.clock.now)
        with pytest.raises(Conflict):
            by_hand.give_up(row.id, box.clock.now)
        with pytest.raises(NotFound):
            by_hand.give_up(99, box.clock.now)
    box.close(monitor, incident)
    box.turn(3600)
    assert len(sink.requests) == 1
    first, second = box.rows()
    assert (first.status, first.reason) == (FAILED, "given up by hand")
    assert (second.status, second.reason) == (HELD, "outage not delivered")


# --- Bursts


def test_a_burst_becomes_one_message_and_so_does_its_recovery(box: Outbox, sink: HttpSink) -> None:
    hook = ("webhook", f"{sink.url}/hook")
    monitors = [box.monitor(hook, name=f"M{n:02}") for n in range(20)]
    incidents = [box.open(monitor) for monitor in monitors]
    box.turn(1)
    assert types(sink) == ["incidents.opened"]
    data = sink.requests[0].json["data"]
    members = box.rows()[:20]
    assert data["count"] == 20
    names = [incident["monitor"]["name"] for incident in data["incidents"]]
    assert names == [f"M{n:02}" for n in range(10)]
    assert data["incidents"][0]["id"] == incidents[0].id
    assert data["deliveries"] == [row.id for row in members]
    group = box.rows()[20]
    assert (group.event, group.status) == ("incidents.opened", DELIVERED)
    covered = {(row.status, row.reason, row.covered_by) for row in members}
    assert covered == {(HELD, "burst", group.id)}

    with box.app.app_context():
        record = to_record(group, covered_ids(db.session, [group.id])[group.id])
        db.session.rollback()
    assert record.covers == tuple(row.id for row in members)
    assert record.target == mask(f"{sink.url}/hook")
    assert [set(attempt) for attempt in record.attempts] == [{"at", "ok", "answer"}]

    box.clock.advance(seconds=30)
    for monitor, incident in zip(monitors, incidents, strict=True):
        box.close(monitor, incident)
    box.turn(1)
    assert types(sink) == ["incidents.opened", "incidents.resolved"]
    assert sink.requests[1].json["data"]["incidents"][9]["duration"] == 31

    box.clock.advance(seconds=61)
    box.open(monitors[0])
    box.turn(2)
    assert types(sink)[2:] == ["incident.opened"]


def test_a_message_that_may_have_arrived_is_repeated_by_itself_in_a_burst(
    box: Outbox, sink: HttpSink
) -> None:
    hook = ("webhook", f"{sink.url}/hook")
    sink.replies["/hook"] = [Reply(500), Reply()]
    box.open(box.monitor(hook, name="First"))
    box.turn(1)
    for number in range(19):
        box.open(box.monitor(hook, name=f"M{number}"))
    box.turn(60)
    assert sorted(types(sink)) == ["incident.opened", "incident.opened", "incidents.opened"]
    ids = [r.headers["webhook-id"] for r in sink.requests if r.json["type"] == "incident.opened"]
    assert len(set(ids)) == 1


def test_what_a_person_acknowledges_together_is_one_message(box: Outbox, sink: HttpSink) -> None:
    hook = ("webhook", f"{sink.url}/hook")
    incidents = [box.open(box.monitor(hook, name=f"M{n}")) for n in range(9)]
    box.turn(3)
    assert len(sink.requests) == 9
    for _twice in range(2):
        box.acknowledge(incidents)
    box.turn(1)
    sent = [request.json for request in sink.requests[9:]]
    assert [message["type"] for message in sent] == ["incidents.acknowledged"]
    assert sent[0]["data"]["count"] == 9
    incident = sent[0]["data"]["incidents"][0]
    assert (incident["monitor"]["name"], incident["acknowledged_by"]) == ("M0", "Ben")
    group = box.rows()[-1]
    assert {row.covered_by for row in box.rows()[9:18]} == {group.id}


def test_openings_that_become_a_burst_slowly_are_grouped_unless_sent_already(
    box: Outbox, sink: HttpSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "BURST_MONITORS", 10)
    monitors = [box.monitor(("webhook", f"{sink.url}/hook"), name=f"M{n}") for n in range(15)]
    for monitor in monitors:
        box.open(monitor)
        box.turn(0.3)
    box.turn(3)
    counts = [request.json["data"].get("count", 1) for request in sink.requests]
    assert sum(counts) == 15
    assert counts[0] == 1
    assert len(counts) < 10
    grouped = [row for row in box.rows() if row.reason == "burst"]
    assert len(grouped) >= 10


def test_nineteen_openings_are_not_grouped_and_none_waits_longer_than_two_seconds(
    box: Outbox, sink: HttpSink
) -> None:
    for n in range(19):
        box.open(box.monitor(("webhook", f"{sink.url}/hook"), name=f"M{n}"))
    box.turn(2)
    assert types(sink) == ["incident.opened"] * 19


def test_a_single_opening_is_sent_within_a_second(box: Outbox, sink: HttpSink) -> None:
    box.open(box.monitor(("webhook", f"{sink.url}/hook")))
    box.turn(0.6)
    assert types(sink) == ["incident.opened"]


# --- Flapping


def test_flapping_is_reported_once_and_every_message_stays_in_the_log(
    box: Outbox, sink: HttpSink
) -> None:
    monitor = box.monitor(("slack", f"{sink.url}/hook"))
    box.flap(monitor, 5)
    texts = [request.json["text"] for request in sink.requests]
    assert sum("Down: Shop" in text for text in texts) == 4
    assert sum("Flapping" in text for text in texts) == 1
    assert "Flapping: Down 4 times in 10 minutes" in texts[6]
    assert sum("Up again: Shop" in text for text in texts) == 4
    on_hold = [row for row in box.rows() if row.status == HELD]
    assert len(on_hold) == 2
    assert {row.reason for row in on_hold} == {"flapping"}


def test_flapping_is_reported_by_sms_and_webhook_too(box: Outbox, sink: HttpSink) -> None:
    box.configure(sms_url=f"twilio://AC0account:token@+15550001111?api={sink.url}")
    box.flap(box.monitor(("webhook", f"{sink.url}/hook"), ("sms", "+447700900123")), 4)
    data = [request.json["data"] for request in sink.to("/hook")]
    assert [record.get("flapping") for record in data] == [None] * 6 + [4, None]
    texts = [r.form["Body"] for r in sink.requests if r.path != "/hook"]
    assert ["Flapping: Down 4 times in 10 minutes." in text for text in texts] == [
        *[False] * 6, True, False
    ]  # fmt: skip


def test_a_flapping_monitor_that_stays_down_is_alerted_in_the_end(
    box: Outbox, sink: HttpSink
) -> None:
    monitor = box.monitor(("webhook", f"{sink.url}/hook"))
    box.flap(monitor, 4)
    last = box.open(monitor)
    box.turn(30)
    assert box.rows()[-1].reason == "flapping"
    assert types(sink)[-1] == "incident.resolved"
    box.turn(600)
    box.turn(2)
    assert types(sink)[-1] == "incident.opened"
    box.close(monitor, last)
    box.turn(2)
    assert types(sink)[-1] == "incident.resolved"


# --- What else may happen


@pytest.mark.both_databases
def test_deleting_a_monitor_deletes_its_pending_messages(box: Outbox, sink: HttpSink) -> None:
    monitor = box.monitor(("webhook", f"{sink.url}/hook"))
    box.open(monitor)
    with box.app.app_context(), writing() as session:
        session.delete(session.get_one(MonitorRow, monitor.id))
    box.turn(2)
    assert (box.rows(), sink.requests) == ([], [])


def test_a_message_that_cannot_be_composed_does_not_stop_others(
    box: Outbox, sink: HttpSink
) -> None:
    monitor = box.monitor(("webhook", f"{sink.url}/hook"))
    (broken, _fine) = (*box.notice(monitor), *box.notice(monitor))
    with box.app.app_context(), writing() as session:
        session.get_one(DeliveryRow, broken).facts = {"event": "test"}
    box.turn()
    box.turn(2)
    assert [row.status for row in box.rows()] == [FAILED, DELIVERED]


@pytest.mark.both_databases
def test_a_row_is_claimed_by_one_worker_only(box: Outbox, sink: HttpSink) -> None:
    other = Worker(box.app, box.settings, clock=box.clock)
    for _ in range(8):
        box.notice(box.monitor(("webhook", f"{sink.url}/hook")))
    for _ in range(400):
        started = box.worker.take_turn(0.01) + other.take_turn(0.01)
        if not started and box.worker.idle and other.idle:
            box.clock.advance(seconds=1)
        if all(row.status == DELIVERED for row in box.rows()):
            break
    ids = [request.headers["webhook-id"] for request in sink.requests]
    assert len(ids) == len(set(ids)) == 8


def test_a_message_reports_the_state_at_the_time_of_its_event(box: Outbox, sink: HttpSink) -> None:
    monitor = box.monitor(("webhook", f"{sink.url}/hook"), name="Before")
    box.open(monitor)
    with box.app.app_context(), writing() as session:
        session.get_one(MonitorRow, monitor.id).name = "After"
    box.turn(1)
    assert sink.requests[0].json["data"]["monitor"]["name"] == "Before"


def test_a_test_does_not_wait_for_an_opening_that_flapping_defers(
    box: Outbox, sink: HttpSink
) -> None:
    monitor = box.monitor(("webhook", f"{sink.url}/hook"))
    box.flap(monitor, 4, seconds=1)
    box.open(monitor)
    box.turn(1)
    assert [row.status for row in box.rows()][-1] == PENDING, "it is deferred"
    (test,) = box.tell(Event.TEST, monitor)
    box.turn(1)
    assert box.row(test).status == DELIVERED


@pytest.mark.both_databases
def test_a_worker_whose_lease_has_ended_may_store_a_delivery_and_no_failure(
    box: Outbox, sink: HttpSink
) -> None:
    box.notice(box.monitor(("webhook", f"{sink.url}/hook")))
    [row] = box.rows()
    with box.app.app_context(), writing() as session:
        first, second = (
            claims.claim_next(session, row.lane, LaneHealth(), box.clock.now + later).claim
            for later in (timedelta(0), claims.LEASE)
        )
        assert first is not None
        assert second is not None
        for status in (FAILED, PENDING):
            claims.store_outcome(session, first, AttemptOutcome({}, status), box.clock.now)
            row = session.get_one(DeliveryRow, first.id, populate_existing=True)
            assert (row.status, row.lease_token) == (PENDING, second.token)
        claims.store_outcome(session, first, AttemptOutcome({}, DELIVERED), box.clock.now)
        assert session.get_one(DeliveryRow, first.id, populate_existing=True).status == DELIVERED
