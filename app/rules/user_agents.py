"""The words for a browser and its system, from a ``User-Agent`` header.

The header is a stranger's text, so only words of these tables are ever made of it.
"""

from __future__ import annotations

READ = 512  # characters; real headers are shorter

# The first mark that the header contains decides: most browsers also name those they imitate.
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
SYSTEMS = (
    ("iPhone", "iOS"),
    ("iPad", "iPadOS"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def browser_of(header: str | None) -> str | None:
    """``Firefox``; None for one that is not in the table."""
    return _first(BROWSERS, header)


def system_of(header: str | None) -> str | None:
    """``Linux``; None for one that is not in the table."""
    return _first(SYSTEMS, header)


def _first(table: tuple[tuple[str, str], ...], header: str | None) -> str | None:
    text = (header or "")[:READ]
    return next((word for mark, word in table if mark in text), None)
