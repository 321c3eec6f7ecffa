"""Places of another server."""

from __future__ import annotations

from typing import Any

from app.codec import Odd, reader
from app.records import PageQuery, Place
from app.stores import base
from app.stores.base import Feature
from app.stores.remote.collection import Collection
from app.stores.remote.part import stored


class Locations(Collection[Place, PageQuery], base.Locations):
    path = "/locations"
    kind = "location"
    feature = Feature.LOCATIONS

    def read(self, data: Any) -> Place:
        place = _place(data)
        if not place.name:
            raise Odd("name")
        return place

    def new_token(self, id: int) -> Place:
        answer = self._write("POST", f"{self._address(id)}/token", kind=self.kind, id=id)
        with stored():
            return self._same(id, self._whole(answer))


_place = reader(Place, "location")
