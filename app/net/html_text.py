"""The text of an HTML page, for places where only one line fits.

``html.parser`` is not used: with tags that never end it takes quadratic time, 16 s for the 16 KiB
that are read of an answer, and it raises on some marks.
"""

from __future__ import annotations

import html
import re

# Elements whose content a browser does not show.
_SILENT = frozenset({"script", "style", "template", "noscript"})
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"/?[a-z][a-z0-9]*|[!?/]", re.IGNORECASE)


def page_text(markup: str) -> str:
    """The text on one line. Repeated text, such as a title that is also a heading, appears once."""
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
    except ValueError:  # a character reference with thousands of digits
        return " ".join(text.split())
