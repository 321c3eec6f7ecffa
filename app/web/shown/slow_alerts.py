"""How often a monitor would have alerted because it is slow, for its form."""

from __future__ import annotations

from datetime import timedelta

from app.forms.browser import BrowserMonitorForm
from app.i18n import _, _n
from app.records import SLOW_ALERTS_DAYS
from app.stores import current_store
from app.web.shown import times

FIELDS = ("slow_after", "slow_alert_after")


def sentence(form: BrowserMonitorForm, id: int | None) -> str:
    """What the values that are typed would have led to; empty if nothing can be said."""
    if any(name not in form or form[name].errors or not form[name].data for name in FIELDS):
        return ""
    if id is None:
        return _("There are no checks yet to tell how often this would alert.")
    alerts = current_store().results.slow_alerts(id, *(form[name].data for name in FIELDS))
    if alerts is None:
        return ""
    span = _("In the last %(days)s days", days=SLOW_ALERTS_DAYS)
    if times.now() - alerts.since < timedelta(days=SLOW_ALERTS_DAYS - 1):
        span = _("Since %(day)s", day=times.plain_day(times.local(alerts.since)))
    if alerts.last_at is None:
        return _("%(span)s, this would not have alerted.", span=span)
    return _n(
        "%(span)s, this would have alerted %(num)s time, on %(day)s.",
        "%(span)s, this would have alerted %(num)s times, last on %(day)s.",
        alerts.count,
        span=span,
        day=times.plain_day(times.local(alerts.last_at)),
    )
