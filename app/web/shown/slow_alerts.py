"""How often a monitor would have alerted because it is slow, for its form."""

from __future__ import annotations

from datetime import timedelta

from app.forms.browser import BrowserMonitorForm
from app.i18n import _, _n
from app.stores import current_store
from app.web.shown import times

FIELDS = ("slow_after", "slow_alert_after")


def sentence(form: BrowserMonitorForm, id: int | None) -> str:
    """What the values that are typed would have led to; empty where nothing can be said."""
    if any(name not in form or form[name].errors or not form[name].data for name in FIELDS):
        return ""
    if id is None:
        return _("There are no checks yet to tell how often this would alert.")
    alerts = current_store().results.slow_alerts(id, *(form[name].data for name in FIELDS))
    if alerts is None:
        return ""
    days = max(1, -((alerts.since - times.now()) // timedelta(days=1)))
    if alerts.last_at is None:
        return _n(
            "In the last %(num)s day, this would not have alerted.",
            "In the last %(num)s days, this would not have alerted.",
            days,
        )
    return _n(
        "In the last %(days)s days, this would have alerted %(num)s time, on %(when)s.",
        "In the last %(days)s days, this would have alerted %(num)s times, last on %(when)s.",
        alerts.count,
        days=days,
        when=times.plain_day(times.local(alerts.last_at)),
    )
