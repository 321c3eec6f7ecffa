"""URLs of static files with their version in them, so that browsers can cache them for ever."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from flask import current_app, url_for


def asset(name: str, endpoint: str = "static") -> str:
    """The URL of a static file, ours or (``bootstrap.static``) Bootstrap's."""
    folder = (
        current_app.static_folder
        if endpoint == "static"
        else current_app.blueprints[endpoint.partition(".")[0]].static_folder
    )
    path = Path(str(folder)) / name
    stat = path.stat()
    return url_for(endpoint, filename=name, v=_version(path, stat.st_mtime_ns))


@lru_cache(maxsize=256)
def _version(path: Path, _changed_ns: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:10]
