"""Different spellings of a URL. Monitors with these URLs make the same check."""

from __future__ import annotations

from app.checks.kinds import read_url
from app.rules.url import DEFAULT_PORTS


def address(url: str) -> str:
    """The URL in one spelling, without fragment. An unreadable URL is returned unchanged."""
    try:
        return read_url(url)[1].url
    except ValueError:
        return url


def is_same(url: str, other: str) -> bool:
    return address(url) == address(other)


def spellings(url: str) -> set[str]:
    """The usual spellings of this address, in lower case."""
    try:
        _, target = read_url(url)
    except ValueError:
        return {url.casefold()}
    urls = {url.partition("#")[0], target.url}
    if target.port == DEFAULT_PORTS.get(target.scheme):
        host = target.url.removesuffix(target.request_target)
        urls.add(f"{host}:{target.port}{target.request_target}")
    if target.request_target == "/":
        urls |= {text.rstrip("/") for text in urls}
        urls |= {f"{text}/" for text in urls if not text.endswith("/")}
    return {text.casefold() for text in urls}


def search_text(url: str) -> str:
    """The text that every spelling of this address contains, for a search."""
    urls = sorted(spellings(url), key=len)
    return urls[0].partition("://")[2] or urls[0]
