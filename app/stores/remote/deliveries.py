"""The delivery log of another server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.codec import reader
from app.codec.values import text
from app.records import Delivery, DeliveryQuery
from app.stores import base
from app.stores.remote.collection import Readable
from app.stores.remote.part import stored
from app.stores.waiting import until_tried

POLL_SECONDS = 0.5


class Deliveries(Readable[Delivery, DeliveryQuery], base.Deliveries):
    path = "/deliveries"
    kind = "delivery"

    def read(self, data: Any) -> Delivery:
        return _delivery(data)

    def retry(self, id: int) -> Delivery:
        return self._done(id, "retry")

    def give_up(self, id: int) -> Delivery:
        return self._done(id, "give-up")

    def _done(self, id: int, what: str) -> Delivery:
        self._write("POST", f"{self.path}/{id}/{what}", kind=self.kind, id=id)
        with stored():
            return self.get(id)

    def answers(self, ids: Sequence[int], seconds: float) -> Sequence[Delivery]:
        return until_tried(self.get, ids, seconds, POLL_SECONDS)


# A newer server may have events and channels that we do not know.
_delivery = reader(Delivery, "delivery", event=text, channel=text)
