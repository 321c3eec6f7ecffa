"""The delivery log of another server."""

from __future__ import annotations

from collections.abc import Sequence

from app.records import Delivery, DeliveryQuery
from app.stores import base
from app.stores.remote.collection import RemoteReadable
from app.stores.remote.part import stored
from app.stores.waiting import until_tried

POLL_SECONDS = 0.5


class RemoteDeliveries(RemoteReadable[Delivery, DeliveryQuery], base.Deliveries):
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
