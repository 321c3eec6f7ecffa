"""What may be behind an incident: what is different from the last good check, what was deployed
shortly before, and which places see it. Alerts say it while the incident is open and nobody has
acknowledged it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from app.db import AnySession, markers
from app.db.tables import IncidentRow, MarkerRow
from app.db.types import readable
from app.records import Event
from app.rules.time import iso
from app.rules.what_changed import changes_of, compared_with
from app.rules.who_saw import who_saw

TOLD_WITH = frozenset({Event.INCIDENT_OPENED, Event.INCIDENT_REMINDER})


def deployed_before(
    session: AnySession, told: Iterable[tuple[str, IncidentRow | None]]
) -> Sequence[MarkerRow]:
    """What was deployed before these incidents began, each with the event that is told of it."""
    incidents = [incident for event, incident in told if event in TOLD_WITH and incident]
    return markers.suspected(session, [incident.started_at for incident in incidents])


def suspects(
    deployments: Sequence[MarkerRow], event: str, monitor: Any, incident: IncidentRow | None
) -> dict[str, Any]:
    """Facts for the incident of a message, JSON-ready; none for events that do not tell them.
    ``deployments``: what ``deployed_before`` found. ``monitor`` has ``tags``.
    """
    if event not in TOLD_WITH or monitor is None or incident is None:
        return {}
    deployed = markers.shortly_before(deployments, monitor.tags, incident.started_at)
    evidence = readable(incident.evidence)
    return {
        "changes": [asdict(change) for change in changes_of(evidence)],
        "compared_with": compared_with(evidence),
        "seen_from": who_saw(evidence),
        "deployed": [
            {"name": one.name, "link": one.link, "time": iso(one.time)} for one in deployed
        ],
    }
