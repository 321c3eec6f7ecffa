"""Where a status page is, and the links of its subscribers. Pure."""

from __future__ import annotations


def page_link(base_url: str, slug: str, domain: str | None) -> str:
    """The address of a page, without a slash at its end: on its own host name, or below
    ``base_url``, which says whether it is http or https.
    """
    if domain:
        scheme = base_url.partition("://")[0] or "https"
        return f"{scheme}://{domain}"
    return f"{base_url}/status/{slug}"


def confirm_link(page: str, token: str) -> str:
    return f"{page}/confirm/{token}"


def unsubscribe_link(page: str, token: str) -> str:
    """GET shows a button. POST ends the subscription, also that of RFC 8058."""
    return f"{page}/unsubscribe/{token}"
