"""The markers that charts and incidents show, if the store has any; each as a line on a chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.records import MARKERS_NAMED, SUSPECTED, Incident, Marker, MarkerQuery
from app.rules.figures import about
from app.rules.text import shortened
from app.stores import current_store
from app.web.frame import servers

MARKED = 50  # on one chart; more lines would hide it


@dataclass(frozen=True, slots=True)
class Deployed:
    """A marker before an incident, with how long before in words."""

    marker: Marker
    before: str


def between(monitor_id: int, begin: datetime, end: datetime) -> Sequence[Marker]:
    """The newest markers that concern a monitor, oldest first."""
    if end < begin or not servers.is_whole():
        return ()
    query = MarkerQuery(monitor_id, from_=begin, to=end, per_page=MARKED)
    listed = current_store().markers.list(query).items[::-1]
    return [marker for marker in listed if begin <= marker.time <= end]


def before(incident: Incident, markers: Sequence[Marker]) -> list[Deployed]:
    """The markers of the hour before an incident, the nearest first."""
    since = incident.started_at - SUSPECTED
    near = [marker for marker in markers if since <= marker.time <= incident.started_at]
    return [
        Deployed(marker, about((incident.started_at - marker.time).total_seconds()))
        for marker in near[: -MARKERS_NAMED - 1 : -1]
    ]


MAX_NAMED = 4
NAME_LENGTH = 24
LEFT_FROM = 0.7  # of the width: names further right would stick out


@dataclass(frozen=True, slots=True)
class MarkerLine:
    """``row``: in which of the rows at the top its name stands, so that neighbours do not cover
    each other; None where there are too many names. ``left``: the name stands left of the line.
    """

    x: float
    name: str
    title: str
    row: int | None
    left: bool


def marker_lines(markers: Sequence[tuple[float, str, str]], right: float) -> list[MarkerLine]:
    """``markers``: position, name and title of each, in order. ``right``: the end of the chart."""
    named = len(markers) <= MAX_NAMED
    return [
        MarkerLine(x, _short(name), title, row if named else None, x > LEFT_FROM * right)
        for row, (x, name, title) in enumerate(markers)
    ]


def _short(name: str) -> str:
    return shortened(name, NAME_LENGTH)
