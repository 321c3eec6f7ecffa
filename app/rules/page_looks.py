"""How the states of status pages look, on the page and on the dashboard: word, shape, tone. Pure.

``shape`` names an icon of ``components/icons.html``, ``tone`` a colour of ``tokens.css``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.i18n import N_, _
from app.records import ComponentState, PageState, PostState
from app.rules.page_state import SENTENCES


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
    PageState.OPERATIONAL: Look(SENTENCES[PageState.OPERATIONAL], "up", "up"),
    PageState.DEGRADED: Look(SENTENCES[PageState.DEGRADED], "degraded", "degraded"),
    PageState.PARTIAL_OUTAGE: Look(SENTENCES[PageState.PARTIAL_OUTAGE], "down", "down"),
    PageState.MAJOR_OUTAGE: Look(SENTENCES[PageState.MAJOR_OUTAGE], "down", "down"),
    PageState.MAINTENANCE: Look(SENTENCES[PageState.MAINTENANCE], "maintenance", "maintenance"),
    PageState.UNKNOWN: Look(SENTENCES[PageState.UNKNOWN], "unknown", "unknown"),
}
POST: Mapping[str, Look] = {
    PostState.INVESTIGATING: Look(N_("Investigating"), "down", "down"),
    PostState.IDENTIFIED: Look(N_("Identified"), "degraded", "degraded"),
    PostState.MONITORING: Look(N_("Monitoring"), "seen", "maintenance"),
    PostState.RESOLVED: Look(N_("Resolved"), "up", "up"),
    PostState.SCHEDULED: Look(N_("Scheduled"), "pending", "paused"),
    PostState.IN_PROGRESS: Look(N_("In progress"), "maintenance", "maintenance"),
    PostState.COMPLETED: Look(N_("Completed"), "up", "up"),
}


def post_word(state: str) -> str:
    """The word of a post's state, for texts."""
    look = POST.get(state)
    return _(look.word) if look else state
