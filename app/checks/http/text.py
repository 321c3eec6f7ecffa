"""The body as text: which charset."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LOOK_FOR_DECLARATION = 4096  # bytes; HTML says 1024, real pages put their comments first
_DECLARATIONS = (
    re.compile(rb"""<meta[^>]{0,400}?charset\s*=\s*["']?\s*([A-Za-z0-9._:-]+)""", re.IGNORECASE),
    re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]+)""", re.IGNORECASE),
    re.compile(rb"""^\s*@charset\s+["']([A-Za-z0-9._:-]+)""", re.IGNORECASE),
)
_COMMENTS = re.compile(rb"<!--.*?(?:-->|$)", re.DOTALL)
_HEADER_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([^\s;"',]+)""", re.IGNORECASE)

# Python has codecs under these names that are no charset of a document; some would run code paths
# nobody asked for.
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
# What browsers take for these labels (WHATWG Encoding): the superset that such pages are really
# written in.
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


@lru_cache(maxsize=256)
def codec_name(label: str) -> str | None:
    """Python's codec for a charset's name, or None for a name that nobody knows."""
    label = label.strip().lower()
    if label in _EXTRA_NAMES:
        return _EXTRA_NAMES[label]
    try:
        info = codecs.lookup(label)
        b"x".decode(info.name, "replace")  # refuses what is no text encoding, such as base64
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
            # A declaration that can be read as ASCII is not in UTF-16, whatever it says (HTML
            # 13.2.3.2).
            return "utf-8" if found.startswith(("utf-16", "utf-32")) else found
    return None


def decode(body: bytes, content_type: str | None) -> str:
    """The body as text; bytes that the charset does not know become U+FFFD."""
    name, mark = charset(body, content_type)
    return body[mark:].decode(name, errors="replace")
