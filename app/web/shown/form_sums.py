"""What the folded sections of the monitor form hold, in the summary of each.

The script ``fold-sums.js`` says the same while people type: ``as_data`` gives it the same parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.checks.kinds import FIELDS, kind_of
from app.forms.browser import BrowserMonitorForm
from app.forms.fields import Options, Switch
from app.forms.lists import Names, PairList
from app.i18n import N_, _, _n
from app.records import AlertCondition


@dataclass(frozen=True, slots=True)
class Part:
    """What is said of one field. ``{}`` in ``text`` is its value. ``counted``: what is said of a
    number, or of a list of so many rows. ``none``: what is said of an empty field, or of a box that
    is not ticked.
    """

    field: str
    text: str = "{}"
    counted: Callable[[int], str] | None = None
    none: str = ""

    def said(self, value: str) -> str:
        text = self.counted(int(value)) if self.counted and value.isdecimal() else _(self.text)
        return text.replace("{}", value)


WHEN = (
    Part("alert_condition"),
    Part("alert_text_lookup", "“{}”"),
    Part("timeout", N_("within {} s")),
    Part("slow_after", N_("slow after {} ms")),
    Part(
        "confirmations",
        counted=lambda num: _n("{} recheck", "{} rechecks", num),
        none=N_("no rechecks"),
    ),
)
WHOM = (
    Part("contacts"),
    Part("alerts", counted=lambda num: _n("{} channel", "{} channels", num)),
    Part("remind_after", N_("reminder every {} minutes")),
    Part("quiet_start", N_("quiet from {}")),
    Part("quiet_end", N_("until {}")),
)
REQUEST = (
    Part("request_method"),
    Part("accepted_statuses", N_("expects {}")),
    Part("follow_redirects", "", none=N_("no redirects")),
    Part("cache_buster", N_("bypasses caches")),
    Part("request_headers", counted=lambda num: _n("{} header", "{} headers", num)),
    Part("request_auth_username", N_("as {}")),
    Part("request_body", N_("with a body")),
)
EXPIRY = (
    Part("ssl_alert_days", N_("Certificate: {}")),
    Part("domain_alert_days", N_("Domain: {}")),
    Part("verify_tls", "", none=N_("certificate not verified")),
)
MAINTENANCE = (
    Part("maintenance_start_at", N_("From {}")),
    Part("maintenance_end_at", N_("until {}")),
)


def said(form: BrowserMonitorForm, parts: Sequence[Part], empty: str = "") -> str:
    """The values of these fields, ``empty`` where there is nothing to say."""
    texts = (_said(form, part) for part in parts if part.field in form and _has(form, part.field))
    return ", ".join(filter(None, texts)) or empty


def as_data(parts: Sequence[Part]) -> list[dict[str, str]]:
    return [
        {
            "field": part.field,
            "text": part.counted(1) if part.counted else _(part.text),
            "many": part.counted(2) if part.counted else "",
            "none": _(part.none),
        }
        for part in parts
    ]


def _has(form: BrowserMonitorForm, name: str) -> bool:
    """Whether the page shows the field, which depends on the URL and the condition."""
    if name == "alert_text_lookup":
        return bool(form.alert_condition.data != AlertCondition.URL_UNAVAILABLE)
    kind = kind_of(form.url.data or "")
    return kind is None or name not in FIELDS or name in kind.fields


def _said(form: BrowserMonitorForm, part: Part) -> str:
    field: Any = form[part.field]
    if field.unclear and not field.sent:
        return ""
    value = _value(field)
    if value in ("", "0"):
        return _(part.none)
    return part.said(value)


def _value(field: Any) -> str:
    """The value as the page shows it."""
    if isinstance(field, Switch):
        return "1" if field.data else ""
    if isinstance(field, PairList):
        return str(sum(not row.is_blank for row in field.rows))
    if isinstance(field, Names):
        return ", ".join(field.data)
    if isinstance(field, Options):
        return next((choice.label for choice in field.iter_choices() if choice.selected), "")
    return str(field._value()).replace("T", " ") if field.type == "Moment" else str(field._value())
