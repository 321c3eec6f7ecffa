"""What axe finds on a page: violations of all its rules, serious or minor.

axe takes most of its time to judge the contrast of texts, and most texts look as another one does.
So it judges each look of a text once in a process, and each time only the texts whose look does
not tell their contrast; and of links only those that are not underlined.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from axe_playwright_python.base import AXE_SCRIPT

if TYPE_CHECKING:
    from playwright.sync_api import Page

LOOKS = Path(__file__).with_name("axe_looks.js").read_text()
_judged: set[str] = set()  # looks of texts that can be read


def violations(page: Page, *, colours: bool = False) -> list[str]:
    """``colours``: only of what colours can spoil."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT + LOOKS)
    structure: list[str] = [] if colours else page.evaluate("looks.structure()")
    fresh = [look for look in page.evaluate("looks.find()") if look not in _judged]
    readable, faults = page.evaluate("(fresh) => looks.judge(fresh)", fresh)
    _judged.update(readable)
    return structure + faults
