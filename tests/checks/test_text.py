"""Bodies decoded to text: codings, charsets and text conditions (decision 3)."""

from __future__ import annotations

import gzip
import zlib

import brotli
import pytest
import zstandard

from app.checks.outcome import excerpt, judge_text
from app.checks.redact import Redactor
from app.net.codings import Decoder, Undecodable, charset, codec_name, codings, decode
from app.records import BODY_CAP_BYTES, AlertCondition, Cause, CheckSpec, Pair
from tests.lab.runner import peak_memory_of

TEXT = AlertCondition.URL_TEXT
NO_TEXT = AlertCondition.URL_NO_TEXT
NOTHING_HIDDEN = Redactor(CheckSpec(url="http://a/"))


@pytest.mark.parametrize(
    ("body", "content_type", "name"),
    [
        (b"\xef\xbb\xbfx", "text/html; charset=iso-8859-1", "utf-8"),
        (b"\xff\xfex\0", "text/html; charset=utf-8", "utf-16-le"),
        (b"\xfe\xff\0x", None, "utf-16-be"),
        (b"\xff\xfe\0\0x\0\0\0", None, "utf-32-le"),
        (b"x", "text/html; charset=ISO-8859-1", "cp1252"),
        (b"x", 'text/html;charset="koi8-r"', "koi8-r"),
        (b"x", "text/html; CHARSET = 'Shift_JIS' ; x=y", "cp932"),
        (b"x", "text/html; charset=x-sjis", "cp932"),
        (b"x", "text/html; charset=gb2312", "gb18030"),
        (b"x", "text/html; charset=us-ascii", "cp1252"),
        (b'<meta charset="koi8-r">', "text/html; charset=windows-1251", "cp1251"),
        (b'<meta charset="koi8-r">', "text/html; charset=bogus", "koi8-r"),
        (b"<META CHARSET=koi8-r>", "text/html", "koi8-r"),
        (b"<meta http-equiv=content-type content='text/html; charset=euc-jp'>", None, "euc_jp"),
        (b'<?xml version="1.0" encoding="iso-8859-2"?>', "text/xml", "iso8859-2"),
        (b'<!-- <meta charset="koi8-r"> --><meta charset="cp1251">', None, "cp1251"),
        (b'<!-- <meta charset="koi8-r">', None, "utf-8"),
        (b'<meta charset="utf-16">', None, "utf-8"),
        (b'<meta charset="bogus">', None, "utf-8"),
        (b" " * 5000 + b'<meta charset="koi8-r">', None, "utf-8"),
        (b"", None, "utf-8"),
        *[(b"x", f"text/plain; charset={name}", "utf-8")
          for name in ("base64", "zlib", "rot13", "hex", "idna", "punycode", "undefined",
                       "unicode_escape", "utf-7", "none", "../../etc")],
    ],
)  # fmt: skip
def test_the_charset_comes_from_byte_order_mark_header_document_or_is_utf_8(
    body: bytes, content_type: str | None, name: str
) -> None:
    assert charset(body, content_type)[0] == name


def test_invalid_bytes_are_replaced_and_the_byte_order_mark_is_dropped() -> None:
    assert decode(b"\xef\xbb\xbfgr\xc3\xbcn \xff", None) == "grün \ufffd"
    assert decode("grün".encode("utf-16"), "text/plain") == "grün"
    assert decode(b"\x80 5", "text/plain; charset=iso-8859-1") == "€ 5"


def test_no_charset_name_raises() -> None:
    for name in ("", "\x00", "a" * 5000, "ünknown", "utf-8\n", "latin-1", "undefined"):
        codec_name(name)


@pytest.mark.parametrize(
    ("condition", "lookup", "text", "cut", "cause"),
    [
        (TEXT, "bad", "all bad", False, Cause.TEXT_FOUND),
        (TEXT, "bad", "all good", False, None),
        (TEXT, "bad", "all good", True, None),
        (TEXT, "bad", "all bad", True, Cause.TEXT_FOUND),
        (TEXT, "Bad", "all bad", False, None),
        (NO_TEXT, "good", "all good", False, None),
        (NO_TEXT, "good", "all bad", False, Cause.TEXT_MISSING),
        (NO_TEXT, "good", "all bad", True, None),
        (NO_TEXT, "good", "", False, Cause.TEXT_MISSING),
        (NO_TEXT, "", "x", False, None),
        (NO_TEXT, None, "x", False, None),
        (AlertCondition.URL_UNAVAILABLE, "good", "bad", False, None),
    ],
)
def test_a_text_condition_gives_its_cause(
    condition: str, lookup: str | None, text: str, cut: bool, cause: Cause | None
) -> None:
    assert judge_text(condition, lookup, text, cut) == cause


def test_an_excerpt_shows_the_text_and_what_is_around_it() -> None:
    text = "x" * 100 + "\n needle \n" + "y" * 100
    assert excerpt(text, "needle", NOTHING_HIDDEN, 5) == "…xxx needle yyy…"
    assert excerpt("needle", "needle", NOTHING_HIDDEN) == "needle"
    assert excerpt("hay", "needle", NOTHING_HIDDEN) is None


