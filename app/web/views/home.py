"""Home: is anything down now?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask import Blueprint, Response

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
from app.stores.writable import cannot_write
from app.web.frame import fragments, servers
from app.web.frame.session import guarded

blueprint = guarded(Blueprint("home", __name__))

OPEN_SHOWN = 50
CHANGES_SHOWN = 12
CHANGES_ASKED = 25  # of the sizes of interface.md, that any server takes, the next larger one
DOUBTS_SHOWN = 10
OPEN = (IncidentStatus.UNRESOLVED, IncidentStatus.ACKNOWLEDGED)
# What is not down and still worth a look.
DOUBTFUL = (MonitorStatus.DEGRADED, MonitorStatus.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happened: ``what`` is ``down`` or ``up``."""

    at: datetime
    what: str
    incident: Incident


@blueprint.get("/")
def show() -> Response:
    found = _answer()
    return fragments.page(
        "home/show.html",
        "home/_live.html",
        changes=changes(),
        doubtful=_doubtful(found["counters"]),
        **found,
    )


def _answer() -> dict[str, Any]:
    store = current_store()
    pages = [
        store.incidents.list(
            IncidentQuery(
                status=status, sort_by=IncidentSortBy.STARTED_AT, per_page=OPEN_SHOWN, brief=True
            )
        )
        for status in OPEN
    ]
    counters = store.monitors.overview() if servers.offers(Feature.OVERVIEW) else None
    total = sum(page.total for page in pages)
    return {
        "open_now": [incident for page in pages for incident in page.items],
        "open_total": total,
        "counters": counters,
        **_unless_stuck(sentence(counters, total)),
    }


def _unless_stuck(found: dict[str, str]) -> dict[str, str]:
    """While results cannot be stored, that nothing is known to be down is no good news."""
    if found["look"] == "up" and cannot_write():
        return _said(str(MonitorStatus.UNKNOWN), "Nothing new is known")
    return found


def sentence(counters: Mapping[str, int] | None, open_: int) -> dict[str, str]:
    """The answer in a few words, with its shape and tone. Without counters incidents must do."""
    if counters is None:
        if open_:
            return _said("down", f"{_count(open_, 'incident')} open")
        return _said("up", "No incident is open")
    down, total = counters.get(MonitorStatus.DOWN, 0), sum(counters.values())
    if total == 0:
        return _said("pending", "Nothing is watched yet")
    if down:
        return _said("down", f"{_count(down, 'monitor')} {'is' if down == 1 else 'are'} down")
    if open_:
        return _said("down", f"{_count(open_, 'incident')} open")
    for status, text in (
        (MonitorStatus.UNKNOWN, "Nothing is known to be down"),
        (MonitorStatus.DEGRADED, "Nothing is down"),
    ):
        if counters.get(status):
            return _said(str(status), text)
    if counters.get(MonitorStatus.UP):
        return _said("up", "Everything is up")
    return _said("paused", "Nothing is down")


def _said(look: str, text: str) -> dict[str, str]:
    return {"look": look, "headline": text}


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def changes() -> list[Change]:
    """What opened and what ended lately, the newest first."""
    store = current_store()
    begun = store.incidents.list(
        IncidentQuery(sort_by=IncidentSortBy.STARTED_AT, per_page=CHANGES_ASKED, brief=True)
    )
    ended = store.incidents.list(
        IncidentQuery(
            status=IncidentStatus.RESOLVED,
            sort_by=IncidentSortBy.ENDED_AT,
            per_page=CHANGES_ASKED,
            brief=True,
        )
    )
    found = [Change(one.started_at, "down", one) for one in begun.items]
    found += [Change(one.ended_at, "up", one) for one in ended.items if one.ended_at]
    return sorted(found, key=lambda change: change.at, reverse=True)[:CHANGES_SHOWN]


def _doubtful(counters: Mapping[str, int] | None) -> Sequence[Monitor]:
    return [
        monitor
        for status in DOUBTFUL
        if (counters or {}).get(status)
        for monitor in current_store().monitors.list(
            MonitorQuery(state=status, sort_by=MonitorSortBy.NAME, sort=Sort.ASC,
                         per_page=DOUBTS_SHOWN, uptime=())
        ).items
    ]  # fmt: skip
