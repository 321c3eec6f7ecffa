"""The delivery log and the alert channels of another server."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from app.codec import MalformedData, reader
from app.codec.values import each_in, object_, pairs
from app.records import MASK, Delivery, DeliveryQuery, DeliveryStatus, MonitorRef, Pair
from app.stores import base
from app.stores.base import Extent, until_attempted
from app.stores.remote.collection import RemoteReadable
from app.stores.remote.part import RemotePart, after_write

POLL_SECONDS = 0.5


class RemoteDeliveries(RemoteReadable[Delivery, DeliveryQuery], base.Deliveries):
    def retry(self, id: int) -> Delivery:
        return self._act_on(id, "retry")

    def give_up(self, id: int) -> Delivery:
        return self._act_on(id, "give-up")

    def _act_on(self, id: int, action: str) -> Delivery:
        self._write("POST", f"{self._address(id)}/{action}", of=(self.noun, id))
        with after_write():
            return self.get(id)

    def answers(self, ids: Sequence[int], seconds: float) -> Sequence[Delivery]:
        return until_attempted(self.get, ids, seconds, POLL_SECONDS)


ASKED_AGAIN_SECONDS = 60.0
RECENT = timedelta(hours=24)
MAX_INCIDENTS = 3  # for which messages are requested


class RemoteChannels(RemotePart, base.Channels):
    _setup: Mapping[str, str] = {}
    _setup_at = float("-inf")

    def test(self, alerts: Sequence[Pair], *, monitor_id: int | None = None) -> tuple[int, ...]:
        fields: dict[str, Any] = {"alerts": tuple(alerts)}
        if monitor_id is not None:
            fields["monitor_id"] = monitor_id
        answer = self._write("POST", "/alerts/test", fields)
        ids = self._content(answer, delivery_ids)
        if len(ids) != len(alerts):
            raise self._not_understood(MalformedData("deliveries"), answer)
        return ids

    def test_all(self, monitor_id: int) -> tuple[int, ...]:
        path = f"/monitors/{monitor_id}/test-alert"
        return self._content(self._write("POST", path, of=("monitor", monitor_id)), delivery_ids)

    def not_set_up(self) -> Mapping[str, str]:
        """The answer is cached for a minute, because each form reads it."""
        if self.me.extent < Extent.WHOLE:
            return {}
        if time.monotonic() - self._setup_at > ASKED_AGAIN_SECONDS:
            self._setup = self._get_content("/alerts/channels", _not_set_up)
            self._setup_at = time.monotonic()
        return self._setup

    def failed(self) -> Sequence[Delivery]:
        if self.me.extent == Extent.BARE:
            return ()
        return _failed(self.store.deliveries, self.store.now() - RECENT)

    def lost(self) -> Sequence[Delivery]:
        if self.me.extent == Extent.BARE:
            return ()
        deliveries, since = self.store.deliveries, self.store.now() - RECENT
        statuses = (DeliveryStatus.FAILED, DeliveryStatus.HELD)
        newest = [each for status in statuses for each in _newest(deliveries, status, since)]
        return [delivery for delivery in newest if delivery.is_lost]

    def unreached(self, incident_ids: Sequence[int]) -> Mapping[int, Sequence[Delivery]]:
        if self.me.extent == Extent.BARE:
            return {}
        by_incident = {}
        for id in incident_ids[:MAX_INCIDENTS]:
            deliveries = self.store.deliveries.list(
                DeliveryQuery(incident_id=id, per_page=50)
            ).items
            failing = [delivery for delivery in deliveries if _has_failed(delivery)]
            # A held message may be part of a grouped message, whose delivery is not read here.
            arrived = (DeliveryStatus.DELIVERED, DeliveryStatus.HELD)
            if failing and not any(delivery.status in arrived for delivery in deliveries):
                by_incident[id] = failing
        return by_incident

    def unreadable_alerts(self) -> Sequence[MonitorRef]:
        if self.me.extent < Extent.WHOLE:
            return ()
        return self._get_content("/alerts/unreadable", _monitors)

    def unalerted(self, monitor_ids: Sequence[int]) -> Sequence[int]:
        return ()  # a request for each monitor would be needed


def delivery_ids(data: Any) -> tuple[int, ...]:
    ids = data.get("deliveries") if isinstance(data, Mapping) else data
    if not isinstance(ids, list) or not all(isinstance(id, int) for id in ids):
        raise MalformedData("deliveries")
    return tuple(ids)


def _not_set_up(data: Any) -> Mapping[str, str]:
    not_set_up = pairs(object_(data, "channels").get("not_set_up"))
    return {pair.key: pair.value for pair in not_set_up if pair.value}


_monitors = partial(each_in, "monitors", reader(MonitorRef, "monitor"))


def _failed(deliveries: base.Deliveries, since: datetime) -> Sequence[Delivery]:
    """The newest failure after ``since`` of each channel that has delivered nothing since then."""
    failures: dict[object, Delivery] = {}
    for delivery in _newest(deliveries, DeliveryStatus.FAILED, since):
        if not delivery.is_lost:
            failures.setdefault(_lane(delivery), delivery)
    return [delivery for delivery in failures.values() if not _works_again(deliveries, delivery)]


def _newest(deliveries: base.Deliveries, status: str, since: datetime) -> Sequence[Delivery]:
    newest = deliveries.list(DeliveryQuery(status=status, per_page=25)).items
    return [delivery for delivery in newest if (at := _last_at(delivery)) and at > since]


def _works_again(deliveries: base.Deliveries, failed: Delivery) -> bool:
    query = DeliveryQuery(channel=failed.channel, status=DeliveryStatus.DELIVERED, per_page=50)
    of_channel = [each for each in deliveries.list(query).items if _lane(each) == _lane(failed)]
    failed_at = _last_at(failed)
    times = [delivery.delivered_at for delivery in of_channel if delivery.delivered_at]
    return failed_at is not None and any(at > failed_at for at in times)


def _has_failed(delivery: Delivery) -> bool:
    unsent = (DeliveryStatus.PENDING, DeliveryStatus.FAILED)
    return delivery.status in unsent and bool(delivery.attempts)


def _lane(delivery: Delivery) -> object:
    """The key that identifies a channel value. A short value is masked completely, so the monitor
    is part of the key.
    """
    is_masked = delivery.target == MASK
    return delivery.channel, delivery.target, delivery.monitor_id if is_masked else None


def _last_at(delivery: Delivery) -> datetime | None:
    try:
        times = [datetime.fromisoformat(str(attempt.get("at"))) for attempt in delivery.attempts]
    except ValueError:
        times = []
    return times[-1] if times else delivery.created_at
