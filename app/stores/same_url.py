"""Which URLs are the same address: a monitor that checks one, checks the other."""

from __future__ import annotations

from app.checks.kinds import read_url
from app.rules.url import DEFAULT_PORTS


def address(url: str) -> str:
    """The URL in one spelling, without fragment; as it is where it cannot be read."""
    try:
        return read_url(url)[1].url
    except ValueError:
        return url


def is_same(one: str, other: str) -> bool:
    return address(one) == address(other)


def spellings(url: str) -> set[str]:
    """What people type for this address, in lower case."""
    try:
        _, target = read_url(url)
    except ValueError:
        return {url.casefold()}
    found = {url.partition("#")[0], target.url}
    if target.port == DEFAULT_PORTS.get(target.scheme):
        host = target.url.removesuffix(target.request_target)
        found.add(f"{host}:{target.port}{target.request_target}")
    if target.request_target == "/":
        found |= {one.rstrip("/") for one in found}
        found |= {f"{one}/" for one in found if not one.endswith("/")}
    return {one.casefold() for one in found}


def search_text(url: str) -> str:
    """What every spelling of this address contains, for a search."""
    found = sorted(spellings(url), key=len)
    return found[0].partition("://")[2] or found[0]
