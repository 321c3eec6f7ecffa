"""The contract of every store for maintenance windows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.errors import Invalid
from app.records import MonitorQuery, MonitorStatus, PageQuery
from app.stores.base import Store
from tests.stores.contract.making import add_monitor, moment


class WindowsContract:
    def test_windows_are_stored_changed_and_deleted(self, store: Store) -> None:
        monitor, other = add_monitor(store), add_monitor(store)
        start = moment(store, hours=1)
        window = store.windows.create(
            {
                "name": "Backups",
                "start_at": start,
                "end_at": start + timedelta(hours=2),
                "monitors": (monitor.id,),
                "repeat": "daily",
            }
        )
        assert store.windows.get(window.id) == window
        assert (window.monitors, window.repeat, window.start_at) == ((monitor.id,), "daily", start)
        assert store.monitors.get(monitor.id).status == MonitorStatus.MAINTENANCE
        assert store.monitors.get(other.id).status == MonitorStatus.PENDING
        changed = store.windows.update(window.id, {"monitors": (other.id,), "repeat": "0 3 * * 1"})
        assert (changed.monitors, changed.name) == ((other.id,), "Backups")
        assert [window.id for window in store.windows.list(PageQuery()).items] == [window.id]
        with pytest.raises(Invalid) as caught:
            store.windows.update(window.id, {"end_at": start - timedelta(hours=1)})
        assert list(caught.value.errors) == ["end_at"]
        store.windows.delete(window.id)
        assert not store.windows.list(PageQuery()).items
        assert store.monitors.get(other.id).status == MonitorStatus.PENDING

    def test_a_window_by_tag_is_for_the_monitors_that_have_the_tag_now(self, store: Store) -> None:
        tagged = add_monitor(store, tags=("prod", "eu"))
        later, capital = add_monitor(store), add_monitor(store, tags=("Prod",))
        listed = add_monitor(store)
        start = moment(store, hours=1)
        window = store.windows.create(
            {
                "name": "Backups",
                "start_at": start,
                "end_at": start + timedelta(hours=2),
                "monitors": (listed.id,),
                "tags": ("prod", "shop"),
            }
        )

        def quiet() -> list[int]:
            query = MonitorQuery(state=MonitorStatus.MAINTENANCE, sort="asc")
            return [monitor.id for monitor in store.monitors.list(query).items]

        assert window.tags == ("prod", "shop")
        assert store.windows.get(window.id) == window
        assert store.windows.list(PageQuery()).items == [window]
        assert quiet() == [tagged.id, listed.id]
        store.monitors.update(later.id, {"tags": ("shop",)})
        store.monitors.update(tagged.id, {"tags": ("eu",)})
        assert quiet() == [later.id, listed.id]
        changed = store.windows.update(window.id, {"tags": ("Prod",)})
        assert (changed.tags, changed.monitors) == (("Prod",), (listed.id,))
        assert quiet() == [capital.id, listed.id]
        store.windows.update(window.id, {"monitors": ()})
        assert quiet() == [capital.id]
        store.monitors.delete(capital.id)  # the window stays, and is for nobody
        assert store.windows.get(window.id).tags == ("Prod",)
        assert quiet() == []
        store.windows.update(window.id, {"tags": ()})
        assert quiet() == [tagged.id, later.id, listed.id]  # as every window of none: all

    def test_windows_come_in_pages_the_newest_start_first(self, store: Store) -> None:
        starts = [moment(store, days=day) for day in range(12)]
        ids = [
            store.windows.create(
                {"name": "w", "start_at": start, "end_at": start + timedelta(hours=1)}
            ).id
            for start in starts
        ]
        pages = [store.windows.list(PageQuery(page=page)) for page in (1, 2, 3)]
        assert [[record.id for record in page.items] for page in pages] == [ids[:10], ids[10:], []]
        assert [page.total for page in pages] == [12, 12, 12]
