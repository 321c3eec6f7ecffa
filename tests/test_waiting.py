"""Tests wait for what they expect of a browser."""

from __future__ import annotations

import re
from pathlib import Path

AT_ONCE = re.compile(r"^ *assert .*\.is_(?:checked|enabled|hidden|visible)\(\)", re.MULTILINE)


def test_what_a_page_shows_is_awaited():
    """``is_visible()`` answers at once, even for the old page while the next one loads."""
    waits = {
        str(path): AT_ONCE.findall(text)
        for path in Path(__file__).parent.rglob("*.py")
        if AT_ONCE.search(text := path.read_text(encoding="utf-8"))
    }
    assert not waits, f"use expect(...).to_be_visible() and the like: {waits}"
