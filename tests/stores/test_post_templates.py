"""Posts to start from: those that come with Wakeful, and people's own."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from flask import Flask

from app.errors import NotFound
from app.records import PostState
from app.rules.post_templates import BUILT_IN
from app.stores.local.post_templates import (
    create_post_template,
    delete_post_template,
    post_templates,
    update_post_template,
)

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
FIELDS = {"name": "db", "title": "Database", "state": "identified", "body": "It is the database."}


def test_there_is_something_to_start_from_before_anybody_writes_a_template(core: Flask) -> None:
    with core.app_context():
        found = post_templates()
    assert [one.state for one in found] == [
        PostState.INVESTIGATING, PostState.IDENTIFIED, PostState.MONITORING, PostState.RESOLVED,
        PostState.SCHEDULED,
    ]  # fmt: skip
    assert all(one.id is None and one.name and one.title and one.body for one in found)


def test_own_templates_come_first_by_name(core: Flask) -> None:
    with core.app_context():
        kept = [create_post_template(FIELDS | {"name": name}, NOW) for name in ("b", "A")]
        assert post_templates() == [kept[1], kept[0], *BUILT_IN]
        changed = update_post_template(kept[0].id or 0, {"body": "It was not."}, NOW)
        assert (changed.body, changed.title) == ("It was not.", "Database")
        delete_post_template(kept[1].id or 0)
        assert post_templates() == [changed, *BUILT_IN]


@pytest.mark.sqlite
def test_a_template_that_is_not_there_is_not_found(core: Flask) -> None:
    with core.app_context():
        for id in (1, 10**30):
            with pytest.raises(NotFound):
                update_post_template(id, {"body": "x"}, NOW)
            with pytest.raises(NotFound):
                delete_post_template(id)
