"""A pasted log file is refused on a page of reasonable size."""

from __future__ import annotations

import pytest
from flask import Flask

from app.web.views import imports
from tests.factories import make_person
from tests.web.visitor import Visitor


def test_what_is_no_list_of_monitors_is_refused_in_one_sentence(app: Flask) -> None:
    editor = Visitor(app).let_in(make_person(app, "editor"))
    page = editor.open("/monitors/import").press("Preview", urls="no URL\n" * 5_000, interval="60")
    assert page.status == 422
    assert "most of its lines have no URL" in page.text
    assert page.text.count('URL "no URL"') == 0


def test_only_the_first_of_very_many_invalid_lines_are_listed(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert imports.MAX_ROWS == 500
    monkeypatch.setattr(imports, "MAX_ROWS", 100)
    editor = Visitor(app).let_in(make_person(app, "editor"))
    lines = "no URL,http://\n" * 1_101
    page = editor.open("/monitors/import").press("Preview", urls=lines, interval="60")
    assert page.status == 200
    assert "100 cannot be imported" in page.text
    assert "These are the first 100; 1,001 more do not fit on this page." in page.text
    assert page.text.count('URL "http://"') == 1, "what many entries share is said once"
    assert "Create 0 monitors" not in page.text, "there is nothing to create"
