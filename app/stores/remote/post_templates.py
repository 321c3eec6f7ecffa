"""Post templates of another server."""

from __future__ import annotations

from typing import Any

from app.codec import reader
from app.records import PageQuery, PostTemplate
from app.stores.remote.collection import Collection


class PostTemplates(Collection[PostTemplate, PageQuery]):
    path = "/post-templates"
    kind = "post template"

    def read(self, data: Any) -> PostTemplate:
        return _template(data)


_template = reader(PostTemplate, "post template")
