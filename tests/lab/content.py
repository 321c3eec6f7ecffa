"""Bodies that are compressed, encoded, cut or broken, each a route of the HTTP server (http.py)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from functools import lru_cache

import brotli
import zstandard

from tests.lab.http import MARKER, PAGE, ROUTES, Exchange, route

CAP = 1024 * 1024
LONG_PAGE = PAGE + b"<p>" + bytes(range(32, 127)) * 600
UMLAUTS = "Größe: naïve façade, grün"


def raw_deflate(data: bytes) -> bytes:
    """Deflate without the zlib wrapper, as some servers send it."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def zstd(data: bytes) -> bytes:
    # A compressor may not be used by two threads at once, and the server has many: it raises
    # "Src size is incorrect", and the check reports an empty response.
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "gzip-members": ("gzip", lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:])),
    "gzip-and-garbage": ("gzip", lambda data: gzip.compress(data) + b"garbage"),
    "gzip-and-zeros": ("gzip", lambda data: gzip.compress(data) + bytes(100)),
    "deflate": ("deflate", zlib.compress),
    "raw-deflate": ("deflate", raw_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstd),
    "gzip-then-br": ("gzip, br", lambda data: brotli.compress(gzip.compress(data))),
    "identity": ("identity", bytes),
}


def _packed(x: Exchange, change: Callable[[bytes], bytes], page: bytes = PAGE) -> None:
    encoding, pack = PACKERS[x.argument]
    x.answer(change(pack(page)), headers=[("Content-Encoding", encoding)])


@route
def packed(x: Exchange) -> None:
    """The page in the compression that the path names."""
    _packed(x, bytes)


@route
def packed_empty(x: Exchange) -> None:
    """Says that it is compressed, and has no body at all. Servers do that; nothing is wrong."""
    x.answer(b"", headers=[("Content-Encoding", x.argument)])


