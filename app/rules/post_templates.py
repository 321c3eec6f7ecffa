"""The posts to start from. Pure."""

from __future__ import annotations

from app.records import PostState, PostTemplate

BUILT_IN: tuple[PostTemplate, ...] = (
    PostTemplate(
        "Investigating",
        "Service disruption",
        PostState.INVESTIGATING,
        "We have noticed a problem and are looking into it. We will post more as soon as we know"
        " more.",
    ),
    PostTemplate(
        "Identified",
        "Service disruption",
        PostState.IDENTIFIED,
        "We have found the cause and are working on a fix.",
    ),
    PostTemplate(
        "Monitoring",
        "Service disruption",
        PostState.MONITORING,
        "A fix is in place. We are watching whether everything works again.",
    ),
    PostTemplate(
        "Resolved",
        "Service disruption",
        PostState.RESOLVED,
        "The problem is resolved. We are sorry for the inconvenience.",
    ),
    PostTemplate(
        "Maintenance",
        "Scheduled maintenance",
        PostState.SCHEDULED,
        "We will carry out maintenance in this time. The service may not be available meanwhile.",
    ),
)
