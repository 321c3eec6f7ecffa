"""Plain text that people write (posts, comments), with its links, as safe HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markupsafe import Markup

_LINK = re.compile(r"\bhttps?://[^\s<>\"]+")
_AFTER = ".,;:!?'"  # ends the sentence, not the link
_CLOSING = {")": "(", "]": "["}
_HTML = Markup('<a href="{0}" rel="nofollow noopener">{0}</a>')


def linked(text: str) -> Markup:
    """``text`` with its addresses as links. Line breaks stay: the page's style shows them."""
    return Markup("").join(
        _HTML.format(piece) if is_link else piece for piece, is_link in parts(text)
    )


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of ``text`` in order, and whether each is a link."""
    done = 0
    for match in _LINK.finditer(text):
        link = _without_end(match.group())
        if match.start() > done:
            yield text[done : match.start()], False
        yield link, True
        done = match.start() + len(link)
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
