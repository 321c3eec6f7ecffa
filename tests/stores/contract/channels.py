"""The contract of every store for alert channels and their tests."""

from __future__ import annotations

import pytest

from app.errors import Invalid
from app.records import Pair
from app.stores.base import Extent, Store
from tests.stores.contract.making import add_monitor, over_bare


class ChannelsContract:
    def test_a_monitor_without_channels_has_none_to_test(self, store: Store) -> None:
        assert store.channels.test_all(add_monitor(store).id) == ()

    def test_channels_are_tested_whether_they_are_stored_or_not(self, store: Store) -> None:
        monitor = add_monitor(store)
        mine, nobodys = Pair("sms", "+441234567891"), Pair("slack", "http://127.0.0.1:9/hook")
        ids = store.channels.test((mine, nobodys), monitor_id=monitor.id)
        ids += store.channels.test((nobodys,))
        tried = store.deliveries.answers(ids, 0.1)  # nobody sends here, so nothing is answered
        assert [(attempt.channel, attempt.monitor_id, attempt.status) for attempt in tried] == [
            ("sms", monitor.id, "pending"),
            ("slack", monitor.id, "pending"),
            ("slack", None, "pending"),
        ]
        with pytest.raises(Invalid) as caught:
            store.channels.test((mine,), monitor_id=monitor.id + 100)
        assert list(caught.value.errors) == ["monitor_id"]

    def test_a_store_whose_alerts_can_be_read_names_no_monitor(self, store: Store) -> None:
        add_monitor(store)
        assert list(store.channels.unreadable_alerts()) == []
        assert list(store.channels.unalerted([10**6])) == []

    @over_bare
    def test_a_store_without_failures_has_no_failed_channel(self, store: Store) -> None:
        assert list(store.channels.failed()) == []

    @over_bare
    def test_a_store_names_the_channels_that_cannot_work_if_it_can_tell(self, store: Store) -> None:
        if store.extent > Extent.BARE:
            assert store.channels.not_set_up() == {
                "email": "No mail server is set up. An admin can set one up under Settings, Email.",
                "sms": "No SMS provider is set up. Set WAKEFUL_SMS_URL.",
            }
        else:
            assert store.channels.not_set_up() == {}
