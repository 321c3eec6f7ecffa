"""The delivery log: each message, its target, and whether it arrived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, select

from app.access import audit
from app.alerts import by_hand
from app.alerts.log import IS_ALERT, covered_ids, to_record
from app.alerts.targets import contact_names
from app.db import db, writing
from app.db.tables import DeliveryRow, MonitorRow
from app.db.tags import tagged
from app.errors import NotFound
from app.records import Action, Delivery, DeliveryQuery, ObjectKind, Thing
from app.stores import base
from app.stores.local.part import Rows
from app.stores.local.search import fits
from app.stores.waiting import until_tried

POLL_SECONDS = 0.15


class LocalDeliveries(Rows[Delivery, DeliveryQuery], base.Deliveries):
    only = (IS_ALERT,)

    def answers(self, ids: Sequence[int], seconds: float) -> Sequence[Delivery]:
        return until_tried(self._anew, ids, seconds, POLL_SECONDS)

    def _anew(self, id: int) -> Delivery:
        db.session.rollback()  # ends the read transaction, which would show the same rows for ever
        return self.get(id)

    def matching(self, query: DeliveryQuery) -> Select[Any]:
        matching = super().matching(query)
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
            monitor_ids = select(MonitorRow.id).where(tagged([query.within]))
            matching = matching.where(DeliveryRow.monitor_id.in_(monitor_ids))
        return matching

    def records(self, ids: Sequence[int]) -> Sequence[Delivery]:
        rows, covered = self.rows(ids), covered_ids(db.session, ids)
        names = contact_names(db.session, {row.sources for row in rows})
        return [to_record(row, covered.get(row.id, ()), names) for row in rows]

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
