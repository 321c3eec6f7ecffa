"""The environment of the templates, URLs of static files, and the compression of answers.

The URLs contain a version, so that browsers can cache the files for ever.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import MutableMapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from flask import Flask, Response, current_app, request, url_for
from flask.sansio.app import App
from flask.templating import Environment as FlaskEnvironment

from app.templating import Missing


def asset(name: str, endpoint: str = "static") -> str:
    """The URL of a static file of Wakeful or, with ``bootstrap.static``, of Bootstrap."""
    folder = (
        current_app.static_folder
        if endpoint == "static"
        else current_app.blueprints[endpoint.partition(".")[0]].static_folder
    )
    path = os.path.join(folder or "", name)
    return _url(request.root_path, endpoint, name, path, os.stat(path).st_mtime_ns)


@lru_cache(maxsize=256)
def _url(_root: str, endpoint: str, name: str, path: str, changed_ns: int) -> str:
    """Cached, because a page has a dozen files. ``_root``: the prefix of the URL."""
    return url_for(endpoint, filename=name, v=_version(Path(path), changed_ns))


@lru_cache(maxsize=256)
def _version(path: Path, _changed_ns: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:10]


class Environment(FlaskEnvironment):
    def __init__(self, app: App, **options: Any) -> None:
        super().__init__(app, undefined=Missing, **options)

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """The same globals for every template. Jinja would give each a ChainMap, which takes a
        twentieth of the time of a page.
        """
        return super().make_globals(d) if d else self.globals


# --- Compression ------------------------------------------------------------------------------

MIN_BYTES = 1000  # below this, the additional header costs what compression saves
TYPES = frozenset({"text/html", "text/css", "text/javascript", "image/svg+xml", "application/json"})
STATUSES = frozenset({200, 201, 207})  # the answers with large bodies
QUICK, SMALL = 1, 9


def compress_answers(app: Flask) -> None:
    """Compress pages, assets and answers of the API for clients that accept it: a list becomes ten
    times smaller, a hundred incidents with their evidence sixty times.

    The length of a compressed page can reveal a secret on it to an attacker who makes a browser
    request the page again and again (BREACH). Other sites cannot do that with a person's session,
    because the cookies are ``SameSite=Lax``, or with the API, because no browser adds an API key.
    """
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
