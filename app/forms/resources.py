"""The forms of the resources. Their fields are what the API accepts, and their
labels what the audit log calls them.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.forms.contact import ContactForm
from app.forms.incident import IncidentStoreForm
from app.forms.location import LocationForm
from app.forms.marker import MarkerForm
from app.forms.monitor import MonitorStoreForm
from app.forms.post import PostForm, PostTemplateForm
from app.forms.report_mail import ReportMailForm
from app.forms.schema import SchemaForm
from app.forms.status_page import StatusPageForm
from app.forms.window import WindowForm
from app.records import ObjectKind
from app.records.resources import RESOURCES

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
