"""Causes of incidents: the sentence for the public for each cause code, the draft of a post about
an incident, and the cause that several incidents share. Pure.

The cause that people with an account read may contain hosts, addresses, URLs, texts to find and
parts of an answer. The public must not see them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import urlsplit

from app.i18n import N_, _, _n, join_words
from app.records import Cause, Incident, PostState
from app.rules.figures import zoned_moment
from app.rules.time import zone_of

UNKNOWN_CAUSE = N_("The service is not working as expected.")

_CAUSES: Mapping[str, Sequence[Cause]] = {
    N_("The name of the service cannot be looked up."): (
        Cause.DNS_NXDOMAIN, Cause.DNS_SERVFAIL, Cause.DNS_REFUSED, Cause.DNS_TIMEOUT,
        Cause.DNS_NO_ADDRESS, Cause.DNS_NO_ANSWER,
    ),
    N_("The service does not respond."): (
        Cause.CONNECTION_REFUSED, Cause.CONNECTION_RESET, Cause.HOST_UNREACHABLE,
        Cause.TIMEOUT_CONNECT, Cause.PING_TIMEOUT, Cause.EMPTY_RESPONSE, Cause.UNREACHABLE,
    ),
    N_("The service does not respond in time."): (Cause.TIMEOUT_TTFB,),
    N_("The service does not respond completely."): (Cause.BODY_TRUNCATED, Cause.TIMEOUT_BODY),
    N_("The service responds with an error."): (
        Cause.HTTP_STATUS, Cause.INVALID_HTTP, Cause.HEADERS_TOO_LARGE, Cause.REDIRECT_LOOP,
        Cause.TOO_MANY_REDIRECTS, Cause.REDIRECT_BLOCKED,
    ),
    N_("The service responds with unexpected content."): (
        Cause.TEXT_MISSING, Cause.TEXT_FOUND, Cause.ASSERTION_FAILED,
    ),
    N_("The service responds more slowly than usual."): (Cause.SLOW_RESPONSE,),
    N_("The connection is not secure: its certificate has expired."): (Cause.TLS_EXPIRED,),
    N_("The connection is not secure: its certificate is not valid yet."): (
        Cause.TLS_NOT_YET_VALID,
    ),
    N_("The connection is not secure: its certificate is for another name."): (
        Cause.TLS_HOSTNAME,
    ),
    N_("The connection is not secure: its certificate is not trusted."): (
        Cause.TLS_SELF_SIGNED, Cause.TLS_UNTRUSTED, Cause.TLS_INCOMPLETE_CHAIN,
    ),
    N_("A secure connection to the service cannot be made."): (
        Cause.TLS_PROTOCOL, Cause.TLS_HANDSHAKE, Cause.TIMEOUT_TLS, Cause.STARTTLS_REFUSED,
    ),
    N_("A scheduled task has not run in time."): (Cause.HEARTBEAT_MISSED,),
    N_("A scheduled task has failed."): (Cause.HEARTBEAT_FAILED,),
    N_("A scheduled task takes longer than it should."): (Cause.HEARTBEAT_OVERRAN,),
    N_("We cannot tell at the moment whether the service is working."): (
        Cause.NOT_LISTENING, Cause.BLOCKED_BY_POLICY, Cause.NETWORK_DOWN, Cause.CHECK_ERROR,
    ),
}  # fmt: skip
SENTENCES = {cause: sentence for sentence, causes in _CAUSES.items() for cause in causes}
_MAX_NAMES = 3  # in a title


def public_cause(cause_code: str | None) -> str:
    """The sentence for a cause code; a general one for an unknown code."""
    # The status code stays private: it may show which software the service uses.
    code = Cause.HTTP_STATUS if (cause_code or "").startswith("http_status:") else cause_code
    return _(SENTENCES[Cause(code)] if code in set(Cause) else UNKNOWN_CAUSE)


def draft(
    names: Sequence[str],
    cause_code: str | None,
    started_at: datetime,
    ended_at: datetime | None = None,
    *,
    zone: str | None,
) -> dict[str, str]:
    """The fields of a new post about an incident. ``names``: of its monitors on the page, in the
    page's order. ``zone``: the page's time zone.
    """
    state = PostState.INVESTIGATING if ended_at is None else PostState.RESOLVED
    start = _("It began at %(time)s.", time=zoned_moment(started_at, zone_of(zone)))
    progress = _("We are looking into it.")
    if ended_at is not None:
        progress = _("It ended at %(time)s.", time=zoned_moment(ended_at, zone_of(zone)))
    return {
        "title": _title(names),
        "state": state.value,
        "body": f"{public_cause(cause_code)} {start} {progress}",
    }


def _title(names: Sequence[str]) -> str:
    """``Problems with A, B and C``, at most 255 characters."""
    if not names:
        return _("Service disruption")
    shown = [_cut(name) for name in names[:_MAX_NAMES]]
    if (more := len(names) - _MAX_NAMES) > 0:
        shown.append(_n("%(num)s more", "%(num)s more", more))
    return _("Problems with %(names)s", names=join_words(shown))


def _cut(name: str) -> str:
    return name if len(name) <= 70 else f"{name[:69].rstrip()}…"


# --- Incidents with a shared cause: the home page shows them as one card --------------------------
#
# The code alone is not enough: two monitors with a missing text may look for different texts. The
# sentences are not equal either: if a switch fails, each sentence names another host. So incidents
# share a cause if their codes are equal, and their sentences are equal without the host, addresses,
# ports, times and sizes of the monitor.

SAME = "…"  # in place of the monitor's host, addresses and figures
_ADDRESS = r"\[?(?:[0-9a-f]{0,4}:){2,7}(?:[0-9a-f]{1,4}|[0-9.]+)?\]?"  # of IPv6
_FIGURE = r"\d[\d.,:]*(?<![.,:])"  # also an IPv4 address, and a time of day
_VARIES = re.compile(rf"(?<![\w…])(?:{_ADDRESS}|{_FIGURE})(?!\w)", re.IGNORECASE)
_SEVERAL = re.compile(rf"{SAME}(?:, {SAME})+")  # a host may have several addresses


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
        cause = re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", SAME, cause, flags=re.IGNORECASE)
    return _SEVERAL.sub(SAME, _VARIES.sub(SAME, cause))


def _host(url: str) -> str:
    """The host of a URL; of ``dns:example.com``, the name."""
    try:
        parts = urlsplit(url)
        return parts.hostname or parts.path
    except ValueError:
        return ""
