"""Wait for the outcomes of deliveries, by polling: the worker only writes to the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from app.records import Delivery, DeliveryStatus
from app.slots import LONG_WAITS


def until_tried(
    read: Callable[[int], Delivery], ids: Sequence[int], seconds: float, pause: float
) -> list[Delivery]:
    """The deliveries once each has been attempted, or as they are after ``seconds``; as they are
    now if too many requests wait already. ``read`` is called every ``pause`` seconds.
    """
    with LONG_WAITS.taken() as free:
        return _until_tried(read, ids, seconds if free else 0.0, pause)


def _until_tried(
    read: Callable[[int], Delivery], ids: Sequence[int], seconds: float, pause: float
) -> list[Delivery]:
    deadline = time.monotonic() + seconds
    found = {id: read(id) for id in ids}
    while waiting := [id for id, one in found.items() if not _tried(one)]:
        if time.monotonic() >= deadline:
            break
        time.sleep(pause)
        found |= {id: read(id) for id in waiting}
    return list(found.values())


def _tried(delivery: Delivery) -> bool:
    return bool(delivery.attempts) or delivery.status != DeliveryStatus.PENDING
