"""Turn the URLs in plain text (posts, comments) into links, as safe HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markupsafe import Markup

_LINK = re.compile(r"\bhttps?://[^\s<>\"]+")
_PUNCTUATION = ".,;:!?'"  # at the end, these belong to the sentence and not to the link
_CLOSING = {")": "(", "]": "["}
_HTML = Markup('<a href="{0}" rel="nofollow noopener">{0}</a>')


def linked(text: str) -> Markup:
    """``text`` with its URLs as links. Line breaks stay: the page's style shows them."""
    return Markup("").join(
        _HTML.format(piece) if is_link else piece for piece, is_link in parts(text)
    )


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of ``text`` in order, and whether each is a link."""
    offset = 0
    for match in _LINK.finditer(text):
        link = _without_punctuation(match.group())
        if match.start() > offset:
            yield text[offset : match.start()], False
        yield link, True
        offset = match.start() + len(link)
    if offset < len(text):
        yield text[offset:], False


def _without_punctuation(link: str) -> str:
    """The link without the signs that end the sentence or close the brackets around it."""
    end = len(link)
    surplus = {close: link.count(close) - link.count(open) for close, open in _CLOSING.items()}
    while link[end - 1] in _PUNCTUATION or surplus.get(link[end - 1], 0) > 0:
        if link[end - 1] in surplus:
            surplus[link[end - 1]] -= 1
        end -= 1
    return link[:end]
