"""The schema of a place (decision 14)."""

from __future__ import annotations

import re

from app.forms.fields import Text, WordChoice
from app.forms.schema import SchemaForm
from app.i18n import N_, _
from app.records import MAX_LOCATION, MAX_LOCATION_LABEL, Carrier
from app.rules.slugs import check_not_deleted

CARRIER_LABELS = {
    Carrier.LOCAL: N_("A checker on the database"),
    Carrier.QUEUE: N_("Probers on a queue"),
    Carrier.AGENT: N_("An agent over HTTPS"),
}
NAME_FAULT = N_("Use lower-case letters a to z, digits and hyphens only.")
_NAME = re.compile(r"[a-z0-9-]+")


def check_name(value: str) -> None:
    if not _NAME.fullmatch(value):
        raise ValueError(_(NAME_FAULT))
    check_not_deleted(value)


class LocationForm(SchemaForm):
    """A place that checks run from."""

    name = Text(
        N_("Name"), required=True, limit=MAX_LOCATION, rule=check_name,
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
