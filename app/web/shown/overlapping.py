"""The incidents that overlap a time, read from the store's list, which has no such filter."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from app.records import Incident, IncidentQuery, IncidentSortBy
from app.stores import current_store

PER_PAGE = 100
PAGES_READ = 50


def incidents(start: datetime, end: datetime, monitor_id: int | None = None) -> list[Incident]:
    """The incidents of one monitor or of all, the newest first."""
    begun = [incident for incident in _ended_since(start, monitor_id) if incident.started_at < end]
    return sorted(begun, key=lambda incident: (incident.started_at, incident.id), reverse=True)


def _ended_since(start: datetime, monitor_id: int | None) -> Iterator[Incident]:
    """Incidents by their ends, open ones first, up to the first that ended before ``start``."""
    query = IncidentQuery(
        monitor_id=monitor_id, sort_by=IncidentSortBy.ENDED_AT, per_page=PER_PAGE, brief=True
    )
    for incident in current_store().incidents.every(query, PAGES_READ):
        if incident.ended_at is not None and incident.ended_at <= start:
            return
        yield incident
