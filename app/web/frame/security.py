"""The security headers of every answer, and the CSRF check of every form."""

from __future__ import annotations

import logging
from io import BytesIO
from typing import IO

from flask import Flask, Request, Response, abort, request
from flask_wtf import CSRFProtect

from app.headers import YEAR_SECONDS
from app.records import MAX_FIELDS, MAX_FORM_BYTES

csrf = CSRFProtect()

# The endpoints whose form sends a file
UPLOADS = frozenset({"imports.start", "page_editor.edit_images"})
FILE_FORM = "multipart/form-data"
MAX_PARTS = 200  # a box for each contact is a part

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src data: 'self'",  # Bootstrap has its small icons as data: images
        "font-src 'self'",
        "connect-src 'self'",
        "frame-src 'self'",  # the preview of a status page's widget
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Set-up and acknowledge links have secrets in their paths, which other sites must not see.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class InMemory(Request):
    """A request whose files stay in memory, like its bounded body. They are not written to the
    disk, because they may contain secrets, and anybody may send them.
    """

    def _get_file_stream(self, *_size: object, **_kind: object) -> IO[bytes]:
        return BytesIO()


def init_app(app: Flask, *, https: bool) -> None:
    """``https``: people use HTTPS, so cookies are never sent without it."""
    app.request_class = InMemory
    app.config["SESSION_COOKIE_SECURE"] = https
    app.config["WTF_CSRF_CHECK_DEFAULT"] = False
    csrf.init_app(app)
    # Otherwise each form without a valid token writes a line, and anybody may send many.
    logging.getLogger("flask_wtf").setLevel(logging.WARNING)
    app.after_request(_add_headers)


def bound_body() -> None:
    """Limit the body before anything else. The CSRF check reads the form, which takes memory for
    each field, and a file on disk for each part of a multipart body. Anybody may send both.
    """
    upload = request.mimetype.startswith("multipart/")
    if upload and (request.endpoint not in UPLOADS or request.mimetype != FILE_FORM):
        abort(415)
    request.max_form_parts, request.max_form_memory_size = MAX_PARTS, MAX_FORM_BYTES
    body = request.get_data()  # 413 if its announced length is too large
    # Of a body without a length, Flask reads only as much as the limit, without an error.
    cut = request.content_length is None and len(body) >= MAX_FORM_BYTES
    if cut or (not upload and body.count(b"&") >= MAX_FIELDS):
        abort(413)


def _add_headers(response: Response) -> Response:
    # ``setdefault`` would be slow: it raises and catches an error for each missing header.
    present = {name.lower() for name, _value in response.headers}
    response.headers.extend(
        [(name, value) for name, value in HEADERS.items() if name.lower() not in present]
    )
    if request.endpoint in ("static", "bootstrap.static") and "v" in request.args:
        # The version is in the URL, so a new file has a new URL.
        response.headers["Cache-Control"] = f"public, max-age={YEAR_SECONDS}, immutable"
    return response
