"""The public suffix list: the registered domain of a host, and whether a name is a suffix, below
which names belong to different owners.
"""

from __future__ import annotations

from functools import cache

import idna
from publicsuffixlist import PublicSuffixList

from app.rules.url import is_ip_address


@cache
def _suffixes() -> PublicSuffixList:
    # With the private part of the list: below a private suffix (uk.com, github.io), each name has a
    # different owner, and the expiry of the suffix does not concern them.
    return PublicSuffixList()


@cache
def _icann() -> PublicSuffixList:
    return PublicSuffixList(only_icann=True)


def registrable_domain(host: str) -> str | None:
    """The domain that was registered for ``host``, in ASCII and lower case: example.co.uk.

    A private suffix itself, such as uk.com, is registered too. None for an IP address, a single
    label such as localhost, and a public suffix.
    """
    name = host.strip("[]").rstrip(".").lower()
    if is_ip_address(name.partition("%")[0]):
        return None
    try:
        ascii_name = idna.encode(name, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        if not name.isascii():
            return None
        ascii_name = name  # such as my_host.example.com: not valid IDNA, but in use
    if domain := _suffixes().privatesuffix(ascii_name):
        return str(domain)
    return ascii_name if _icann().is_private(ascii_name) else None


def is_public_suffix(name: str) -> bool:
    """Whether ``name`` is a suffix in the list. An unknown top-level domain is none: servers of an
    internal network may share cookies below it.
    """
    return bool(_suffixes().is_public(name, accept_unknown=False))


def above(name: str) -> list[str]:
    """The name itself and each domain above it, the longest first."""
    labels = name.split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]
