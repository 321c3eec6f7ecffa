"""Places of another server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.codec import Odd, reader
from app.codec.values import object_
from app.errors import Invalid
from app.records import Monitor, MonitorQuery, MonitorRef, PageQuery, Place, PlaceSeen, Sort
from app.stores import base
from app.stores.base import Feature
from app.stores.remote.collection import Collection
from app.stores.remote.part import stored

MOST_PAGES, PAGE = 10, 100


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
            return self._whole(id, answer)

    def users(self, id: int, limit: int) -> Sequence[MonitorRef]:
        """Those among the first thousand monitors, where the server is older and refuses the
        filter.
        """
        name = self.get(id).name
        query = MonitorQuery(location=name, sort=Sort.ASC, per_page=PAGE, uptime=(), brief=True)
        try:
            found = self._first(query, name, limit)
        except Invalid as refused:
            if "location" not in refused.errors:
                raise
            found = self._first(replace(query, location=None), name, limit)
        return [MonitorRef(one.id, one.name, one.url) for one in found]

    def _first(self, query: MonitorQuery, name: str, limit: int) -> Sequence[Monitor]:
        """The first monitors of the query that the place checks."""
        found = list[Monitor]()
        for number in range(1, MOST_PAGES + 1):
            page = self.store.monitors.list(replace(query, page=number))
            found += [one for one in page.items if name in one.locations]
            if len(found) >= limit or number >= page.last_number:
                break
        return found[:limit]

    def of_monitor(self, monitor_id: int) -> Sequence[PlaceSeen]:
        if Feature.LOCATIONS not in self.offers.known():
            return ()
        path = f"/monitors/{monitor_id}/locations"
        answer = self._read(path, of=(Feature.LOCATIONS, monitor_id))
        return self._content(answer, _all_seen)


_seen = reader(PlaceSeen, "location")


def _all_seen(data: Any) -> Sequence[PlaceSeen]:
    listed = object_(data, "locations").get("locations")
    return [_seen(one) for one in listed] if isinstance(listed, list) else []


_place = reader(Place, "location")
