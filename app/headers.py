"""Headers that every answer has, whoever made it: dashboard, API, status pages, a refusal.

What an answer says of its own stays. With an https ``PUBLIC_URL``, browsers are told to use HTTPS
alone from then on (HSTS), but not under a status page's own host name: whoever owns that decides
it, and may move it to a server without TLS.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from werkzeug.datastructures import Headers

from app.middleware import Early, Environ, Layer, WsgiApp

YEAR_SECONDS = 365 * 24 * 3600
OWN_HOST = "wakeful.own_host"  # in the environment of a request for a page's own host name
HSTS = ("Strict-Transport-Security", f"max-age={YEAR_SECONDS}")
ALWAYS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "same-origin"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    # What does not say that it may be kept may hold secrets or personal data.
    ("Cache-Control", "no-store"),
)


class Completed(Layer):
    """``https``: people use HTTPS."""

    def __init__(self, *, https: bool) -> None:
        self._https = https

    def before(self, answer: WsgiApp) -> WsgiApp:
        def answer_whole(environ: Environ, start_response: Any) -> Iterable[bytes]:
            def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
                return start_response(status, self._whole(environ, headers), *rest)

            answered: Iterable[bytes] = answer(environ, start)
            return answered

        return answer_whole

    def before_body(self, answer: Early) -> Early:
        def answer_whole(environ: Environ) -> Any:
            response = answer(environ)
            if response is not None:
                response.headers = Headers(self._whole(environ, list(response.headers)))
            return response

        return answer_whole

    def _whole(self, environ: Environ, headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
        present = {name.lower() for name, _value in headers}
        hsts = (HSTS,) if self._https and OWN_HOST not in environ else ()
        return [*headers, *(one for one in (*ALWAYS, *hsts) if one[0].lower() not in present)]
