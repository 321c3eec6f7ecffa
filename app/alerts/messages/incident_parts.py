"""Parts of every message about an incident: its links, and its data in a webhook."""

from __future__ import annotations

from typing import Any

from app.alerts.messages.context import Context
from app.alerts.messages.facts import Facts, ended_at, started_at, what_ended
from app.alerts.messages.message import Link
from app.i18n import _


def incident_links(facts: Facts, context: Context) -> tuple[Link, ...]:
    """The incident's page and, while nobody has acknowledged it, the acknowledge page."""
    incident = facts["incident"]
    links = [Link(_("Incident"), context.incident_url(incident["id"]))]
    if _is_unresolved(incident):
        links.append(Link(_("Acknowledge"), context.acknowledge_url(incident["id"])))
    return tuple(links)


def incident_data(facts: Facts, context: Context) -> dict[str, Any]:
    incident = dict(facts["incident"])
    incident["status"] = (
        "resolved"
        if incident["ended_at"]
        else "acknowledged"
        if incident["acknowledged_at"]
        else "unresolved"
    )
    # Of a message that was written before they were kept:
    incident |= {"ending": what_ended(facts)}
    for name in ("unwatched", "seen_by"):
        incident.setdefault(name, [])
    incident["monitor_id"] = facts["monitor"]["id"]
    incident["duration"] = max(0, int((ended_at(facts) - started_at(incident)).total_seconds()))
    incident["link"] = context.incident_url(incident["id"])
    link = context.acknowledge_url(incident["id"]) if _is_unresolved(incident) else None
    incident["acknowledge_link"] = link
    return incident


def _is_unresolved(incident: Facts) -> bool:
    return not (incident["ended_at"] or incident["acknowledged_at"])
