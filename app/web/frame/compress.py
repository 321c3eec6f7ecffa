"""Compress pages, assets and answers of the API for clients that accept it: a list shrinks to a
tenth, a hundred incidents with their evidence to a sixtieth.

The compressed length can reveal a secret on the page to somebody who makes a browser request it
again and again (BREACH). Other sites cannot do that with a person's session, because our cookies
are ``SameSite=Lax``, nor with the API, whose key no browser sends by itself.
"""

from __future__ import annotations

import gzip
from functools import lru_cache
from typing import Any

from flask import Flask, Response, request

SMALLEST = 1000  # bytes; below this, the additional header costs what compression saves
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
    if len(body) < SMALLEST:
        return response
    response.set_data(_file(body) if is_file else gzip.compress(body, QUICK))
    response.headers["Content-Encoding"] = "gzip"
    tag, _ = response.get_etag()
    if tag is not None:
        response.set_etag(tag, weak=True)  # weak: the page is the same, its bytes are not
    return response


def _read_file(response: Response) -> bytes:
    """The whole file, closed at once: a server that loses its client before it closes the answer
    would leave it open.
    """
    response.direct_passthrough = False
    file: Any = response.response
    body = response.get_data()
    file.close()
    return body


@lru_cache(maxsize=32)
def _file(body: bytes) -> bytes:
    return gzip.compress(body, SMALL)
