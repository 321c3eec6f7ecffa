"""What every store promises about the subscribers of status pages (decision 12).

People confirm themselves, so no store adds one: tests/api/test_status_pages.py has lists.
"""

from __future__ import annotations

from app.records import SubscriberQuery
from app.stores.base import Store
from tests.stores.contract.status_pages import add_page


class SubscribersContract:
    def test_a_new_page_has_no_subscribers(self, store: Store) -> None:
        page = add_page(store)
        page_of_subscribers = store.subscribers.list(SubscriberQuery(page.id))
        assert (list(page_of_subscribers.items), page_of_subscribers.total, page.subscribers) == (
            [],
            0,
            0,
        )
        assert store.subscribers.clear(page.id) == 0
