"""Names and paths of cookies."""

from __future__ import annotations

from datetime import timedelta

from flask import Flask, current_app, request
from flask.sessions import SecureCookieSessionInterface
from werkzeug.wrappers import Request, Response

# Browsers accept a cookie with this prefix only over HTTPS, for one host and its path ``/``.
_HOST = "__Host-"


def session_cookie(*, https: bool, folder: str) -> str:
    """The name of the session's cookie. Another service in a folder of this host must not
    get it.
    """
    return ("__Secure-" if folder else _HOST) * https + "wakeful"


def cookie_path(app: Flask) -> str:
    """The path to which browsers send the cookies of this request's session."""
    if app.config["SESSION_COOKIE_NAME"].startswith(_HOST):
        return "/"
    # The root path may name a remote server. All servers share one session.
    root: str = request.environ.get("wakeful.root", request.root_path)
    return root.rstrip("/") or "/"


def kept_name(name: str) -> str:
    """The full name of the cookie that ``keep_in_browser`` sets for ``name``."""
    return f"{current_app.config['SESSION_COOKIE_NAME']}_{name}"


def keep_in_browser(response: Response, name: str, value: str, seconds: int | timedelta) -> None:
    """Set a cookie that outlives the session, with the path of the session's cookie."""
    response.set_cookie(
        kept_name(name), value, max_age=seconds, path=cookie_path(current_app),
        secure=current_app.config["SESSION_COOKIE_SECURE"], httponly=True, samesite="Lax",
    )  # fmt: skip


class CookieSessions(SecureCookieSessionInterface):
    """Flask's sessions, with cookies for the folder of this request."""

    def get_cookie_path(self, app: Flask) -> str:
        return cookie_path(app)


def is_secure(app: Flask, request: Request) -> bool:
    """Whether browsers must send the cookies of this answer over HTTPS only."""
    return bool(app.config["SESSION_COOKIE_SECURE"]) or request.is_secure


def cookie_name(app: Flask, request: Request, name: str) -> str:
    """``name``, with the prefix by which browsers refuse it from a site without HTTPS."""
    return f"__Secure-{name}" if is_secure(app, request) else name
