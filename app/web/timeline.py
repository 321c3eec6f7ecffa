"""What happened in an incident, in order: from its times, its evidence and its comment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.records import Incident
from app.web import comments


@dataclass(frozen=True, slots=True)
class Step:
    """One moment. ``tone`` and ``sign`` as in ``words``; ``text`` is what a person wrote."""

    at: datetime
    title: str
    sign: str
    tone: str = "paused"
    note: str | None = None
    text: str | None = None


def steps(incident: Incident) -> list[Step]:
    found = [
        Step(
            incident.started_at,
            "Reported by hand" if incident.by_hand else "First failing check",
            "down",
            "down",
            incident.cause,
        )
    ]
    confirmed = incident.created_at
    if confirmed is not None and not incident.by_hand and confirmed > incident.started_at:
        found.append(Step(confirmed, "Confirmed, incident opened", "bell", "down"))
    if incident.acknowledged_at is not None:
        by = f" by {incident.acknowledged_by}" if incident.acknowledged_by else ""
        found.append(Step(incident.acknowledged_at, f"Acknowledged{by}", "seen", "degraded"))
    if incident.ended_at is not None:
        found.append(Step(incident.ended_at, "Resolved", "up", "up"))
    for remark in comments.remarks(incident.comment):
        at = remark.at or incident.ended_at or incident.updated_at or incident.started_at
        title = f"{remark.who} wrote" if remark.who else "Comment"
        found.append(Step(at, title, "edit", text=remark.text))
    # Stable: steps of the same second keep the order above.
    return sorted(found, key=lambda step: step.at)
