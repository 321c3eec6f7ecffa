"""A service that is down for an hour gets all messages within two minutes of its return."""

from __future__ import annotations

from app.records import DeliveryStatus
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import HttpSink


def test_after_an_outage_of_an_hour_all_messages_arrive_within_two_minutes(
    box: Outbox, sink: HttpSink
) -> None:
    monitors = [
        box.monitor(("webhook", f"{sink.url}/hook/{n % 4}"), name=f"M{n}") for n in range(12)
    ]
    sink.open = False
    # Each turn costs the same however long it is: with shorter ones, a busy machine takes minutes.
    for minute in range(60):
        if minute % 5 == 0:
            for monitor in monitors:
                box.notice(monitor)
        box.turn(60)
    assert sink.requests == []

    sink.open = True
    for _ in range(24):
        box.turn(5)
    assert {row.status for row in box.rows()} == {DeliveryStatus.DELIVERED}
    assert len(sink.requests) == len(box.rows()) == 12 * 12
    for monitor in monitors:  # each monitor's own messages came in their order
        mine = [row for row in box.rows() if row.monitor_id == monitor.id]
        arrived = [
            request.headers["webhook-id"]
            for request in sink.requests
            if request.json["data"]["monitor"]["id"] == monitor.id
        ]
        assert arrived == [row.message_id for row in mine]
