"""What the folded sections of the monitor form hold, in the summary of each.

The script ``fold-sums.js`` says the same while people type: ``as_data`` gives it the same parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.checks.kinds import FIELDS, kind_of
from app.forms.browser import BrowserMonitorForm
from app.forms.fields import Options, Switch
from app.forms.lists import Names, PairList
from app.i18n import N_
from app.records import AlertCondition


@dataclass(frozen=True, slots=True)
class Part:
    """What is said of one field. ``{}`` in ``text`` is its value; for a list of rows, their count,
    with ``many`` for other counts than 1. ``skip``: the value of which nothing is said. ``none``:
    what is said of an empty field, or of a box that is not ticked.
    """

    field: str
    text: str = "{}"
    many: str = ""
    skip: str = ""
    none: str = ""


WHEN = (
    Part("alert_condition"),
    Part("alert_text_lookup", "“{}”"),
    Part("timeout", "within {} s"),
    Part("slow_after", "slow after {} ms"),
    Part("confirmations", "{} recheck", "{} rechecks", none="no rechecks"),
)
WHOM = (
    Part("contacts"),
    Part("alerts", "{} channel", "{} channels"),
    Part("remind_after", "reminder every {} minutes"),
    Part("quiet_start", "quiet from {}"),
    Part("quiet_end", "until {}"),
)
REQUEST = (
    Part("request_method"),
    Part("accepted_statuses", "expects {}"),
    Part("follow_redirects", "", none="no redirects"),
    Part("cache_buster", "bypasses caches"),
    Part("request_headers", "{} header", "{} headers"),
    Part("request_auth_username", "as {}"),
    Part("request_body", "with a body"),
)
EXPIRY = (
    Part("ssl_alert_days", "Certificate: {}"),
    Part("domain_alert_days", "Domain: {}"),
    Part("verify_tls", "", none="certificate not verified"),
)
MAINTENANCE = (Part("maintenance_start_at", N_("From {}")), Part("maintenance_end_at", "until {}"))


def said(form: BrowserMonitorForm, parts: Sequence[Part], empty: str = "") -> str:
    """The values of these fields, ``empty`` where there is nothing to say."""
    texts = (_said(form, part) for part in parts if part.field in form and _has(form, part.field))
    return ", ".join(filter(None, texts)) or empty


def as_data(parts: Sequence[Part]) -> list[dict[str, str]]:
    return [asdict(part) for part in parts]


def _has(form: BrowserMonitorForm, name: str) -> bool:
    """Whether the page shows the field, which depends on the URL and the condition."""
    if name == "alert_text_lookup":
        return bool(form.alert_condition.data != AlertCondition.URL_UNAVAILABLE)
    kind = kind_of(form.url.data or "")
    return kind is None or name not in FIELDS or name in kind.fields


def _said(form: BrowserMonitorForm, part: Part) -> str:
    value = _value(form[part.field])
    if value in ("", "0"):
        return part.none
    if value == part.skip:
        return ""
    return (part.many if part.many and value != "1" else part.text).replace("{}", value)


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
