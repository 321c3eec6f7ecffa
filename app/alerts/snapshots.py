"""The facts of a delivery, stored with it: a retry an hour later must not report another state.

The facts of an opening or a reminder include possible reasons: what is different from the last good
check, what was deployed shortly before, and which places see the failure. Every function runs
inside a transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from app.alerts.words import clock_time
from app.db import AnySession
from app.db.dependencies import AffectedMonitor
from app.db.tables import DeliveryRow, IncidentRow, MarkerRow, MonitorRow
from app.db.tags import shortly_before, suspected
from app.db.types import Unreadable, readable
from app.records import Event
from app.rules.time import iso
from app.rules.what_changed import changes_of, compared_with
from app.rules.who_saw import who_saw

log = logging.getLogger(__name__)

WITH_SUSPECTS = frozenset({Event.INCIDENT_OPENED, Event.INCIDENT_REMINDER})


def deployed_before(
    session: AnySession, alerts: Iterable[tuple[str, IncidentRow | None]]
) -> Sequence[MarkerRow]:
    """The deployments before these incidents began. ``alerts``: pairs of event and incident."""
    incidents = [incident for event, incident in alerts if event in WITH_SUSPECTS and incident]
    return suspected(session, [incident.started_at for incident in incidents])


def snapshot(
    event: str,
    monitor: Any,
    incident: IncidentRow | None,
    now: datetime,
    extra: Mapping[str, Any] | None = None,
    deployed: Sequence[MarkerRow] = (),
) -> dict[str, Any]:
    """The facts of a message. ``monitor`` has id, name, url and tags. ``deployed``: what
    ``deployed_before`` returned.
    """
    facts: dict[str, Any] = {
        "event": str(event),
        "at": iso(now),
        "monitor": monitor and {"id": monitor.id, "name": monitor.name, "url": monitor.url},
    }
    if incident is not None:
        facts["incident"] = {
            "id": incident.id,
            "severity": incident.severity,
            "started_at": iso(incident.started_at),
            "down_since": incident.down_since and iso(incident.down_since),
            "acknowledged_at": incident.acknowledged_at and iso(incident.acknowledged_at),
            "acknowledged_by": incident.acknowledged_by,
            "ended_at": incident.ended_at and iso(incident.ended_at),
            "cause": incident.cause,
            "cause_code": incident.cause_code,
            "comment": incident.comment,
            "unwatched": incident.unwatched or [],
            "ending": incident.ending,
            "seen_by": incident.seen_by or [],
        }
        if event in WITH_SUSPECTS and monitor is not None:
            facts["incident"] |= _suspects(deployed, monitor.tags, incident)
    if extra:
        facts["extra"] = {
            name: iso(fact) if isinstance(fact, datetime) else fact for name, fact in extra.items()
        }
    return facts


def facts_of_dependents(
    facts: Mapping[str, Any], behind: Sequence[AffectedMonitor], failed: Sequence[AffectedMonitor]
) -> dict[str, Any]:
    """Facts about the monitors that depend on this one. ``behind``: the monitors that its outage
    affects. ``failed``: the monitors among them that have failed.
    """
    incident = {
        **facts["incident"],
        "affected": [monitor.id for monitor in failed],
        "behind": [monitor.id for monitor in behind],
    }
    return {"incident": incident, "behind": [monitor.name for monitor in behind]}


def _suspects(deployed: Sequence[MarkerRow], tags: str, incident: IncidentRow) -> dict[str, Any]:
    evidence = readable(incident.evidence)
    good = compared_with(evidence)
    return {
        "changes": [asdict(change) for change in changes_of(evidence)],
        "compared_with": good.words(clock_time) if good else None,
        "compared_with_last": good is None or good.is_last,
        "seen_from": who_saw(evidence),
        "deployed": [
            {"name": marker.name, "link": marker.link, "time": iso(marker.time)}
            for marker in shortly_before(deployed, tags, incident.started_at)
        ],
    }


def recompose(session: AnySession, row: DeliveryRow) -> bool:
    """Replace the facts of ``row``, which cannot be read, by a snapshot of its incident now.
    Returns False if that is not possible. The caller flushes.
    """
    monitor = row.monitor_id and session.get(MonitorRow, row.monitor_id)
    incident = row.incident_id and session.get(IncidentRow, row.incident_id)
    if not monitor or not incident or isinstance(row.value, Unreadable):
        return False
    deployed = deployed_before(session, [(row.event, incident)])
    facts = snapshot(row.event, monitor, incident, row.created_at, deployed=deployed)
    if row.event != Event.INCIDENT_RESOLVED:
        # The incident was open when the message was written.
        facts["incident"] |= {"ended_at": None, "ending": None}
    row.facts = facts
    log.warning("The stored message of delivery %d cannot be read. It is composed again.", row.id)
    return True
