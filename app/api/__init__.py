"""/api/v1 (blueprint.py), the addresses for monitoring (/healthz, /readyz, /metrics), and the ping
addresses of jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flask import Flask

# Importing these registers their operations.
from app.api import (  # noqa: F401
    agent,
    blueprint,
    contacts,
    deliveries,
    health,
    incidents,
    locations,
    me,
    monitors,
    openapi,
    posts,
    reports,
)
from app.api.pings import PingAddresses as PingAddresses
from app.middleware import EARLY, Environ, Layer, continued


def init_app(app: Flask) -> None:
    blueprint.init_app(app)
    health.init_app(app)


class OfTheApi(Layer):
    """Prepare requests to the API. It accepts no session cookie and sets none, so it needs no CSRF
    protection. Without the Upgrade header, Flask does not look for a route for web sockets. Only
    the API refuses requests before their body has arrived.
    """

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        if environ.get("PATH_INFO", "").lstrip("/").partition("/")[0] == "api":
            environ.pop("HTTP_COOKIE", None)
            environ.pop("HTTP_UPGRADE", None)
        elif EARLY in environ:
            return continued(environ, start_response)
        return self.inner(environ, start_response)
