"""How a page names the value of an alert channel: known by sight, without its secret."""

from __future__ import annotations

from urllib.parse import urlsplit

from app.records import Channel, Pair

_MOST = 60  # characters of a host


def label(pair: Pair, *, whole: bool) -> str:
    """An email address, ``whole`` for those who may edit it; the host of a URL; else the mask."""
    if pair.key == Channel.EMAIL and whole:
        return pair.value
    masked = pair.masked().value
    host = _host(pair.value) if pair.key not in (Channel.EMAIL, Channel.APPRISE) else ""
    return f"{host[:_MOST]} {masked}" if host else masked


def _host(value: str) -> str:
    try:
        return urlsplit(value).hostname or ""
    except ValueError:
        return ""
