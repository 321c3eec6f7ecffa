"""The look of each state: icon, word and colour. ``app/rules/page_state.py`` has the looks of
status pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from app import records
from app.i18n import N_, _
from app.rules.figures import milliseconds
from app.rules.figures import percent as percent
from app.rules.page_state import COMPONENT as COMPONENT
from app.rules.page_state import PAGE as PAGE
from app.rules.page_state import POST as POST
from app.rules.page_state import Look as Look
from app.rules.who_saw import seen_from as seen_from

MONITOR = {
    records.MonitorStatus.UP: Look(N_("Up"), "up", "up"),
    records.MonitorStatus.DEGRADED: Look(N_("Degraded"), "degraded", "degraded"),
    records.MonitorStatus.DOWN: Look(N_("Down"), "down", "down"),
    records.MonitorStatus.FAILING: Look(N_("Failing, checking again"), "degraded", "degraded"),
    records.MonitorStatus.UNREACHABLE: Look(N_("Unreachable"), "unknown", "unknown"),
    records.MonitorStatus.UNKNOWN: Look(N_("Unknown"), "unknown", "unknown"),
    records.MonitorStatus.MAINTENANCE: Look(N_("Maintenance"), "maintenance", "maintenance"),
    records.MonitorStatus.PAUSED: Look(N_("Paused"), "paused", "paused"),
    records.MonitorStatus.PENDING: Look(N_("Pending"), "pending", "paused"),
}
MONITOR_ORDER = records.WORST_FIRST

INCIDENT = {
    records.IncidentStatus.UNRESOLVED: Look(N_("Unresolved"), "down", "down"),
    records.IncidentStatus.ACKNOWLEDGED: Look(N_("Acknowledged"), "filled-eye", "degraded"),
    records.IncidentStatus.RESOLVED: Look(N_("Resolved"), "up", "up"),
}

# An incident that nobody has acknowledged, of a monitor that is slow
SLOW = Look(N_("Degraded"), "degraded", "degraded")

VERDICT = {verdict: MONITOR[records.MonitorStatus(verdict)] for verdict in records.Verdict}

PING = {
    records.PingKind.SUCCESS: N_("Success"), records.PingKind.START: N_("Start"),
    records.PingKind.FAIL: N_("Failure"), records.PingKind.LOG: N_("Log"),
}  # fmt: skip

DELIVERY = {
    records.DeliveryStatus.PENDING: Look(N_("Pending"), "pending", "paused"),
    records.DeliveryStatus.DELIVERED: Look(N_("Delivered"), "up", "up"),
    records.DeliveryStatus.FAILED: Look(N_("Failed"), "down", "down"),
    records.DeliveryStatus.HELD: Look(N_("Held"), "paused", "degraded"),
}

PLACE = {
    records.PlaceState.ONLINE: Look(N_("Online"), "up", "up"),
    records.PlaceState.SILENT: Look(N_("Silent"), "down", "down"),
    records.PlaceState.NEVER_SEEN: Look(N_("Never seen"), "pending", "paused"),
}
# The look of a place that answers, but could make none of its last checks.
UNABLE = Look(N_("Cannot check"), "degraded", "degraded")
CARRIER = {
    records.Carrier.LOCAL: N_("Checker on the database"),
    records.Carrier.QUEUE: N_("Probers on a queue"), records.Carrier.AGENT: N_("Agent"),
}  # fmt: skip
RULE = {
    records.LocationRule.ANY: N_("Down when any of them fails"),
    records.LocationRule.MAJORITY: N_("Down when more than half of them fail"),
    records.LocationRule.ALL: N_("Down when all of them fail"),
}
CLOCK_RIGHT_MS = 50  # a smaller difference may be the delay of the network

# The states of a maintenance window.
WINDOW = {
    "on": Look(N_("In progress"), "maintenance", "maintenance"),
    "planned": Look(N_("Planned"), "pending", "paused"),
    "over": Look(N_("Over"), "check", "paused"),
    "unreadable": Look(N_("Does not apply"), "unknown", "paused"),
}

VISIBILITY = {
    records.Visibility.PUBLIC: N_("Public"),
    records.Visibility.UNLISTED: N_("Anyone with the link"),
    records.Visibility.PASSWORD: N_("Password required"),
    records.Visibility.CLOSED: N_("People with an account"),
}

EVENTS = {
    records.Event.INCIDENT_OPENED: N_("Incident opened"),
    records.Event.INCIDENT_ACKNOWLEDGED: N_("Incident acknowledged"),
    records.Event.INCIDENT_RESOLVED: N_("Incident resolved"),
    records.Event.INCIDENT_REMINDER: N_("Reminder"),
    records.Event.INCIDENTS_OPENED: N_("Several incidents opened"),
    records.Event.INCIDENTS_ACKNOWLEDGED: N_("Several incidents acknowledged"),
    records.Event.INCIDENTS_RESOLVED: N_("Several incidents resolved"),
    records.Event.INCIDENTS_DIGEST: N_("Quiet hours summary"),
    records.Event.CERTIFICATE_EXPIRING: N_("Certificate expires soon"),
    records.Event.DOMAIN_EXPIRING: N_("Domain expires soon"),
    records.Event.LOCATION_SILENT: N_("Place silent"),
    records.Event.LOCATION_ONLINE: N_("Place back"),
    records.Event.REPORT_MONTHLY: N_("Monthly report"),
    records.Event.TEST: N_("Test"),
}

ROLES = {
    records.Role.ADMIN: N_("Admin: everything, including people and settings"),
    records.Role.EDITOR: N_("Editor: monitors and incidents"),
    records.Role.VIEWER: N_("Viewer: read only"),
}

WARNINGS = {
    records.Warn.IPV6_UNREACHABLE: N_("It answers over IPv4, but not over IPv6."),
    records.Warn.IPV4_UNREACHABLE: N_("It answers over IPv6, but not over IPv4."),
    records.Warn.REDIRECT_DOWNGRADE: N_("It redirects from https to http."),
    records.Warn.BODY_CUT_AT_CAP: N_("The body is larger than 1 MiB, and the rest was not read."),
    records.Warn.TLS_EXPIRING: N_("The certificate expires soon."),
    records.Warn.STREAM_OPEN: N_("It is a stream without an end, and only its beginning was read."),
}

CLASSIFIED = {
    records.Classification.MAINTENANCE: N_("was maintenance"),
    records.Classification.FALSE_ALARM: N_("false alarm"),
}

UNKNOWN = Look(N_("Unknown"), "unknown", "unknown")

OVER = Look(N_("Over"), "unknown", "unknown")

FOUND_LATE = N_("Found by results that came late. Nobody was alerted.")

# The looks of incidents that ended without a good check.
ENDED = {
    records.Ending.SILENCE: OVER,
    records.Ending.CHANGED: OVER,
    records.Ending.PAUSE: Look(OVER.word, "paused", "paused"),
}


def look_of(looks: Mapping[Any, Look], word: str) -> Look:
    """The look of ``word``; a remote server may have states that this version does not know."""
    return looks.get(word) or Look(str(word), UNKNOWN.shape, UNKNOWN.tone)


def look_of_place(state: str, trouble: str | None) -> Look:
    """The look of a place. ``trouble``: why it can make none of its checks."""
    return UNABLE if trouble and state == records.PlaceState.ONLINE else look_of(PLACE, state)


def clock_offset(ms: int) -> str:
    """The difference between the clock of a place and that of the server."""
    if abs(ms) < CLOCK_RIGHT_MS:
        return _("accurate")
    amount = f"{abs(ms):,} ms" if abs(ms) < 10_000 else f"{abs(ms) / 1000:,.0f} s"
    if ms > 0:
        return _("%(amount)s ahead", amount=amount)
    return _("%(amount)s behind", amount=amount)


def look_of_end(incident: records.Incident) -> Look:
    """The look of an incident's end."""
    return ENDED.get(incident.ending or "") or INCIDENT[records.IncidentStatus.RESOLVED]  # type: ignore[call-overload]


