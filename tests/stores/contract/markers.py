"""What every store promises about markers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from app.records import Marker, MarkerQuery
from app.stores.base import Store
from tests.stores.contract.making import add_monitor, moment


def add_marker(store: Store, **fields: Any) -> Marker:
    values = {"name": "shop v2.1", "time": moment(store, minutes=3)}
    return store.markers.create(values | fields)


def names(store: Store, **query: Any) -> list[str]:
    return [marker.name for marker in store.markers.list(MarkerQuery(**query)).items]


class MarkersContract:
    def test_a_marker_without_a_time_gets_the_current_time(self, store: Store) -> None:
        marker = add_marker(store, time=None)
        assert abs(store.now() - marker.time) < timedelta(minutes=1)
        old = add_marker(store, time=moment(store, days=3))
        assert store.markers.update(old.id, {"time": None}).time >= marker.time

    def test_markers_come_newest_first_between_two_times(self, store: Store) -> None:
        for hours in (3, 1, 2):
            add_marker(store, name=str(hours), time=moment(store, hours=hours))
        assert names(store) == ["1", "2", "3"]
        middle = store.markers.list(MarkerQuery()).items[1].time
        assert names(store, from_=middle) == ["1", "2"]
        assert names(store, to=middle) == ["2", "3"]
        assert names(store, from_=middle, to=middle) == ["2"]

    def test_a_marker_concerns_monitors_with_one_of_its_tags_or_all(self, store: Store) -> None:
        shop = add_monitor(store, tags=("prod", "shop"))
        bare = add_monitor(store, tags=())
        for name, tags in (
            ("all", ()),
            ("shop", ("other", "shop")),
            ("api", ("api", "sho", "SHOP", "%")),
        ):
            add_marker(store, name=name, tags=tags)
        assert sorted(names(store, monitor_id=shop.id)) == ["all", "shop"]
        assert names(store, monitor_id=bare.id) == ["all"]
        assert names(store, monitor_id=999_999) == []
