"""The table of the forms of all resources, and the small forms of markers and monthly reports. The
API accepts the fields of a form, and the audit log uses their labels.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.forms.contact import ContactForm
from app.forms.fields import DateTime, Tag, Text
from app.forms.incident import IncidentStoreForm
from app.forms.lists import Tags
from app.forms.location import LocationForm
from app.forms.monitor import MonitorStoreForm
from app.forms.post import PostForm, PostTemplateForm
from app.forms.schema import SchemaForm
from app.forms.status_page import StatusPageForm
from app.forms.window import WindowForm
from app.i18n import N_
from app.records import MAX_CONTACT_NAME, MAX_LINK, MAX_NAME, ObjectKind
from app.records.resources import RESOURCES
from app.rules.url import check_link


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


def form_of(collection: str) -> type[SchemaForm]:
    """The form of the resource with this collection."""
    return FORMS[next(resource.kind for resource in RESOURCES if resource.name == collection)]
