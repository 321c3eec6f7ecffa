"""What a list shows of each monitor beside its record: the last hours, and what expires soon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from urllib.parse import urlsplit

from markupsafe import Markup

from app.i18n import N_, _
from app.records import Monitor, words_of
from app.web.shown import charts, expiries, times

LASTED = {
    "up": N_("up %(span)s"),
    "degraded": N_("degraded %(span)s"),
    "down": N_("down %(span)s"),
    "maintenance": N_("maintenance %(span)s"),
    "unknown": N_("unknown %(span)s"),
}
_SECONDS = itemgetter(*LASTED)


@dataclass(frozen=True, slots=True)
class Row:
    """``bar`` is None if the store has no history."""

    monitor: Monitor
    host: str
    bar: charts.Bar | None
    bar_sentence: str
    spark: Markup
    warnings: list[str]


def of(monitors: Sequence[Monitor]) -> list[Row]:
    """``monitors`` must have been read with their ``hours``."""
    lately = _("The last 24 hours")
    return [_row(monitor, lately) for monitor in monitors]


def _row(monitor: Monitor, lately: str) -> Row:
    hours = monitor.hours
    return Row(
        monitor=monitor,
        host=host(monitor.url),
        bar=charts.cells(hours) if hours else None,
        bar_sentence=in_words(hours, lately),
        spark=charts.sparkline(tuple([hour["response_time"] for hour in hours])),
        warnings=warnings(monitor),
    )


def in_words(buckets: Sequence[charts.Bucket], when: str) -> str:
    """A bar in words, for people who cannot see it: ``The last 24 hours: up 23 h, down 1 h.``"""
    sums = dict(zip(LASTED, _sums(buckets), strict=True))
    sums["up"] -= sums["degraded"]  # a part of it
    parts = [lasted(state, seconds) for state, seconds in sums.items() if seconds > 0]
    if not parts:
        return _("%(when)s: no data.", when=when)
    return f"{when}: {', '.join(parts)}."


def _sums(buckets: Sequence[charts.Bucket]) -> list[int]:
    """The seconds in each of the states of LASTED."""
    try:
        rows = [_SECONDS(bucket) for bucket in buckets]
        return [sum(map(int, column)) for column in zip(*rows, strict=True)] or [0] * len(LASTED)
    except (KeyError, TypeError):  # days are not told apart as finely
        return [sum([int(one.get(state) or 0) for one in buckets]) for state in LASTED]


def lasted(state: str, seconds: float) -> str:
    """``down 5 min``."""
    return _(LASTED[state], span=times.span(seconds))


def host(url: str) -> str:
    """The short form of a URL: host, port and a short path."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return parts.netloc + ("" if parts.path in ("", "/") else parts.path)


def warnings(monitor: Monitor) -> list[str]:
    """The warnings beside the host in a list."""
    unreadable = [_unreadable(monitor)] if monitor.unreadable else []
    return [*expiries.soon(monitor), *unreadable]


def _unreadable(monitor: Monitor) -> str:
    return _("%(fields)s cannot be read", fields=words_of(monitor.unreadable))
