"""What pages and lists say about certificates and domains that expire."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from app.forms.monitor import days_label
from app.i18n import N_, _, _n
from app.records import AUTO, Monitor
from app.rules.certificates import alert_days
from app.rules.time import days_left, expiry
from app.web.shown.times import NEAR_DAYS, now

LIFE_UNKNOWN = N_("when a third of its lifetime remains")


def certificate_alert(monitor: Monitor) -> str:
    """When the alert comes: ``14 days before``; empty for never."""
    days = alert_days(monitor.ssl_alert_days, monitor.ssl_issued_at, monitor.ssl_expires_at)
    if days is None:
        return _(LIFE_UNKNOWN) if monitor.ssl_alert_days == AUTO else ""
    when = _when(days)
    return _("%(when)s (automatic)", when=when) if monitor.ssl_alert_days == AUTO else when


def domain_alert(monitor: Monitor) -> str:
    days = monitor.domain_alert_days
    return "" if days is None else _when(days)


def _when(days: int) -> str:
    return days_label(days) if days else _("on the day")


def soon(monitor: Monitor) -> Iterator[str]:
    """``certificate 5 days``, ``domain expires today``: what lists show as expiring."""
    for said, moment, days in (
        (_certificate, monitor.ssl_expires_at, _certificate_shown(monitor)),
        (_domain, monitor.domain_expires_at, max(NEAR_DAYS, monitor.domain_alert_days or 0)),
    ):
        if moment is not None and days_left(moment, now()) <= days:
            yield said(moment)


def _certificate_shown(monitor: Monitor) -> int:
    """From how many days on. Certificates of a short life are always within ``NEAR_DAYS``: with
    ``auto``, lists show them from the day of the alert.
    """
    days = alert_days(monitor.ssl_alert_days, monitor.ssl_issued_at, monitor.ssl_expires_at)
    if monitor.ssl_alert_days == AUTO and days is not None:
        return days
    return max(NEAR_DAYS, days or 0)


def _certificate(moment: datetime) -> str:
    days = days_left(moment, now())
    if days > 1:
        return _n("certificate %(num)s day", "certificate %(num)s days", days)
    return _("certificate %(expires)s", expires=expiry(moment, now()))


def _domain(moment: datetime) -> str:
    days = days_left(moment, now())
    if days > 1:
        return _n("domain %(num)s day", "domain %(num)s days", days)
    return _("domain %(expires)s", expires=expiry(moment, now()))
