"""The delivery log: each message, its target, and whether it arrived. Alert channels: their tests,
and the messages that have not arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from flask import current_app
from sqlalchemy import Select, select

from app.access import audit
from app.alerts import by_hand
from app.alerts.channels import not_set_up
from app.alerts.composing import message_text
from app.alerts.log import covered_ids, failed_channels, lost_messages, to_record, unreached
from app.alerts.outbox import IS_ALERT
from app.alerts.targets import contact_names, unalerted, unreadable_alerts
from app.db import db, writing
from app.db.tables import DeliveryRow, MonitorRow
from app.db.tags import tagged
from app.errors import NotFound
from app.records import Action, AuditedObject, Delivery, DeliveryQuery, MonitorRef, ObjectKind, Pair
from app.stores import base
from app.stores.base import until_attempted
from app.stores.local.part import LocalPart, Rows, fits, fitting, require_monitor

POLL_SECONDS = 0.15


class LocalDeliveries(Rows[Delivery, DeliveryQuery], base.Deliveries):
    order = (DeliveryRow.id.desc(),)
    only = (IS_ALERT,)

    def get(self, id: int) -> Delivery:
        rows = self.rows([id]) if fits(id) else []
        if not rows:
            raise NotFound(self.resource.singular, id)
        (delivery,), settings = _records(rows), current_app.extensions["wakeful.settings"]
        return replace(delivery, message=message_text(db.session, settings, rows[0]))

    def answers(self, ids: Sequence[int], seconds: float) -> Sequence[Delivery]:
        return until_attempted(self._read_again, ids, seconds, POLL_SECONDS)

    def _read_again(self, id: int) -> Delivery:
        db.session.rollback()  # ends the read transaction, which would return the same rows again
        return super().get(id)

    def matching(self, query: DeliveryQuery) -> Select[Any]:
        matching = super().matching(query)
        for name in ("monitor_id", "incident_id", "channel", "status"):
            filter_value = getattr(query, name)
            if filter_value is not None:
                value = fitting(filter_value) if isinstance(filter_value, int) else filter_value
                matching = matching.where(getattr(DeliveryRow, name) == value)
        if query.contact_id is not None:
            matching = matching.where(DeliveryRow.sources.contains(f",{query.contact_id},"))
        if query.bound_tag is not None:
            monitor_ids = select(MonitorRow.id).where(tagged([query.bound_tag]))
            matching = matching.where(DeliveryRow.monitor_id.in_(monitor_ids))
        return matching

    def records(self, ids: Sequence[int]) -> Sequence[Delivery]:
        return _records(self.rows(ids))

    def retry(self, id: int) -> Delivery:
        return self._act_on(id, by_hand.retry, Action.RETRIED)

    def give_up(self, id: int) -> Delivery:
        return self._act_on(id, by_hand.give_up, Action.GIVEN_UP)

    def _act_on(self, id: int, act: Callable[[int, datetime], object], action: Action) -> Delivery:
        if not fits(id):
            raise NotFound("delivery", id)
        with writing() as session:
            act(id, self.now())
            audit.note(session, action, AuditedObject(ObjectKind.DELIVERY, id))
        return self.get(id)


def _records(rows: Sequence[DeliveryRow]) -> Sequence[Delivery]:
    covered = covered_ids(db.session, [row.id for row in rows])
    names = contact_names(db.session, {row.sources for row in rows})
    return [to_record(row, covered.get(row.id, ()), names) for row in rows]


class LocalChannels(LocalPart, base.Channels):
    def test(self, alerts: Sequence[Pair], *, monitor_id: int | None = None) -> tuple[int, ...]:
        targets = [(str(pair.key), pair.value) for pair in alerts]
        id = None if monitor_id is None else fitting(monitor_id)
        return by_hand.send_test_to(targets, self.now(), monitor_id=id)

    def test_all(self, monitor_id: int) -> tuple[int, ...]:
        require_monitor(monitor_id)
        return by_hand.send_test(monitor_id, self.now())

    def not_set_up(self) -> Mapping[str, str]:
        return not_set_up(current_app.extensions["wakeful.settings"])

    def failed(self) -> Sequence[Delivery]:
        return failed_channels(db.session)

    def lost(self) -> Sequence[Delivery]:
        return lost_messages(db.session, self.now())

    def unreached(self, incident_ids: Sequence[int]) -> Mapping[int, Sequence[Delivery]]:
        return unreached(db.session, incident_ids, self.now())

    def unreadable_alerts(self) -> Sequence[MonitorRef]:
        return unreadable_alerts(db.session)

    def unalerted(self, monitor_ids: Sequence[int]) -> Sequence[int]:
        return unalerted(db.session, monitor_ids)
