"""Places of another server."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from app.codec import reader
from app.codec.values import object_
from app.records import MonitorQuery, MonitorRef, PageQuery, Place, PlaceSeen, Sort
from app.stores import base
from app.stores.base import Extent
from app.stores.remote.collection import RemoteCollection
from app.stores.remote.part import after_write

MAX_PAGES, PAGE = 10, 100


class RemoteLocations(RemoteCollection[Place, PageQuery], base.Locations):
    def new_token(self, id: int) -> Place:
        answer = self._write("POST", f"{self._address(id)}/token", of=(self.kind, id))
        with after_write():
            return self._record_in(id, answer)

    def users(self, id: int, limit: int) -> Sequence[MonitorRef]:
        name = self.get(id).name
        query = MonitorQuery(location=name, sort=Sort.ASC, per_page=PAGE, uptime=(), brief=True)
        monitors = islice(self.store.monitors.every(query, MAX_PAGES), limit)
        return [MonitorRef(monitor.id, monitor.name, monitor.url) for monitor in monitors]

    def of_monitor(self, monitor_id: int) -> Sequence[PlaceSeen]:
        if self.me.extent == Extent.BARE:
            return ()
        return self._of_monitor(monitor_id, "locations", _places)


_place_seen = reader(PlaceSeen, "place")


def _places(data: Any) -> Sequence[PlaceSeen]:
    listed = object_(data, "locations").get("locations")
    return [_place_seen(entry) for entry in listed] if isinstance(listed, list) else []
