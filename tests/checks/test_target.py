"""Reading URLs and accepted statuses (decisions 3 and 9)."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.rules.text import is_accepted, parse_statuses
from app.rules.url import join, parse_url


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("http://example.com", "http://example.com/"),
        ("HTTPS://Example.COM:443/A?b=c#d", "https://example.com/A?b=c"),
        ("http://example.com:80/", "http://example.com/"),
        ("http://example.com:8080", "http://example.com:8080/"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("http://example.com:/x", "http://example.com/x"),
        ("http://example.com?a=b", "http://example.com/?a=b"),
        ("http://example.com#x", "http://example.com/"),
        ("http://example.com./", "http://example.com/"),
        ("http://bücher.example/größe?q=ü",
        "http://xn--bcher-kva.example/gr%C3%B6%C3%9Fe?q=%C3%BC"),
        ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
        ("http://faß.example/", "http://xn--fa-hia.example/"),
        ("http://日本.example/", "http://xn--wgv71a.example/"),
        ("http://my_host.example/", "http://my_host.example/"),
        ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
        ("http://-a.example/", "http://-a.example/"),
        ("http://redis:6379/", "http://redis:6379/"),
        ("http://1.2.3.4.example/", "http://1.2.3.4.example/"),
        ("http://1.2.3.256/", "http://1.2.3.256/"),
        ("http://example.com/a%20b/%2F?c=%zz", "http://example.com/a%20b/%2F?c=%zz"),
        ("http://example.com/a'b\"<>", "http://example.com/a'b%22%3C%3E"),
        ("http://example.com/@user", "http://example.com/@user"),
        ("http://example.com/?u=http://other.example/",
        "http://example.com/?u=http://other.example/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://0x7F000001:81/", "http://127.0.0.1:81/"),
        ("http://[2001:DB8:0:0::1]:8080/", "http://[2001:db8::1]:8080/"),
        # Newer Pythons write the last four bytes as IPv4.
        ("http://[::ffff:1.2.3.4]/", f"http://[{IPv6Address('::ffff:1.2.3.4')}]/"),
    ],
)  # fmt: skip
def test_a_url_is_sent_in_one_spelling(text: str, sent: str) -> None:
    target = parse_url(text)
    assert target.url == sent
    assert parse_url(target.url).url == sent, "what is sent reads as itself"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "http://"), ("example.com", "http://"), ("//example.com/", "http://"),
        ("ftp://example.com/", "ftp:"), ("javascript:alert(1)", "javascript:"),
        ("http:example.com", "two slashes"), ("http:/example.com", "two slashes"),
        ("http://", "host"), ("http:///path", "host"), ("http://:80/", "host"),
        ("http://.", "dots"),
        ("http://a..b/", "dots"), ("http://a../", "dots"),
        ("http://.a/", "dots"), ("http://[]/", "host"),
        ("http://user@example.com/", "user name"), ("http://user:pw@example.com/", "password"),
        ("http://@example.com/", "user name"), ("http://a@b@c/", "user name"),
        ("http://example.com\\@evil.example/", "backslash"), ("http:\\\\example.com/", "backslash"),
        ("http://example.com/a b", "white space"), (" http://example.com/", "white space"),
        ("http://example.com/\n", "white space"), ("http://exa\u3000mple.com/", "white space"),
        ("http://example.com/\u00a0", "white space"), ("http://example.com/\x00", "control"),
        ("http://example.com/\x7f", "control"), ("http://exam\u0085ple.com/", "white space"),
        ("http://example.com/\ud800", "control"),
        ("http://example.com:0/", "1 to 65535"), ("http://example.com:65536/", "1 to 65535"),
        ("http://example.com:99999999999999999999/", "1 to 65535"),
        ("http://example.com:-1/", "1 to 65535"), ("http://example.com:8o/", "1 to 65535"),
        ("http://example.com:\uff18\uff10/", "1 to 65535"), ("http://example.com:80:80/", "port"),
        ("http://2001:db8::1/", "brackets"), ("http://[::1", "brackets"),
        ("http://[::1]x/", "brackets"),
        ("http://[::g]/", "IPv6"), ("http://[1.2.3.4]/", "IPv6"),
        ("http://[fe80::1%25eth0]/", "percent"),
        ("http://exam%70le.com/", "percent"), ("http://ex<am>ple.com/", "characters"),
        ("http://a,b.example/", "characters"), ("http://*.example/", "characters"),
        ("http://exa|mple.com/", "characters"), ("http://ex\u2100mple.com/", "characters"),
        ("http://" + "a" * 64 + ".example/", "too long"),
        ("http://" + "a." * 130 + "example/", "too long"),
        ("http://xn--a\u0300\u200d.example/", "international"),
    ],
)  # fmt: skip
def test_an_invalid_url_is_refused_with_a_sentence(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"^The .*[.]$") as error:
        parse_url(text)
    assert says in str(error.value)


@given(st.text(max_size=60), st.sampled_from(["", "http://", "http://a.example/", "http://["]))
def test_any_text_is_read_or_refused_with_a_value_error(text: str, start: str) -> None:
    try:
        target = parse_url(start + text)
    except ValueError:
        return
    assert target.url.isascii()
    assert not set(target.url) & set(" \r\n\t\\\x00")
    assert parse_url(target.url).url == target.url


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("/x", "http://a.example:8080/x"), ("x?y", "http://a.example:8080/dir/x?y"),
        ("../x", "http://a.example:8080/x"), ("?q=1", "http://a.example:8080/dir/page?q=1"),
        ("#part", "http://a.example:8080/dir/page?old"), ("", "http://a.example:8080/dir/page?old"),
        ("//b.example/x", "http://b.example/x"), ("https://b.example", "https://b.example/"),
        (" /a b ", "http://a.example:8080/a%20b"), ("/ü", "http://a.example:8080/%C3%BC"),
        ("HTTP://B.example/", "http://b.example/"), ("/x:y", "http://a.example:8080/x:y"),
    ],
)  # fmt: skip
def test_a_location_is_read_as_browsers_do(location: str, leads_to: str) -> None:
    assert join(parse_url("http://a.example:8080/dir/page?old"), location).url == leads_to


@pytest.mark.parametrize(
    "location",
    ["http:///x", "http://", "http://[::1", "http://a:99999/", "mailto:a@b.example",
    "http://u:p@b/",
     "///b.example/", "http:x", "\\\\b.example/", "/\\b.example/", "ftp://b.example/"],
)  # fmt: skip
def test_an_invalid_location_is_refused(location: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        join(parse_url("http://a.example/"), location)


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("200", ((200, 200),)), ("200-299", ((200, 299),)),
        (" 200-299 , 401 ", ((200, 299), (401, 401))), ("200 - 299", ((200, 299),)),
        ("100-599", ((100, 599),)), ("404,404", ((404, 404), (404, 404))),
    ],
)  # fmt: skip
def test_accepted_statuses_are_codes_and_ranges(text: str, ranges: object) -> None:
    assert parse_statuses(text) == ranges


@pytest.mark.parametrize(
    "text",
    ["", ",", "200,", "2xx", "600", "99", "200-", "-200", "299-200", "200-299-300",
    "\uff12\uff10\uff10",
     "200;201", "+200", "0200", "2e2"],
)  # fmt: skip
def test_invalid_accepted_statuses_are_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        parse_statuses(text)


def test_a_status_is_accepted_within_its_range() -> None:
    assert [code for code in (199, 200, 299, 300, 401, 402) if is_accepted(code,
    "200-299,401")] == [
        200, 299, 401,
    ]  # fmt: skip
