"""Cells of CSV files that people open in a spreadsheet."""

from __future__ import annotations

# A spreadsheet takes a cell that begins so for a formula and runs it.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def plain(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
