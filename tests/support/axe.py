"""The faults of a page for somebody who cannot see it well, by the rules of axe.

axe takes longer than everything else that a browser does for a test, and most parts of a page are
like parts of another one. So axe judges each kind of part once in a run, and the script beside this
one calculates the contrast of texts: axe judges those only that something else may lie behind.
Faults are never remembered: each page that has one says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from axe_playwright_python.base import AXE_SCRIPT

if TYPE_CHECKING:
    from playwright.sync_api import Page

LOOKS = Path(__file__).with_name("axe_looks.js").read_text()


class Judged:
    """Kinds of parts in which axe found nothing. The workers of a run share them in ``file``."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self._kinds: set[str] = set()
        self._read = 0  # bytes of the file

    def fresh(self, kinds: set[str]) -> set[str]:
        if self.file and self.file.exists():
            with self.file.open("rb") as file:
                file.seek(self._read)
                lines, end, _ = file.read().rpartition(b"\n")  # another worker may be in a line
            self._read += len(lines) + len(end)
            self._kinds.update(lines.decode().split())
        return kinds - self._kinds

    def add(self, kinds: set[str]) -> None:
        self._kinds |= kinds
        if self.file:
            with self.file.open("ab", buffering=0) as file:  # each line at once
                file.write(f"{' '.join(kinds)}\n".encode())


judged = Judged()


def violations(page: Page, *, colours: bool = False) -> list[str]:
    """``colours``: only of what colours can spoil."""
    faults: list[str]
    look = f"{LOOKS}looks.find({str(not colours).lower()})"
    faults, kinds, always, loaded = page.evaluate(look)
    fresh = judged.fresh(set(kinds.split()))
    if not fresh and not always:
        return faults
    if not loaded:
        page.evaluate(AXE_SCRIPT)
    broken: list[str] = page.evaluate("(fresh) => looks.ask(fresh)", " ".join(fresh))
    if not broken:
        judged.add(fresh)
    return [*faults, *broken]
