"""When does a domain expire? RDAP is asked first, then WHOIS. If neither knows, it is unknown.

Registries are asked about the registrable domain, and at most once a day for each (the engine
limits it), however many monitors share it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from app.checks.kinds import read_url
from app.i18n import _
from app.rules.suffixes import registrable_domain

if TYPE_CHECKING:
    from app.net.client import Network

_RDAP_SHARE = 0.6  # of the time; the rest is left for WHOIS when a registry's RDAP does not answer


# Names that nobody can register (RFC 2606, 6761, 6762, 8375, and names that ICANN reserves). A
# query would only show strangers what a company calls its machines.
UNREGISTERED = frozenset(
    {"alt", "example", "home", "internal", "invalid", "lan", "local", "localhost", "onion", "test"}
)


@dataclass(frozen=True, slots=True)
class DomainExpiry:
    """A registry's answer. ``expires_at`` is aware UTC; if None, ``note`` says why."""

    domain: str
    expires_at: datetime | None
    source: Literal["rdap", "whois"] | None
    note: str | None = None


def domain_of(url: str, *, private: bool = True) -> str | None:
    """The registrable domain of a URL. ``private`` False leaves out unregistrable names."""
    try:
        domain = registrable_domain(read_url(url)[1].ascii_host)
    except ValueError:
        return None
    if domain is not None and not private and domain.rpartition(".")[2] in UNREGISTERED:
        return None
    return domain


def domain_expiry(
    domain: str,
    *,
    bootstrap: str | None,
    now: datetime,
    network: Network,
    timeout: float = 10.0,
    whois_servers: Mapping[str, str] | None = None,
) -> DomainExpiry:
    """Ask the registry when ``domain`` (a registrable one) expires. Never raises.

    ``bootstrap`` is RDAP_BOOTSTRAP: a URL or a file that lists the registries, in whoisit's form or
    IANA's (dns.json); None is IANA's own list. Its key ``whois``, and ``whois_servers``, map a
    top-level domain (or ``*``) to ``host`` or ``host:port``; without both, IANA's WHOIS is asked
    for the server. ``timeout`` is in seconds, for everything together. Servers that an admin named
    are not judged by the policy of ``network``; the targets of redirects and referrals are.
    """

    # Imported here: whoisit and requests take 8 MB, which a checker without domains saves.
    from app.checks.expiry import rdap, whois
    from app.checks.expiry.registry import NoAnswer

    deadline = time.monotonic() + timeout
    notes: list[str] = []
    servers = whois_servers
    try:
        registries = rdap.load(bootstrap, now, time.monotonic() + timeout * _RDAP_SHARE, network)
        servers = registries.whois if whois_servers is None else whois_servers
        share = time.monotonic() + (deadline - time.monotonic()) * _RDAP_SHARE
        return DomainExpiry(domain, rdap.expiry(domain, registries, share, network), "rdap")
    except NoAnswer as why:
        notes.append(f"RDAP: {why}")
    except Exception as fault:  # a registry's answer may be anything, and must not stop a monitor
        notes.append(
            _("RDAP: the answer could not be read (%(fault)s).", fault=type(fault).__name__)
        )
    try:
        return DomainExpiry(domain, whois.expiry(domain, servers, deadline, network), "whois")
    except NoAnswer as why:
        notes.append(f"WHOIS: {why}")
    except Exception as fault:
        notes.append(
            _("WHOIS: the answer could not be read (%(fault)s).", fault=type(fault).__name__)
        )
    return DomainExpiry(domain, None, None, " ".join(notes))
