"""The words of an HTML page, for where only a line of text fits.

Not by ``html.parser``: on tags that never end it takes time with the square of their number, 16 s
for the 16 KiB that are read of an answer, and it raises on some marks.
"""

from __future__ import annotations

import html
import re

# What is in the page and is not read by anybody.
_SILENT = frozenset({"script", "style", "template", "noscript"})
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"/?[a-z][a-z0-9]*|[!?/]", re.IGNORECASE)


def page_text(markup: str) -> str:
    """Its text on one line. What is the title and a heading too is said once."""
    begin, *rest = _COMMENT.sub("", markup).split("<")
    found, silent = [begin], ""
    for piece in rest:
        tag = _TAG.match(piece)
        name = tag[0].lower() if tag else ""
        if silent and name != f"/{silent}":
            continue
        silent = name if name in _SILENT else ""
        if not silent:
            found.append(piece.partition(">")[2] if tag else f"<{piece}")
    return " ".join(dict.fromkeys(filter(None, map(_line, found))))


def _line(text: str) -> str:
    try:
        return " ".join(html.unescape(text).split())
    except ValueError:  # a character's number of thousands of digits
        return " ".join(text.split())
