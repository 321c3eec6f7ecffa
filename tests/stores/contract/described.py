"""What every store promises about the resources that are a record and its form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.records import MarkerQuery, PageQuery
from app.stores.base import Store
from tests.samples import SAMPLES

QUERIES = {"markers": MarkerQuery}


def shown(record: Any, names: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


described = pytest.mark.parametrize("name", SAMPLES)


class DescribedContract:
    @described
    def test_a_described_record_is_stored_changed_and_deleted(
        self, store: Store, name: str
    ) -> None:
        records, sample = getattr(store, name), SAMPLES[name]
        field, value, _other = sample.change
        record = records.create(sample.fields)
        assert shown(record, sample.fields) == sample.fields
        assert record.created_at == record.updated_at
        assert records.get(record.id) == record
        changed = records.update(record.id, {field: value})
        assert changed == replace(record, **{field: value}, updated_at=changed.updated_at)
        query = QUERIES.get(name, PageQuery)
        assert records.list(query()).items == [changed]
        records.delete(record.id)
        assert not records.list(query()).items

    @described
    def test_described_records_come_in_pages(self, store: Store, name: str) -> None:
        records, sample = getattr(store, name), SAMPLES[name]
        ids = [records.create(sample.fields | {"name": f"n{n:02}"}).id for n in range(12)]
        query = QUERIES.get(name, PageQuery)
        pages = [records.list(query(page=page)) for page in (1, 2, 3)]
        assert [len(page.items) for page in pages] == [10, 2, 0]
        assert {record.id for page in pages for record in page.items} == set(ids)
        assert [page.total for page in pages] == [12, 12, 12]
