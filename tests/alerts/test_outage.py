"""A service that is down for an hour gets all messages within two minutes of its return."""

from __future__ import annotations

from app.records import DeliveryStatus
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import HttpSink


def test_after_an_outage_of_an_hour_all_messages_arrive_within_two_minutes(
    box: Outbox, sink: HttpSink
) -> None:
    monitors = [box.monitor(("webhook", f"{sink.url}/hook/{n % 2}")) for n in range(4)]
    sink.open = False
    for _tenth_minute in range(6):
        for monitor in monitors:
            box.notice(monitor)
        box.turn(600)
    assert sink.requests == []

    sink.open = True
    for _ in range(24):
        box.turn(5)
        if len(sink.requests) == 4 * 6:
            break
    box.turn(60)  # and none comes twice
    assert {row.status for row in box.rows()} == {DeliveryStatus.DELIVERED}
    assert len(sink.requests) == len(box.rows()) == 4 * 6
    for monitor in monitors:  # each monitor's own messages came in their order
        mine = [row for row in box.rows() if row.monitor_id == monitor.id]
        arrived = [
            request.headers["webhook-id"]
            for request in sink.requests
            if request.json["data"]["monitor"]["id"] == monitor.id
        ]
        assert arrived == [row.message_id for row in mine]