def look_of_incident(incident: records.Incident) -> Look:
    """The look of an incident as it is now."""
    if "status" in incident.missing:
        return UNKNOWN
    if incident.status == records.IncidentStatus.RESOLVED:
        return look_of_end(incident)
    if incident.status == records.IncidentStatus.UNRESOLVED:
        return look_of_opening(incident)
    return look_of(INCIDENT, incident.status)


def look_of_opening(incident: records.Incident) -> Look:
    """The look of an incident as it opens."""
    return SLOW if is_degraded(incident) else INCIDENT[records.IncidentStatus.UNRESOLVED]


def is_degraded(incident: records.Incident) -> bool:
    return incident.severity == records.IncidentSeverity.DEGRADED


def monitor_of(incident: records.Incident) -> str:
    """The name of an incident's monitor; a server may omit it."""
    return (
        incident.monitor.name if incident.monitor else _("Monitor %(id)s", id=incident.monitor_id)
    )


def ms(value: float | None) -> str:
    """A duration in full: ``1,240 ms``; a dash if it was not measured."""
    return "–" if value is None else milliseconds(value, exact=True)


MAX_HOST = 60  # characters of a host


def channel_value(pair: records.Pair, *, whole: bool) -> str:
    """An email address if it may be shown as a ``whole``; otherwise the value masked, with the host
    of a URL in front.
    """
    if pair.key == records.Channel.EMAIL and whole:
        return pair.value
    masked = pair.masked().value
    host = (
        _host_of(pair.value)
        if pair.key not in (records.Channel.EMAIL, records.Channel.APPRISE)
        else ""
    )
    return f"{host[:MAX_HOST]} {masked}" if host else masked


def _host_of(value: str) -> str:
    try:
        return urlsplit(value).hostname or ""
    except ValueError:
        return ""
