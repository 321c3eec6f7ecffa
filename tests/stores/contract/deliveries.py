"""The contract of every store for the delivery log."""

from __future__ import annotations

from app.records import DeliveryQuery, Pair
from app.stores.base import Store
from tests.stores.contract.making import HUGE, add_monitor


class DeliveriesContract:
    def test_a_test_alert_stands_in_the_delivery_log(self, store: Store) -> None:
        monitor = add_monitor(
            store, alerts=(Pair("email", "ops@example.com"), Pair("sms", "+441234567890"))
        )
        ids = store.channels.test_all(monitor.id)
        page = store.deliveries.list(DeliveryQuery(monitor_id=monitor.id))
        assert sorted(record.id for record in page.items) == sorted(ids)
        assert {(record.event, record.channel) for record in page.items} == {
            ("test", "email"),
            ("test", "sms"),
        }
        assert "ops@example.com" not in repr(page)
        only = store.deliveries.list(DeliveryQuery(channel="sms", status="pending")).items
        assert [store.deliveries.get(item.id).channel for item in only] == ["sms"]
        assert not store.deliveries.list(DeliveryQuery(incident_id=HUGE)).items
        assert store.deliveries.retry(ids[0]).status == "pending"
