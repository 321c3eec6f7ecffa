"""Alert channels: send tests, and find those that do not work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flask import current_app

from app.alerts import by_hand
from app.alerts.channels import not_set_up
from app.alerts.log import failed_channels, lost_messages
from app.alerts.targets import unreadable_alerts
from app.db import db
from app.records import Delivery, MonitorRef, Pair
from app.stores import base
from app.stores.local.part import LocalPart, require_monitor
from app.stores.local.search import fits


class LocalChannels(LocalPart, base.Channels):
    def test(self, alerts: Sequence[Pair], *, monitor_id: int | None = None) -> tuple[int, ...]:
        targets = [(str(pair.key), pair.value) for pair in alerts]
        id = monitor_id if monitor_id is None or fits(monitor_id) else -1
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

    def unreadable_alerts(self) -> Sequence[MonitorRef]:
        return unreadable_alerts(db.session)
