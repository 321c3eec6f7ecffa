"""The few files of static/ that status pages use: their links, and the files for own host names."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from app.pages.answers import Answer, made

PREFIX = "/static/"
YEAR_SECONDS = 365 * 24 * 3600


class Assets:
    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder, self._names = folder, frozenset(names)

    def link(self, root: str, name: str) -> str:
        """The relative link of a file, with its version."""
        version, _ = self._file(name)
        return f"{root}static/{name}?v={version}"

    def find(self, path: str) -> Answer | None:
        name = path.removeprefix(PREFIX)
        if not path.startswith(PREFIX) or name not in self._names:
            return None
        return self._file(name)[1]

    def _file(self, name: str) -> tuple[str, Answer]:
        path = self._folder / name
        return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _read(path: Path, _changed_ns: int) -> tuple[str, Answer]:
    body = path.read_bytes()
    version = hashlib.sha256(body).hexdigest()[:10]
    content_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    headers = [
        ("Content-Type", f"{content_type}; charset=utf-8"),
        # Links have the version, so a cached copy is never outdated.
        ("Cache-Control", f"public, max-age={YEAR_SECONDS}, immutable"),
        ("X-Content-Type-Options", "nosniff"),
    ]
    return version, made("200 OK", body, headers, f'W/"{version}"')
