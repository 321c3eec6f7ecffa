"""The base of RDAP and WHOIS: the error for a missing answer, and a bounded fetch."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urljoin, urlsplit

from app.i18n import N_, _
from app.net.client import Blocked, ConnectionFailed, Network, Response
from app.rules.suffixes import above

MAX_BYTES = 2 * 1024 * 1024  # IANA's list of registries is 60 KB, an answer some 10 KB
MAX_REDIRECTS = 3
HEADERS = {
    "User-Agent": "Wakeful (domain expiry)",
    "Accept": "application/rdap+json, application/json",
}
YEARS = range(1985, 2200)  # the first .com is from 1985; a date outside was misread


class NoAnswer(Exception):
    """The expiry is not known. The message is a sentence for a person."""


def plausible(moment: datetime) -> datetime:
    """The moment in UTC; without a zone, it is read as UTC. Raises NoAnswer for a year that no
    expiry has.
    """
    if moment.year not in YEARS:
        raise NoAnswer(_("the date %(date)s cannot be right.", date=f"{moment:%Y-%m-%d}"))
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def refuse_parent(answered_names: set[str], domain: str) -> None:
    """Raise NoAnswer if an answer is about a domain above ``domain``: asked for shop.uk.com, some
    registries answer for uk.com.
    """
    names = {name.lower().rstrip(".") for name in answered_names}
    parents = [parent for parent in above(domain)[1:] if parent in names]
    if parents and domain not in names:
        sentence = N_("the registry answers for %(parent)s, not for %(domain)s.")
        raise NoAnswer(_(sentence, parent=parents[0], domain=domain))


def fetch(url: str, deadline: float, network: Network) -> Response:
    """GET over HTTP, following redirects. ``deadline`` is monotonic. Raises NoAnswer.

    The first URL is the admin's or IANA's and is not judged by policy; redirects are.
    """
    for hop in range(MAX_REDIRECTS + 1):
        answer = _get(url, deadline, network, own_setting=hop == 0)
        location = answer.headers.get("Location")
        if not (300 <= answer.status < 400 and location):
            if answer.cut:
                raise NoAnswer(_("the answer is too large."))
            return answer
        url = urljoin(url, location)
        if urlsplit(url).scheme not in ("http", "https"):
            raise NoAnswer(_("it redirects to something that is not http or https."))
    raise NoAnswer(_("it redirects more than %(most)s times.", most=MAX_REDIRECTS))


def _get(url: str, deadline: float, network: Network, *, own_setting: bool) -> Response:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise NoAnswer(_("the time limit was reached."))
    try:
        return replace(network, total_seconds=seconds).get(
            url, headers=HEADERS, own_setting=own_setting, max_bytes=MAX_BYTES
        )
    except Blocked as refused:
        raise NoAnswer(_("it leads where Wakeful may not go: %(why)s", why=refused)) from None
    except (ConnectionFailed, ValueError) as fault:
        raise NoAnswer(str(fault)) from None
