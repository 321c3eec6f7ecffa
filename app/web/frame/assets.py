"""The environment of the templates, and URLs of static files. The URLs contain a version, so that
browsers can cache the files for ever.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import MutableMapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from flask import current_app, request, url_for
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
