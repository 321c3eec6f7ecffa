"""The markers that charts and incidents show, if the store has any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.records import Incident, Marker, MarkerQuery
from app.stores import Feature, current_store
from app.web.frame import servers

MARKED = 50  # on one chart; more lines would hide it
BEFORE = timedelta(hours=1)  # a deploy earlier than this is no likely cause
NAMED = 3
_UNITS = ((3600, "hour"), (60, "minute"), (1, "second"))


@dataclass(frozen=True, slots=True)
class Deployed:
    """A marker before an incident, with how long before in words."""

    marker: Marker
    before: str


def between(monitor_id: int, begin: datetime, end: datetime) -> Sequence[Marker]:
    """The newest markers that concern a monitor, oldest first."""
    if end < begin or not servers.offers(Feature.MARKERS):
        return ()
    query = MarkerQuery(monitor_id, from_=begin, to=end, per_page=MARKED)
    found = current_store().markers.list(query).items[::-1]
    return [one for one in found if begin <= one.time <= end]


def before(incident: Incident, markers: Sequence[Marker]) -> list[Deployed]:
    """Those of the hour before an incident, the nearest first."""
    since = incident.started_at - BEFORE
    near = [one for one in markers if since <= one.time <= incident.started_at]
    return [Deployed(one, _span(incident.started_at - one.time)) for one in near[: -NAMED - 1 : -1]]


def _span(length: timedelta) -> str:
    for size, unit in _UNITS:
        if count := int(length.total_seconds() // size):
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a second"
