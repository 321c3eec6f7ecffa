"""Answers that are ready to send: body, compressed body, and the headers of 200 and 304. Also the
files of static/ that pages need on their host names.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from app.errors import RETRY_SECONDS
from app.i18n import _, spoken
from app.pages.addresses import HTML
from app.pages.routes import CachedRoute
from app.records import PageAddress, PageTheme, Visibility
from app.rules.images import type_of

MAX_AGE = 4  # seconds; a page in memory may be up to TOLERATED_SECONDS old besides
MIN_GZIP_BYTES = 1000  # bytes; below this, compression costs more than it saves
EVERYBODY = (Visibility.PUBLIC, Visibility.UNLISTED)

DAY_SECONDS = 24 * 3600
YEAR_SECONDS = 365 * DAY_SECONDS
# At its address, an SVG is a document of this host: nothing in it may run or load.
IMAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

Headers = list[tuple[str, str]]
FOR_SECONDS = f"public, max-age={MAX_AGE}"
FOR_A_DAY = f"public, max-age={DAY_SECONDS}"
FOR_A_YEAR = f"public, max-age={YEAR_SECONDS}, immutable"
PRIVATE = ("Cache-Control", "private, no-store")

# The default colours of the browser, which follow the system's setting for high contrast.
_STYLE = (
    "html{color-scheme:light dark}[data-theme=light]{color-scheme:light}"
    "[data-theme=dark]{color-scheme:dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:20vh auto;padding:0 1rem}"
)
_STYLE_HASH = b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()


def policy(*, frames: bool = False, style: str = "'self'") -> str:
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            f"style-src {style}",
            "img-src data: 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            f"frame-ancestors {'*' if frames else chr(39) + 'none' + chr(39)}",
        )
    )


def html_headers(*, frames: bool = False, noindex: bool = False, style: str = "'self'") -> Headers:
    headers = [
        ("Content-Security-Policy", policy(frames=frames, style=style)),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "same-origin"),
        ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
    ]
    if not frames:
        headers += [("X-Frame-Options", "DENY"), ("Cross-Origin-Opener-Policy", "same-origin")]
    if noindex:
        headers.append(("X-Robots-Tag", "noindex"))
    return headers


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """``etag`` is None for an answer that nobody may cache."""

    status: str
    body: bytes
    compressed: bytes | None
    etag: str | None
    plain_headers: Headers
    compressed_headers: Headers
    unchanged_headers: Headers

    def send(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if self.etag is not None and _matches(environ.get("HTTP_IF_NONE_MATCH"), self.etag):
            start("304 NOT MODIFIED", self.unchanged_headers.copy())
            return ()
        if self.compressed is not None and _takes_gzip(environ.get("HTTP_ACCEPT_ENCODING")):
            body, headers = self.compressed, self.compressed_headers
        else:
            body, headers = self.body, self.plain_headers
        start(self.status, headers.copy())
        return () if environ["REQUEST_METHOD"] == "HEAD" else (body,)


def page_answer(status: str, body: bytes, headers: Headers, etag: str | None = None) -> PageAnswer:
    compressed = gzip.compress(body, 6, mtime=0) if etag and len(body) >= MIN_GZIP_BYTES else None
    if compressed is not None:
        headers = [*headers, ("Vary", "Accept-Encoding")]
    if etag is not None:
        headers = [*headers, ("ETag", etag)]
    return PageAnswer(
        status,
        body,
        compressed,
        etag,
        [*headers, ("Content-Length", str(len(body)))],
        [*headers, ("Content-Encoding", "gzip"), ("Content-Length", str(len(compressed or b"")))],
        [header for header in headers if header[0] != "Content-Type"],
    )


def cached_answer(
    route: CachedRoute, body: bytes | None, address: PageAddress | None
) -> PageAnswer:
    """The answer of a route with ``body``. ``address``: of the page; None for the list of pages."""
    if body is None:
        return not_found(address.brand.theme if address else PageTheme.SYSTEM)
    noindex = address is not None and address.visibility != Visibility.PUBLIC
    headers: Headers = [("Content-Type", route.content_type)]
    headers += html_headers(frames=route.frames, noindex=noindex)
    if route.scripts:
        headers.append(("Access-Control-Allow-Origin", "*"))
    return _for_readers(address, body, headers, hashlib.blake2b(body, digest_size=12).hexdigest())


def image_answer(data: bytes, version: str, address: PageAddress, *, is_named: bool) -> PageAnswer:
    """An image of a page. ``is_named``: its version is in the address, so it never changes and may
    be cached for a day. Not for longer, because the page may be closed.
    """
    headers: Headers = [
        ("Content-Type", type_of(data)),
        ("Content-Security-Policy", IMAGE_POLICY),
        ("X-Content-Type-Options", "nosniff"),
    ]
    cache_control = FOR_A_DAY if is_named else FOR_SECONDS
    return _for_readers(address, data, headers, version, cache_control)


def _for_readers(
    address: PageAddress | None,
    body: bytes,
    headers: Headers,
    version: str,
    cache_control: str = FOR_SECONDS,
) -> PageAnswer:
    """An answer that everybody may cache; if not everybody may read the page, nobody may."""
    if address is not None and address.visibility not in EVERYBODY:
        return page_answer("200 OK", body, [*headers, PRIVATE, ("Vary", "Cookie")])
    # A weak ETag, because the compressed bytes differ.
    return page_answer(
        "200 OK", body, [*headers, ("Cache-Control", cache_control)], f'W/"{version}"'
    )


def text_answer(code: int, sentence: str, more: Sequence[tuple[str, str]] = ()) -> PageAnswer:
    """A sentence as plain text. ``more``: headers of this answer alone."""
    content_type = ("Content-Type", "text/plain; charset=utf-8")
    headers = [content_type, PRIVATE, ("X-Content-Type-Options", "nosniff"), *more]
    return page_answer(_status(code), (sentence and f"{sentence}\n").encode(), headers)


def _status(code: int) -> str:
    return f"{code} {HTTPStatus(code).phrase.upper()}"


def not_found(theme: str = PageTheme.SYSTEM) -> PageAnswer:
    """The answer is the same for an unknown, a deleted and a closed page. ``theme``: of the page,
    if only the address within it is unknown.
    """
    return _not_found(theme, spoken())


@cache
def _not_found(theme: str, _language: str) -> PageAnswer:
    return _message(404, _("Not found"), _("There is no status page under this address."), theme)


@cache
def unavailable() -> PageAnswer:
    return _message(
        503,
        _("Status not available"),
        _("The state of this page cannot be read now. Try again in a moment."),
        PageTheme.SYSTEM,
        [("Retry-After", str(RETRY_SECONDS))],
    )


def _message(
    code: int, title: str, text: str, theme: str, more: Sequence[tuple[str, str]] = ()
) -> PageAnswer:
    body = (
        f'<!doctype html><html lang="{spoken()}" data-theme="{theme}"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style><main><h1>{title}</h1><p>{text}</p></main>"
    )
    security_headers = html_headers(noindex=True, style=f"'sha256-{_STYLE_HASH}'")
    headers = [("Content-Type", HTML), PRIVATE, *security_headers, *more]
    return page_answer(_status(code), body.encode(), headers)


def _matches(header: str | None, etag: str) -> bool:
    if header is None:
        return False
    plain = etag.removeprefix("W/")
    return header.strip() == "*" or any(
        tag.strip().removeprefix("W/") == plain for tag in header.split(",")
    )


def _takes_gzip(header: str | None) -> bool:
    if not header or "gzip" not in header:
        return False
    for entry in header.split(","):
        coding, _semicolon, weight = entry.partition(";")
        if coding.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


# --- Files

STATIC_PREFIX = "/static/"


class Assets:
    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder, self._names = folder, frozenset(names)

    def link(self, root: str, name: str) -> str:
        """The relative link of a file, with its version."""
        return f"{root}static/{name}?v={self._file(name)[0]}"

    def find(self, path: str) -> PageAnswer | None:
        name = path.removeprefix(STATIC_PREFIX)
        if not path.startswith(STATIC_PREFIX) or name not in self._names:
            return None
        return self._file(name)[1]

    def _file(self, name: str) -> tuple[str, PageAnswer]:
        path = self._folder / name
        return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _read(path: Path, _changed_ns: int) -> tuple[str, PageAnswer]:
    body = path.read_bytes()
    version = hashlib.sha256(body).hexdigest()[:10]
    content_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    headers = [
        ("Content-Type", f"{content_type}; charset=utf-8"),
        # Links have the version, so a new file has a new address.
        ("Cache-Control", FOR_A_YEAR),
        ("X-Content-Type-Options", "nosniff"),
    ]
    return version, page_answer("200 OK", body, headers, f'W/"{version}"')
