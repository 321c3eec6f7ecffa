"""Pages and assets travel compressed to browsers that take it: a list is a tenth of its length.

What is compressed together with a secret can tell it by its length to somebody who makes a browser
ask again and again (BREACH). Other sites cannot do that in a person's name, because our cookies are
``SameSite=Lax``. The API's answers stay as they are.
"""

from __future__ import annotations

import gzip
from functools import lru_cache

from flask import Flask, Response, request

SMALLEST = 1000  # bytes; below, a header more costs what it saves
TYPES = frozenset({"text/html", "text/css", "text/javascript", "image/svg+xml"})
QUICK, SMALL = 1, 9


def init_app(app: Flask) -> None:
    app.after_request(_compress)


def _compress(response: Response) -> Response:
    if response.mimetype not in TYPES:
        return response
    response.vary.add("Accept-Encoding")
    if response.status_code != 200 or not request.accept_encodings["gzip"]:
        return response
    is_file = response.direct_passthrough
    response.direct_passthrough = False
    body = response.get_data()
    if len(body) < SMALLEST:
        return response
    response.set_data(_file(body) if is_file else gzip.compress(body, QUICK))
    response.headers["Content-Encoding"] = "gzip"
    tag, _ = response.get_etag()
    if tag is not None:
        response.set_etag(tag, weak=True)  # other bytes, the same page
    return response


@lru_cache(maxsize=32)
def _file(body: bytes) -> bytes:
    return gzip.compress(body, SMALL)
