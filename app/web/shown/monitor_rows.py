"""The rows of a list of monitors: each has the record, its last 24 hours and its warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from urllib.parse import urlsplit

from markupsafe import Markup

from app.forms.monitor_choices import days_label
from app.i18n import N_, _, _n
from app.records import AUTO, Monitor, words_of
from app.rules.figures import percent
from app.rules.time import days_left, expiry, warning_days
from app.web.shown import charts, times

LASTED = {
    "up": N_("up %(span)s"), "degraded": N_("degraded %(span)s"), "down": N_("down %(span)s"),
    "maintenance": N_("maintenance %(span)s"), "unknown": N_("unknown %(span)s"),
}  # fmt: skip
_SECONDS = itemgetter(*LASTED)
_HOUR = itemgetter(*LASTED, "response_time")
LISTED = "30d"  # the range whose uptime a list shows


@dataclass(frozen=True, slots=True)
class MonitorListRow:
    """``strip``: the last hours as an image; empty if the store has no history."""

    monitor: Monitor
    host: str
    strip: Markup | str
    spark: Markup
    warnings: tuple[str, ...]

    @property
    def uptime(self) -> str:
        monitor = self.monitor
        return percent(monitor.uptime.get(LISTED), times.watched(monitor.created_at, LISTED))

    @property
    def since(self) -> str | None:
        """The start of the uptime's time, for a monitor that is younger than the range."""
        monitor = self.monitor
        unknown = monitor.uptime.get(LISTED) is None
        return None if unknown else times.since(monitor.created_at, LISTED)


def rows_of(monitors: Sequence[Monitor]) -> list[MonitorListRow]:
    """The rows of monitors that were read with their ``hours``."""
    label = _("The last 24 hours")
    return [_row(monitor, label) for monitor in monitors]


def _row(monitor: Monitor, label: str) -> MonitorListRow:
    strip, spark = _drawn(tuple(map(_HOUR, monitor.hours)), label)
    return MonitorListRow(monitor, host(monitor.url), strip, spark, tuple(warnings(monitor)))


@lru_cache(maxsize=1_000)  # most monitors do not change between two views
def _drawn(hours: tuple[tuple[int, ...], ...], label: str) -> tuple[Markup | str, Markup]:
    """The strip and the sparkline. ``hours``: each has the values of ``_HOUR``."""
    if not hours:
        return "", Markup()
    buckets = [dict(zip((*LASTED, "response_time"), hour, strict=True)) for hour in hours]
    strip = charts.strip(charts.cells(buckets), in_words(buckets, label))
    return strip, charts.sparkline(tuple(hour[-1] for hour in hours))


def in_words(buckets: Sequence[charts.Bucket], when: str) -> str:
    """A bar in words, for people who cannot see it: ``The last 24 hours: up 23 h, down 1 h.``"""
    sums = dict(zip(LASTED, _sums(buckets), strict=True))
    sums["up"] -= sums["degraded"]  # degraded time is a part of the time up
    parts = [time_in_state(state, seconds) for state, seconds in sums.items() if seconds > 0]
    if not parts:
        return _("%(when)s: no data.", when=when)
    return f"{when}: {', '.join(parts)}."


def _sums(buckets: Sequence[charts.Bucket]) -> list[int]:
    """The seconds in each of the states of LASTED."""
    try:
        rows = [_SECONDS(bucket) for bucket in buckets]
        return [sum(map(int, column)) for column in zip(*rows, strict=True)] or [0] * len(LASTED)
    except (KeyError, TypeError):  # the buckets of days lack some of the states
        return [sum([int(bucket.get(state) or 0) for bucket in buckets]) for state in LASTED]


def time_in_state(state: str, seconds: float) -> str:
    """``down 5 min``."""
    return _(LASTED[state], span=times.span(seconds))


def host(url: str) -> str:
    """The short form of a URL: without scheme, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return parts.netloc + ("" if parts.path in ("", "/") else parts.path)


def warnings(monitor: Monitor) -> list[str]:
    """The warnings in a row: what expires soon, and stored values that cannot be read."""
    names = words_of(monitor.unreadable)
    unreadable = [_("%(fields)s cannot be read", fields=names)] if monitor.unreadable else []
    return [*_expiring(monitor), *unreadable]


LIFE_UNKNOWN = N_("when a third of its lifetime remains")


def certificate_alert(monitor: Monitor) -> str:
    """When the alert about the certificate comes: ``14 days before``; empty for never."""
    days = warning_days(monitor.ssl_alert_days, monitor.ssl_issued_at, monitor.ssl_expires_at)
    if days is None:
        return _(LIFE_UNKNOWN) if monitor.ssl_alert_days == AUTO else ""
    when = _when(days)
    return _("%(when)s (automatic)", when=when) if monitor.ssl_alert_days == AUTO else when


def domain_alert(monitor: Monitor) -> str:
    days = monitor.domain_alert_days
    return "" if days is None else _when(days)


def _when(days: int) -> str:
    return days_label(days) if days else _("on the day")


def _expiring(monitor: Monitor) -> Iterator[str]:
    """``certificate 5 days``, ``domain expires today``: the expiries that lists show."""
    for in_words, moment, days in (
        (_certificate, monitor.ssl_expires_at, _certificate_shown(monitor)),
        (_domain, monitor.domain_expires_at, max(times.NEAR_DAYS, monitor.domain_alert_days or 0)),
    ):
        if moment is not None and days_left(moment, times.now()) <= days:
            yield in_words(moment)


def _certificate_shown(monitor: Monitor) -> int:
    """How many days before the expiry lists show it. With ``auto`` it is the day of the alert,
    because short-lived certificates are always within ``NEAR_DAYS``.
    """
    days = warning_days(monitor.ssl_alert_days, monitor.ssl_issued_at, monitor.ssl_expires_at)
    if monitor.ssl_alert_days == AUTO and days is not None:
        return days
    return max(times.NEAR_DAYS, days or 0)


def _certificate(moment: datetime) -> str:
    days = days_left(moment, times.now())
    if days > 1:
        return _n("certificate %(num)s day", "certificate %(num)s days", days)
    return _("certificate %(expires)s", expires=expiry(moment, times.now()))


def _domain(moment: datetime) -> str:
    days = days_left(moment, times.now())
    if days > 1:
        return _n("domain %(num)s day", "domain %(num)s days", days)
    return _("domain %(expires)s", expires=expiry(moment, times.now()))
