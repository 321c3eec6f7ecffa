"""The contract of every store for heartbeats."""

from __future__ import annotations

import pytest

from app.errors import Conflict, NotFound
from app.records import HEARTBEAT_URL, PingQuery
from app.stores.base import Store
from tests.stores.contract.making import HUGE, add_monitor, not_found


class HeartbeatsContract:
    def test_a_heartbeat_has_a_ping_url_and_the_old_one_ends_with_a_new_one(
        self, store: Store
    ) -> None:
        fields = {"schedule": ("0 3 * * *",), "zone": "Europe/Berlin", "grace": 600}
        heartbeat = add_monitor(store, url=HEARTBEAT_URL, interval=3600, **fields)
        assert (heartbeat.schedule, heartbeat.zone, heartbeat.grace) == tuple(fields.values())
        assert (heartbeat.slug, heartbeat.status) == ("shop", "pending")
        assert "/ping/" in (heartbeat.ping_url or "")
        changed = store.heartbeats.new_token(heartbeat.id)
        assert changed.ping_url != heartbeat.ping_url
        assert store.monitors.get(heartbeat.id).ping_url == changed.ping_url
        with pytest.raises(Conflict):
            store.checks.run(heartbeat.id)

    def test_a_heartbeat_has_pings_and_other_monitors_have_none(self, store: Store) -> None:
        heartbeat = add_monitor(store, url=HEARTBEAT_URL, interval=3600)
        assert not store.heartbeats.list(PingQuery(heartbeat.id)).items
        web = add_monitor(store)
        with pytest.raises(Conflict):
            store.heartbeats.new_token(web.id)
        not_found(
            lambda: store.heartbeats.get(heartbeat.id, 7),
            lambda: store.heartbeats.get(heartbeat.id, HUGE),
            lambda: store.heartbeats.list(PingQuery(heartbeat.id + 9)),
            lambda: store.heartbeats.new_token(heartbeat.id + 9),
        )
        with pytest.raises(NotFound):
            store.heartbeats.get(web.id, 1)
