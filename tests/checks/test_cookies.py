"""Cookies within one chain of redirects, by RFC 6265 (decision 3)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.checks.http.compose import ChainContents
from app.checks.http.cookies import Jar, read_date
from app.records import CheckSpec, Pair
from app.rules.url import parse_url

PAST = "Expires=Thu, 01 Jan 1970 00:00:00 GMT"
FUTURE = "Expires=Thu, 01 Jan 2099 00:00:00 GMT"
LONG = "9" * 10_000


@pytest.mark.parametrize(
    ("by", "cookies", "to", "sent"),
    [
        # what is a cookie
        ("http://a.lab/", ["a=x"], "http://a.lab/", "a=x"),
        ("http://a.lab/", [" a = x=y ; HttpOnly"], "http://a.lab/", "a=x=y"),
        ("http://a.lab/", ['a="x y"'], "http://a.lab/", 'a="x y"'),
        ("http://a.lab/", ["a="], "http://a.lab/", "a="),
        ("http://a.lab/", ["a", "=x", "", ";Path=/"], "http://a.lab/", ""),
        ("http://a.lab/", ["a=größe".encode().decode("latin-1")], "http://a.lab/", "a=größe"),
        ("http://a.lab/", ["a=x\rX: y", "b=\x00", "c=\x7f", "d=\t"], "http://a.lab/", "d="),
        # how long
        ("http://a.lab/", [f"a=x; {PAST}"], "http://a.lab/", ""),
        ("http://a.lab/", ["a=x", f"a=; {PAST}"], "http://a.lab/", ""),
        ("http://a.lab/", [f"a=x; {FUTURE}"], "http://a.lab/", "a=x"),
        ("http://a.lab/", ["a=x; Expires=tomorrow"], "http://a.lab/", "a=x"),
        ("http://a.lab/", [f"a=x; {FUTURE}; {PAST}"], "http://a.lab/", ""),
        ("http://a.lab/", [f"a=x; {PAST}; Expires="], "http://a.lab/", ""),
        ("http://a.lab/", ["a=x; Max-Age=0600"], "http://a.lab/", "a=x"),
        ("http://a.lab/", ["a=x; max-age = 5"], "http://a.lab/", "a=x"),
        ("http://a.lab/", ["a=x", "a=y; Max-Age=0"], "http://a.lab/", ""),
        ("http://a.lab/", ["a=x; Max-Age=00"], "http://a.lab/", ""),
        ("http://a.lab/", ["a=x; Max-Age=-1"], "http://a.lab/", ""),
        ("http://a.lab/", ["a=x; Max-Age=0x"], "http://a.lab/", "a=x"),
        ("http://a.lab/", ["a=x; Max-Age=-"], "http://a.lab/", "a=x"),
        ("http://a.lab/", ["a=x; Max-Age=+0", "b=y; Max-Age="], "http://a.lab/", "a=x; b=y"),
        ("http://a.lab/", [f"a=x; Max-Age={LONG}"], "http://a.lab/", "a=x"),
        ("http://a.lab/", [f"a=x; Max-Age=60; {PAST}"], "http://a.lab/", "a=x"),
        ("http://a.lab/", [f"a=x; {FUTURE}; Max-Age=0"], "http://a.lab/", ""),
        ("http://a.lab/", [f"a=x; Max-Age=zero; {PAST}"], "http://a.lab/", ""),
        # to which hosts
        ("http://a.lab/", ["a=x"], "http://b.lab/", ""),
        ("http://a.lab/", ["a=x"], "http://sub.a.lab/", ""),
        ("http://a.lab:8080/", ["a=x"], "http://a.lab:9090/", "a=x"),
        ("http://a.lab/", ["a=x"], "https://a.lab/", "a=x"),
        ("http://A.lab/", ["a=x; Domain=A.LAB"], "http://sub.a.lab/", "a=x"),
        ("http://a.lab/", ["a=x; Domain=lab"], "http://b.lab/", "a=x"),
        ("http://a.lab/", ["a=x; Domain=.lab"], "http://lab/", "a=x"),
        ("http://www.shop.test/", ["a=x; Domain=shop.test"], "http://pay.shop.test:81/", "a=x"),
        ("http://www.shop.test/", ["a=x; Domain=shop.test"], "http://workshop.test/", ""),
        ("http://www.shop.test/", ["a=x; Domain=pay.shop.test"], "http://pay.shop.test/", ""),
        ("http://www.shop.test/", ["a=x; Domain=www.www.shop.test"], "http://www.shop.test/", ""),
        ("http://www.shop.test/", ["a=x; Domain=hop.test"], "http://www.shop.test/", ""),
        ("http://www.shop.test/", ["a=x; Domain="], "http://www.shop.test/", "a=x"),
        ("http://www.shop.test/", ["a=x; Domain="], "http://pay.shop.test/", ""),
        ("http://a.shop.test/", ["a=x; Domain=b.test; Domain=shop.test"], "http://shop.test/",
         "a=x"),
        ("http://a.example.com/", ["a=x; Domain=com"], "http://b.example.com/", ""),
        ("http://a.co.uk/", ["a=x; Domain=co.uk"], "http://a.co.uk/", ""),
        ("http://a.github.io/", ["a=x; Domain=github.io"], "http://b.github.io/", ""),
        ("http://github.io/", ["a=x; Domain=github.io"], "http://github.io/", "a=x"),
        ("http://github.io/", ["a=x; Domain=github.io"], "http://a.github.io/", ""),
        ("http://127.0.0.1/", ["a=x"], "http://127.0.0.1:81/", "a=x"),
        ("http://127.0.0.1/", ["a=x; Domain=127.0.0.1"], "http://127.0.0.1/", "a=x"),
        ("http://127.0.0.1/", ["a=x; Domain=0.0.1"], "http://127.0.0.1/", ""),
        ("http://[::1]/", ["a=x"], "http://[::1]:81/", "a=x"),
        ("http://bücher.lab/", ["a=x; Domain=xn--bcher-kva.lab"], "http://a.bücher.lab/", "a=x"),
        # to which paths
        ("http://a.lab/one/two", ["a=x"], "http://a.lab/one/three?b", "a=x"),
        ("http://a.lab/one/two", ["a=x"], "http://a.lab/one", "a=x"),
        ("http://a.lab/one/two", ["a=x"], "http://a.lab/ones", ""),
        ("http://a.lab/one/", ["a=x"], "http://a.lab/one/two", "a=x"),
        ("http://a.lab/one?b=/c/d", ["a=x"], "http://a.lab/", "a=x"),
        ("http://a.lab/one/two", ["a=x; Path=/"], "http://a.lab/", "a=x"),
        ("http://a.lab/one/two", ["a=x; Path=one"], "http://a.lab/", ""),
        ("http://a.lab/one/two", ["a=x; Path="], "http://a.lab/one/three", "a=x"),
        ("http://a.lab/", ["a=x; Path=/one/"], "http://a.lab/one", ""),
        ("http://a.lab/", ["a=x; Path=/one/"], "http://a.lab/one/", "a=x"),
        ("http://a.lab/", ["a=x; Path=/one; Path=/two"], "http://a.lab/two", "a=x"),
        # over what
        ("https://a.lab/", ["a=x; Secure"], "https://a.lab/", "a=x"),
        ("https://a.lab/", ["a=x; secure=no"], "http://a.lab/", ""),
        ("http://a.lab/", ["a=x; Secure"], "https://a.lab/", "a=x"),
        # which of several, in which order
        ("http://a.lab/", ["a=1", "b=2", "a=3"], "http://a.lab/", "a=3; b=2"),
        ("http://a.lab/", ["a=1", "a=2; Path=/one"], "http://a.lab/one", "a=2; a=1"),
        ("http://a.lab/", ["a=1", "a=2; Path=/one"], "http://a.lab/", "a=1"),
        ("http://a.lab/", ["a=1", "a=2; Domain=lab"], "http://a.lab/", "a=1; a=2"),
        ("http://a.lab/", ["a=1", f"a=; {PAST}; Path=/one"], "http://a.lab/one", "a=1"),
        ("http://a.lab/", ["a=1", "b=2", f"a=; {PAST}", "a=3"], "http://a.lab/", "b=2; a=3"),
        ("http://a.lab/", ["a=1", "A=2"], "http://a.lab/", "a=1; A=2"),
    ],
)  # fmt: skip
def test_a_cookie_goes_where_rfc_6265_says(by: str, cookies: list[str], to: str, sent: str) -> None:
    assert _sent(CheckSpec(url="http://first.lab/"), [(by, cookies)], to) == sent


def _sent(spec: CheckSpec, answers: list[tuple[str, list[str]]], to: str) -> str:
    """The Cookie header of a request, after answers from these URLs."""
    contents = ChainContents(spec)
    for url, cookies in answers:
        contents.store_cookies(parse_url(url), cookies)
    lines = contents.headers(parse_url(to))
    return next((line[8:].decode() for line in lines if line.startswith(b"Cookie: ")), "")


@pytest.mark.parametrize(
    ("own", "answers", "to", "sent"),
    [
        (["a=1;b=2"], [], "http://a.lab/", "a=1;b=2"),
        (["a=1", "b=2"], [], "http://a.lab/", "a=1; b=2"),
        (["a=1"], [], "http://a.lab:81/", ""),
        ([""], [("http://a.lab/", ["b=2"])], "http://a.lab/", "b=2"),
        (["a=1"], [("http://a.lab/", ["b=2"])], "http://a.lab/", "a=1; b=2"),
        (["a=1"], [("http://a.lab/", ["b=2"])], "http://a.lab:81/", "b=2"),
        (["a=1"], [("http://b.lab/", ["a=2; Path=/"])], "http://a.lab/", "a=1"),
        (["a=1; b=2"], [("http://a.lab/", ["a=3"])], "http://a.lab/", "b=2; a=3"),
        (["a=1; b=2"], [("http://a.lab/", ["a=; Max-Age=0"])], "http://a.lab/", "b=2"),
        (["a=1; token"], [("http://a.lab/", ["a=; Max-Age=0"])], "http://a.lab/", "token"),
        (["a=1"], [("http://a.lab/", ["a=2; Path=/x"])], "http://a.lab/x", "a=2; a=1"),
    ],
)
def test_an_own_cookie_is_one_of_the_first_origin_until_the_server_replaces_it(
    own: list[str], answers: list[tuple[str, list[str]]], to: str, sent: str
) -> None:
    headers = tuple(Pair("Cookie", value) for value in own)
    spec = CheckSpec(url="http://a.lab/", request_headers=headers)
    assert _sent(spec, answers, to) == sent


def test_a_cookie_ends_within_the_chain() -> None:
    clock = [1000.0]
    jar, target = Jar(lambda: clock[0]), parse_url("http://a.lab/")
    jar.store(target, ["a=x; Max-Age=10"])
    assert [cookie.value for cookie in jar.matching(target)] == ["x"]
    clock[0] += 10
    assert not jar.matching(target)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("Thu, 01 Jan 1970 00:00:00 GMT", (1970, 1, 1)),
        ("Thursday, 01-Jan-70 00:00:00 GMT", (1970, 1, 1)),
        ("Thu Jan  1 00:00:00 1970", (1970, 1, 1)),
        ("Wed, 09 Jun 2021 10:18:14 GMT", (2021, 6, 9, 10, 18, 14)),
        ("10:18:14 2021 june 9th", (2021, 6, 9, 10, 18, 14)),
        ("9/JUN/21~1:2:3 anything", (2021, 6, 9, 1, 2, 3)),
        ("1 Jan 69 0:0:0", (2069, 1, 1)),
        ("1 Jan 70 0:0:0", (1970, 1, 1)),
        ("1 Jan 999 00:00:00", None),
        ("1 Jan 1600 00:00:00", None),
        ("1 Jan 1601 00:00:00", (1601, 1, 1)),
        ("30 Feb 2026 00:00:00", None),
        ("29 Feb 2028 00:00:00", (2028, 2, 29)),
        ("1 Jan 2026 24:00:00", None),
        ("1 Jan 2026 00:60:00", None),
        ("1 Jan 2026 00:00:60", None),
        ("1 Jan 2026 00:00", None),
        ("1 Jan 2026 00:00:000", None),
        ("1 Jan 2026 00:00:00.123", (2026, 1, 1)),
        ("1 Jan 20260 00:00:00", None),
        ("001 Jan 2026 00:00:00", None),
        ("1 Jan 00:00:00", None),
        ("1 2026 00:00:00", None),
        ("²1 Jan 2026 00:00:00", None),
        ("1 Jan ٢٠٢٦ 00:00:00", None),
        ("0", None),
        ("", None),
    ],
)  # fmt: skip
def test_a_date_is_read_as_rfc_6265_says(text: str, date: tuple[int, ...] | None) -> None:
    assert read_date(text) == (datetime(*date, tzinfo=UTC) if date else None)  # type: ignore[misc,arg-type]
