"""Names of cookies that belong to a path, so that they cannot have the prefix ``__Host-``."""

from __future__ import annotations

from flask import Flask
from werkzeug.wrappers import Request


def is_secure(app: Flask, request: Request) -> bool:
    """Whether browsers may send cookies of this answer over HTTPS alone."""
    return bool(app.config["SESSION_COOKIE_SECURE"]) or request.is_secure


def cookie_name(app: Flask, request: Request, name: str) -> str:
    """``name``, with the prefix by which browsers refuse it from a site without HTTPS."""
    return f"__Secure-{name}" if is_secure(app, request) else name
