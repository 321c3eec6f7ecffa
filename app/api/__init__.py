"""/api/v1, a blueprint (blueprint.py), and the addresses for machines (/healthz, /readyz,
/metrics).
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
    """The API accepts no session cookie and sets none, so it needs no CSRF protection. It has no
    web sockets, for which Flask's routing looks among other rules. It alone refuses requests
    before their body has come.
    """

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        if environ.get("PATH_INFO", "").lstrip("/").partition("/")[0] == "api":
            environ.pop("HTTP_COOKIE", None)
            environ.pop("HTTP_UPGRADE", None)
        elif EARLY in environ:
            return continued(environ, start_response)
        return self.inner(environ, start_response)
