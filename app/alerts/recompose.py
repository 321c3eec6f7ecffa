"""Compose a stored message that cannot be read again, from its incident as it is now.

This needs a channel value that can be read. Every function runs inside a transaction.
"""

from __future__ import annotations

import logging

from app.alerts.messages import is_complete
from app.alerts.outbox import snapshot
from app.alerts.suspects import deployed_before, suspects
from app.db import AnySession
from app.db.tables import DeliveryRow, IncidentRow, MonitorRow
from app.db.types import Unreadable
from app.records import Event

log = logging.getLogger(__name__)


def has_message(row: DeliveryRow) -> bool:
    """Whether the row's content can be read and is enough for a message."""
    return not isinstance(row.facts, Unreadable) and is_complete(row.facts)


def recompose(session: AnySession, row: DeliveryRow) -> bool:
    """Compose the message of ``row`` again; False if that is not possible. The caller flushes."""
    monitor = row.monitor_id and session.get(MonitorRow, row.monitor_id)
    incident = row.incident_id and session.get(IncidentRow, row.incident_id)
    if not monitor or not incident or isinstance(row.value, Unreadable):
        return False
    facts = snapshot(row.event, monitor, incident, row.created_at)
    deployed = deployed_before(session, [(row.event, incident)])
    facts["incident"] |= suspects(deployed, row.event, monitor, incident)
    if row.event != Event.INCIDENT_RESOLVED:
        # It was open when this was written.
        facts["incident"] |= {"ended_at": None, "ending": None}
    row.facts = facts
    log.warning("The stored message of delivery %d cannot be read. It is composed again.", row.id)
    return True
