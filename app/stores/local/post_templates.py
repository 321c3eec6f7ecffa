"""Post templates in the local database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select

from app.db import DbSession, locks
from app.db.tables import PostTemplateRow
from app.errors import Invalid
from app.i18n import _
from app.records import PageQuery, PostTemplate
from app.rules.posts import folded
from app.rules.text import TAKEN
from app.stores.base import Fields
from app.stores.local.part import LocalCollection


class PostTemplates(LocalCollection[PostTemplate, PageQuery]):
    @property
    def order(self) -> Sequence[Any]:
        return (func.lower(PostTemplateRow.name), PostTemplateRow.id)

    def columns(self, session: DbSession, id: int | None, fields: Fields) -> dict[str, Any]:
        """Raises Invalid if another template has this name. Until the transaction ends, nobody
        else stores a name: the database has no index that ignores the case of all letters.
        """
        if "name" in fields:
            locks.take_lock(session, locks.Lock.POST_TEMPLATES)
            wanted = folded(fields["name"])
            for other, name in session.execute(select(PostTemplateRow.id, PostTemplateRow.name)):
                if other != id and folded(name) == wanted:
                    raise Invalid({"name": [_(TAKEN)]})
        return dict(fields)
