"""A QR code as part of a page: no request of its own, so that no log has what is in it."""

from __future__ import annotations

import segno
from markupsafe import Markup

BORDER = 4  # modules: readers need it


def svg(text: str, title: str) -> Markup:
    """Dark on light in both themes: many apps do not read it the other way round."""
    made = segno.make(text, error="m", micro=False)
    drawn = made.svg_inline(
        scale=5, border=BORDER, dark="#000", light="#fff", svgclass="qr", lineclass=None,
        omitsize=True, title=title,
    )  # fmt: skip
    return Markup(drawn)  # noqa: S704 - the library's own markup, which escapes the title
