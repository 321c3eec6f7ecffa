"""The post template's schema."""

from __future__ import annotations

from app.forms.fields import Text
from app.forms.post import body, state
from app.forms.schema import SchemaForm
from app.i18n import N_
from app.records import MAX_NAME, MAX_TEMPLATE_NAME


class PostTemplateForm(SchemaForm):
    """A post to start from."""

    name = Text(
        N_("Name"),
        required=True,
        most=MAX_TEMPLATE_NAME,
        description=N_("The name in the list of templates."),
    )
    title = Text(N_("Title"), required=True, most=MAX_NAME)
    state = state()
    body = body(N_("The text of the post. URLs become links, and line breaks are kept."))
