"""/api/v1 and the addresses for machines (/healthz, /readyz, /metrics).

Paths below /api do not use Flask's routing, which would redirect other spellings and answer some
errors with HTML. ``dispatch`` answers them all.
"""

from __future__ import annotations

import re
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

# Importing these registers their operations.
from app.api import (  # noqa: F401
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
    shared_channels,
    subscribers,
)
from app.api.dispatch import dispatch, refusal
from app.middleware import Environ, Layer, WsgiApp

_BELOW_API = re.compile(r"/+api(/.*)?", re.DOTALL)


def init_app(app: Flask) -> None:
    # First, so that nothing of the dashboard's (sessions, set-up, CSRF) answers for the API.
    app.before_request_funcs.setdefault(None, []).insert(0, _answer_api)
    health.init_app(app)


def before_body(app: Flask, environ: Environ) -> Response | None:
    """For a server that has read the headers of a request and not its body: the answer if the key
    is missing, or None if the body is needed.
    """
    if not _BELOW_API.fullmatch(environ.get("PATH_INFO", "")):
        return None
    try:
        with app.request_context(environ):
            answer = refusal(request)
            return answer and app.process_response(answer)
    except HTTPException:  # such as an invalid Host: answered when the request is complete
        return None


def _answer_api() -> Response | None:
    return dispatch(request) if _BELOW_API.fullmatch(request.path) else None


class WithoutCookies(Layer):
    """The API accepts no session cookie and sets none, so it needs no CSRF protection."""

    def before(self, answer: WsgiApp) -> WsgiApp:
        def answer_without(environ: Environ, start_response: Any) -> Any:
            if _BELOW_API.fullmatch(environ.get("PATH_INFO", "")):
                environ.pop("HTTP_COOKIE", None)
            return answer(environ, start_response)

        return answer_without