@pytest.mark.parametrize("far", range(50, 80))
def test_a_secret_at_the_edge_of_an_excerpt_is_masked_whole(far: int) -> None:
    secret = "s3cret with  spaces"
    text = f"begin {secret}{'.' * (far - len(secret))}needle{'.' * (far - len(secret))}{secret} end"
    hiding = Redactor(CheckSpec(url="http://a/", request_headers=(Pair("X-Key", secret),)))
    shown = excerpt(text, "needle", hiding)
    assert shown is not None
    assert "needle" in shown
    for piece in ("s3c", "ret", "spa", "ces"):
        assert piece not in shown


# --- Codings --------------------------------------------------------------------------------------

PAGE = b"<p>" + bytes(range(256)) * 300


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKED = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate, raw": raw_deflate,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "gzip, two members": lambda data: gzip.compress(data[:99]) + gzip.compress(data[99:]),
    "zstd, two frames": lambda data: b"".join(
        map(zstandard.ZstdCompressor().compress, (data[:99], data[99:]))
    ),
    "gzip, padded": lambda data: gzip.compress(data) + b"\0" * 50,
}


def coding(name: str) -> str:
    return name.partition(",")[0]


@pytest.mark.parametrize("size", [1, 7, 1000, 10**6])
@pytest.mark.parametrize("name", PACKED)
def test_a_coding_is_decoded_from_pieces_of_any_size(name: str, size: int) -> None:
    packed = PACKED[name](PAGE)
    decoder = Decoder([coding(name)], BODY_CAP_BYTES)
    for place in range(0, len(packed), size):
        decoder.feed(packed[place : place + size])
    assert bytes(decoder.out) == PAGE
    assert decoder.whole
    assert not decoder.cut


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_truncated_coded_body_is_not_whole(name: str) -> None:
    decoder = Decoder([name], BODY_CAP_BYTES)
    decoder.feed(PACKED[name](PAGE)[:-10])
    assert not decoder.whole


@pytest.mark.parametrize("name", ["gzip", "br", "zstd"])
def test_bytes_without_the_announced_coding_are_undecodable(name: str) -> None:
    with pytest.raises(Undecodable, match=name):
        Decoder([name], BODY_CAP_BYTES).feed(b"<html>not coded at all</html>" * 10)
    decoder = Decoder([name], BODY_CAP_BYTES)
    with pytest.raises(Undecodable):
        decoder.feed(b"<html>not coded at all</html>" * 10)
    assert decoder.whole in (True, False), "it can still be asked"


@pytest.mark.parametrize("excess", [-1, 0, 1, 5_000_000])
@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_the_output_ends_exactly_at_the_cap(name: str, excess: int) -> None:
    decoder = Decoder([name], 100_000)
    decoder.feed(PACKED[name](b"x" * (100_000 + excess)))
    assert len(decoder.out) == min(100_000, 100_000 + excess)
    assert decoder.cut == (excess > 0)


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd", "br, wide", "zstd, twice"])
def test_a_compression_bomb_takes_little_memory(name: str) -> None:
    if name == "br, wide":
        packed = brotli.compress(bytes(64_000_000), quality=5, lgwin=24)
    elif name == "zstd, twice":
        inner = zstandard.ZstdCompressor().compress(bytes(64_000_000))
        packed = zstandard.ZstdCompressor().compress(inner)
    else:
        packed = PACKED[name](bytes(64_000_000))
    names = ["zstd", "zstd"] if name == "zstd, twice" else [coding(name)]

    def unpack() -> None:
        decoder = Decoder(names, BODY_CAP_BYTES)
        for place in range(0, len(packed), 16_384):
            decoder.feed(packed[place : place + 16_384])
            if decoder.cut:
                break
        assert decoder.cut
        assert len(decoder.out) == BODY_CAP_BYTES

    unpack()
    assert peak_memory_of(unpack) < 8


@pytest.mark.parametrize("window", [10, 16, 17, 18, 21, 22, 23, 24])
def test_a_brotli_window_of_any_size_gives_the_same_output(window: int) -> None:
    decoder = Decoder(["br"], BODY_CAP_BYTES)
    decoder.feed(brotli.compress(PAGE * 13, quality=5, lgwin=window))
    assert bytes(decoder.out) == PAGE * 13
    assert decoder.whole


def test_codings_are_decoded_in_reverse_order() -> None:
    decoder = Decoder(codings(["gzip", "BR , identity"]), BODY_CAP_BYTES)
    decoder.feed(brotli.compress(gzip.compress(PAGE)))
    assert bytes(decoder.out) == PAGE
    assert decoder.whole


def test_words_that_are_not_codings_are_ignored() -> None:
    assert codings(["identity", "utf-8, none", ""]) == []
    with pytest.raises(Undecodable, match="'compress'"):
        Decoder(codings(["compress"]), 10)
    with pytest.raises(Undecodable, match="4 codings"):
        Decoder(["gzip"] * 4, 10)


def test_an_empty_body_is_whole() -> None:
    assert Decoder(["gzip"], 10).whole
