"""Where passkeys are made and used: the address of the dashboard as browsers know it."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from flask import current_app, request
from werkzeug.wrappers import Response

from app.access.passkeys import Site
from app.i18n import N_, _

NO_HTTPS = N_(
    "Passkeys do not work here: browsers allow them only over HTTPS, or at http://localhost. Serve "
    "Wakeful over HTTPS, or use an authenticator app."
)
NO_NAME = N_(
    "Passkeys do not work here: browsers do not allow them at an IP address (%(host)s). Open "
    "Wakeful by its host name, or use an authenticator app."
)
ELSEWHERE = N_("Passkeys do not work at this address. Open Wakeful at %(origin)s to use them.")
PORTS = {"http": 80, "https": 443}


def passkey_site() -> tuple[Site | None, str]:
    """The site; or None, and why passkeys do not work at this address."""
    here = _origin(request.host_url)
    public = current_app.extensions["wakeful.settings"].public_url
    origin = _origin(public) if public else here
    host = urlsplit(origin).hostname or ""
    if origin != here:
        return None, _(ELSEWHERE, origin=origin)
    if _is_address(host):
        return None, _(NO_NAME, host=host)
    if not (origin.startswith("https://") or _is_localhost(host)):
        return None, _(NO_HTTPS)
    return Site(host, origin), ""


def for_browser(options: str) -> Response:
    """What a script hands to the browser's own functions for passkeys."""
    return Response(options, 200, {"Cache-Control": "no-store"}, mimetype="application/json")


def no_options() -> Response:
    """There are none; the script then sends the form, whose page says why."""
    return Response("{}", 422, {"Cache-Control": "no-store"}, mimetype="application/json")


def _origin(url: str) -> str:
    """Scheme, host and port, as browsers write them."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = parts.port
    shown = "" if port in (None, PORTS.get(parts.scheme)) else f":{port}"
    return f"{parts.scheme}://{host}{shown}"


def _is_localhost(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
