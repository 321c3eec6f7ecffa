"""What every store promises about places (decision 14)."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import Conflict, Invalid
from app.records import PageQuery, Place
from app.stores.base import Store
from app.stores.remote import store as remote_locations
from tests.stores.contract.making import add_monitor, not_found


def add_place(store: Store, name: str = "oslo", **fields: Any) -> Place:
    return store.locations.create({"name": name} | fields)


class LocationsContract:
    def test_the_default_place_is_always_there(self, store: Store) -> None:
        (place,) = store.locations.list(PageQuery()).items
        assert (place.name, place.carrier, place.title) == ("default", "local", "default")

    def test_places_are_stored_changed_and_deleted(self, store: Store) -> None:
        place = add_place(store, label="Oslo", carrier="queue")
        assert (place.name, place.label, place.carrier) == ("oslo", "Oslo", "queue")
        assert (place.state, place.last_seen_at, place.monitors) == ("never_seen", None, 0)
        assert place.token is None
        assert store.locations.get(place.id) == place
        changed = store.locations.update(place.id, {"label": "Oslo, Norway", "carrier": "local"})
        assert (changed.label, changed.carrier) == ("Oslo, Norway", "local")
        assert store.locations.list(PageQuery()).items[1:] == [changed]
        store.locations.delete(place.id)
        assert len(store.locations.list(PageQuery()).items) == 1

    def test_no_two_places_have_the_same_name_and_a_name_stays(self, store: Store) -> None:
        place = add_place(store)
        for attempt in (
            lambda: add_place(store),
            lambda: store.locations.update(place.id, {"name": "bergen"}),
        ):
            with pytest.raises(Invalid) as caught:
                attempt()
            assert list(caught.value.errors) == ["name"]
        assert store.locations.update(place.id, {"name": "oslo", "label": "x"}).label == "x"

    def test_an_agent_has_a_token_that_is_shown_once(self, store: Store) -> None:
        place = add_place(store, carrier="agent")
        assert place.token
        assert store.locations.get(place.id).token is None
        other = store.locations.new_token(place.id).token
        assert other
        assert other != place.token

    def test_the_default_place_is_not_deleted_and_has_no_agent(self, store: Store) -> None:
        id = store.locations.list(PageQuery()).items[0].id
        with pytest.raises(Conflict):
            store.locations.delete(id)
        with pytest.raises(Invalid) as caught:
            store.locations.update(id, {"carrier": "agent"})
        assert list(caught.value.errors) == ["carrier"]

    def test_a_place_in_use_is_not_deleted_and_the_monitors_are_named(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = add_place(store)
        for number in range(10):
            add_monitor(store, name=f"Of default alone, {number}")
        id = add_monitor(store, locations=("default", "oslo")).id
        assert store.locations.get(place.id).monitors == 1
        with pytest.raises(Conflict) as caught:
            store.locations.delete(place.id)
        assert caught.value.details["monitors"] == [id]
        # This holds even if it is not among those that the API lists first.
        monkeypatch.setattr(remote_locations, "MAX_PAGES", 1)
        monkeypatch.setattr(remote_locations, "PAGE", 10)
        assert [user.id for user in store.locations.users(place.id, 3)] == [id]
        store.monitors.update(id, {"locations": ("default",)})
        store.locations.delete(place.id)

    def test_a_monitor_has_the_rule_of_its_places(self, store: Store) -> None:
        monitor = add_monitor(store)
        assert monitor.location_rule == "majority"
        assert store.monitors.update(monitor.id, {"location_rule": "any"}).location_rule == "any"
        assert store.monitors.get(monitor.id).location_rule == "any"

    def test_the_places_of_a_monitor_say_what_they_see(self, store: Store) -> None:
        add_place(store, label="Oslo")
        id = add_monitor(store, locations=("default", "oslo")).id
        monitor = store.locations.of_monitor(id)
        assert [
            (record.name, record.title, record.verdict, record.checks) for record in monitor
        ] == [("default", "default", None, 0), ("oslo", "Oslo", None, 0)]
        not_found(lambda: store.locations.of_monitor(999_999))
