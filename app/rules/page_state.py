"""The state of a status page, its icon and colour, and the links to the page
(decision 12). Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from app.i18n import N_, _
from app.records import (
    ENDED_STATES,
    MAINTENANCE_STATES,
    ComponentState,
    PageState,
    PostImpact,
    PostState,
)

# The worst first.
ORDER = tuple(ComponentState)
_OF_PAGE = {
    ComponentState.DEGRADED: PageState.DEGRADED,
    ComponentState.MAINTENANCE: PageState.MAINTENANCE,
    ComponentState.UNKNOWN: PageState.UNKNOWN,
    ComponentState.OPERATIONAL: PageState.OPERATIONAL,
}


def component_state(
    *, paused: bool, checked: bool, in_maintenance: bool, incident_open: bool, verdict: str | None
) -> ComponentState:
    """The state of one monitor. ``incident_open``: a failure was confirmed and has not ended. A
    failure that is not confirmed changes nothing.
    """
    if paused or not checked:
        return ComponentState.UNKNOWN
    if in_maintenance:
        return ComponentState.MAINTENANCE
    if incident_open:
        return ComponentState.OUTAGE
    if verdict == "degraded":
        return ComponentState.DEGRADED
    return ComponentState.UNKNOWN if verdict == "unknown" else ComponentState.OPERATIONAL


def page_state(components: Collection[ComponentState], open_posts: Iterable[str]) -> PageState:
    """The state of a page from its monitors' states and the states of its open posts.

    ``components``: without paused and never checked monitors, which do not count. With an open
    post, a page is never operational.
    """
    state = _of_components(components)
    posts = set(open_posts)
    if state != PageState.OPERATIONAL or not posts:
        return state
    return PageState.MAINTENANCE if posts == {PostState.IN_PROGRESS} else PageState.DEGRADED


def _of_components(components: Collection[ComponentState]) -> PageState:
    if not components:
        return PageState.UNKNOWN
    down = sum(state == ComponentState.OUTAGE for state in components)
    if down:
        major = 2 * down >= len(components)
        return PageState.MAJOR_OUTAGE if major else PageState.PARTIAL_OUTAGE
    return _OF_PAGE[worst(components)]


def worst(components: Collection[ComponentState]) -> ComponentState:
    """The worst of these states; of none, unknown."""
    return min(components, key=ORDER.index, default=ComponentState.UNKNOWN)


def impact_of(impact: str | None, post_state: str, *, automatic: bool) -> str:
    """The impact of a post on a monitor: ``impact``, or the usual one for the state of the post. An
    automatic post that nobody has edited has no impact: the page shows the monitor's state.
    """
    if impact is not None:
        return impact
    unwritten = automatic and post_state == PostState.INVESTIGATING
    if unwritten or post_state in (*MAINTENANCE_STATES, *ENDED_STATES):
        return PostImpact.NONE
    return PostImpact.DEGRADED


def state_by_post(post_state: str, impact: str) -> ComponentState:
    """The state of a monitor according to an open post. The page shows the worse of this and the
    monitor's state.
    """
    if impact != PostImpact.NONE:
        return ComponentState(impact)
    if post_state == PostState.IN_PROGRESS:
        return ComponentState.MAINTENANCE
    return ComponentState.OPERATIONAL


# The word, icon (``shape``, of ``components/icons.html``) and colour (``tone``, of ``tokens.css``)
# of each state, on the page and on the dashboard.


@dataclass(frozen=True, slots=True)
class Look:
    word: str
    shape: str
    tone: str


COMPONENT: Mapping[str, Look] = {
    ComponentState.OPERATIONAL: Look(N_("Operational"), "up", "up"),
    ComponentState.DEGRADED: Look(N_("Degraded"), "degraded", "degraded"),
    ComponentState.OUTAGE: Look(N_("Down"), "down", "down"),
    ComponentState.MAINTENANCE: Look(N_("Maintenance"), "maintenance", "maintenance"),
    ComponentState.UNKNOWN: Look(N_("Unknown"), "unknown", "unknown"),
}
PAGE: Mapping[str, Look] = {
    PageState.OPERATIONAL: Look(N_("All systems operational"), "up", "up"),
    PageState.DEGRADED: Look(N_("Some systems have problems"), "degraded", "degraded"),
    PageState.PARTIAL_OUTAGE: Look(N_("Some systems are down"), "down", "down"),
    PageState.MAJOR_OUTAGE: Look(N_("Major outage"), "down", "down"),
    PageState.MAINTENANCE: Look(N_("Maintenance in progress"), "maintenance", "maintenance"),
    PageState.UNKNOWN: Look(N_("Status unknown"), "unknown", "unknown"),
}
POST: Mapping[str, Look] = {
    PostState.INVESTIGATING: Look(N_("Investigating"), "down", "down"),
    PostState.IDENTIFIED: Look(N_("Identified"), "degraded", "degraded"),
    PostState.MONITORING: Look(N_("Monitoring"), "filled-eye", "maintenance"),
    PostState.RESOLVED: Look(N_("Resolved"), "up", "up"),
    PostState.SCHEDULED: Look(N_("Scheduled"), "pending", "paused"),
    PostState.IN_PROGRESS: Look(N_("In progress"), "maintenance", "maintenance"),
    PostState.COMPLETED: Look(N_("Completed"), "up", "up"),
}


def post_word(state: str) -> str:
    """The word of a post's state, for texts."""
    look = POST.get(state)
    return _(look.word) if look else state


IMPACT: Mapping[str, str] = {
    PostImpact.NONE: N_("None"),
    PostImpact.DEGRADED: COMPONENT[ComponentState.DEGRADED].word,
    PostImpact.OUTAGE: COMPONENT[ComponentState.OUTAGE].word,
}


def page_link(base_url: str, slug: str, domain: str | None) -> str:
    """The address of a page, without a slash at its end: on its own host name, or below
    ``base_url``, which says whether it is http or https.
    """
    if domain:
        scheme = base_url.partition("://")[0] or "https"
        return f"{scheme}://{domain}"
    return f"{base_url}/status/{slug}"


def image_link(page: str, name: str, version: str) -> str:
    """The address of a page's logo or favicon. A new image has a new version, so that a browser
    shows no old copy.
    """
    return f"{page}/{name}?v={version}"


def confirm_link(page: str, token: str) -> str:
    return f"{page}/confirm/{token}"


def unsubscribe_link(page: str, token: str) -> str:
    """The address to unsubscribe: GET shows a button; POST, also by RFC 8058, unsubscribes."""
    return f"{page}/unsubscribe/{token}"
