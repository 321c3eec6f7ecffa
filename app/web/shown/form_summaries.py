"""Summaries of the folded sections of the monitor form, and of the alerts for slowness.

The script ``fold-summaries.js`` updates the summaries while people type; ``as_data`` gives it the
parts of a section.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from app.checks.kinds import FIELDS, HTTP, kind_of
from app.forms.browser import BrowserMonitorForm
from app.forms.fields import DateTime, Options, Switch
from app.forms.lists import ContactNames, IdList, PairList
from app.i18n import N_, _, _n
from app.records import SLOW_ALERTS_DAYS, AlertCondition
from app.stores import current_store
from app.web.shown import times


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """The text for one field. ``{}`` in ``text`` is its value. ``count_text``: the text for a
    number, or for the number of rows in a list. ``none``: the text for an empty field, or for a box
    that is not checked.
    """

    field: str
    text: str = "{}"
    count_text: Callable[[int], str] | None = None
    none: str = ""


SECTIONS: Mapping[str, Sequence[SummaryPart]] = {
    "when": (
        SummaryPart("alert_condition"),
        SummaryPart("alert_text_lookup", "“{}”"),
        SummaryPart("timeout", N_("within {} s")),
        SummaryPart("slow_after", N_("slow after {} ms")),
        SummaryPart("slow_alert_after", N_("alert when slow for {} min")),
        SummaryPart(
            "confirmations", "", lambda num: _n("{} recheck", "{} rechecks", num), N_("no rechecks")
        ),
        SummaryPart("assertions", count_text=lambda num: _n("{} assertion", "{} assertions", num)),
    ),
    "due": (
        SummaryPart("period", N_("every {} s")),
        SummaryPart("schedule"),
        SummaryPart("zone"),
        SummaryPart("grace", N_("grace {} s")),
        SummaryPart("max_run", N_("runs up to {} s")),
        SummaryPart("slug"),
    ),
    "whom": (
        SummaryPart("contacts"),
        SummaryPart("alerts", count_text=lambda num: _n("{} channel", "{} channels", num)),
        SummaryPart("remind_after", N_("reminder every {} minutes")),
        SummaryPart("quiet_start", N_("quiet from {}")),
        SummaryPart("quiet_end", N_("until {}")),
    ),
    "request": (
        SummaryPart("request_method"),
        SummaryPart("accepted_statuses", N_("expects {}")),
        SummaryPart("follow_redirects", "", none=N_("no redirects")),
        SummaryPart("cache_buster", N_("bypasses caches")),
        SummaryPart("request_headers", count_text=lambda num: _n("{} header", "{} headers", num)),
        SummaryPart("request_auth_username", N_("as {}")),
        SummaryPart("request_body", N_("with a body")),
    ),
    "expiry": (
        SummaryPart("ssl_alert_days", N_("Certificate: {}")),
        SummaryPart("domain_alert_days", N_("Domain: {}")),
        SummaryPart("verify_tls", "", none=N_("certificate not verified")),
        SummaryPart("starttls"),
    ),
    "through": (
        SummaryPart("depends_on", count_text=lambda num: _n("{} monitor", "{} monitors", num)),
    ),
    "maintenance": (
        SummaryPart("maintenance_start_at", N_("From {}")),
        SummaryPart("maintenance_end_at", N_("until {}")),
    ),
}


def words(form: BrowserMonitorForm, section: str, empty: str = "") -> str:
    """The texts for the fields of a section; ``empty`` if there are none."""
    parts = [part for part in SECTIONS[section] if part.field in form and _has(form, part.field)]
    return ", ".join(filter(None, (_words(form, part) for part in parts))) or empty


def as_data(section: str) -> list[dict[str, str]]:
    return [
        {
            "field": part.field,
            "text": part.count_text(1) if part.count_text else _(part.text),
            "many": part.count_text(2) if part.count_text else "",
            "none": _(part.none),
        }
        for part in SECTIONS[section]
    ]


def _has(form: BrowserMonitorForm, name: str) -> bool:
    """Whether the page shows the field. It depends on the kind of the URL, which is HTTP without a
    scheme, and on the condition.
    """
    if name == "alert_text_lookup":
        return bool(form.alert_condition.data != AlertCondition.URL_UNAVAILABLE)
    kind = kind_of(form.url.data or "") or HTTP
    return name not in FIELDS or name in kind.fields


def _words(form: BrowserMonitorForm, part: SummaryPart) -> str:
    field: Any = form[part.field]
    if field.not_shown and not field.sent:
        return ""
    value = _value(field)
    if value in ("", "0"):
        return _(part.none)
    text = part.count_text(int(value)) if part.count_text and value.isdecimal() else _(part.text)
    return text.replace("{}", value)


def _value(field: Any) -> str:
    """The value as the page shows it."""
    if isinstance(field, Switch):
        return "1" if field.data else ""
    if isinstance(field, PairList):
        return str(sum(not row.is_blank for row in field.rows))
    if isinstance(field, IdList):
        return str(len(field.data))
    if isinstance(field, ContactNames):
        return ", ".join(field.data)
    if isinstance(field, Options):
        return next((choice.label for choice in field.iter_choices() if choice.selected), "")
    text = str(field._value())
    return text.replace("T", " ") if isinstance(field, DateTime) else text


# --- How often a monitor would have alerted because it is slow

_SLOW_FIELDS = ("slow_after", "slow_alert_after")


def slow_alerts(form: BrowserMonitorForm, id: int | None) -> str:
    """How often the monitor would have alerted with the entered values; empty without values."""
    if any(name not in form or form[name].errors or not form[name].data for name in _SLOW_FIELDS):
        return ""
    if id is None:
        return _("There are no checks yet to tell how often this would alert.")
    alerts = current_store().results.slow_alerts(id, *(form[name].data for name in _SLOW_FIELDS))
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
