"""Decode content codings (gzip, brotli, ...) as the bytes arrive, up to a cap.

curl does not do it, because the wheel's libcurl lacks zstd, and because a compression bomb (a
kilobyte that unpacks to a gigabyte) must stop at the cap in the middle of a piece.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator

import brotli  # type: ignore[import-untyped]  # it ships no types, and nobody publishes stubs
import webencodings
import zstandard

from app.i18n import N_, _

ACCEPT_ENCODING = "gzip, deflate, br, zstd"

_PIECE = 64 * 1024  # bytes that a stage passes on in one piece
_MAX_WINDOW = 8 * 1024 * 1024  # RFC 9659: the largest window that a zstd sender may use
_ZSTD_SLICE = 64  # bytes at a time, which become at most 2 MiB: the decoder has no limit on output
_MAX_STAGES = 3
# An empty member has a few bytes and takes longer to decode than to send, and a body of empty
# members never reaches the cap. Real bodies have some hundred members at most.
_MAX_MEMBERS = 10_000

# Misconfigured servers send these, which are not codings. Browsers show such pages, so the check
# does not fail.
_NOT_CODED = frozenset(
    {"", "identity", "none", "binary", "8bit", "7bit", "utf-8", "utf8", "iso-8859-1", "text/html"}
)


class Undecodable(Exception):
    """The body does not match its Content-Encoding. ``str`` is a part of a sentence."""


class _Members:
    """Counts the members of a body that consists of several."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0

    def begin(self) -> None:
        self._count += 1
        if self._count > _MAX_MEMBERS:
            sentence = N_("%(coding)s: it has more than %(most)s members")
            raise Undecodable(_(sentence, coding=self._name, most=f"{_MAX_MEMBERS:,}"))


