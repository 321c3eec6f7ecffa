"""Decode the bytes of an answer: which charset they are in (decisions.md 3)."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LOOK_FOR_DECLARATION = 4096  # bytes; HTML says 1024, but many pages begin with comments
# Possessive quantifiers (``*+``) only: with backtracking, a line of spaces takes quadratic time,
# and 64 KiB of header or 4 KiB of a page would delay every check.
_DECLARATIONS = (
    re.compile(
        rb"""<meta[^>]{0,400}?charset\s*+=\s*+["']?+\s*+([A-Za-z0-9._:-]+)""", re.IGNORECASE
    ),
    re.compile(
        rb"""^\s*+<\?xml[^>]{0,200}?encoding\s*+=\s*+["']([A-Za-z0-9._:-]+)""", re.IGNORECASE
    ),
    re.compile(rb"""^\s*+@charset\s++["']([A-Za-z0-9._:-]+)""", re.IGNORECASE),
)
_LONGEST_LABEL = 40  # of a charset
_COMMENTS = re.compile(rb"<!--.*?(?:-->|$)", re.DOTALL)
_HEADER_CHARSET = re.compile(r"""charset\s*+=\s*+["']?+\s*+([^\s;"',]+)""", re.IGNORECASE)

# Python codecs that are not the charset of any document.
_NO_CHARSETS = frozenset(
    {
        "idna",
        "punycode",
        "unicode_escape",
        "raw_unicode_escape",
        "undefined",
        "utf_7",
        "mbcs",
        "oem",
        "palmos",
    }
)
# The superset that browsers use for these labels (WHATWG Encoding), because such pages are written
# in it.
_MEANT = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
    "utf-32": "utf-32-le",
}
_EXTRA_NAMES = {
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "ks_c_5601-1987": "cp949",
    "x-gbk": "gb18030",
    "windows-874": "cp874",
    "x-user-defined": "cp1252",
    "unicode": "utf-16-le",
}


def codec_name(label: str) -> str | None:
    """Python's codec for a charset's name; None for an unknown name."""
    # Python caches every name that it is asked for, so a long one is not asked.
    return _codec_name(label.strip().lower()) if len(label) <= _LONGEST_LABEL else None


@lru_cache(maxsize=256)
def _codec_name(label: str) -> str | None:
    if label in _EXTRA_NAMES:
        return _EXTRA_NAMES[label]
    try:
        info = codecs.lookup(label)
        b"x".decode(info.name, "replace")  # raises for codecs of bytes, such as base64
    except (LookupError, ValueError):
        return None
    return None if info.name.replace("-", "_") in _NO_CHARSETS else _MEANT.get(info.name, info.name)


def charset(body: bytes, content_type: str | None) -> tuple[str, int]:
    """The codec for a body, and the length of its byte-order mark."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return name, len(mark)
    if (
        content_type
        and (named := _HEADER_CHARSET.search(content_type))
        and (found := codec_name(named[1]))
    ):
        return found, 0
    return _declared(body) or "utf-8", 0


def _declared(body: bytes) -> str | None:
    start = _COMMENTS.sub(b"", body[:_LOOK_FOR_DECLARATION])
    for pattern in _DECLARATIONS:
        named = pattern.search(start)
        if named and (found := codec_name(named[1].decode("ascii"))):
            # A declaration that is readable as ASCII cannot be in UTF-16, whatever it says (HTML
            # 13.2.3.2).
            return "utf-8" if found.startswith(("utf-16", "utf-32")) else found
    return None


def decode(body: bytes, content_type: str | None) -> str:
    """The body as text; bytes that are invalid in the charset become U+FFFD."""
    name, mark = charset(body, content_type)
    return body[mark:].decode(name, errors="replace")
