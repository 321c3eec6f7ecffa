"""The schema of a monthly report by email."""

from __future__ import annotations

from app.forms.fields import Tag, Text
from app.forms.schema import SchemaForm
from app.i18n import N_
from app.records import MAX_CONTACT_NAME


class ReportMailForm(SchemaForm):
    contact = Text(
        N_("Contact"), required=True, most=MAX_CONTACT_NAME,
        description=N_("Name or id of the contact. The report goes to its email addresses."),
    )  # fmt: skip
    tag = Tag(N_("Tag"), description=N_("Only the monitors with this tag. Leave empty for all."))
