"""The looks that leave something out still find what is wrong."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.support.axe import violations

pytestmark = pytest.mark.browser

# Only a wide screen shows the paragraph, and only in the dark it cannot be read.
PAGE = """<!doctype html><html lang="en"><title>A page</title><style>
@media (max-width: 600px) { p { display: none } }
@media (prefers-color-scheme: dark) { body { background: #000; color: #fff } p { color: #222 } }
</style><main><h1>A page</h1><p>Some words</p></main>"""


def test_what_a_narrow_screen_had_no_room_for_is_looked_at_on_a_wide_one(page: Page) -> None:
    page.set_content(PAGE)
    assert violations(page) == []
    page.set_viewport_size({"width": 375, "height": 900})
    page.emulate_media(color_scheme="dark")
    assert violations(page) == []
    page.set_viewport_size({"width": 1440, "height": 900})
    assert violations(page, colours=True, rest=True) == ["color-contrast: <p>Some words</p>"]


def test_a_look_for_colours_alone_finds_them_everywhere(page: Page) -> None:
    page.set_content(PAGE)
    assert violations(page, colours=True) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, colours=True) == ["color-contrast: <p>Some words</p>"]
