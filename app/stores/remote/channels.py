"""Which channels of another server do not work, read off its delivery log as well as that goes: its
values come masked, and only the last of it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from app.records import MASK, Delivery, DeliveryQuery, DeliveryStatus
from app.stores.base import Store

RECENT = timedelta(hours=24)


def failed_channels(store: Store) -> Sequence[Delivery]:
    """The newest failure of each channel within ``RECENT`` that has delivered nothing since."""
    found: dict[object, Delivery] = {}
    since = store.now() - RECENT
    for delivery in store.deliveries(
        DeliveryQuery(status=DeliveryStatus.FAILED, per_page=25)
    ).items:
        at = _last_at(delivery)
        if at is not None and at > since:
            found.setdefault(_lane(delivery), delivery)
    return [one for lane, one in found.items() if not _works_again(store, lane, one)]


def _works_again(store: Store, lane: object, failed: Delivery) -> bool:
    query = DeliveryQuery(channel=failed.channel, status=DeliveryStatus.DELIVERED, per_page=50)
    failed_at = _last_at(failed)
    return any(
        _lane(one) == lane and one.delivered_at and failed_at and one.delivered_at > failed_at
        for one in store.deliveries(query).items
    )


def _lane(delivery: Delivery) -> object:
    """What tells one channel value from another. A short one is masked whole, so its monitor tells
    it from others.
    """
    short = delivery.target == MASK
    return delivery.channel, delivery.target, delivery.monitor_id if short else None


def _last_at(delivery: Delivery) -> datetime | None:
    try:
        attempts = [datetime.fromisoformat(str(one.get("at"))) for one in delivery.attempts]
    except ValueError:
        attempts = []
    return attempts[-1] if attempts else delivery.created_at
