"""What every store promises about post templates."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import Invalid
from app.records import PageQuery, PostTemplate
from app.stores.base import Store

SLOW = {"name": "Slow", "title": "Slow answers", "state": "investigating", "body": "We look."}


def add_template(store: Store, **fields: Any) -> PostTemplate:
    return store.post_templates.create(SLOW | fields)


class PostTemplatesContract:
    def test_no_two_post_templates_have_the_same_name(self, store: Store) -> None:
        add_template(store, name="Straße")
        other = add_template(store)
        for attempt in (
            lambda: add_template(store, name="STRASSE"),
            lambda: store.post_templates.update(other.id, {"name": " strasse "}),
        ):
            with pytest.raises(Invalid) as caught:
                attempt()
            assert list(caught.value.errors) == ["name"]
        assert store.post_templates.get(other.id).name == "Slow"

    def test_a_post_template_may_keep_its_name_or_change_its_case(self, store: Store) -> None:
        id = add_template(store).id
        assert store.post_templates.update(id, {"name": "Slow"}).name == "Slow"
        assert store.post_templates.update(id, {"name": "SLOW"}).name == "SLOW"

    def test_post_templates_come_in_pages_by_name(self, store: Store) -> None:
        names = [f"{'ab'[n % 2]}{n:02}" for n in range(12)]
        for name in names:
            add_template(store, name=name)
        pages = [store.post_templates.list(PageQuery(page=page)) for page in (1, 2, 3)]
        listed = [[record.name for record in page.items] for page in pages]
        assert listed == [sorted(names)[:10], sorted(names)[10:], []]
        assert [page.total for page in pages] == [12, 12, 12]
