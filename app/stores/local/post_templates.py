"""Post templates in the local database."""

from __future__ import annotations

from sqlalchemy import func, select

from app.db import DbSession, db, turns, writing
from app.db.tables import PostTemplateRow
from app.errors import Invalid
from app.i18n import N_, _
from app.records import Page, PageQuery, PostTemplate
from app.rules.posts import folded
from app.stores.base import Collection, Fields
from app.stores.local.part import Part, found_row
from app.stores.local.search import ids_of_page

NAME_TAKEN = N_("Another template has this name.")


class PostTemplates(Part, Collection[PostTemplate, PageQuery]):
    def list(self, query: PageQuery) -> Page[PostTemplate]:
        """By name."""
        order = (func.lower(PostTemplateRow.name), PostTemplateRow.id)
        ids, total = ids_of_page(select(PostTemplateRow.id), order, query.page, query.per_page)
        rows = db.session.scalars(
            select(PostTemplateRow).where(PostTemplateRow.id.in_(ids)).order_by(*order)
        )
        return Page([_record(row) for row in rows], query.page, query.per_page, total)

    def get(self, id: int) -> PostTemplate:
        return _record(found_row(db.session, PostTemplateRow, "post template", id))

    def create(self, fields: Fields) -> PostTemplate:
        now = self.now()
        with writing() as session:
            _check_name(session, None, fields)
            row = PostTemplateRow(**fields, created_at=now, updated_at=now)
            session.add(row)
            session.flush()
            id = row.id
        return self.get(id)

    def update(self, id: int, fields: Fields) -> PostTemplate:
        with writing() as session:
            _check_name(session, id, fields)
            row = found_row(session, PostTemplateRow, "post template", id)
            for name, value in fields.items():
                setattr(row, name, value)
            row.updated_at = self.now()
        return self.get(id)

    def delete(self, id: int) -> None:
        with writing() as session:
            session.delete(found_row(session, PostTemplateRow, "post template", id))


def _record(row: PostTemplateRow) -> PostTemplate:
    return PostTemplate(
        row.id, row.name, row.title, row.state, row.body, row.created_at, row.updated_at
    )


def _check_name(session: DbSession, id: int | None, fields: Fields) -> None:
    """Raises Invalid where another template has this name. Until the transaction ends, nobody else
    stores a name: the database has no index that ignores the case of all letters.
    """
    if "name" not in fields:
        return
    turns.take_turn(session, turns.Turn.POST_TEMPLATES)
    wanted = folded(fields["name"])
    for other, name in session.execute(select(PostTemplateRow.id, PostTemplateRow.name)):
        if other != id and folded(name) == wanted:
            raise Invalid({"name": [_(NAME_TAKEN)]})
