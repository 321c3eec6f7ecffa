"""A domain's expiry by RDAP (RFC 9082 and 9083). whoisit finds the server and reads its answer.

The requests are our own: whoisit's have no limit on size, and follow proxies and redirects
anywhere.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from cachetools import TLRUCache
from whoisit.bootstrap import BaseBootstrap
from whoisit.errors import UnsupportedError, WhoisItError
from whoisit.parser import parse_events
from whoisit.query import QueryBuilder

from app.checks.expiry.registry import NoAnswer, fetch, plausible, refuse_parent
from app.i18n import _
from app.net.client import Network

IANA = "https://data.iana.org/rdap/dns.json"
KEEP_SECONDS = 24 * 3600.0  # IANA's list changes every few days
KEEP_FAILURE_SECONDS = 300.0  # a list that cannot be read must not delay every domain
# whoisit requires all five lists and refuses empty ones; only the list of domains is used.
_UNUSED: Mapping[str, Any] = {
    "asn": {"services": [[["64496-64496"], ["https://rdap.invalid/"]]]},
    "ipv4": {"services": [[["192.0.2.0/24"], ["https://rdap.invalid/"]]]},
    "ipv6": {"services": [[["2001:db8::/32"], ["https://rdap.invalid/"]]]},
    "object": {"services": [[["x@example.com"], ["TEST"], ["https://rdap.invalid/"]]]},
}
# The events that name the expiry; the registry's comes before the registrar's.
_ENDINGS = ("expiration", "registrar expiration", "soft expiration")
# An answer has some ten events, with dates by RFC 3339. The date parser takes seconds for a long
# text, and for many short ones.
_MAX_EVENTS = 100
_MAX_DATE = 64


@dataclass(frozen=True, slots=True)
class Registries:
    """The registries to ask, as whoisit lists them, and the WHOIS servers of the list, if any."""

    bootstrap: BaseBootstrap
    whois: Mapping[str, str] | None = None


def _expires(_source: str, entry: Registries | str, now: float) -> float:
    return now + (KEEP_FAILURE_SECONDS if isinstance(entry, str) else KEEP_SECONDS)


# By source: the list, or why it cannot be read.
_lists: TLRUCache[str, Registries | str] = TLRUCache(10, _expires, time.monotonic)
_reading = threading.Lock()


def load(source: str | None, now: datetime, deadline: float, network: Network) -> Registries:
    """The list of registries from a URL or file. It is cached for a day, a failure for 5 minutes.
    Raises NoAnswer.
    """
    key = source or IANA
    with _reading:
        entry = _lists.get(key)
        if entry is None:
            entry = _lists[key] = _load(source, now, deadline, network)
    if isinstance(entry, str):
        raise NoAnswer(entry)
    return entry


def _load(source: str | None, now: datetime, deadline: float, network: Network) -> Registries | str:
    """The list, or why it cannot be read."""
    try:
        raw = _read(source or IANA, deadline, network)
        return parse_bootstrap(raw, now, is_default=source is None)
    except (NoAnswer, OSError, ValueError, WhoisItError) as fault:
        return _("the list of registries could not be loaded: %(fault)s", fault=fault)


def _read(source: str, deadline: float, network: Network) -> str | bytes:
    if source.startswith(("http://", "https://")):
        answer = fetch(source, deadline, network)
        if answer.status != 200:
            raise NoAnswer(_("the server answered %(status)s.", status=answer.status))
        return answer.text
    return Path(source).read_bytes()


def parse_bootstrap(raw: str | bytes, now: datetime, *, is_default: bool) -> Registries:
    """Read a list in whoisit's form (all five lists) or IANA's (dns.json alone).

    ``is_default``: it is IANA's list, so http servers are left out and whoisit's corrections for
    country domains apply. An admin's list is used unchanged. Raises ValueError or WhoisItError.
    """
    data = json.loads(raw)
    if not isinstance(data, dict):
        raise ValueError(_("it is not a JSON object."))
    domains = data if "services" in data else data.get("dns")
    if not isinstance(domains, dict) or not domains.get("services"):
        raise ValueError(_("it has no list of domain registries (dns)."))
    lists = {name: data.get(name) or unused for name, unused in _UNUSED.items()}
    bootstrap = BaseBootstrap()
    bootstrap.load_bootstrap_data(
        {"timestamp": int(now.timestamp()), "dns": domains, **lists},
        overrides=is_default,
        allow_insecure=not is_default,
        from_json=False,
    )
    servers = data.get("whois")
    if isinstance(servers, dict):
        return Registries(bootstrap, {str(tld): str(host) for tld, host in servers.items()})
    return Registries(bootstrap)


def expiry(domain: str, registries: Registries, deadline: float, network: Network) -> datetime:
    """The domain's expiry by the registry, aware UTC. Raises NoAnswer."""
    try:
        url = QueryBuilder(registries.bootstrap).build("domain", domain)[1]
    except UnsupportedError:
        tld = domain.rpartition(".")[2]
        raise NoAnswer(_("no registry is known for .%(tld)s.", tld=tld)) from None
    answer = fetch(url, deadline, network)
    if answer.status == 404:
        raise NoAnswer(_("the registry does not know %(domain)s.", domain=domain))
    if answer.status == 429:
        raise NoAnswer(_("the registry accepts no more queries for now."))
    if answer.status != 200:
        raise NoAnswer(_("the registry answered %(status)s.", status=answer.status))
    return expiry_in(answer.text, domain)


def expiry_in(raw: str | bytes, domain: str = "the domain") -> datetime:
    """The expiry in an RDAP answer, aware UTC. Raises NoAnswer."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        raise NoAnswer(_("the answer is not JSON.")) from None
    events = data.get("events") if isinstance(data, dict) else None
    if not isinstance(events, list):
        raise NoAnswer(_("the answer has no dates."))
    names = (data.get("ldhName"), data.get("unicodeName"))
    refuse_parent({name for name in names if isinstance(name, str)}, domain)
    for name in _ENDINGS:
        for event in events[:_MAX_EVENTS]:
            if _action(event) == name and (moment := _date(event)) is not None:
                return plausible(moment)
    raise NoAnswer(_("the answer has no expiry date."))


def _action(event: Any) -> str | None:
    action = event.get("eventAction") if isinstance(event, dict) else None
    return action.strip().lower() if isinstance(action, str) else None


def _date(event: dict[str, Any]) -> datetime | None:
    date = event.get("eventDate")
    if not isinstance(date, str) or len(date) > _MAX_DATE:
        return None
    try:
        return next((parsed["date"] for parsed in parse_events([event])), None)
    except Exception:  # the date parser raises many types; try the next event
        return None
