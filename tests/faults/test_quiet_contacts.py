"""A channel value that comes through several contacts, of which one is quiet, gets one message,
in time, and a recovery if it got the outage (decision 13).
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from app.db import writing
from app.db.tables import IncidentRow
from app.engine import recorder
from app.records import DeliveryStatus
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import HttpSink, Reply
from tests.support.contacts import NIGHT, contact, give, types

NIGHT_ENDS = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
Hook = tuple[str, str]
OPENED, RESOLVED, DIGEST = "incident.opened", "incident.resolved", "incidents.digest"


@pytest.fixture
def hook(sink: HttpSink) -> tuple[str, str]:
    return "webhook", f"{sink.url}/hook"


def end_the_night(box: Outbox) -> None:
    box.clock.now = NIGHT_ENDS
    box.turn()
    box.turn(10)


def acknowledge(box: Outbox, incident: IncidentRow) -> None:
    with box.app.app_context(), writing() as session:
        row = recorder.lock_incident(session, incident.id)
        fields = {"acknowledged_at": box.clock.now}
        recorder.change_incident(session, row, fields, box.clock.now, by="Ada")


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM monitor_contacts WHERE contact_id",
        "UPDATE contacts SET channels = 'x' WHERE id",
    ],
    ids=["taken away", "unreadable"],
)
def test_a_contact_that_is_gone_does_not_delay_the_recovery(
    box: Outbox, sink: HttpSink, hook: Hook, change: str
) -> None:
    quiet, awake = contact(box, "Quiet", hook, **NIGHT), contact(box, "Awake", hook)
    monitor = box.monitor()
    give(box, monitor, quiet, awake)
    incident = box.open(monitor)
    box.turn(1)
    with box.app.app_context(), writing() as session:
        session.execute(text(f"{change} = {awake}"))
    box.close(monitor, incident)
    box.turn(1)
    assert types(sink, "/hook") == [OPENED, RESOLVED]


def hold_then_wake(box: Outbox, hook: Hook) -> tuple[int, int]:
    """A monitor and its incident, whose outage is held: only the quiet contact was there when it
    opened, and the awake one came after.
    """
    quiet, awake = contact(box, "Quiet", hook, **NIGHT), contact(box, "Awake", hook)
    monitor = box.monitor()
    give(box, monitor, quiet)
    incident = box.open(monitor)
    box.turn(1)
    give(box, monitor, awake)
    return monitor, incident


def test_a_recovery_waits_in_the_digest_for_an_outage_that_is_held(
    box: Outbox, sink: HttpSink, hook: Hook
) -> None:
    monitor, incident = hold_then_wake(box, hook)
    box.close(monitor, incident)
    box.turn(60)
    assert types(sink, "/hook") == []
    end_the_night(box)
    assert types(sink, "/hook") == [DIGEST]
    assert sink.to("/hook")[0].json["data"]["resolved"] == 1


def test_the_next_outage_does_not_wait_for_the_one_that_is_held(
    box: Outbox, sink: HttpSink, hook: Hook
) -> None:
    monitor, first = hold_then_wake(box, hook)
    box.close(monitor, first)
    box.turn(60)
    box.open(monitor)
    box.turn(1)
    assert types(sink, "/hook") == [OPENED]


def test_an_acknowledgement_does_not_come_before_an_outage_that_is_held(
    box: Outbox, sink: HttpSink, hook: Hook
) -> None:
    _, incident = hold_then_wake(box, hook)
    acknowledge(box, incident)
    box.turn(1)
    assert types(sink, "/hook") == []
    end_the_night(box)
    assert types(sink, "/hook") == [DIGEST]


def test_a_reminder_that_is_sent_tells_the_outage_that_is_held(
    box: Outbox, sink: HttpSink, hook: Hook
) -> None:
    quiet, awake = contact(box, "Quiet", hook, **NIGHT), contact(box, "Awake", hook)
    monitor = box.monitor(remind_after=10)
    give(box, monitor, quiet)
    incident = box.open(monitor, created_at=box.clock.now)
    box.turn(1)
    give(box, monitor, awake)
    box.clock.advance(seconds=600)
    with box.app.app_context():
        assert recorder.remind(box.clock.now) == 1
    box.turn(1)
    box.close(monitor, incident)
    box.turn(1)
    assert types(sink, "/hook") == ["incident.reminder", RESOLVED]
    end_the_night(box)
    assert types(sink, "/hook") == ["incident.reminder", RESOLVED]


def test_a_recovery_that_was_sent_at_night_is_not_sent_again_in_the_morning(
    box: Outbox, sink: HttpSink, hook: Hook
) -> None:
    quiet = contact(box, "Quiet", hook, **NIGHT)
    awake = contact(box, "Awake", hook, acknowledgements=False)
    monitor = box.monitor()
    give(box, monitor, quiet, awake)
    incident = box.open(monitor)
    box.turn(1)
    acknowledge(box, incident)  # only for the quiet one
    box.turn(1)
    box.close(monitor, incident)
    box.turn(1)
    end_the_night(box)
    assert types(sink, "/hook") == [OPENED, RESOLVED]
    [settled] = [row for row in box.rows() if row.event == "incident.acknowledged"]
    assert (settled.status, settled.reason) == (DeliveryStatus.HELD, "settled")
    assert settled.next_attempt_at is None


def test_an_outage_that_could_not_be_sent_before_the_night_is_sent_once_with_its_end(
    box: Outbox, sink: HttpSink, hook: Hook
) -> None:
    sink.replies["/hook"] = [Reply(503), Reply()]
    box.clock.now = datetime(2026, 11, 21, 2, 59, 58, tzinfo=UTC)
    quiet = contact(box, "Quiet", hook, **NIGHT)
    monitor = box.monitor()
    give(box, monitor, quiet)
    incident = box.open(monitor)
    box.turn(1)
    give(box, monitor, contact(box, "Awake", hook))
    box.close(monitor, incident)  # waits for the outage, which is tried again at night
    box.turn(30)
    assert types(sink, "/hook") == [OPENED]  # the try that failed
    end_the_night(box)
    assert types(sink, "/hook") == [OPENED, DIGEST]
    assert sink.to("/hook")[1].json["data"]["resolved"] == 1


def test_an_incident_that_is_open_in_the_morning_is_in_the_digest_once(
    box: Outbox, sink: HttpSink, hook: Hook
) -> None:
    quiet = contact(box, "Quiet", hook, **NIGHT)
    awake = contact(box, "Awake", hook, acknowledgements=False)
    monitor = box.monitor()
    give(box, monitor, quiet, awake)
    incident = box.open(monitor)
    box.turn(1)
    acknowledge(box, incident)
    end_the_night(box)
    assert types(sink, "/hook") == [OPENED, DIGEST]
    assert sink.to("/hook")[1].json["data"]["open"] == 1
    box.turn(60)
    box.close(monitor, incident)
    box.turn(1)
    assert types(sink, "/hook") == [OPENED, DIGEST, RESOLVED]
