"""Incidents with a shared cause: home shows them as one card, and people acknowledge them together.

The code alone is not enough: two monitors with a missing text may look for different texts. The
sentences are not equal either: if a switch fails, each sentence names another host. So incidents
share a cause if their codes are equal, and their sentences are equal without the host, addresses,
ports, times and sizes of the monitor.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from app.records import Incident

OWN = "…"  # in place of the monitor's host, addresses and figures
_ADDRESS = r"\[?(?:[0-9a-f]{0,4}:){2,7}(?:[0-9a-f]{1,4}|[0-9.]+)?\]?"  # of IPv6
_FIGURE = r"\d[\d.,:]*(?<![.,:])"  # also an IPv4 address, and a time of day
_VARIES = re.compile(rf"(?<![\w…])(?:{_ADDRESS}|{_FIGURE})(?!\w)", re.IGNORECASE)
_SEVERAL = re.compile(rf"{OWN}(?:, {OWN})+")  # a host may have several addresses


def shared_cause(incident: Incident) -> tuple[str, str, str] | None:
    """The key of the shared cause: severity, code and sentence. None for an incident that shares
    its cause with no other, such as one that a person has written.
    """
    if not incident.cause_code or not incident.cause:
        return None
    url = incident.monitor.url if incident.monitor else ""
    return incident.severity, incident.cause_code, sentence_without(incident.cause, url)


def sentence_without(cause: str, url: str) -> str:
    """The sentence of a cause without the host, addresses and figures of the monitor."""
    if host := _host(url):
        cause = re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", OWN, cause, flags=re.IGNORECASE)
    return _SEVERAL.sub(OWN, _VARIES.sub(OWN, cause))


def _host(url: str) -> str:
    """The host of a URL; of ``dns:example.com``, the name."""
    try:
        parts = urlsplit(url)
        return parts.hostname or parts.path
    except ValueError:
        return ""
