"""Headers that every answer has: of the dashboard, the API, status pages, and refusals.

A header that an answer already has is not changed. If ``PUBLIC_URL`` is https, HSTS makes browsers
use only HTTPS from then on. The host name of a status page is excepted: its owner may move it to a
server without TLS.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.middleware import Environ, Layer

YEAR_SECONDS = 365 * 24 * 3600
PAGE_HOST = "wakeful.page_host"  # in the environment of a request to the host name of a status page
HSTS = ("Strict-Transport-Security", f"max-age={YEAR_SECONDS}")
ALWAYS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "same-origin"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    # An answer that does not say that it may be stored may hold secrets or personal data.
    ("Cache-Control", "no-store"),
)


class Completed(Layer):
    """Adds the headers. ``https``: people use HTTPS."""

    def __init__(self, *, https: bool) -> None:
        self._https = https

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *arguments: Any) -> Any:
            present = {name.lower() for name, _value in headers}
            hsts = (HSTS,) if self._https and PAGE_HOST not in environ else ()
            missing = [header for header in (*ALWAYS, *hsts) if header[0].lower() not in present]
            return start_response(status, [*headers, *missing], *arguments)

        return self.inner(environ, start)
