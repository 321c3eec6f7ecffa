"""The browser's fonts: one for every page, and another one on request."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.support.browser import NARROW_FONT, opened

pytestmark = [pytest.mark.browser, pytest.mark.more]

PAGE = """<!doctype html><style>
:root { --font: Inter, Arial, sans-serif; --mono: Menlo, "Liberation Mono", monospace }
body { font-family: var(--font) } code { font-family: var(--mono) }
</style><p><span>Checked every 5 minutes</span><p><b><span>Checkout API</span></b>
<p><i><span>Nobody</span></i><p><code><span>https://shop.example.com/</span></code>"""
WIDTHS = """() => [...document.querySelectorAll("span")].map(
  (part) => part.getBoundingClientRect().width)"""


def widths(browser: Browser, *, narrow: bool = False) -> list[float]:
    with opened(browser) as page:
        page.set_content(PAGE)
        if narrow:
            page.evaluate(NARROW_FONT)
        measured: list[float] = page.evaluate(WIDTHS)
        return measured


def test_the_narrow_font_is_as_narrow_in_the_browser_with_the_wide_one(
    chromium: Browser, narrow_chromium: Browser
) -> None:
    wide, narrow = widths(chromium), widths(narrow_chromium)
    assert widths(chromium, narrow=True) == narrow
    assert all(wider > narrower for wider, narrower in zip(wide, narrow, strict=True))