class _Zlib:
    """gzip (one or more members) and deflate (with or without the zlib header: servers differ)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._gzip = name == "gzip"
        self._inflate = zlib.decompressobj(31) if self._gzip else None
        self._members = _Members(name)
        self._head = b""  # the first byte of deflate: two bytes show which of its two forms it is
        self.whole = False

    def push(self, data: bytes) -> Iterator[bytes]:
        if self._inflate is None:
            data, self._head = self._head + data, b""
            if len(data) < 2:
                self._head = data
                return
            self._inflate = zlib.decompressobj(15 if _has_zlib_header(data) else -15)
        while data:
            if self.whole and not self._another_member(data):
                return
            try:
                out = self._inflate.decompress(data, _PIECE)
            except zlib.error as error:
                raise Undecodable(f"{self.name}: {error}") from None
            data = self._inflate.unconsumed_tail or self._inflate.unused_data
            self.whole = self._inflate.eof
            if out:
                yield out

    def _another_member(self, data: bytes) -> bool:
        """Start the next gzip member. Anything else after the end is padding, which browsers ignore
        too.
        """
        if not self._gzip or not data.startswith(b"\x1f\x8b"[: len(data)]):
            return False
        self._members.begin()
        self._inflate = zlib.decompressobj(31)
        self.whole = False
        return True


def _has_zlib_header(data: bytes) -> bool:
    """RFC 1950 2.2: the method is 8, and the two bytes are a multiple of 31."""
    return data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0


class _Brotli:
    name = "br"

    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()
        self._has_begun = False

    def push(self, data: bytes) -> Iterator[bytes]:
        if data and not self._has_begun:
            data, self._has_begun = _narrow(data[0]) + data[1:], True
        try:
            while not self._decoder.is_finished():
                out = self._decoder.process(data, output_buffer_limit=_PIECE)
                if not out:
                    return
                yield out
                data = b""
        except brotli.error as error:
            raise Undecodable(f"br: {error}") from None

    @property
    def whole(self) -> bool:
        try:
            return bool(self._decoder.is_finished())
        except brotli.error:
            return False  # after an error, brotli raises here too


def _narrow(first: int) -> bytes:
    """The first byte of a brotli stream, with a window of up to 16 MiB reduced to 2 MiB.

    The decoder fills its window before it outputs anything, so a few bytes would take 16 MiB. A
    window larger than the cap does not change the output (RFC 7932 9.1: the low four bits 1001,
    1011, 1101 and 1111 stand for 21 to 24 bits of window).
    """
    return bytes([first & 0xF0 | 0x09 if first & 0x0F in (0x0B, 0x0D, 0x0F) else first])


class _Zstd:
    name = "zstd"

    def __init__(self) -> None:
        self._decoder = _zstd_frame()
        self._members = _Members(self.name)
        self.whole = False

    def push(self, data: bytes) -> Iterator[bytes]:
        view = memoryview(data)
        while view:
            if self.whole:
                self._members.begin()
                self._decoder = _zstd_frame()
            part = view[:_ZSTD_SLICE]
            try:
                out = self._decoder.decompress(part)
            except zstandard.ZstdError as error:
                raise Undecodable(f"zstd: {error}") from None
            self.whole = self._decoder.eof
            view = view[len(part) - len(self._decoder.unused_data) :]
            if out:
                yield out


def _zstd_frame() -> zstandard.ZstdDecompressionObj:
    return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()


def _stage(name: str) -> _Zlib | _Brotli | _Zstd:
    if name in ("gzip", "x-gzip"):
        return _Zlib("gzip")
    if name == "deflate":
        return _Zlib("deflate")
    if name == "br":
        return _Brotli()
    if name == "zstd":
        return _Zstd()
    raise Undecodable(_("the coding %(coding)s is not known", coding=repr(name[:40])))


class Decoder:
    """Decodes the codings of one body. ``out`` holds at most ``cap`` bytes; ``cut`` says that there
    was more.
    """

    def __init__(self, codings: list[str], cap: int) -> None:
        if len(codings) > _MAX_STAGES:
            raise Undecodable(_("%(count)s codings on top of each other", count=len(codings)))
        self._stages = [_stage(name) for name in reversed(codings)]
        self._cap = cap
        self._passed_on = 0  # bytes that one coding has passed to the next
        self._fed = False
        self.out = bytearray()
        self.cut = False

    def feed(self, data: bytes) -> None:
        """Decode the next bytes from the wire. Raises Undecodable."""
        self._fed = True
        self._push(0, data)

    def _push(self, depth: int, data: bytes) -> None:
        if depth == len(self._stages):
            room = self._cap - len(self.out)
            self.out += data[:room]
            self.cut = self.cut or len(data) > room
            return
        for piece in self._stages[depth].push(data):
            if depth + 1 < len(self._stages):
                self._count_passed_on(len(piece))
            self._push(depth + 1, piece)
            if self.cut:
                return

    def _count_passed_on(self, size: int) -> None:
        """Limit the bytes between two codings. Coded data that is longer than the decoded body is a
        bomb: the next coding outputs nothing, so it would run for minutes without reaching the cap.
        """
        self._passed_on += size
        if self._passed_on > _MAX_STAGES * self._cap:
            raise Undecodable(_("one coding unpacks to more than the whole body"))

    @property
    def whole(self) -> bool:
        """Whether the coded body is complete; an empty body has nothing to decode."""
        return not self._fed or all(stage.whole for stage in self._stages)


def codings(values: list[str]) -> list[str]:
    """The codings that the Content-Encoding headers name, in the order in which they apply."""
    names = [name.strip().lower() for value in values for name in value.split(",")]
    return [name for name in names if name not in _NOT_CODED]


# --- Text encodings -------------------------------------------------------------------------------
#
# Find the charset of an answer, and decode its bytes (decision 3).

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (
        codecs.BOM_UTF32_LE,
        "utf-32-le",
    ),  # before UTF-16, because its mark begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARATION_BYTES = (
    4096  # searched for a declaration; HTML says 1024, but many begin with comments
)
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

# For these names, browsers use a superset of what Python's codec of the name decodes.
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
    """The codec for a body, and the length of its byte-order mark. ``declared``: whether to search
    the body for a declaration of its charset.
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
    start = _COMMENTS.sub(b"", body[:_DECLARATION_BYTES])
    for pattern in _DECLARATIONS:
        named = pattern.search(start)
        if named and (codec := codec_name(named[1].decode("ascii"))):
            # A declaration that is readable as ASCII cannot be in UTF-16, whatever it says (HTML
            # 13.2.3.2).
            return "utf-8" if codec.startswith("utf-16") else codec
    return None


def decode(body: bytes, content_type: str | None, *, declared: bool = True) -> str:
    """The body as text; bytes that are invalid in the charset become U+FFFD. ``declared`` as in
    ``charset``; False for JSON, where a declaration can only be part of a string.
    """
    name, mark = charset(body, content_type, declared=declared)
    return body[mark:].decode(name, errors="replace")
