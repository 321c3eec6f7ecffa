"""The wall: one page for a screen that everybody sees from afar. What is down comes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from flask import Blueprint, request
from werkzeug.wrappers import Response

from app.errors import Invalid
from app.records import (
    Incident,
    IncidentQuery,
    IncidentSortBy,
    IncidentStatus,
    Monitor,
    MonitorQuery,
    MonitorSortBy,
    MonitorStatus,
    Sort,
)
from app.stores import Feature, current_store
from app.web import addresses, live, remote, words
from app.web.session import guarded

blueprint = guarded(Blueprint("wall", __name__, url_prefix="/wall"))

TILES = 200  # more cannot be told apart on any screen; the rest is counted
PAGE = 100
THEMES = ("dark", "light", "auto")
# What needs somebody: shown large, with its cause.
LOUD = (MonitorStatus.DOWN, MonitorStatus.DEGRADED, MonitorStatus.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Tile:
    """``since``: when the trouble began. ``incident``: the open one."""

    monitor: Monitor
    since: datetime | None
    incident: Incident | None

    @property
    def loud(self) -> bool:
        return self.monitor.status in LOUD

    @property
    def cause(self) -> str | None:
        """What the last check said; of an incident reported by hand, what people said."""
        return self.monitor.cause or (self.incident.cause if self.incident else None)


@blueprint.get("")
def show() -> Response:
    theme = request.args.get("theme") or THEMES[0]
    if theme not in THEMES:
        raise Invalid({"theme": [f"Choose one of these: {', '.join(THEMES)}."]})
    monitors, counters, total = _monitors()
    incidents = _open_incidents()
    sentence, look = answer(counters, total)
    tiles = [_tile(monitor, incidents.get(monitor.id)) for monitor in monitors]
    return live.page(
        "wall/show.html",
        "wall/_live.html",
        tiles=tiles,
        counters=counters,
        more=total - len(tiles),
        total=total,
        sentence=sentence,
        look=look,
        here=addresses.here,
        theme=theme,
    )


def answer(counters: Mapping[str, int], total: int) -> tuple[str, words.Look]:
    """What somebody at the other end of the room wants to know, and how it looks."""
    if not total:
        return "Nothing is watched yet", words.MONITOR[MonitorStatus.PENDING]
    for status in LOUD:
        if count := counters.get(status, 0):
            look = words.MONITOR[status]
            return f"{count:,} {look.word.lower()}", look
    up = counters.get(MonitorStatus.UP, 0)
    look = words.MONITOR[MonitorStatus.UP if up else MonitorStatus.PAUSED]
    return f"All {total:,} up" if up == total else "Nothing is down", look


def _monitors() -> tuple[Sequence[Monitor], Mapping[str, int], int]:
    """The monitors to show, what matters first; how many there are in each state, and in all."""
    store = current_store()
    if not remote.offers(Feature.OVERVIEW):
        return _unsorted()
    counters = store.overview()
    found: list[Monitor] = []
    for status in words.MONITOR_ORDER:
        for number in range(1, -(-TILES // PAGE) + 1):
            if len(found) >= TILES or counters.get(status, 0) <= (number - 1) * PAGE:
                break
            found += store.monitors(_query(number, state=status)).items
    return found[:TILES], counters, sum(counters.values())


def _unsorted() -> tuple[Sequence[Monitor], Mapping[str, int], int]:
    """The same from a server that cannot count: only what is shown is counted."""
    found: list[Monitor] = []
    for number in range(1, TILES // PAGE + 1):
        page = current_store().monitors(_query(number))
        found += page.items
        if number >= page.last_number:
            break
    order: dict[str, int] = {status: place for place, status in enumerate(words.MONITOR_ORDER)}
    found.sort(key=lambda one: order.get(one.status, len(order)))
    counters: dict[str, int] = {}
    for monitor in found:
        counters[monitor.status] = counters.get(monitor.status, 0) + 1
    return found, counters, max(page.total, len(found))


def _query(number: int, state: str | None = None) -> MonitorQuery:
    return MonitorQuery(
        sort_by=MonitorSortBy.NAME,
        sort=Sort.ASC,
        per_page=PAGE,
        page=number,
        state=state,
        uptime=(),
    )


def _open_incidents() -> dict[int, Incident]:
    """The open incidents by their monitor."""
    return {
        incident.monitor_id: incident
        for status in (IncidentStatus.ACKNOWLEDGED, IncidentStatus.UNRESOLVED)
        for incident in current_store()
        .incidents(
            IncidentQuery(
                status=status, sort_by=IncidentSortBy.STARTED_AT, per_page=PAGE, brief=True
            )
        )
        .items
    }


def _tile(monitor: Monitor, incident: Incident | None) -> Tile:
    return Tile(monitor, incident.started_at if incident else monitor.status_since, incident)
