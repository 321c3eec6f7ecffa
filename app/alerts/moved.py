"""A channel to which its service has given another value, such as a Telegram group that became a
supergroup: every monitor, contact and message with the old value gets the new one.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from sqlalchemy import select

from app.access import actors
from app.alerts.outbox import has_own_channel, lane_of, lanes_text
from app.alerts.words import count_of
from app.db import writing
from app.db.statements import select_fresh, updating
from app.db.tables import ContactRow, DeliveryRow, MonitorRow
from app.db.types import readable

log = logging.getLogger(__name__)


def store(channel: str, value: str, to: str, now: datetime) -> None:
    """Store the new value in place of the old one, in one transaction. Like every other, it locks
    monitors, contacts and deliveries in this order. If it fails, the answer to the next message
    names the new value again.
    """
    old, new = [channel, value], [channel, to]
    with actors.acting_as(actors.WAKEFUL), writing() as session:
        monitors = session.scalars(
            select_fresh(MonitorRow)
            .where(has_own_channel(lane_of(*old)))
            .order_by(MonitorRow.id)
            .with_for_update(key_share=True)
        ).all()
        counts = [0, 0]
        for monitor in monitors:
            if (alerts := _replaced(monitor.alerts, old, new)) is not None:
                monitor.alerts, monitor.alert_lanes = alerts, lanes_text(alerts)
                monitor.updated_at = now
                counts[0] += 1
        for contact in session.scalars(
            select(ContactRow).order_by(ContactRow.id).with_for_update()
        ):
            if (channels := _replaced(contact.channels, old, new)) is not None:
                contact.channels, contact.updated_at = channels, now
                counts[1] += 1
        session.execute(
            updating(DeliveryRow)
            .where(DeliveryRow.lane == lane_of(*old))
            .values(value=to, lane=lane_of(*new))
        )
    if any(counts):
        log.warning(
            "The service of a %s channel gave it a new address. It is stored in %s and %s.",
            channel,
            count_of(counts[0], "monitor"),
            count_of(counts[1], "contact"),
        )


def _replaced(pairs: Any, old: list[str], new: list[str]) -> list[list[str]] | None:
    """These channels with ``new`` in the place of ``old``, each once; None without ``old``."""
    stored = [list(pair) for pair in readable(pairs) or ()]
    if old not in stored:
        return None
    changed = dict.fromkeys(tuple(new if pair == old else pair) for pair in stored)
    return [list(pair) for pair in changed]
