"""Contacts of an outbox's monitors, and what a sink received."""

from __future__ import annotations

from typing import Any

from app.db import writing
from app.db.tables import ContactRow, MonitorContactRow, MonitorRow
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import HttpSink

# 08:00 UTC, at which the clock of these tests starts, is the middle of this night in New York.
NIGHT = {"quiet_start": "22:00", "quiet_end": "07:00", "quiet_zone": "America/New_York"}


def contact(box: Outbox, name: str, *channels: tuple[str, str], **fields: Any) -> int:
    values = {
        "quiet_zone": "UTC",
        "created_at": box.clock.now,
        "updated_at": box.clock.now,
    } | fields
    row = ContactRow(
        name=name, name_folded=name.casefold(), channels=[list(pair) for pair in channels], **values
    )
    with box.app.app_context(), writing() as session:
        session.add(row)
        session.flush()
        return row.id


def give(box: Outbox, monitor: MonitorRow, *contacts: int) -> None:
    with box.app.app_context(), writing() as session:
        for position, id in enumerate(contacts):
            session.add(MonitorContactRow(monitor_id=monitor.id, contact_id=id, position=position))


def types(sink: HttpSink, path: str) -> list[str]:
    return [request.json["type"] for request in sink.to(path)]
