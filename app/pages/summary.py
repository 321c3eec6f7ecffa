"""JSON in the format of Statuspage's ``/api/v2/summary.json``, for programs that read it.

As in Statuspage, incidents and maintenance that have ended are left out, and a group is a component
that lists its members.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from app.i18n import N_, _
from app.pages.feed_text import clean, newest, page_url, post_link
from app.records import (
    ENDED_STATES,
    MAINTENANCE_STATES,
    Component,
    ComponentState,
    PageState,
    Post,
    PostImpact,
    PostState,
    PublicPage,
    PublicWindow,
)
from app.rules.calendar_entries import series, uid_of_post
from app.rules.page_state import PAGE

# The best first.
STATUSES = (
    "operational",
    "under_maintenance",
    "degraded_performance",
    "partial_outage",
    "major_outage",
)
STATUS = {
    ComponentState.OPERATIONAL: "operational",
    ComponentState.MAINTENANCE: "under_maintenance",
    ComponentState.UNKNOWN: "degraded_performance",
    ComponentState.DEGRADED: "degraded_performance",
    ComponentState.OUTAGE: "major_outage",
}
INDICATOR = {
    PageState.OPERATIONAL: "none",
    PageState.MAINTENANCE: "maintenance",
    PageState.UNKNOWN: "minor",
    PageState.DEGRADED: "minor",
    PageState.PARTIAL_OUTAGE: "major",
    PageState.MAJOR_OUTAGE: "critical",
}
SOME_UNKNOWN = N_("The status of some systems is unknown")

Json = dict[str, Any]
Components = dict[int, Json]  # the components of the page as JSON, by id


def summary_json(page: PublicPage) -> bytes:
    posts = [post for post in page.posts if post.state not in ENDED_STATES]
    planned = [post for post in posts if post.state in MAINTENANCE_STATES]
    components, by_id = _components(page)
    data = {
        "page": _page(page),
        "components": components,
        "incidents": [_incident(page, post, by_id) for post in posts if post not in planned],
        "scheduled_maintenances": [
            *(_incident(page, post, by_id) for post in planned),
            *(_window(page, window, by_id) for window in _next_windows(page, planned)),
        ],
        "status": _status(page),
    }
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


def _page(page: PublicPage) -> Json:
    moments = (
        page.page.updated_at,
        *(component.since for component in page.components),
        *(post.updated_at for post in page.posts),
        *(window.updated_at for window in page.windows),
    )
    return {
        "id": str(page.page.id),
        "name": clean(page.page.name),
        "url": page_url(page),
        "time_zone": page.page.zone,
        "updated_at": _stamp(newest(*moments)),
    }


def _status(page: PublicPage) -> Json:
    """The state of the page. A monitor whose state is unknown is degraded in this format, so the
    page is not operational.
    """
    state = PageState(page.state)
    indicator = INDICATOR[state]
    unknown = any(component.state == ComponentState.UNKNOWN for component in page.components)
    if unknown and indicator in ("none", "maintenance"):
        return {"indicator": "minor", "description": _(SOME_UNKNOWN)}
    return {"indicator": indicator, "description": _(PAGE[state].word)}


# --- Components


def _components(page: PublicPage) -> tuple[list[Json], Components]:
    """All components in order, a group before its first member; and the monitors by id."""
    components: list[Json] = []
    by_id: Components = {}
    groups: dict[str, Json] = {}
    for component in page.components:
        if component.group is not None and component.group not in groups:
            groups[component.group] = {"position": len(components) + 1}
            components.append(groups[component.group])
        by_id[component.id] = _component(page, component, len(components) + 1)
        components.append(by_id[component.id])
    for name, group in groups.items():
        members = [component for component in page.components if component.group == name]
        group |= _group(page, name, members, by_id) | {"position": group["position"]}
    return components, by_id


def _component(page: PublicPage, component: Component, position: int) -> Json:
    return {
        "id": str(component.id),
        "name": clean(component.name),
        "status": STATUS[ComponentState(component.state)],
        **_times(page, [component]),
        "position": position,
        "description": None,
        "showcase": False,
        "start_date": None,
        "group_id": None if component.group is None else _group_id(component.group),
        "page_id": str(page.page.id),
        "group": False,
        "only_show_if_degraded": False,
    }


def _group(page: PublicPage, name: str, members: Sequence[Component], by_id: Components) -> Json:
    statuses = (by_id[member.id]["status"] for member in members)
    return {
        **by_id[members[0].id],
        "id": _group_id(name),
        "name": clean(name),
        "status": max(statuses, key=STATUSES.index),
        **_times(page, members),
        "group_id": None,
        "group": True,
        "components": [str(member.id) for member in members],
    }


def _times(page: PublicPage, components: Iterable[Component]) -> Json:
    """When components were created, and when their state last changed."""
    changed = newest(page.page.created_at, *(component.since for component in components))
    return {"created_at": _stamp(newest(page.page.created_at)), "updated_at": _stamp(changed)}


def _group_id(name: str) -> str:
    """An id for a group, from its name, because groups have no ids."""
    return "group-" + sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]


# --- Incidents and maintenance


def _incident(page: PublicPage, post: Post, by_id: Components) -> Json:
    id = str(post.id)
    created = newest(post.created_at)
    affected = _components_of(page, post.monitors)
    planned = post.state in MAINTENANCE_STATES
    incident = {
        "id": id,
        "name": clean(post.title),
        "status": str(post.state),
        "created_at": _stamp(created),
        "updated_at": _stamp(newest(post.updated_at, post.created_at)),
        "monitoring_at": _first_time(post, PostState.MONITORING),
        "resolved_at": None,
        "impact": "maintenance" if planned else _impact(post, affected),
        "shortlink": post_link(page, post.id, post.created_at),
        "started_at": _stamp(post.starts_at or created),
        "page_id": str(page.page.id),
        "incident_updates": [
            _update(
                id, str(entry.id), entry.state, entry.body, entry.created_at, entry.corrected_at
            )
            for entry in reversed(post.updates)
        ],
        "components": [by_id[component.id] for component in affected],
    }
    if planned:  # maintenance that was not announced may have no times
        incident["scheduled_for"] = _stamp(post.starts_at or created)
        incident["scheduled_until"] = _stamp(post.ends_at or post.starts_at or created)
    return incident


def _update(
    incident: str,
    id: str,
    status: str,
    body: str,
    created_at: datetime | None,
    corrected_at: datetime | None = None,
) -> Json:
    created = _stamp(newest(created_at))
    return {
        "id": id,
        "status": str(status),
        "body": clean(body),
        "incident_id": incident,
        "created_at": created,
        "updated_at": _stamp(newest(created_at, corrected_at)),
        "display_at": created,
        "affected_components": None,  # Wakeful does not store the states before and after
        "deliver_notifications": True,
        "custom_tweet": None,
        "tweet_id": None,
    }


def _impact(post: Post, affected: Sequence[Component]) -> str:
    if any(component.state == ComponentState.OUTAGE for component in affected):
        return "major"
    shown_ids = {component.id for component in affected}
    impacts = {entry.value for entry in post.impact if entry.key in shown_ids}
    return "none" if impacts == {PostImpact.NONE} else "minor"


def _first_time(post: Post, state: PostState) -> str | None:
    """When the post first had this state."""
    moments = (update.created_at for update in post.updates if update.state == state)
    moment = next(moments, None)
    return None if moment is None else _stamp(moment)


def _next_windows(page: PublicPage, planned: Iterable[Post]) -> Iterator[PublicWindow]:
    """Maintenance windows that are not in ``planned``: of each series, the occurrence that runs now
    and the next one. All of 90 days would be hundreds of entries with their components.
    """
    listed_series = {series(uid_of_post(post)) for post in planned}
    for window in sorted(page.windows, key=lambda window: (window.start_at, window.uid)):
        if window.cancelled or series(window.uid) in listed_series:
            continue
        if window.start_at > page.made_at:
            listed_series.add(series(window.uid))
        yield window


def _window(page: PublicPage, window: PublicWindow, by_id: Components) -> Json:
    running = window.start_at <= page.made_at
    status = PostState.IN_PROGRESS if running else PostState.SCHEDULED
    changed = _stamp(newest(window.updated_at))
    affected = _components_of(page, window.components) if window.components else page.components
    return {
        "id": window.uid,
        "name": clean(window.name),
        "status": str(status),
        "created_at": changed,
        "updated_at": changed,
        "monitoring_at": None,
        "resolved_at": None,
        "impact": "maintenance",
        "shortlink": page_url(page),
        "started_at": _stamp(window.start_at),
        "page_id": str(page.page.id),
        "incident_updates": [
            _update(window.uid, f"{window.uid}-1", status, window.description, window.updated_at)
        ],
        "components": [by_id[component.id] for component in affected],
        "scheduled_for": _stamp(window.start_at),
        "scheduled_until": _stamp(window.end_at),
    }


def _stamp(moment: datetime) -> str:
    """A time as Statuspage writes it: ``2026-11-21T08:00:00.000Z``."""
    stamp = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return stamp.removesuffix("+00:00") + "Z"


def _components_of(page: PublicPage, ids: Iterable[int]) -> list[Component]:
    """The components with these ids that the page shows, in its order."""
    id_set = set(ids)
    return [component for component in page.components if component.id in id_set]
