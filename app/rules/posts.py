"""What a post on a status page may become (decisions.md 12). Pure."""

from __future__ import annotations

from datetime import datetime

from app.i18n import N_, _
from app.records import MAINTENANCE_STATES, PostState

OF_MAINTENANCE = N_(
    "This post announces maintenance: it can be scheduled, in_progress or completed. "
    "Write another post for an incident."
)
OF_INCIDENT = N_(
    "This post is about an incident: it can be investigating, identified, monitoring or resolved. "
    "Write another post for maintenance."
)
START_NEEDED = N_("A scheduled post needs the time when it starts.")
END_NEEDED = N_("A scheduled post needs the time when it ends.")
ENDS_BEFORE_START = N_("The end must be later than the start.")
NO_TIMES = N_("A scheduled post needs both times. Send starts_at and ends_at with the post first.")


def family_fault(before: str | None, state: str) -> str | None:
    """Why a post of the state ``before`` cannot get this one; None where it can."""
    if before is None or (before in MAINTENANCE_STATES) == (state in MAINTENANCE_STATES):
        return None
    return _(OF_MAINTENANCE if before in MAINTENANCE_STATES else OF_INCIDENT)


def time_faults(
    state: str | None, starts_at: datetime | None, ends_at: datetime | None
) -> dict[str, str]:
    """What is wrong with a post's times, by field."""
    faults = {}
    if state == PostState.SCHEDULED:
        if starts_at is None:
            faults["starts_at"] = _(START_NEEDED)
        if ends_at is None:
            faults["ends_at"] = _(END_NEEDED)
    if starts_at is not None and ends_at is not None and ends_at <= starts_at:
        faults["ends_at"] = _(ENDS_BEFORE_START)
    return faults
