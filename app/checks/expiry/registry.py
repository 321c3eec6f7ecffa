"""What RDAP and WHOIS share: the error for a missing answer, and a bounded fetch."""

from __future__ import annotations

import io
import socket
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

import certifi
import pycurl

from app.i18n import _
from app.net.policy import Policy
from app.rules.suffixes import above

MAX_BYTES = 2 * 1024 * 1024  # IANA's list of registries is 60 KB, an answer some 10 KB
MAX_REDIRECTS = 3
USER_AGENT = "Wakeful (domain expiry)"
YEARS = range(1985, 2200)  # the first .com is from 1985; a date outside was misread


class NoAnswer(Exception):
    """The expiry is not known. The message is a sentence for a person."""


@dataclass(frozen=True, slots=True)
class Fetched:
    status: int
    body: bytes


def plausible(moment: datetime) -> datetime:
    """The moment in UTC, which is assumed without a zone. Raises NoAnswer if it is implausible."""
    if moment.year not in YEARS:
        raise NoAnswer(_("the date %(date)s cannot be right.", date=f"{moment:%Y-%m-%d}"))
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def refuse_parent(named: set[str], domain: str) -> None:
    """Raise NoAnswer where an answer is about a domain above ``domain``: some registries answer for
    uk.com when they are asked for shop.uk.com.
    """
    names = {name.lower().rstrip(".") for name in named}
    parents = [parent for parent in above(domain)[1:] if parent in names]
    if parents and domain not in names:
        raise NoAnswer(
            _(
                "the registry answers for %(parent)s, not for %(domain)s.",
                parent=parents[0],
                domain=domain,
            )
        )


def fetch(url: str, deadline: float, policy: Policy | None) -> Fetched:
    """GET over HTTP, following redirects. ``deadline`` is monotonic. Raises NoAnswer.

    The first URL is the admin's or IANA's and is not judged; ``policy`` judges the addresses of
    redirects when they are connected to.
    """
    for hop in range(MAX_REDIRECTS + 1):
        status, body, location = _get(url, deadline, policy if hop else None)
        if not (300 <= status < 400 and location):
            return Fetched(status, body)
        url = urljoin(url, location)
        if urlsplit(url).scheme not in ("http", "https"):
            raise NoAnswer(_("it redirects to something that is not http or https."))
    raise NoAnswer(_("it redirects more than %(most)s times.", most=MAX_REDIRECTS))


def _get(url: str, deadline: float, policy: Policy | None) -> tuple[int, bytes, str]:
    left = deadline - time.monotonic()
    if left <= 0:
        raise NoAnswer(_("the time limit was reached."))
    refused: list[str] = []
    opened: list[socket.socket] = []  # libcurl uses a copy of each; these are closed here
    body = io.BytesIO()
    headers: list[bytes] = []

    def open_socket(_purpose: int, address: Any) -> Any:
        if policy is not None and policy.refusal(address.addr[0]) is not None:
            refused.append(str(address.addr[0]))
            return pycurl.SOCKET_BAD
        opened.append(socket.socket(address.family, address.socktype, address.protocol))
        return opened[-1]

    def keep(chunk: bytes) -> int:
        # Any count other than the chunk's length makes libcurl stop.
        return len(chunk) if body.tell() <= MAX_BYTES and body.write(chunk) else -1

    curl = pycurl.Curl()
    try:
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.PROXY, "")  # a proxy from the environment would bypass policy
        curl.setopt(pycurl.CAINFO, certifi.where())
        curl.setopt(pycurl.USERAGENT, USER_AGENT)
        curl.setopt(pycurl.HTTPHEADER, ["Accept: application/rdap+json, application/json"])
        curl.setopt(pycurl.TIMEOUT_MS, max(1, int(left * 1000)))
        curl.setopt(pycurl.OPENSOCKETFUNCTION, open_socket)
        curl.setopt(pycurl.WRITEFUNCTION, keep)
        curl.setopt(pycurl.HEADERFUNCTION, headers.append)
        curl.perform()
        status = int(curl.getinfo(pycurl.RESPONSE_CODE))
    except pycurl.error as error:
        raise NoAnswer(_why(error, refused, body.tell())) from None
    finally:
        curl.close()
        for one in opened:
            one.close()
    return status, body.getvalue(), _location(headers)


def _why(error: pycurl.error, refused: list[str], size: int) -> str:
    if refused:
        return _("it leads to %(address)s, which may not be reached.", address=refused[0])
    if size > MAX_BYTES:
        return _("the answer is too large.")
    if error.args[0] == pycurl.E_OPERATION_TIMEDOUT:
        return _("the server did not answer in time.")
    return _("the server could not be reached.")


def _location(headers: list[bytes]) -> str:
    for line in headers:
        name, _colon, value = line.partition(b":")
        if name.strip().lower() == b"location":
            return value.strip().decode("latin-1")
    return ""
