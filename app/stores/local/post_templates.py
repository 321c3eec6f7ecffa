"""Posts to start from: those that come with Wakeful, and people's own. Needs an application
context.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select

from app.db import DbSession, db, writing
from app.db.tables import PostTemplateRow
from app.errors import NotFound
from app.records import PostTemplate
from app.rules.post_templates import BUILT_IN
from app.stores.base import Fields
from app.stores.local.search import fits


def post_templates() -> Sequence[PostTemplate]:
    """People's own by name, then those that come with Wakeful."""
    own = [_record(row) for row in db.session.scalars(select(PostTemplateRow))]
    return [*sorted(own, key=lambda one: (one.name.casefold(), one.id)), *BUILT_IN]


def create_post_template(fields: Fields, now: datetime) -> PostTemplate:
    """``fields``: ``name``, ``title``, ``state`` and ``body``, checked by a form."""
    with writing() as session:
        row = PostTemplateRow(**fields, created_at=now, updated_at=now)
        session.add(row)
        session.flush()
        return _record(row)


def update_post_template(id: int, fields: Fields, now: datetime) -> PostTemplate:
    """Change what was sent. Raises NotFound."""
    with writing() as session:
        row = _found(session, id)
        for name, value in fields.items():
            setattr(row, name, value)
        row.updated_at = now
        return _record(row)


def delete_post_template(id: int) -> None:
    """Raises NotFound."""
    with writing() as session:
        session.delete(_found(session, id))


def _found(session: DbSession, id: int) -> PostTemplateRow:
    row = session.get(PostTemplateRow, id) if fits(id) else None
    if row is None:
        raise NotFound("post template", id)
    return row


def _record(row: PostTemplateRow) -> PostTemplate:
    return PostTemplate(row.id, row.name, row.title, row.state, row.body)
