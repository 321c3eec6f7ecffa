"""Posts on status pages: the allowed changes of state, and the templates (decision 12). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from app.i18n import N_, _
from app.records import MAINTENANCE_STATES, PostState, PostTemplate
from app.rules.natural import natural_key
from app.rules.text import END_BEFORE_START

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
NO_TIMES = N_("A scheduled post needs both times. Send starts_at and ends_at with the post first.")


def state_change_fault(present: str | None, state: str) -> str | None:
    """Why a post whose state is ``present`` cannot get ``state``; None if it can."""
    if present is None or (present in MAINTENANCE_STATES) == (state in MAINTENANCE_STATES):
        return None
    return _(OF_MAINTENANCE if present in MAINTENANCE_STATES else OF_INCIDENT)


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
        faults["ends_at"] = _(END_BEFORE_START)
    return faults


# --- The built-in templates, and those that people have written

BUILT_IN_ID = 0  # no stored template has this id
# Name, title, state and body of each.
BUILT_IN: tuple[tuple[str, str, PostState, str], ...] = (
    (N_("Investigating"), N_("Service disruption"), PostState.INVESTIGATING,
     N_("We are investigating a problem. We will post an update as soon as we know more.")),
    (N_("Identified"), N_("Service disruption"), PostState.IDENTIFIED,
     N_("We have found the cause and are working on a fix.")),
    (N_("Monitoring"), N_("Service disruption"), PostState.MONITORING,
     N_("A fix is in place. We are monitoring the result.")),
    (N_("Resolved"), N_("Service disruption"), PostState.RESOLVED,
     N_("The problem is resolved. We apologize for the inconvenience.")),
    (N_("Maintenance"), N_("Scheduled maintenance"), PostState.SCHEDULED,
     N_("We will carry out maintenance at this time. The service may be unavailable meanwhile.")),
)  # fmt: skip


def built_in() -> list[PostTemplate]:
    """The templates that every installation has, in the chosen language."""
    return [
        PostTemplate(BUILT_IN_ID, _(name), _(title), state, _(body))
        for name, title, state, body in BUILT_IN
    ]


def offered(stored: Iterable[PostTemplate]) -> list[PostTemplate]:
    """The built-in templates, then the stored ones by name. A stored template replaces the built-in
    one of the same name.
    """
    by_name = sorted(stored, key=lambda template: natural_key(template.name))
    names = {folded(template.name) for template in by_name}
    return [*(template for template in built_in() if folded(template.name) not in names), *by_name]


def folded(name: str) -> str:
    """The form in which names are compared."""
    return name.strip().casefold()
