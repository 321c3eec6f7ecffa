"""The post templates that are built in, and how people's own ones join them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from app.i18n import N_, _
from app.records import PostState, PostTemplate

BUILT_IN_ID = 0  # no stored template has it
BUILT_IN: tuple[PostTemplate, ...] = (
    PostTemplate(
        BUILT_IN_ID,
        N_("Investigating"),
        N_("Service disruption"),
        PostState.INVESTIGATING,
        N_("We are investigating a problem. We will post an update as soon as we know more."),
    ),
    PostTemplate(
        BUILT_IN_ID,
        N_("Identified"),
        N_("Service disruption"),
        PostState.IDENTIFIED,
        N_("We have found the cause and are working on a fix."),
    ),
    PostTemplate(
        BUILT_IN_ID,
        N_("Monitoring"),
        N_("Service disruption"),
        PostState.MONITORING,
        N_("A fix is in place. We are monitoring the result."),
    ),
    PostTemplate(
        BUILT_IN_ID,
        N_("Resolved"),
        N_("Service disruption"),
        PostState.RESOLVED,
        N_("The problem is resolved. We apologize for the inconvenience."),
    ),
    PostTemplate(
        BUILT_IN_ID,
        N_("Maintenance"),
        N_("Scheduled maintenance"),
        PostState.SCHEDULED,
        N_("We will carry out maintenance at this time. The service may be unavailable meanwhile."),
    ),
)


def built_in() -> list[PostTemplate]:
    """Those that every installation has, in the chosen language."""
    return [
        replace(one, name=_(one.name), title=_(one.title), body=_(one.body)) for one in BUILT_IN
    ]


def offered(own: Iterable[PostTemplate]) -> list[PostTemplate]:
    """The built-in templates and then ``own``, by name. An own template with the name of a built-in
    one replaces it.
    """
    own = sorted(own, key=lambda one: folded(one.name))
    taken = {folded(one.name) for one in own}
    return [*(one for one in built_in() if folded(one.name) not in taken), *own]


def folded(name: str) -> str:
    """The form in which names are compared."""
    return name.strip().casefold()