@route
def packed_cut(x: Exchange) -> None:
    """Compressed data without its second half; the length agrees with what is sent."""
    _packed(x, lambda data: data[: len(data) // 2], LONG_PAGE)


@route
def packed_bad(x: Exchange) -> None:
    """Bytes that say they are compressed and are not."""
    _packed(x, lambda data: b"this was never compressed at all " * 4)


@route
def packed_bad_later(x: Exchange) -> None:
    """Compressed data whose check sum, near its end, is not that of the data."""
    _packed(x, lambda d: d[:-3] + bytes([d[-3] ^ 0xFF]) + d[-2:], LONG_PAGE)


@route
def packed_unknown(x: Exchange) -> None:
    x.answer(headers=[("Content-Encoding", "no-such-coding")])


@route
def packed_in_chunks(x: Exchange) -> None:
    """gzip, sent seven bytes a chunk."""
    data = gzip.compress(LONG_PAGE)
    x.head_only("Content-Encoding: gzip", "Transfer-Encoding: chunked")
    pieces = [data[i : i + 7] for i in range(0, len(data), 7)]
    x.send(b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n")


@lru_cache
def bomb(kind: str) -> bytes:
    """64 MB of zeros, compressed to a few hundred KB or less."""
    size, piece = 64, bytes(CAP)
    if kind == "gzip":
        packer = zlib.compressobj(1, wbits=31)
        return b"".join(packer.compress(piece) for _ in range(size)) + packer.flush()
    if kind == "br":
        press = brotli.Compressor(quality=1)
        return b"".join(press.process(piece) for _ in range(size)) + press.finish()
    squeezer = zstandard.ZstdCompressor().compressobj()
    return b"".join(squeezer.compress(piece) for _ in range(size)) + squeezer.flush()


@route
def compression_bomb(x: Exchange) -> None:
    x.answer(bomb(x.argument), headers=[("Content-Encoding", x.argument)])


@route
def sized(x: Exchange) -> None:
    """A body of exactly so many bytes that ends with the marker; ``?packed=gzip`` compresses it."""
    size = int(x.argument) - len(MARKER)
    if x.query.get("packed") == "gzip":
        body = gzip.compress(b"x" * size + MARKER.encode(), 1)
        x.answer(body, headers=[("Content-Encoding", "gzip")])
        return
    # In pieces: the memory of the lab must not count as the check's.
    x.head_only("Content-Type: text/plain", f"Content-Length: {size + len(MARKER)}")
    for begin in range(0, size, 65536):
        x.send(b"x" * min(65536, size - begin))
    x.send(MARKER.encode())


@route
def marker_across_cap(x: Exchange) -> None:
    """The marker is half before and half after the cap."""
    half = len(MARKER) // 2
    x.answer(b"x" * (CAP - half) + MARKER.encode() + b"x" * 1000)


@route
def marker_behind_cap(x: Exchange) -> None:
    x.answer(b"x" * (CAP + 10) + MARKER.encode())


@route
def marker_before_cap(x: Exchange) -> None:
    """The marker ends exactly at the cap, and one byte follows."""
    x.answer(b"x" * (CAP - len(MARKER)) + MARKER.encode() + b"x")


def _page(name: str, body: bytes, content_type: str | None) -> None:
    def answer(x: Exchange) -> None:
        x.answer(body, content_type=content_type)

    ROUTES[name] = answer


def _html(declaration: str, charset: str) -> bytes:
    return f"<html><head>{declaration}</head><p>{UMLAUTS}</p></html>".encode(charset)


_META = '<meta charset="{}">'
_HTTP_EQUIV = '<meta http-equiv="Content-Type" content="text/html; charset={}">'
_page("charset-header", _html("", "iso-8859-1"), "text/html; charset=ISO-8859-1")
_page("charset-header-quoted", _html("", "iso-8859-1"), 'text/html; charset="iso-8859-1"')
_page("charset-meta", _html(_META.format("windows-1252"), "windows-1252"), "text/html")
_page("charset-http-equiv", _html(_HTTP_EQUIV.format("iso-8859-15"), "iso-8859-15"), "text/html")
_page(
    "charset-xml",
    f'<?xml version="1.0" encoding="iso-8859-1"?><a>{UMLAUTS}</a>'.encode("iso-8859-1"),
    "application/xml",
)
_page("charset-bom-utf-16", UMLAUTS.encode("utf-16"), "text/plain; charset=iso-8859-1")
_page("charset-bom-utf-8", UMLAUTS.encode("utf-8-sig"), "text/plain; charset=iso-8859-1")
_page(
    "charset-header-before-meta", _html(_META.format("koi8-r"), "utf-8"), "text/html;charset=utf-8"
)
_page("charset-unknown", _html("", "utf-8"), "text/html; charset=no-such-charset")
_page("charset-none", _html("", "utf-8"), None)
_page("charset-shift-jis", "稼働中です".encode("shift_jis"), "text/html; charset=Shift_JIS")
_page("bad-bytes", b"before \xff\xfe\xfa after " + UMLAUTS.encode(), "text/plain; charset=utf-8")


@route
def multibyte_across_chunks(x: Exchange) -> None:
    """UTF-8 in chunks of one byte: no character is whole within a chunk."""
    x.head_only("Content-Type: text/plain; charset=utf-8", "Transfer-Encoding: chunked")
    x.send(b"".join(b"1\r\n%c\r\n" % byte for byte in "läuft 🟢 gut".encode()) + b"0\r\n\r\n")


_DEFACED = {
    "error-page": "<h1>Error establishing a database connection</h1>",
    "ransomware": "<h1>YOUR FILES ARE ENCRYPTED</h1><p>Pay 2 BTC within 72 hours.</p>",
    "defacement": "<h1>H4CK3D</h1>",
    "malicious-script": f"<p>{MARKER}</p><script src='//evil.example/x.js'></script>",
    "spam-links": f"<p>{MARKER}</p><a style='display:none' href='//pills.example'>cheap pills</a>",
    "keyword-injected": f"<p>{MARKER} HACKED</p>",
    "keyword-missing": "<p>All is well</p>",
    "near-empty": "<html></html>",
}
for _name, _text in _DEFACED.items():
    _page(_name, _text.encode(), "text/html; charset=utf-8")
