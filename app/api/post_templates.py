"""/api/v1/post-templates: posts to start from."""

from __future__ import annotations

from app.api.resource import Resource, register
from app.forms.post_template import PostTemplateForm

TEMPLATES = Resource(
    name="post_templates",
    path="/post-templates",
    one="a post template",
    many="post templates",
    answer="PostTemplate",
    form=PostTemplateForm,
    records=lambda store: store.post_templates,
    about={
        "list": "Texts that people start a post from.",
        "store": "Its title, state and body fill in the form of a new post.",
        "show": "Returns one template.",
        "update": "Changes what is sent. Posts that were made from it stay as they are.",
        "delete": "Posts that were made from it stay as they are.",
    },
)
register(TEMPLATES)
