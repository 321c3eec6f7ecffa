"""Who subscribed to status pages, in the local database."""

from __future__ import annotations

from sqlalchemy import select

from app.access import audit
from app.alerts.subscribers import end
from app.db import db, writing
from app.db.tables import SubscriberRow
from app.db.types import readable
from app.records import Action, ObjectKind, Page, Subscriber, SubscriberQuery, Thing
from app.stores import base
from app.stores.local.part import LocalPart
from app.stores.local.search import fits, ids_of_page
from app.stores.local.status_pages import locked_page

AT_ONCE = 1000  # in one statement


class LocalSubscribers(LocalPart, base.Subscribers):
    def list(self, query: SubscriberQuery) -> Page[Subscriber]:
        """The newest first."""
        if not fits(query.status_page_id):
            return Page([], query.page, query.per_page, 0)
        matching = select(SubscriberRow.id).where(
            SubscriberRow.status_page_id == query.status_page_id,
            SubscriberRow.confirmed_at.is_not(None),
        )
        order = (SubscriberRow.id.desc(),)
        ids, total = ids_of_page(matching, order, query.page, query.per_page)
        rows = db.session.scalars(
            select(SubscriberRow).where(SubscriberRow.id.in_(ids)).order_by(*order)
        )
        return Page([_record(row) for row in rows], query.page, query.per_page, total)

    def clear(self, page_id: int) -> int:
        of_page = select(SubscriberRow.id).where(SubscriberRow.status_page_id == page_id)
        with writing() as session:
            page = locked_page(session, page_id)
            ids = session.scalars(of_page).all()
            for start in range(0, len(ids), AT_ONCE):
                end(session, ids[start : start + AT_ONCE])
            of = Thing(ObjectKind.SUBSCRIBERS, page_id, page.name)
            audit.note(session, Action.DELETED, of, {"subscribers": (len(ids), 0)})
            return len(ids)


def _record(row: SubscriberRow) -> Subscriber:
    return Subscriber(
        id=row.id,
        channel=row.channel,
        target=readable(row.value) or "",
        created_at=row.created_at,
        confirmed_at=row.confirmed_at,
    )
