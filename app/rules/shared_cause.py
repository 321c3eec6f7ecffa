"""The incidents that have one cause: home shows them as one card, and they are acknowledged
together.

A code alone is not enough: of two monitors that lack a text, each lacks another one. And sentences
alone are never the same if a switch fails: each names its own host. So two causes are one if
their codes are the same, and their sentences too, without what is the monitor's own: its host, the
addresses, ports, times and sizes of its check.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from app.records import Incident

OWN = "…"  # in place of what is the monitor's own
_ADDRESS = r"\[?(?:[0-9a-f]{0,4}:){2,7}(?:[0-9a-f]{1,4}|[0-9.]+)?\]?"  # of IPv6
_FIGURE = r"\d[\d.,:]*(?<![.,:])"  # also an address of IPv4, and the time of a day
_VARIES = re.compile(rf"(?<![\w…])(?:{_ADDRESS}|{_FIGURE})(?!\w)", re.IGNORECASE)
_SEVERAL = re.compile(rf"{OWN}(?:, {OWN})+")  # one host has two addresses, another has one


def shared_cause(incident: Incident) -> tuple[str, str, str] | None:
    """What is the same for all incidents with this cause: severity, code, and the sentence. None
    for one that shares its cause with none, such as one that a person has written.
    """
    if not incident.cause_code or not incident.cause:
        return None
    url = incident.monitor.url if incident.monitor else ""
    return incident.severity, incident.cause_code, sentence_without(incident.cause, url)


def sentence_without(cause: str, url: str) -> str:
    """The sentence of a cause without what belongs to the monitor of this URL alone."""
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
