"""The schema of a place (decisions.md 14)."""

from __future__ import annotations

import re

from app.forms.fields import Text, Word
from app.forms.schema import SchemaForm
from app.records import MAX_LOCATION, MAX_LOCATION_LABEL, Carrier

CARRIER_LABELS = {
    Carrier.LOCAL: "A checker on the database",
    Carrier.QUEUE: "Probers on a queue",
    Carrier.AGENT: "An agent over HTTPS",
}
NAME_FAULT = "Use lower-case letters a to z, digits and hyphens only."
_NAME = re.compile(r"[a-z0-9-]+")


def check_name(value: str) -> None:
    if not _NAME.fullmatch(value):
        raise ValueError(NAME_FAULT)


class LocationForm(SchemaForm):
    """A place that checks run from."""

    name = Text(
        "Name",
        required=True,
        most=MAX_LOCATION,
        rule=check_name,
        description="Lower-case letters, digits and hyphens, such as sydney. It cannot be changed"
        " later.",
    )
    label = Text(
        "Label",
        most=MAX_LOCATION_LABEL,
        description="What people see in place of the name, such as Sydney.",
    )
    carrier = Word(
        "Checked by",
        words=Carrier,
        labels=CARRIER_LABELS.__getitem__,
        default=Carrier.LOCAL,
        description="How checks get to this place. An agent works behind any firewall.",
    )
