"""The marker's schema."""

from __future__ import annotations

from app.forms.fields import Moment, Text
from app.forms.lists import Tags
from app.forms.schema import SchemaForm
from app.records import MAX_LINK, MAX_NAME
from app.rules.links import check_link


class MarkerForm(SchemaForm):
    """A deploy, or another moment that charts show."""

    name = Text("Name", required=True, most=MAX_NAME, description="Such as shop v2.1.")
    link = Text(
        "Link",
        most=MAX_LINK,
        rule=check_link,
        description="Such as the release.",
    )
    tags = Tags("Tags", description="Comma-separated. Empty: all monitors.")
    time = Moment("Time", description="Empty: now.")
