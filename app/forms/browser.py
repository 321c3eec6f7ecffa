"""The forms of the dashboard: the forms of the API, with CSRF protection, times in the person's
zone, masked secrets, rows and checkboxes.

A view does::

    form = BrowserMonitorForm(record=monitor, zone=zone, now=store.now())
    if form.change_rows(): render again   # a button that adds or removes a row, without JavaScript
    if form.validate_on_submit():
        store.monitors.update(monitor.id, form.fields())

Buttons: ``name=add value=alerts`` adds a blank row, ``name=remove value=alerts[3]``
(``row.button_value``) removes one.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from flask_wtf import FlaskForm

from app import records
from app.checks.kinds import kind_of
from app.forms.alert_lists import BASE_API_CHANNELS, CHANNEL_CHOICES
from app.forms.fields import CertificateDays, Switch, with_scheme
from app.forms.incident import IncidentUpdateForm
from app.forms.lists import ContactNames, PairList
from app.forms.monitor import CheckForm, MonitorForm, name_of, warns_by_default
from app.forms.monitor_choices import IntervalChoice
from app.forms.schema import FormContext, SchemaField, SchemaForm
from app.forms.status_page import StatusPageForm
from app.i18n import N_, _
from app.rules import text
from app.rules.brackets import parse, write
from app.rules.channel_values import CHANNELS

ENTER_OR_DELETE = N_(
    "The stored channels cannot be read, and this would delete them. Enter them again, or select "
    "the box that deletes them."
)
# Fields whose help describes Wakeful, and may be wrong for a server with the base API alone.
FIELDS_WITH_WAKEFUL_HELP = (
    "alert_condition", "alert_text_lookup", "request_auth_password", "cache_buster",
    "maintenance_start_at",
)  # fmt: skip
PASSWORD = "request_auth_password"  # noqa: S105 - a field's name


class ExtraSwitch(Switch):
    """A checkbox of the page that is not a field of the record."""

    extra = True


class BrowserForm(FlaskForm, SchemaForm):  # type: ignore[misc]
    """The base of the dashboard's forms.

    ``record`` fills the form; ``clone`` makes a new record from it. ``zone`` is the person's.
    ``without`` names the fields that this store lacks: they are neither shown nor read. ``places``:
    the titles of the places that a monitor can be checked from, by their names. ``bare``: the store
    is a server with the base API alone.
    """

    first: Sequence[str] = ()  # the fields at the top of the page, whose faults come first

    def __init__(
        self,
        *args: Any,
        record: object | None = None,
        clone: bool = False,
        zone: ZoneInfo | None = None,
        now: datetime | None = None,
        telegram_token_set: bool = False,
        without: Iterable[str] = (),
        places: Mapping[str, str] | None = None,
        bare: bool = False,
        **kwargs: Any,
    ) -> None:
        self.clone = clone
        self.submitted: Any = None
        self.fault = ""  # a fault that belongs to no field
        self.unanswered = False  # whether the store did not answer: do not ask it for choices
        context = FormContext(
            now=now,
            telegram_token_set=telegram_token_set,
            zone=zone or ZoneInfo("UTC"),
            browser=True,
            places=places,
            bare=bare,
        )
        super().__init__(*args, record=record, context=context, **kwargs)
        for name in without:
            if name in self:
                del self[name]
        for rows in self.pair_lists():
            if not rows.rows:
                rows.add_row()

    def process(self, formdata: Any = None, *args: Any, **kwargs: Any) -> None:
        self.submitted = self.meta.wrap_formdata(self, formdata)
        super().process(formdata, *args, **kwargs)

    def pair_lists(self) -> list[PairList]:
        return [field for field in self if isinstance(field, PairList)]

    def change_rows(self) -> bool:
        """Add or remove the row of the button that was pressed, without validation. Return whether
        one was pressed.
        """
        if not self.submitted or not self.is_submitted():
            return False
        add, remove = self.submitted.get("add"), parse(self.submitted.get("remove") or "")
        pressed = False
        for rows in self.pair_lists():
            if add == rows.name:
                rows.add_row()
                pressed = True
            elif remove and remove.field == rows.name and remove.index is not None:
                rows.rows = [row for row in rows.rows if row.index != remove.index]
                pressed = True
        if pressed:
            for rows in self.pair_lists():
                rows.forget_errors()
        return pressed

    def fields(self) -> dict[str, Any]:
        """The values for the store: all of a new record, the changed ones of an edited one."""
        values = {name: value for name, value in self.values().items() if self._is_chosen(name)}
        if self.record is None or self.clone:
            return values
        return {name: value for name, value in values.items() if self._changed(name, value)}

    def _is_chosen(self, name: str) -> bool:
        """Whether the value is sent to the store. A field whose stored value cannot be shown is
        sent only if a value was entered.
        """
        field = self._fields.get(name)
        return not isinstance(field, SchemaField) or not field.not_shown or field.sent

    def marks_at_opening(self) -> str:
        """A hash of each field's value when the form was opened, for a hidden input. Without them,
        a page that was open for long would undo the changes that others made since.
        """
        if self.record is None or self.clone:
            return ""
        if self.submitted and self.submitted.get("shown"):
            return str(self.submitted["shown"])
        names = [field.short_name for field in self.schema_fields() if not field.not_shown]
        return " ".join(
            f"{name}:{self._mark(name, getattr(self.record, name))}"
            for name in names
            if hasattr(self.record, name)
        )

    def _changed(self, name: str, value: Any) -> bool:
        if not hasattr(self.record, name) or self.why_not_shown(name):
            return True
        if getattr(self.record, name) == value:
            return False
        marks = self._marks()
        return name not in marks or marks[name] != self._mark(name, value)

    def overwritten(self) -> list[str]:
        """The labels of the fields that this form changes and that others have changed since it was
        opened.
        """
        marks = self._marks()
        return [
            _(self[name].label.text)
            for name in self.fields()
            if name in marks and marks[name] != self._mark(name, getattr(self.record, name))
        ]

    def _marks(self) -> dict[str, str]:
        sent_marks = (self.submitted or {}).get("shown") or ""
        return dict(part.partition(":")[::2] for part in sent_marks.split())

    def _mark(self, name: str, value: Any) -> str:
        """A keyed hash: values may be secrets, which a plain hash would let others guess."""
        text = repr((type(self).__name__, write({name: value})))
        key = str(self.meta.csrf_secret).encode()
        return hmac.new(key, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()[:16]

    def error_summary(self) -> list[tuple[str, str, str]]:
        """(id of the input, label, sentence) of every fault, for the summary at the top of the
        page."""
        summary = [
            (input_id, _(field.label.text), sentence)
            for field in sorted(
                self.schema_fields(), key=lambda field: field.short_name not in self.first
            )
            for input_id, sentence in field.inputs_with_errors()
        ]
        if self.fault:
            summary.insert(0, ("", "", self.fault))
        csrf = self._fields.get("csrf_token")
        if csrf is not None and csrf.errors:
            summary.append(("", "", _("This page was open for too long. Send the form again.")))
        return summary


@cache
def browser(form: type[SchemaForm]) -> type[BrowserForm]:
    """The form of the dashboard for a form of the API, with the same fields."""
    return type(f"Browser{form.__name__}", (BrowserForm, form), {})


class _MonitorInputs(BrowserForm):
    """A stored password is never shown: an empty field keeps it, a checked box removes it. A new
    monitor starts with days for the certificate warning, which are removed if its URL needs none.
    """

    remove_password = ExtraSwitch(N_("Remove the stored password"), default=False)

    def takes_stored_password(self) -> bool:
        is_replaced = self.request_auth_password.data or self.remove_password.data
        is_set = getattr(self.record, "request_auth_password_set", False)
        return bool(is_set and self.request_auth_username.data and not is_replaced)

    def fields(self) -> dict[str, Any]:
        fields = super().fields()
        if fields.get(PASSWORD) is None:
            fields.pop(PASSWORD, None)
            if self.remove_password.data:
                fields[PASSWORD] = None
        return fields

    def process(self, formdata: Any = None, *args: Any, **kwargs: Any) -> None:
        super().process(formdata, *args, **kwargs)
        field = self["ssl_alert_days"]
        url = with_scheme(self.submitted.get("url", "")) if self.submitted else "https:"
        kind = kind_of(url)
        if kind is None or field.data != records.DEFAULT_SSL_ALERT_DAYS or warns_by_default(url):
            return
        if self.record is None or self.clone or "ssl_alert_days" not in kind.fields:
            field.data = None

    def leave_out_auto(self) -> None:
        """Do not offer ``auto``, for a server that lacks it."""
        field = self["ssl_alert_days"]
        if isinstance(field, CertificateDays) and field.data != records.AUTO:
            field.leave_out(records.AUTO)


class BrowserMonitorForm(_MonitorInputs, MonitorForm):
    """The form to create, edit and clone a monitor. For a clone, ``fields()`` has a password only
    if one was typed, or None if the box to remove it was checked. A new monitor without a name gets
    one from its URL, because the script that fills in the name may not run.

    An unreadable stored value is shown as empty. It is kept unless a value is entered, or the box
    to delete it is checked. An unreadable value of ``CHECK_FIELDS`` is shown as the default, and
    saving the form replaces it.
    """

    interval = IntervalChoice(
        N_("Interval"), required=True, description=MonitorForm.interval.kwargs["description"]
    )
    check_every: Any = None  # part of ``interval``
    first = ("url",)
    remove_unreadable = ExtraSwitch(N_("Delete what cannot be read"), default=False)
    contacts: Any = ContactNames(N_("Contacts"))

    def __init__(self, *args: Any, record: records.Monitor | None = None, **kwargs: Any) -> None:
        if record is not None:
            record = replace(record, interval=record.true_interval)
        super().__init__(*args, record=record, **kwargs)
        if self.context.bare:
            for name in FIELDS_WITH_WAKEFUL_HELP:
                self[name].description = ""

    def values(self) -> dict[str, Any]:
        """The values, with the checked contacts in front of the channels in ``alerts``."""
        values = super().values()
        stored_alerts = getattr(self.record, "alerts", ())
        if "contacts" in self:
            contacts = tuple(records.Pair(records.CONTACT, name) for name in self.contacts.data)
        else:  # a page without the boxes
            contacts = tuple(pair for pair in stored_alerts if pair.key == records.CONTACT)
        alerts = contacts + records.alerts_without_contacts(values["alerts"])
        # Another order is no change.
        values["alerts"] = stored_alerts if Counter(alerts) == Counter(stored_alerts) else alerts
        return values

    def check_cross_field(self) -> None:
        super().check_cross_field()
        alerts, unreadable = self.values()["alerts"], getattr(self.record, "unreadable", ())
        if len(alerts) > records.MAX_ALERTS:
            self.alerts.add_fault(text.too_many(records.MAX_ALERTS))
        deletes = (
            "alerts" in unreadable
            and not records.alerts_without_contacts(alerts)
            and not self.clone
        )
        if deletes and "alerts" in self.fields() and not self.remove_unreadable.data:
            self.alerts.add_fault(_(ENTER_OR_DELETE))

    def _mark(self, name: str, value: Any) -> str:
        """The mark of alerts does not depend on the order of contacts, because boxes have none."""
        if name == "alerts":
            contacts = sorted(pair.value for pair in value if pair.key == records.CONTACT)
            value = (
                *(records.Pair(records.CONTACT, contact) for contact in contacts),
                *records.alerts_without_contacts(value),
            )
        return super()._mark(name, value)

    def _move_contacts_to_boxes(self) -> None:
        """The page shows contacts as boxes, and the other alerts as rows."""
        alerts = self.alerts
        keys = BASE_API_CHANNELS if self.context.bare else CHANNELS
        alerts.choices = {"key": [choice for choice in CHANNEL_CHOICES if choice[0] in keys]}
        if not self.submitted:
            names = [pair.value for pair in alerts.object_data if pair.key == records.CONTACT]
            alerts.rows = [row for row in alerts.rows if row.key != records.CONTACT]
            self.contacts.data = tuple(names) or self.contacts.data

    def fields(self) -> dict[str, Any]:
        values, unreadable = self.values(), getattr(self.record, "unreadable", ())
        replaced = (
            unreadable if self.remove_unreadable.data else records.CHECK_FIELDS.keys() & unreadable
        )
        if "options" in replaced:
            replaced = (*replaced, *records.KIND_OPTIONS)
        fields = {name: values[name] for name in replaced if name in values} | super().fields()
        if self.leads_elsewhere():
            # A secret that was entered is sent even if it equals the stored one: for a new server,
            # the store deletes the secrets that are not sent.
            entered_secrets = {
                name: values[name] for name in records.SENT_SECRETS if values.get(name)
            }
            fields = entered_secrets | fields
        if "interval" in fields and not self.context.bare:
            fields |= records.interval_fields(fields["interval"])
        return fields

    def process(self, formdata: Any = None, *args: Any, **kwargs: Any) -> None:
        super().process(formdata, *args, **kwargs)
        self._move_contacts_to_boxes()
        submitted = self.submitted
        if not submitted or self.record is not None or submitted.get("name", "given").strip():
            return
        url = with_scheme(submitted.get("url", ""))
        if kind_of(url) is not None:
            self.name.process_formdata([name_of(url)])
        else:  # the URL has a fault; the name may stay empty
            self.name.required, self.name.process_errors = False, []


class BrowserCheckForm(_MonitorInputs, CheckForm):
    """A check of what is typed in the form of a monitor: only the URL is required."""

    interval: Any = None  # one check has no interval
    first = ("url",)
    check_every: Any = None

    def fields(self) -> dict[str, Any]:
        fields = self.values()
        if fields[PASSWORD] is None and not self.remove_password.data:
            fields.pop(PASSWORD)  # the stored one is used
        return fields


class BrowserIncidentForm(BrowserForm, IncidentUpdateForm):
    """Edit an incident: times, cause and comment."""

    classification = None  # has its own buttons


class BrowserStatusPageForm(BrowserForm, StatusPageForm):
    """A status page. An empty password keeps the stored one."""

    logo = favicon = None  # another page sets them

    def fields(self) -> dict[str, Any]:
        fields = super().fields()
        if fields.get("password") is None:
            fields.pop("password", None)
        return fields
