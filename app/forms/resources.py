"""The table of the forms of all resources, and the forms of maintenance windows, places, markers
and monthly reports. The API accepts the fields of a form, and the audit log uses their labels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.forms.contact import ContactForm
from app.forms.fields import DateTime, Switch, Tag, Text, WordChoice, Zone
from app.forms.incident import IncidentStoreForm
from app.forms.lists import IdList, Tags
from app.forms.monitor import MonitorStoreForm
from app.forms.post import PostForm, PostTemplateForm
from app.forms.schema import SchemaForm, defaults_of
from app.forms.status_page import StatusPageForm
from app.i18n import N_, _
from app.records import (
    MAX_CONTACT_NAME,
    MAX_LINK,
    MAX_LOCATION,
    MAX_LOCATION_LABEL,
    MAX_NAME,
    MAX_PAGE_DESCRIPTION,
    Carrier,
    MaintenanceWindow,
    ObjectKind,
)
from app.records.resources import RESOURCES
from app.rules.recurrence import check_repeat
from app.rules.slugs import check_not_deleted
from app.rules.text import END_BEFORE_START
from app.rules.url import check_link

MAX_CRON = 255
TO_THE_MINUTE = {"step": "60"}  # a browser then shows seconds only if they are not zero


@defaults_of(MaintenanceWindow)
class WindowForm(SchemaForm):
    """Planned maintenance of some monitors, or of all (decision 11)."""

    name = Text(N_("Name"), required=True, limit=MAX_NAME)
    start_at = DateTime(N_("Start"), required=True, render_kw=TO_THE_MINUTE)
    end_at = DateTime(
        N_("End"), required=True, render_kw=TO_THE_MINUTE,
        description=N_("Checks go on, but nobody is alerted until then."),
    )  # fmt: skip
    monitors = IdList(
        N_("Monitors"), description=N_("Leave monitors and tags empty for all monitors.")
    )
    tags = Tags(
        N_("Tags"), description=N_("All monitors that have one of these tags, now or later.")
    )
    repeat = Text(
        N_("Repeat"), limit=MAX_CRON, rule=check_repeat,
        description=N_("none, daily, weekly, monthly, or a cron expression for its starts."),
    )  # fmt: skip
    repeat_until = DateTime(
        N_("Repeat until"), description=N_("Leave empty for no end."), render_kw=TO_THE_MINUTE
    )
    zone = Zone(
        N_("Time zone"),
        description=N_("Repeats keep their time of day here when the clocks change."),
    )

    public = Switch(
        N_("Show on status pages"),
        description=N_("The pages of its monitors announce it, with its times."),
    )
    public_name = Text(
        N_("Public name"), limit=MAX_NAME,
        description=N_('What status pages call it. Leave empty for "Maintenance".'),
    )  # fmt: skip
    public_text = Text(
        N_("Public text"), limit=MAX_PAGE_DESCRIPTION, lines=True,
        description=N_("What visitors should know about it."),
    )  # fmt: skip

    def check_cross_field(self) -> None:
        start, end, until = self.start_at, self.end_at, self.repeat_until
        if not self.flawless(start, end, until) or start.data is None or end.data is None:
            return
        if end.data <= start.data:
            end.add_fault(_(END_BEFORE_START))
        if until.data is not None and until.data < start.data:
            until.add_fault(_("This is before the window starts."))


CARRIER_LABELS = {
    Carrier.LOCAL: N_("A checker on the database"),
    Carrier.QUEUE: N_("Probers on a queue"),
    Carrier.AGENT: N_("An agent over HTTPS"),
}
PLACE_NAME_FAULT = N_("Use lower-case letters a to z, digits and hyphens only.")
_PLACE_NAME = re.compile(r"[a-z0-9-]+")


def check_place_name(value: str) -> None:
    if not _PLACE_NAME.fullmatch(value):
        raise ValueError(_(PLACE_NAME_FAULT))
    check_not_deleted(value)


class LocationForm(SchemaForm):
    """A place that checks run from (decision 14)."""

    name = Text(
        N_("Name"), required=True, limit=MAX_LOCATION, rule=check_place_name,
        description=N_(
            "Lower-case letters, digits and hyphens, such as sydney. It cannot be changed later."
        ),
    )  # fmt: skip
    label = Text(
        N_("Label"), limit=MAX_LOCATION_LABEL,
        description=N_("What people see in place of the name, such as Sydney."),
    )  # fmt: skip
    carrier = WordChoice(
        N_("Checked by"), CARRIER_LABELS, default=Carrier.LOCAL,
        description=N_("How checks get to this place. An agent works behind any firewall."),
    )  # fmt: skip


class MarkerForm(SchemaForm):
    """A deploy, or another moment that charts show."""

    name = Text(N_("Name"), required=True, limit=MAX_NAME, description=N_("Example: shop v2.1"))
    link = Text(N_("Link"), limit=MAX_LINK, rule=check_link, description=N_("Example: the release"))
    tags = Tags(N_("Tags"), description=N_("Comma-separated. Leave empty for all monitors."))
    time = DateTime(N_("Time"), description=N_("Leave empty for now."))


class ReportMailForm(SchemaForm):
    contact = Text(
        N_("Contact"), required=True, limit=MAX_CONTACT_NAME,
        description=N_("Name or id of the contact. The report goes to its email addresses."),
    )  # fmt: skip
    tag = Tag(N_("Tag"), description=N_("Only the monitors with this tag. Leave empty for all."))


FORMS: Mapping[ObjectKind, type[SchemaForm]] = {
    ObjectKind.MONITOR: MonitorStoreForm,
    ObjectKind.INCIDENT: IncidentStoreForm,
    ObjectKind.CONTACT: ContactForm,
    ObjectKind.STATUS_PAGE: StatusPageForm,
    ObjectKind.POST: PostForm,
    ObjectKind.POST_TEMPLATE: PostTemplateForm,
    ObjectKind.WINDOW: WindowForm,
    ObjectKind.MARKER: MarkerForm,
    ObjectKind.REPORT_MAIL: ReportMailForm,
    ObjectKind.LOCATION: LocationForm,
}


def form_of_collection(collection: str) -> type[SchemaForm]:
    """The form of the resource with this collection."""
    return FORMS[next(resource.kind for resource in RESOURCES if resource.name == collection)]
