"""The delivery log: each message, its target, and whether it arrived."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from app.access import audit
from app.alerts import by_hand
from app.alerts.log import IS_ALERT, covered_ids, to_record
from app.alerts.targets import contact_names
from app.db import db, writing
from app.db.tables import DeliveryRow, MonitorRow
from app.db.tags import tagged
from app.errors import NotFound
from app.records import Action, Delivery, DeliveryQuery, ObjectKind, Page, Thing
from app.stores import base
from app.stores.local.part import Part
from app.stores.local.search import fits, ids_of_page
from app.stores.waiting import until_tried

POLL_SECONDS = 0.15


class Deliveries(Part, base.Deliveries):
    def answers(self, ids: Sequence[int], seconds: float) -> Sequence[Delivery]:
        return until_tried(self._anew, ids, seconds, POLL_SECONDS)

    def _anew(self, id: int) -> Delivery:
        db.session.rollback()  # ends the read transaction, which would show the same rows for ever
        return self.get(id)

    def list(self, query: DeliveryQuery) -> Page[Delivery]:
        """The newest first."""
        matching = select(DeliveryRow.id).where(IS_ALERT)
        for column, wanted in (
            (DeliveryRow.monitor_id, query.monitor_id),
            (DeliveryRow.incident_id, query.incident_id),
        ):
            if wanted is not None:
                matching = matching.where(column == (wanted if fits(wanted) else -1))
        if query.contact_id is not None:
            matching = matching.where(DeliveryRow.sources.contains(f",{query.contact_id},"))
        if query.channel is not None:
            matching = matching.where(DeliveryRow.channel == query.channel)
        if query.status is not None:
            matching = matching.where(DeliveryRow.status == query.status)
        if query.within is not None:
            its = select(MonitorRow.id).where(tagged([query.within]))
            matching = matching.where(DeliveryRow.monitor_id.in_(its))
        ids, total = ids_of_page(matching, [DeliveryRow.id.desc()], query.page, query.per_page)
        return Page(_records(ids), query.page, query.per_page, total)

    def get(self, id: int) -> Delivery:
        found = _records([id]) if fits(id) else []
        if not found:
            raise NotFound("delivery", id)
        return found[0]

    def retry(self, id: int) -> Delivery:
        if not fits(id):
            raise NotFound("delivery", id)
        with writing() as session:
            by_hand.retry(id, self.now())
            audit.note(session, Action.RETRIED, Thing(ObjectKind.DELIVERY, id))
        return self.get(id)

    def give_up(self, id: int) -> Delivery:
        if not fits(id):
            raise NotFound("delivery", id)
        with writing() as session:
            by_hand.give_up(id, self.now())
            audit.note(session, Action.GIVEN_UP, Thing(ObjectKind.DELIVERY, id))
        return self.get(id)


def _records(ids: list[int]) -> list[Delivery]:
    """The deliveries with these ids, the newest first."""
    statement = (
        select(DeliveryRow)
        .where(DeliveryRow.id.in_(ids), IS_ALERT)
        .order_by(DeliveryRow.id.desc())
        .execution_options(populate_existing=True)
    )
    covered = covered_ids(db.session, ids)
    rows = db.session.scalars(statement).all()
    names = contact_names(db.session, {row.sources for row in rows})
    return [to_record(row, covered.get(row.id, ()), names) for row in rows]
