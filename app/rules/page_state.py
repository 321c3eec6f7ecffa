"""The state of a status page, and the sentence that says it (decisions.md 12). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from app.i18n import N_
from app.records import ComponentState, PageState, PostState

# The worst first.
ORDER = tuple(ComponentState)
_OF_PAGE = {
    ComponentState.DEGRADED: PageState.DEGRADED,
    ComponentState.MAINTENANCE: PageState.MAINTENANCE,
    ComponentState.UNKNOWN: PageState.UNKNOWN,
    ComponentState.OPERATIONAL: PageState.OPERATIONAL,
}
SENTENCES: Mapping[PageState, str] = {
    PageState.OPERATIONAL: N_("All systems operational"),
    PageState.DEGRADED: N_("Some systems have problems"),
    PageState.PARTIAL_OUTAGE: N_("Some systems are down"),
    PageState.MAJOR_OUTAGE: N_("Major outage"),
    PageState.MAINTENANCE: N_("Maintenance in progress"),
    PageState.UNKNOWN: N_("Status unknown"),
}


def component_state(
    *, paused: bool, checked: bool, in_maintenance: bool, incident_open: bool, verdict: str | None
) -> ComponentState:
    """The state of one monitor. ``incident_open``: a failure was confirmed and lasts.

    A check that failed and is not confirmed changes nothing: the monitor stays what it was.
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

    ``components`` are those that count: paused and never checked monitors do not. An open post
    never leaves a page operational.
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
    return _OF_PAGE[min(components, key=ORDER.index)]
