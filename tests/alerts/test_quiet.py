"""Quiet hours, what they hold, and the digest at their end; and reminders."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, insert, select

from app.access.tokens import read_acknowledgement
from app.alerts import by_hand, outbox
from app.db import db, writing
from app.db.tables import ContactRow, DeliveryRow, IncidentRow, MonitorRow
from app.engine import recorder
from app.records import DeliveryStatus, Event
from app.rules.quiet_hours import QuietHours, from_fields
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import HttpSink, Reply
from tests.support.clock import MORNING

DELIVERED, HELD = DeliveryStatus.DELIVERED, DeliveryStatus.HELD

# 08:00 UTC, at which the clock of these tests starts, is the middle of this night in New York.
NIGHT = {"quiet_start": "22:00", "quiet_end": "07:00", "quiet_zone": "America/New_York"}
NIGHT_ENDS = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "end", "zone", "at", "until"),
    [
        # within a day
        ("12:00", "13:30", "UTC", "2026-11-21T11:59:59", None),
        ("12:00", "13:30", "UTC", "2026-11-21T12:00:00", "2026-11-21T13:30:00"),
        ("12:00", "13:30", "UTC", "2026-11-21T13:29:59", "2026-11-21T13:30:00"),
        ("12:00", "13:30", "UTC", "2026-11-21T13:30:00", None),
        # over midnight
        ("22:00", "07:00", "UTC", "2026-11-21T22:00:00", "2026-11-22T07:00:00"),
        ("22:00", "07:00", "UTC", "2026-11-22T00:00:00", "2026-11-22T07:00:00"),
        ("22:00", "07:00", "UTC", "2026-11-22T07:00:00", None),
        ("22:00", "00:00", "UTC", "2026-11-21T23:59:59", "2026-11-22T00:00:00"),
        ("00:00", "06:00", "UTC", "2026-11-21T00:00:00", "2026-11-21T06:00:00"),
        # by the clocks of the zone
        ("22:00", "07:00", "America/New_York", "2026-11-21T03:00:00", "2026-11-21T12:00:00"),
        ("22:00", "07:00", "America/New_York", "2026-11-21T02:59:59", None),
        ("22:00", "07:00", "Pacific/Kiritimati", "2026-11-21T08:00:00", "2026-11-21T17:00:00"),
        ("09:00", "17:00", "Asia/Kolkata", "2026-11-21T03:30:00", "2026-11-21T11:30:00"),
        # Berlin, 29 March 2026: 02:00 to 03:00 is skipped, at 01:00 UTC
        ("22:00", "07:00", "Europe/Berlin", "2026-03-28T21:00:00", "2026-03-29T05:00:00"),
        ("22:00", "02:30", "Europe/Berlin", "2026-03-29T01:29:59", "2026-03-29T01:30:00"),
        ("02:30", "06:00", "Europe/Berlin", "2026-03-29T01:15:00", None),
        ("02:30", "06:00", "Europe/Berlin", "2026-03-29T01:30:00", "2026-03-29T04:00:00"),
        # Berlin, 25 October 2026: 02:00 to 03:00 comes twice, from 00:00 and from 01:00 UTC
        ("22:00", "07:00", "Europe/Berlin", "2026-10-24T20:00:00", "2026-10-25T06:00:00"),
        ("22:00", "02:30", "Europe/Berlin", "2026-10-25T00:45:00", "2026-10-25T01:30:00"),
        ("22:00", "02:30", "Europe/Berlin", "2026-10-25T01:30:00", None),
        ("02:30", "06:00", "Europe/Berlin", "2026-10-25T00:29:59", None),
        ("02:30", "06:00", "Europe/Berlin", "2026-10-25T00:30:00", "2026-10-25T05:00:00"),
        # Havana, 1 November 2026: at 01:00 the clocks go back to midnight
        ("23:00", "00:30", "America/Havana", "2026-11-01T05:15:00", "2026-11-01T05:30:00"),
    ],
)
def test_quiet_hours_end_when_they_should(
    start: str, end: str, zone: str, at: str, until: str | None
) -> None:
    def moment(text: str) -> datetime:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)

    last = QuietHours(start, end, zone).until(moment(at))
    assert last == (None if until is None else moment(until))


def test_a_monitor_without_both_ends_has_no_quiet_hours_and_a_lost_zone_counts_as_utc() -> None:
    assert from_fields(None, None, "UTC") is None
    hours = from_fields("08:00", "09:00", "Mars/Olympus")
    assert hours is not None
    assert hours.until(datetime(2026, 11, 21, 8, 30, tzinfo=UTC)) is not None


def bodies(sink: HttpSink, path: str = "/hook") -> list[dict[str, Any]]:
    return [request.json for request in sink.to(path)]


def types(sink: HttpSink, path: str = "/hook") -> list[str]:
    return [body["type"] for body in bodies(sink, path)]


def change(box: Outbox, kind: type[Any], id: int, **fields: Any) -> None:
    with box.app.app_context(), writing() as session:
        row = session.get_one(kind, id)
        for name, value in fields.items():
            setattr(row, name, value)


@pytest.mark.both_databases
def test_messages_in_quiet_hours_wait_for_one_digest_for_each_channel_value(
    box: Outbox, sink: HttpSink
) -> None:
    hook, slack = ("webhook", f"{sink.url}/hook"), ("slack", f"{sink.url}/slack")
    shop, blog = box.monitor(hook, slack, name="Shop", **NIGHT), box.monitor(hook, name="Blog")
    mail = box.monitor(hook, name="Mail", **NIGHT)
    still_down = box.open(shop)
    over = box.open(mail)
    box.open(blog)  # has no quiet hours
    box.turn(300)
    box.close(mail, over)
    expiry = {"expires_at": datetime(2026, 11, 28, tzinfo=UTC), "days_left": 7}
    box.tell(Event.CERTIFICATE_EXPIRING, mail, extra=expiry)
    box.turn(3)
    assert types(sink) == ["incident.opened"]
    on_hold = [row for row in box.rows() if row.monitor_id != blog.id]
    states = {(row.status, row.reason, row.next_attempt_at) for row in on_hold}
    assert states == {(HELD, "quiet hours", NIGHT_ENDS)}

    box.clock.now = NIGHT_ENDS - timedelta(seconds=10)
    box.turn()
    assert len(sink.requests) == 1
    box.turn(10)
    assert types(sink) == ["incident.opened", "incidents.digest"]
    data = bodies(sink)[1]["data"]
    assert (data["count"], data["open"], data["resolved"]) == (2, 1, 1)
    assert [incident["monitor"]["name"] for incident in data["incidents"]] == ["Shop", "Mail"]
    link = data["incidents"][0]["acknowledge_link"]
    assert data["incidents"][1]["duration"] == 300
    notices = [(notice["type"], notice["days_left"]) for notice in data["notices"]]
    assert notices == [("certificate.expiring", 7)]
    (text,) = [str(body) for body in bodies(sink, "/slack")]
    assert "Quiet hours are over: 1 still down" in text
    assert "Shop: still down since 2026-11-21 08:00 UTC" in text
    assert f"/incidents/{still_down.id}" in text
    assert "Mail" not in text

    # No held row is lost: each has the id of the digest that covers it.
    digests = [row for row in box.rows() if row.event == Event.INCIDENTS_DIGEST]
    assert [row.status for row in digests] == [DELIVERED, DELIVERED]
    for digest in digests:
        covered = [row.id for row in box.rows() if row.covered_by == digest.id]
        assert covered == digest.facts["deliveries"]
    with box.app.app_context():  # its page offers all of the message
        assert read_acknowledgement(link.rpartition("/")[2]).delivery_id in [
            digest.id for digest in digests
        ]
    rows = box.rows(*(row.id for row in on_hold))
    states = {(row.status, row.reason, row.next_attempt_at) for row in rows}
    assert states == {(HELD, "quiet hours", None)}
    assert all(row.covered_by for row in rows)

    box.turn(3600)
    assert len(sink.requests) == 3, "the night is told once"
    box.close(shop, still_down)
    box.turn(3)
    assert types(sink)[-1] == "incident.resolved", "what the digest told may be told as over"


def test_quiet_hours_hold_neither_tests_nor_retries_by_hand(box: Outbox, sink: HttpSink) -> None:
    shop = box.monitor(("webhook", f"{sink.url}/hook"), **NIGHT)
    box.tell(Event.TEST, shop)
    box.open(shop)
    box.turn(3)
    assert types(sink) == ["test"]
    with box.app.app_context():
        by_hand.retry(2, box.clock.now)
    box.turn(1)
    assert types(sink) == ["test", "incident.opened"]
    box.clock.now = NIGHT_ENDS
    box.turn(6)
    assert types(sink) == ["test", "incident.opened"], "nothing is left to tell"


def test_a_retry_that_falls_into_quiet_hours_is_held_too(box: Outbox, sink: HttpSink) -> None:
    sink.replies["/hook"] = [Reply(503), Reply()]
    box.clock.now = datetime(2026, 11, 21, 2, 59, 58, tzinfo=UTC)
    shop = box.monitor(("webhook", f"{sink.url}/hook"), **NIGHT)
    box.open(shop)
    box.turn(1)
    assert len(sink.requests) == 1
    box.turn(30)
    (row,) = box.rows()
    assert (row.status, row.reason) == (HELD, "quiet hours")
    box.clock.now = NIGHT_ENDS
    box.turn()
    assert types(sink) == ["incident.opened", "incidents.digest"]


def test_the_notice_of_a_place_waits_for_the_end_of_quiet_hours_though_its_channel_recovers(
    box: Outbox, sink: HttpSink
) -> None:
    hook = f"{sink.url}/hook"
    with box.app.app_context(), writing() as session:
        now = box.clock.now
        session.add(
            ContactRow(
                name="Night", channels=[["webhook", hook]], default=True, created_at=now,
                updated_at=now, **NIGHT,
            )
        )  # fmt: skip
        session.flush()
        facts = {
            "location": {"id": 2, "name": "berlin", "label": None},
            "monitors": 1, "unknown": 1, "since": None,
        }  # fmt: skip
        outbox.notify_of_place(session, Event.LOCATION_SILENT, facts, now)
    sink.replies["/hook"] = [Reply(503), Reply()]
    box.open(box.monitor(("webhook", hook)))
    box.turn(3)
    box.turn(60)
    box.turn(60)
    assert types(sink) == ["incident.opened", "incident.opened"], "the retry, and no notice"
    box.clock.now = NIGHT_ENDS
    box.turn(1)
    assert types(sink)[2:] == ["location.silent"]


def test_quiet_hours_that_are_removed_end_at_once(box: Outbox, sink: HttpSink) -> None:
    shop = box.monitor(("webhook", f"{sink.url}/hook"), **NIGHT)
    incident = box.open(shop)
    box.turn(60)
    assert not sink.requests
    change(box, MonitorRow, shop.id, quiet_start=None, quiet_end=None)
    box.close(shop, incident)  # before the digest: it must not be lost between the two
    box.turn(1)
    box.turn(6)
    box.turn(2)
    assert types(sink) == ["incidents.digest"], "nor told twice"
    assert bodies(sink)[0]["data"]["resolved"] == 1


def test_a_digest_gives_the_count_of_its_incidents_and_the_first_ten(
    box: Outbox, sink: HttpSink
) -> None:
    hook = ("webhook", f"{sink.url}/hook")
    for number in range(12):
        shop = box.monitor(hook, name=f"M{number:02}", **NIGHT)
        incident = box.open(shop)
        if number % 2:
            box.close(shop, incident)
    box.clock.now = NIGHT_ENDS
    box.turn()
    (body,) = bodies(sink)
    assert (body["data"]["open"], body["data"]["resolved"]) == (6, 6)
    assert len(body["data"]["incidents"]) == 10
    assert len(body["data"]["deliveries"]) == 18


# --- Reminders


def remind(box: Outbox, minutes: float) -> int:
    box.clock.advance(seconds=minutes * 60)
    with box.app.app_context():
        return recorder.remind(box.clock.now)


def test_reminders_repeat_until_somebody_acknowledges(box: Outbox, sink: HttpSink) -> None:
    hook = ("webhook", f"{sink.url}/hook")
    shop, quiet = box.monitor(hook, remind_after=10), box.monitor(hook)
    at = box.clock.now
    incident = box.open(shop, created_at=at)
    box.open(quiet, created_at=at)
    box.turn(3)
    assert [remind(box, minutes) for minutes in (9, 0.95, 1, 8, 1, 0)] == [0, 1, 0, 0, 1, 0]
    box.turn(1)
    assert types(sink) == ["incident.opened"] * 2 + ["incident.reminder"] * 2
    assert bodies(sink)[2]["data"]["incident"]["acknowledge_link"]
    change(box, IncidentRow, incident.id, acknowledged_at=box.clock.now)
    assert remind(box, 60) == 0


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (IncidentRow, {"ended_at": datetime(2026, 11, 21, 8, 1, tzinfo=UTC)}),
        (MonitorRow, {"paused": True}),
        (MonitorRow, {"remind_after": None}),
        (MonitorRow, {"maintenance_start_at": MORNING, "maintenance_end_at": NIGHT_ENDS}),
        (MonitorRow, NIGHT),
    ],
)
def test_reminders_stop_at_the_end_in_a_pause_in_maintenance_and_in_quiet_hours(
    box: Outbox, kind: type[Any], fields: dict[str, Any]
) -> None:
    shop = box.monitor(("webhook", "http://127.0.0.1:9/"), remind_after=5)
    incident = box.incident(shop, created_at=box.clock.now)
    assert remind(box, 6) == 1
    change(box, kind, incident.id if kind is IncidentRow else shop.id, **fields)
    assert remind(box, 6) == 0


def test_after_a_digest_the_next_reminder_waits_a_whole_period(box: Outbox, sink: HttpSink) -> None:
    shop = box.monitor(("webhook", f"{sink.url}/hook"), remind_after=10, **NIGHT)
    box.open(shop, created_at=box.clock.now)
    box.clock.now = NIGHT_ENDS
    box.turn()
    assert types(sink) == ["incidents.digest"]
    assert [remind(box, minutes) for minutes in (0, 9, 1)] == [0, 0, 1]


def test_a_reminder_of_a_settled_incident_is_not_sent(box: Outbox, sink: HttpSink) -> None:
    shop = box.monitor(("webhook", f"{sink.url}/hook"), remind_after=5)
    incident = box.open(shop, created_at=box.clock.now)
    box.turn(3)
    sink.open = False
    assert remind(box, 5) == 1
    box.turn(1)
    change(box, IncidentRow, incident.id, acknowledged_at=box.clock.now)
    sink.open = True
    box.turn(130)
    assert types(sink) == ["incident.opened"]
    last = box.rows()[-1]
    assert (last.event, last.status, last.reason) == ("incident.reminder", HELD, "settled")


@pytest.mark.both_databases
def test_two_checkers_never_remind_twice(box: Outbox) -> None:
    shop = box.monitor(("webhook", "http://127.0.0.1:9/"), remind_after=5)
    for _ in range(3):
        box.incident(shop, created_at=box.clock.now - timedelta(hours=1), ended_at=box.clock.now)
    box.incident(shop, created_at=box.clock.now)
    box.clock.advance(seconds=600)
    start = threading.Barrier(4)

    def checker(_number: int) -> int:
        start.wait()
        return remind(box, 0)

    with ThreadPoolExecutor(4) as checkers:
        assert sorted(checkers.map(checker, range(4))) == [0, 0, 0, 1]
    assert [row.event for row in box.rows()] == ["incident.reminder"]


@pytest.mark.both_databases
def test_a_digest_takes_as_many_parameters_for_many_messages_as_for_few(
    box: Outbox, sink: HttpSink
) -> None:
    """PostgreSQL takes 65,535 in a statement, and SQLite 32,766: a night may have more messages."""
    shop = box.monitor(("webhook", f"{sink.url}/hook"), name="Shop", **NIGHT)
    box.open(shop)
    names = [column.name for column in DeliveryRow.__table__.c if column.name != "id"]
    with box.app.app_context(), writing() as session:
        (row,) = session.execute(select(*(DeliveryRow.__table__.c[name] for name in names)))
        copies = [{**row._mapping, "message_id": f"copy {n}"} for n in range(300)]
        session.execute(insert(DeliveryRow), copies)
    box.clock.now = NIGHT_ENDS
    numbers: list[int] = []

    def count(_connection: Any, _cursor: Any, _statement: str, parameters: Any, *_: Any) -> None:
        numbers.append(len(parameters))

    with box.app.app_context():
        engine = db.engine
    event.listen(engine, "before_cursor_execute", count)
    box.turn()
    event.remove(engine, "before_cursor_execute", count)
    assert max(numbers) < 100
    (digest,) = [row for row in box.rows() if row.event == Event.INCIDENTS_DIGEST]
    assert len(digest.facts["deliveries"]) == 301
    assert types(sink) == ["incidents.digest"]
