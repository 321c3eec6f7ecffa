"""Validate the images of a status page by their bytes. Pure."""

from __future__ import annotations

import binascii
from base64 import b64decode
from xml.parsers import expat

from app.i18n import N_, _

MAX_IMAGE_BYTES = 100_000
NOT_BASE64 = N_("Send the bytes of the image in base64.")
TOO_LARGE = N_(
    "The image is too large: at most %(most)s KB are taken.", most=MAX_IMAGE_BYTES // 1000
)
NO_IMAGE = N_("This is no image that is taken. Choose a PNG, JPEG, GIF, WebP, ICO or SVG file.")
ACTIVE_SVG = N_("This SVG file holds scripts or entities. Save it as a plain SVG, or as a PNG.")
SVG = "image/svg+xml"
_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"\x00\x00\x01\x00": "image/x-icon",
}
_SVG_SPACE = "http://www.w3.org/2000/svg"
_ACTIVE = ("script", "foreignObject")


class _NotPlain(Exception):
    """An SVG file has scripts or entities."""


def read_base64(text: str) -> str:
    """The base64 of an image, on one line. Raises ValueError."""
    compact = "".join(text.split())
    try:
        data = b64decode(compact, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(_(NOT_BASE64)) from None
    check(data)
    return compact


def check(data: bytes) -> None:
    """Raise ValueError unless this is an image that pages may show."""
    if len(data) > MAX_IMAGE_BYTES:
        raise ValueError(_(TOO_LARGE))
    try:
        if type_of(data) == SVG:
            _check_svg(data)
    except _NotPlain:
        raise ValueError(_(ACTIVE_SVG)) from None
    except (expat.ExpatError, LookupError, ValueError):  # LookupError: an unknown encoding
        raise ValueError(_(NO_IMAGE)) from None


def type_of(data: bytes) -> str:
    """The content type of an image by its first bytes; SVG if no signature matches."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    matching = (name for start, name in _SIGNATURES.items() if data.startswith(start))
    return next(matching, SVG)


def _check_svg(data: bytes) -> None:
    """Refuse scripts and entities. No browser would run them: not as an image in a page, nor at the
    address of the image (``IMAGE_POLICY`` in app/pages/answers.py). A refusal tells the person that
    a part of the image would be missing.
    """
    names: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        names.append(name)
        local = name.rpartition(" ")[2]
        if names[0] != f"{_SVG_SPACE} svg":
            raise expat.ExpatError
        if local in _ACTIVE or any(key.lower().startswith("on") for key in attributes):
            raise _NotPlain

    def entity(*_declaration: object) -> None:
        raise _NotPlain

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = start
    parser.EntityDeclHandler = entity
    parser.Parse(data, True)
