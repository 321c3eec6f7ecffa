"""The schema of a monthly report by email."""

from __future__ import annotations

from app.forms.fields import Text
from app.forms.schema import SchemaForm
from app.i18n import N_
from app.records import MAX_CONTACT_NAME, MAX_TAG


class ReportMailForm(SchemaForm):
    contact = Text(
        N_("Contact"),
        required=True,
        most=MAX_CONTACT_NAME,
        description=N_("Its name or id. The report goes to its email addresses."),
    )
    tag = Text(
        N_("Tag"),
        most=MAX_TAG,
        description=N_("Only the monitors with this tag. Leave empty for all."),
    )
