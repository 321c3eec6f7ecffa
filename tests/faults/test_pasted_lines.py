"""A pasted log file is refused on a page of reasonable size."""

from __future__ import annotations

import pytest
from flask import Flask

from tests.factories import make_person
from tests.web.visitor import Visitor

pytestmark = pytest.mark.sqlite


def test_only_the_first_of_very_many_invalid_lines_are_listed(app: Flask) -> None:
    editor = Visitor(app).log_in(make_person(app, "editor").email)
    page = editor.open("/monitors/import").press(
        "Create the monitors", urls="no URL\n" * 5_000, interval="60"
    )
    assert page.status == 422
    assert "Line 1, no URL:" in page.text
    assert "Line 100, no URL:" in page.text
    assert "Line 101, no URL:" not in page.text
    assert "4,900 more lines are not valid." in page.text
