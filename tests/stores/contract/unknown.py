"""The contract of every store for ids that no record has: also those that no database can hold."""

from __future__ import annotations

import pytest

from app.records import ResultQuery
from app.stores.base import Store
from tests.samples import SAMPLES
from tests.stores.contract.making import HUGE, not_found

CHANGES = {
    "contacts": {"name": "x"},
    "locations": {"label": "x"},
    "markers": {"name": "x"},
    "report_mails": {"tag": "x"},
    "status_pages": {"name": "x"},
    "windows": {"name": "x"},
    **{name: {sample.change[0]: sample.change[1]} for name, sample in SAMPLES.items()},
}


class UnknownContract:
    @pytest.mark.parametrize("id", [999_999, HUGE])
    def test_an_unknown_record_is_not_found(self, store: Store, id: int) -> None:
        for name, fields in CHANGES.items():
            records = getattr(store, name)
            not_found(
                lambda records=records: records.get(id),
                lambda records=records, fields=fields: records.update(id, fields),
                lambda records=records: records.delete(id),
            )
        not_found(
            lambda: store.channels.test_all(id),
            lambda: store.checks.run(id),
            lambda: store.contacts.test(id),
            lambda: store.deliveries.get(id),
            lambda: store.deliveries.retry(id),
            lambda: store.locations.new_token(id),
            lambda: store.results.list(ResultQuery(id)),
            lambda: store.results.statistics(id, "24h"),
            lambda: store.results.certificates(id),
            lambda: store.subscribers.clear(id),
        )
