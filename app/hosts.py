"""The hosts that Wakeful answers for (decision 15).

A page builds links from the Host header of its request, and a browser can be led to any server
under a name of a stranger (DNS rebinding). So if ``ALLOWED_HOSTS`` or ``PUBLIC_URL`` says which
hosts are Wakeful's, a request for another is refused before anything of it is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from werkzeug.wrappers import Response

from app.config import Settings, is_loopback
from app.errors import Unavailable
from app.i18n import N_, _
from app.middleware import Environ, Layer
from app.rules.url import host_of

# Load balancers and monitoring ask by address, or in HTTP/1.0 without a host. No answer there
# depends on the host.
PROBED = frozenset({"/healthz", "/readyz", "/metrics"})
FOREIGN = N_(
    "This server does not answer for that host. If it should, add the host to"
    " WAKEFUL_ALLOWED_HOSTS."
)
UNKNOWN_YET = N_("Which hosts this server answers for cannot be read now. Try again in a moment.")


class Hosts(Layer):
    """``is_of_a_page`` returns whether a status page answers for a host at a path; it may raise
    Unavailable.
    """

    def __init__(self, settings: Settings, is_of_a_page: Callable[[str, str], bool]) -> None:
        self._is_of_a_page = is_of_a_page
        self._any = settings.answers_any_host
        self._own = settings.own_hosts

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        return (self._refusal(environ) or self.inner)(environ, start_response)

    def _refusal(self, environ: Environ) -> Response | None:
        path = environ.get("PATH_INFO") or "/"
        header = environ.get("HTTP_HOST")
        if path in PROBED:
            if header and host_of(header) is None:
                del environ["HTTP_HOST"]  # the framework refuses it
            return None
        if self._any and not header:
            return None  # HTTP/1.0
        host = host_of(header or "")
        if host is None:
            return _refuse(path, 400, _(FOREIGN))
        try:
            # This machine's own names are answered too: whoever comes through a tunnel uses them,
            # and no page of a stranger can have them.
            own = self._any or host in self._own or is_loopback(host)
            own = own or self._is_of_a_page(host, path)
        except Unavailable:
            return _refuse(path, 503, _(UNKNOWN_YET), {"Retry-After": "5"})
        return None if own else _refuse(path, 400, _(FOREIGN))


def _refuse(
    path: str, status: int, sentence: str, headers: dict[str, str] | None = None
) -> Response:
    """The refusal, in JSON below /api like every error there."""
    api = path.lstrip("/").partition("/")[0] == "api"
    text = json.dumps({"message": sentence, "status": status}) if api else f"{sentence}\n"
    return Response(text, status, headers, mimetype="application/json" if api else "text/plain")
