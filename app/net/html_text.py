"""The words of an HTML page, for where only a line of text fits."""

from __future__ import annotations

from html.parser import HTMLParser

# What is in the page and is not read by anybody.
_SILENT = frozenset({"script", "style", "template", "noscript"})


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in _SILENT:
            self._silent.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._silent:
            self._silent.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.found.append(data)


def page_text(markup: str) -> str:
    """Its text on one line. What is the title and a heading too is said once."""
    reader = _Words()
    reader.feed(markup)
    reader.close()
    pieces = " ".join
    return pieces(dict.fromkeys(filter(None, (pieces(one.split()) for one in reader.found))))
