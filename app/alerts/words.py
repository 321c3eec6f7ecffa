"""How messages write times, durations and names. Pure."""

from __future__ import annotations

from datetime import datetime

from app.records import Event

MAX_NAME_SHOWN = 80
MAX_URL_SHOWN = 200
CLOCK_FORMAT = "%Y-%m-%d %H:%M UTC"
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def read_moment(text: str) -> datetime:
    """Read a time that ``iso`` wrote into a row's facts."""
    return datetime.fromisoformat(text)


def clock_time(at: datetime) -> str:
    """``2026-11-21 08:00 UTC``: a mail may be read in another zone than the sender's."""
    return at.strftime(CLOCK_FORMAT)


def duration(seconds: float) -> str:
    """``2 hours 5 minutes``: the two largest units, which are exact enough for a message."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for name, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(count_of(count, name))
        elif parts:
            break
    return " ".join(parts[:2]) or "less than a second"


def count_of(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters on one line, cut with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


EVENT_LABELS: dict[str, str] = {
    Event.INCIDENT_OPENED: "Down",
    Event.INCIDENT_ACKNOWLEDGED: "Acknowledged",
    Event.INCIDENT_RESOLVED: "Up again",
    Event.INCIDENT_REMINDER: "Still down",
    Event.INCIDENTS_OPENED: "Down (several)",
    Event.INCIDENTS_RESOLVED: "Up again (several)",
    Event.INCIDENTS_DIGEST: "Quiet hours",
    Event.CERTIFICATE_EXPIRING: "Certificate expires",
    Event.DOMAIN_EXPIRING: "Domain expires",
    Event.LOCATION_SILENT: "Place silent",
    Event.LOCATION_ONLINE: "Place back",
    Event.REPORT_MONTHLY: "Monthly report",
    Event.TEST: "Test",
}
