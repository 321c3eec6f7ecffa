"""Links to pages elsewhere, which people follow from ours. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

from app.i18n import N_, _

NO_LINK = N_("This is not a URL. Enter one such as https://example.com/page.")


def is_link(text: str) -> bool:
    """Whether this is an http or https URL: a ``javascript:`` one would run on our page."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def check_link(text: str) -> None:
    if not is_link(text):
        raise ValueError(_(NO_LINK))
