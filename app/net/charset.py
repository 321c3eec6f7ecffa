"""Decode the bytes of an answer: which charset they are in (decision 3)."""

from __future__ import annotations

import codecs
import re

import webencodings

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
_MAX_LABEL = 40  # of a charset
_COMMENTS = re.compile(rb"<!--.*?(?:-->|$)", re.DOTALL)
_HEADER_CHARSET = re.compile(r"""charset\s*+=\s*+["']?+\s*+([^\s;"',]+)""", re.IGNORECASE)

# Browsers read these as the superset of the same name; Python's codecs of the name are the subsets.
_SUPERSETS = {"gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949"}


def codec_name(label: str) -> str | None:
    """Python's codec for a charset's label, as browsers read it (WHATWG Encoding); None for an
    unknown label.
    """
    encoding = webencodings.lookup(label) if len(label) <= _MAX_LABEL else None
    if encoding is None:
        return None
    name: str = encoding.codec_info.name
    return _SUPERSETS.get(name, name)


def charset(body: bytes, content_type: str | None, *, declared: bool = True) -> tuple[str, int]:
    """The codec for a body, and the length of its byte-order mark. ``declared``: whether the
    document may name it itself.
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return name, len(mark)
    if (
        content_type
        and (named := _HEADER_CHARSET.search(content_type))
        and (codec := codec_name(named[1]))
    ):
        return codec, 0
    return (_declared(body) if declared else None) or "utf-8", 0


def _declared(body: bytes) -> str | None:
    start = _COMMENTS.sub(b"", body[:_LOOK_FOR_DECLARATION])
    for pattern in _DECLARATIONS:
        named = pattern.search(start)
        if named and (codec := codec_name(named[1].decode("ascii"))):
            # A declaration that is readable as ASCII cannot be in UTF-16, whatever it says (HTML
            # 13.2.3.2).
            return "utf-8" if codec.startswith("utf-16") else codec
    return None


def decode(body: bytes, content_type: str | None, *, declared: bool = True) -> str:
    """The body as text; bytes that are invalid in the charset become U+FFFD. JSON declares nothing:
    what looks so is within a text of it.
    """
    name, mark = charset(body, content_type, declared=declared)
    return body[mark:].decode(name, errors="replace")
