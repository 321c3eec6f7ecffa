"""Markers of another server."""

from __future__ import annotations

from typing import Any

from app.codec import reader
from app.codec.values import text
from app.records import Marker, MarkerQuery
from app.rules.url import is_link
from app.stores.remote.collection import Collection


class Markers(Collection[Marker, MarkerQuery]):
    path = "/markers"
    kind = "marker"

    def read(self, data: Any) -> Marker:
        return _marker(data)


def _link(value: Any) -> str | None:
    found = text(value)
    return found if found and is_link(found) else None


_marker = reader(Marker, "marker", link=_link)
