"""The text of a post: plain text with links and line breaks. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINK = re.compile(r"\bhttps?://[^\s<>\"]+")
_AFTER = ".,;:!?'"  # ends the sentence, not the link
_CLOSING = {")": "(", "]": "["}


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of ``text`` in order, and whether each is a link."""
    done = 0
    for found in _LINK.finditer(text):
        link = _without_end(found.group())
        if found.start() > done:
            yield text[done : found.start()], False
        yield link, True
        done = found.start() + len(link)
    if done < len(text):
        yield text[done:], False


def _without_end(link: str) -> str:
    """The link without what closes the sentence or the brackets around it."""
    end = len(link)
    surplus = {close: link.count(close) - link.count(open) for close, open in _CLOSING.items()}
    while link[end - 1] in _AFTER or surplus.get(link[end - 1], 0) > 0:
        if link[end - 1] in surplus:
            surplus[link[end - 1]] -= 1
        end -= 1
    return link[:end]
