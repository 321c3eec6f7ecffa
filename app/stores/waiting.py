"""Wait for the outcomes of deliveries, by polling: the worker only writes to the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

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
    deliveries: dict[int, Delivery] = {}

    def are_tried() -> bool:
        waiting = [id for id in ids if id not in deliveries or not _tried(deliveries[id])]
        deliveries.update({id: read(id) for id in waiting})
        return all(map(_tried, deliveries.values()))

    polling = Retrying(
        retry=retry_if_result(lambda tried: not tried),
        wait=wait_fixed(pause),
        stop=stop_after_delay(seconds),
        retry_error_callback=lambda _state: False,
    )
    polling(are_tried)
    return list(deliveries.values())


def _tried(delivery: Delivery) -> bool:
    return bool(delivery.attempts) or delivery.status != DeliveryStatus.PENDING
