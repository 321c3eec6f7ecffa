"""Markers in charts and on incidents: the lines of a chart, the markers shortly before an incident,
and how response times have changed since a marker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from app.i18n import N_, _
from app.records import LIKELY_CAUSE_WITHIN, MAX_MARKERS_NAMED, Incident, Marker, MarkerQuery
from app.rules.figures import about, in_one_unit, span
from app.rules.text import shortened
from app.stats import change
from app.stats.change import Bucket, ResponseChange
from app.stores import current_store
from app.web.frame import servers

MAX_MARKERS = 50  # on one chart: more lines would hide it


def between(monitor_id: int, begin: datetime, end: datetime) -> Sequence[Marker]:
    """The newest markers that concern a monitor, oldest first."""
    if end < begin or not servers.is_whole():
        return ()
    query = MarkerQuery(monitor_id, from_=begin, to=end, per_page=MAX_MARKERS)
    newest = current_store().markers.list(query).items[::-1]
    return [marker for marker in newest if begin <= marker.time <= end]


def shortly_before(incident: Incident, markers: Sequence[Marker]) -> list[tuple[Marker, str]]:
    """The markers of the hour before an incident, the nearest first, each with the time between
    them in words.
    """
    since = incident.started_at - LIKELY_CAUSE_WITHIN
    near = [marker for marker in markers if since <= marker.time <= incident.started_at]
    return [
        (marker, about((incident.started_at - marker.time).total_seconds()))
        for marker in near[: -MAX_MARKERS_NAMED - 1 : -1]
    ]


# Lines on a chart -----------------------------------------------------------------------------

NAME_LENGTH = 24
ROWS = 3  # of names, above the chart
MAX_UNNAMED = 10  # markers for whose names there is no room
GAP = 5  # between a line and its name


@dataclass(frozen=True, slots=True)
class Lettering:
    """The size of markers' names: the largest width of a letter, and the height of a row."""

    letter: float
    row: int


@dataclass(frozen=True, slots=True)
class MarkerLine:
    """``row``: the row of its name above the chart, 0 the highest; None if there is no room for the
    name. ``is_left``: the name is left of the line. ``reach``: the horizontal extent of the name
    and its line. ``y``: the upper end of the line, at the row of its name; None: at the top of the
    chart.
    """

    x: float
    name: str
    title: str
    row: int | None = None
    is_left: bool = False
    reach: tuple[float, float] = (0, 0)
    y: int | None = None


def marker_lines(
    markers: Sequence[tuple[float, str, str]], right: float, lettering: Lettering
) -> list[MarkerLine]:
    """``markers``: position, name and title of each, in order. ``right``: the end of the chart."""
    lines: list[MarkerLine] = []
    for x, name, title in markers:
        short = shortened(name, NAME_LENGTH)
        width = GAP + lettering.letter * len(short)
        candidates = (
            MarkerLine(x, short, title, row, is_left, (x - width, x) if is_left else (x, x + width))
            for row in range(ROWS)
            for is_left in (False, True)
        )
        free = (
            line
            for line in candidates
            if line.reach[0] >= 0
            and line.reach[1] <= right
            and not any(_collide(line, other) for other in lines)
        )
        lines.append(next(free, MarkerLine(x, short, title)))
    rows = 1 + max((line.row for line in lines if line.row is not None), default=-1)
    return [
        line if line.row is None else replace(line, y=lettering.row * (line.row - rows))
        for line in lines
    ]


def _collide(line: MarkerLine, other: MarkerLine) -> bool:
    """Whether the names, or a name and the other line, overlap."""
    if line.row is None or other.row is None:
        return False
    if line.row == other.row:
        return line.reach[0] - GAP < other.reach[1] and other.reach[0] - GAP < line.reach[1]
    upper, lower = (line, other) if line.row < other.row else (other, line)
    return lower.reach[0] - GAP < upper.x < lower.reach[1] + GAP


def unnamed(lines: Sequence[MarkerLine]) -> str:
    """The newest markers for whose names there is no room on the chart, as a text by moments."""
    titles = [line.title.split(": ", 1) for line in lines if line.y is None][-MAX_UNNAMED:]
    by_moment = groupby(titles, key=itemgetter(0))
    return "; ".join(
        f"{moment}: {', '.join(map(itemgetter(1), group))}" for moment, group in by_moment
    )


# Before and after -----------------------------------------------------------------------------

MAX_LISTED_NAME = 60
SLOWER = N_("%(percent)s%% slower since %(names)s")
FASTER = N_("%(percent)s%% faster since %(names)s")


def changes_since(
    markers: Sequence[Marker], buckets: Sequence[Bucket], phases: Mapping[str, str]
) -> list[tuple[str, str]]:
    """How response times have changed since the markers of a chart, the newest first: a text such
    as ``38% slower since Release 2.1: first byte``, and the medians. ``phases``: their labels.
    """
    if not markers:
        return []
    changes = [*change.changes(buckets, [marker.time for marker in markers])]
    return [
        _since([markers[index].name or "" for index in indexes], changed, phases)
        for indexes, changed in changes[: -MAX_MARKERS_NAMED - 1 : -1]
    ]


def _since(
    names: Sequence[str], changed: ResponseChange, phases: Mapping[str, str]
) -> tuple[str, str]:
    text = _(
        SLOWER if changed.percent > 0 else FASTER,
        percent=f"{abs(changed.percent):,}",
        names=_names_in_words(names),
    )
    if changed.phase is not None and changed.phase in phases:
        text = f"{text}: {phases[changed.phase]}"
    old, new = in_one_unit(changed.before, changed.after)
    figures = _(
        "Median %(after)s, after %(before)s over %(length)s.",
        after=new,
        before=old,
        length=span(changed.length.total_seconds()),
    )
    return text, figures


def _names_in_words(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    more = len(names) - MAX_MARKERS_NAMED
    text = ", ".join(shortened(name, MAX_LISTED_NAME) for name in names[:MAX_MARKERS_NAMED])
    return _("%(names)s and %(count)s more", names=text, count=more) if more > 0 else text
