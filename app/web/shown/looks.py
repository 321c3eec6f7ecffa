"""The appearance of each state: a shape, a word and a colour, in one place.

Those of status pages are in ``app/rules/page_looks.py``, because the public sees them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.i18n import N_, _
from app.records import (
    WORST_FIRST,
    Carrier,
    Classification,
    DeliveryStatus,
    Event,
    Incident,
    IncidentStatus,
    LocationRule,
    MonitorStatus,
    PlaceState,
    Role,
    Verdict,
    Visibility,
    Warn,
)
from app.rules.figures import percent as percent
from app.rules.page_looks import COMPONENT as COMPONENT
from app.rules.page_looks import PAGE as PAGE
from app.rules.page_looks import POST as POST
from app.rules.page_looks import Look as Look

MONITOR = {
    MonitorStatus.UP: Look("Up", "up", "up"),
    MonitorStatus.DEGRADED: Look("Degraded", "degraded", "degraded"),
    MonitorStatus.DOWN: Look("Down", "down", "down"),
    MonitorStatus.UNKNOWN: Look("Unknown", "unknown", "unknown"),
    MonitorStatus.MAINTENANCE: Look("Maintenance", "maintenance", "maintenance"),
    MonitorStatus.PAUSED: Look("Paused", "paused", "paused"),
    MonitorStatus.PENDING: Look("Pending", "pending", "paused"),
}
# The last check failed, and no incident is open yet.
CONFIRMING = Look("Failing, not confirmed yet", "degraded", "degraded")
MONITOR_ORDER = WORST_FIRST

INCIDENT = {
    IncidentStatus.UNRESOLVED: Look("Unresolved", "down", "down"),
    IncidentStatus.ACKNOWLEDGED: Look("Acknowledged", "seen", "degraded"),
    IncidentStatus.RESOLVED: Look("Resolved", "up", "up"),
}

VERDICT = {
    Verdict.UP: Look("Up", "up", "up"),
    Verdict.DEGRADED: Look("Degraded", "degraded", "degraded"),
    Verdict.DOWN: Look("Down", "down", "down"),
    Verdict.UNKNOWN: Look("Unknown", "unknown", "unknown"),
}

DELIVERY = {
    DeliveryStatus.PENDING: Look("Pending", "pending", "paused"),
    DeliveryStatus.DELIVERED: Look("Delivered", "up", "up"),
    DeliveryStatus.FAILED: Look("Failed", "down", "down"),
    DeliveryStatus.HELD: Look("Held", "paused", "degraded"),
}

PLACE = {
    PlaceState.ONLINE: Look(N_("Online"), "up", "up"),
    PlaceState.SILENT: Look(N_("Silent"), "down", "down"),
    PlaceState.NEVER_SEEN: Look(N_("Never seen"), "pending", "paused"),
}
CARRIER = {
    Carrier.LOCAL: N_("Checker on the database"),
    Carrier.QUEUE: N_("Probers on a queue"),
    Carrier.AGENT: N_("Agent"),
}
RULE = {
    LocationRule.ANY: N_("Down when any of them fails"),
    LocationRule.MAJORITY: N_("Down when more than half of them fail"),
    LocationRule.ALL: N_("Down when all of them fail"),
}
CLOCK_RIGHT_MS = 50  # a smaller difference is that of the way to the server

# Of a maintenance window.
WINDOW = {
    "on": Look("In progress", "maintenance", "maintenance"),
    "planned": Look("Planned", "pending", "paused"),
    "over": Look("Over", "check", "paused"),
    "unreadable": Look("Does not apply", "unknown", "paused"),
}

VISIBILITY = {
    Visibility.PUBLIC: "Public",
    Visibility.UNLISTED: "Anyone with the link",
    Visibility.PASSWORD: "Password required",
    Visibility.CLOSED: "People with an account",
}

EVENTS = {
    Event.INCIDENT_OPENED: "Incident opened",
    Event.INCIDENT_ACKNOWLEDGED: "Incident acknowledged",
    Event.INCIDENT_RESOLVED: "Incident resolved",
    Event.INCIDENT_REMINDER: "Reminder",
    Event.INCIDENTS_OPENED: "Several incidents opened",
    Event.INCIDENTS_RESOLVED: "Several incidents resolved",
    Event.INCIDENTS_DIGEST: "Quiet hours summary",
    Event.CERTIFICATE_EXPIRING: "Certificate expires soon",
    Event.DOMAIN_EXPIRING: "Domain expires soon",
    Event.LOCATION_SILENT: "Place silent",
    Event.LOCATION_ONLINE: "Place back",
    Event.REPORT_MONTHLY: "Monthly report",
    Event.TEST: "Test",
}

ROLES = {
    Role.ADMIN: "Admin: everything, including people and settings",
    Role.EDITOR: "Editor: monitors and incidents",
    Role.VIEWER: "Viewer: read only",
}

WARNINGS = {
    Warn.IPV6_UNREACHABLE: "It answers over IPv4, but not over IPv6.",
    Warn.IPV4_UNREACHABLE: "It answers over IPv6, but not over IPv4.",
    Warn.REDIRECT_DOWNGRADE: "It redirects from https to http.",
    Warn.BODY_CUT_AT_CAP: "The body is larger than 1 MiB, and the rest was not read.",
    Warn.TLS_EXPIRING: "The certificate expires soon.",
}

CLASSIFIED = {
    Classification.MAINTENANCE: "was maintenance",
    Classification.FALSE_ALARM: "false alarm",
}

UNKNOWN = Look("Unknown", "unknown", "unknown")


def look_of(looks: Mapping[Any, Look], word: str) -> Look:
    """The look of ``word``; a remote server may have states that this version does not know."""
    return looks.get(word) or Look(str(word), UNKNOWN.shape, UNKNOWN.tone)


def clock_offset(ms: int) -> str:
    """How far the clock of a place is from ours."""
    if abs(ms) < CLOCK_RIGHT_MS:
        return _("right")
    amount = f"{abs(ms):,} ms" if abs(ms) < 10_000 else f"{abs(ms) / 1000:,.0f} s"
    if ms > 0:
        return _("%(amount)s ahead", amount=amount)
    return _("%(amount)s behind", amount=amount)


def monitor_of(incident: Incident) -> str:
    """The name of an incident's monitor; a server may omit it."""
    return incident.monitor.name if incident.monitor else f"Monitor {incident.monitor_id}"
