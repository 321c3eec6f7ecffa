"""All data of a status page is read at one moment."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from sqlalchemy import insert

from app.db import db
from app.db.tables import PostRow
from app.stores.local import public
from app.stores.local.public import PublicPages
from tests.factories import now
from tests.pages.made import make_page, make_shown

pytestmark = pytest.mark.both_databases


def test_a_change_while_a_page_is_read_is_on_it_as_a_whole_or_not_at_all(
    app: Flask, monkeypatch: pytest.MonkeyPatch
):
    shop = make_shown(app, "Shop")
    page = make_page(app, [shop])
    pages: PublicPages = app.extensions["wakeful.public"]
    read = public._page_monitors

    def read_and_change(*arguments: Any) -> Any:
        shown = read(*arguments)
        with db.engine.begin() as other:
            other.execute(
                insert(PostRow).values(
                    status_page_id=page, title="Away", state="investigating",
                    created_at=now(), updated_at=now(),
                )
            )  # fmt: skip
        return shown

    monkeypatch.setattr(public, "_page_monitors", read_and_change)
    with app.app_context():
        before = pages.page(page)
        assert before.posts == []
        assert before.state == "operational"
        monkeypatch.undo()
        assert [post.title for post in pages.page(page).posts] == ["Away"]
        assert pages.month(page, now().year, now().month).posts
