"""The marker's schema."""

from __future__ import annotations

from app.forms.fields import DateTime, Text
from app.forms.lists import Tags
from app.forms.schema import SchemaForm
from app.i18n import N_
from app.records import MAX_LINK, MAX_NAME
from app.rules.url import check_link


class MarkerForm(SchemaForm):
    """A deploy, or another moment that charts show."""

    name = Text(N_("Name"), required=True, most=MAX_NAME, description=N_("Example: shop v2.1"))
    link = Text(N_("Link"), most=MAX_LINK, rule=check_link, description=N_("Example: the release"))
    tags = Tags(N_("Tags"), description=N_("Comma-separated. Leave empty for all monitors."))
    time = DateTime(N_("Time"), description=N_("Leave empty for now."))
