"""The hosts that Wakeful answers for (decision 15).

A page builds links from the Host header of its request, and a stranger can make a browser send any
host name to any server (DNS rebinding). So if ``ALLOWED_HOSTS`` or ``PUBLIC_URL`` names the hosts
of Wakeful, a request for another host is refused before its body is read. Also answered are the
hosts of status pages, the names of this machine, and the paths in ``PROBED``.
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

# Load balancers and monitoring use an address, or HTTP/1.0 without a host. These answers do not
# depend on the host.
PROBED = frozenset({"/healthz", "/readyz", "/metrics"})
FOREIGN = N_(
    "This server does not answer for that host. If it should, add the host to"
    " WAKEFUL_ALLOWED_HOSTS."
)
HOSTS_UNKNOWN = N_("Which hosts this server answers for cannot be read now. Try again in a moment.")


class Hosts(Layer):
    """``is_of_a_page`` returns whether a status page answers for a host at a path; it may raise
    Unavailable.
    """

    def __init__(self, settings: Settings, is_of_a_page: Callable[[str, str], bool]) -> None:
        self._is_of_a_page = is_of_a_page
        self._answers_any = settings.answers_any_host
        self._own_hosts = settings.own_hosts

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        return (self._refusal(environ) or self.inner)(environ, start_response)

    def _refusal(self, environ: Environ) -> Response | None:
        path = environ.get("PATH_INFO") or "/"
        header = environ.get("HTTP_HOST")
        if path in PROBED:
            if header and host_of(header) is None:
                del environ["HTTP_HOST"]  # the framework refuses it
            return None
        if self._answers_any and not header:
            return None  # HTTP/1.0
        host = host_of(header or "")
        if host is None:
            return _refuse(path, 400, _(FOREIGN))
        try:
            # Requests for the names of this machine are answered too: they come through tunnels,
            # and no page of a stranger can have such a name.
            is_answered = self._answers_any or host in self._own_hosts or is_loopback(host)
            is_answered = is_answered or self._is_of_a_page(host, path)
        except Unavailable:
            return _refuse(path, 503, _(HOSTS_UNKNOWN), {"Retry-After": "5"})
        return None if is_answered else _refuse(path, 400, _(FOREIGN))


def _refuse(
    path: str, status: int, sentence: str, headers: dict[str, str] | None = None
) -> Response:
    """The refusal, in JSON below /api like every error there."""
    api = path.lstrip("/").partition("/")[0] == "api"
    text = json.dumps({"message": sentence, "status": status}) if api else f"{sentence}\n"
    return Response(text, status, headers, mimetype="application/json" if api else "text/plain")
