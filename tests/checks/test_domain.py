"""When does a domain expire: RDAP, then WHOIS, then "unknown" (issue 3)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from app.checks.expiry import rdap, whois
from app.checks.expiry.domain import domain_expiry
from app.checks.expiry.registry import NoAnswer
from app.net.client import Network
from app.net.hosts import SystemNames
from app.net.policy import Policy
from app.rules.suffixes import registrable_domain
from tests.lab.net import BlackHole, ClosedPort, Connection, Listener

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("example.com", "example.com"),
        ("www.Shop.Example.COM.", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("www.someone.github.io", "someone.github.io"),
        ("shop.co.ua", "shop.co.ua"),
        ("a.b.uk.com", "b.uk.com"),
        ("uk.com", "uk.com"),  # a private suffix is registered too
        ("s3.amazonaws.com", "s3.amazonaws.com"),
        ("ec2-192-0-2-1.compute-1.amazonaws.com", "ec2-192-0-2-1.compute-1.amazonaws.com"),
        ("example.kawasaki.jp", None),
        ("www.city.kawasaki.jp", "city.kawasaki.jp"),
        ("www.bücher.example", "xn--bcher-kva.example"),
        ("my_host.example.com", "example.com"),
        ("host.internal-tld", "host.internal-tld"),
        ("localhost", None),
        ("co.uk", None),
        ("192.0.2.1", None),
        ("[2001:db8::1]", None),
        ("", None),
    ],
)
def test_the_registrable_domain_of_a_host(host: str, domain: str | None) -> None:
    assert registrable_domain(host) == domain


# --- Reading answers ----------------------------------------------------------------------------

WHOIS = {
    "verisign": ("   Domain Name: EXAMPLE.COM\r\n   Updated Date: 2026-08-14T07:01:31Z\r\n"
        "   Creation Date: 1995-08-14T04:00:00Z\r\n"
        "   Registry Expiry Date: 2027-08-13T04:00:00Z\r\n   Registrar: RESERVED\r\n",
        "2027-08-13T04:00:00"),
    "registry before registrar": ("Registrar Registration Expiration Date: 2026-12-01T00:00:00Z\n"
        "Registry Expiry Date: 2027-12-01T00:00:00Z\n", "2027-12-01T00:00:00"),
    "registrar with an offset": (
        "Registrar Registration Expiration Date: 2027-03-02T01:30:00+0800\n",
        "2027-03-01T17:30:00"),
    "uk": ("    Relevant dates:\n        Registered on: 14-Feb-1997\n"
        "        Expiry date:  13-Dec-2026\n        Last updated:  10-Jan-2026\n",
        "2026-12-13T00:00:00"),
    "fr": ("domain:                        example.fr\nstatus:  ACTIVE\n"
        "Expiry Date:                   2027-02-16T13:06:02.123456Z\n", "2027-02-16T13:06:02"),
    "ru": ("created:       2002-09-01T20:00:00Z\npaid-till:     2027-09-30T21:00:00Z\n"
        "free-date:     2027-11-01\n", "2027-09-30T21:00:00"),
    "br": ("created:     19990520 #1\nexpires:     20270520\nstatus:      published\n",
        "2027-05-20"),
    "jp": ("[Created on]                    2001/02/22\n[Expires on]    2027/02/28\n",
        "2027-02-28"),
    "kr": ("Registered Date             : 1999. 07. 28.\nExpiration Date : 2027. 07. 28.\n",
        "2027-07-28"),
    "cn": ("Registration Time: 2003-03-17 12:20:05\nExpiration Time: 2027-03-17 12:48:36\n",
        "2027-03-17T12:48:36"),
    "cz": ("registered:   21.08.1996 03:02:00\nexpire:       29.10.2027\n", "2027-10-29"),
    "fi": ("domain.............: example.fi\nexpires............: 4.7.2027 10:15:21\n",
        "2027-07-04T10:15:21"),
    "tr": ("Created on..............: 2001-Aug-23.\nExpires on..............: 2027-Aug-22.\n",
        "2027-08-22"),
    "pt": ("Creation Date: 01/02/2003 00:00:00\nExpiration Date: 15/03/2027 23:59:59\n",
        "2027-03-15T23:59:59"),
    "ua": ("created: 2002-12-04 00:00:00+02\nexpires: 2027-12-04 00:00:00+02\n",
        "2027-12-03T22:00:00"),
    "edu": ("Domain record activated:    11-Oct-1985\nDomain expires:             31-Jul-2027\n",
        "2027-07-31"),
    "lv with zone words": ("Expiration Date: 2027-05-16 10:00:00 (UTC+8)\n", "2027-05-16T02:00:00"),
    "old register": ("Record expires on 12-Jun-2027.\n", "2027-06-12"),
    "ctime": ("Expiration Date: Fri Aug 13 12:00:00 GMT 2027\n", "2027-08-13T12:00:00"),
    "words": ("Expiration Date: August 13, 2027\n", "2027-08-13"),
    "nz": ("domain_datebilleduntil: 2027-04-01T00:00:00+12:00\n", "2027-03-31T12:00:00"),
}  # fmt: skip


@pytest.mark.parametrize("registry", WHOIS)
def test_whois_answers_are_read(registry: str) -> None:
    text, expected = WHOIS[registry]
    assert whois.expiry_in(text) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('No match for domain "EXAMPLE.COM".\r\n>>> Last update', "does not know"),
        ("%% NOT FOUND\n", "does not know"),
        ("Domain: example.de\nStatus: free\n", "does not know"),
        ("Your query quota has been exceeded.\n", "no more queries"),
        ("Domain: example.de\nStatus: connect\nChanged: 2024-01-01T00:00:00+01:00\n", "no expiry"),
        ("Expiration Date: never\n", "no expiry"),
        ("Registry Expiry Date: 0001-01-01T00:00:00Z\n", "cannot be right"),
        ("", "no expiry"),
        ("\x00\xff" * 400, "no expiry"),
    ],
)
def test_whois_answers_without_a_date_say_why(text: str, why: str) -> None:
    with pytest.raises(NoAnswer, match=why):
        whois.expiry_in(text, "example.com")


def rdap_json(*events: tuple[str, str], **more: Any) -> dict[str, Any]:
    rows = [{"eventAction": action, "eventDate": date} for action, date in events]
    return {"objectClassName": "domain", "ldhName": "EXAMPLE.COM", "events": rows, **more}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (
            [
                ("registration", "1995-08-14T04:00:00Z"),
                ("expiration", "2027-08-13T04:00:00Z"),
                ("last update of RDAP database", "2026-11-21T08:00:00Z"),
            ],
            "2027-08-13T04:00:00",
        ),
        ([("Expiration", "2027-08-13T04:00:00+02:00")], "2027-08-13T02:00:00"),
        ([("expiration", "2027-08-13")], "2027-08-13T00:00:00"),
        (
            [
                ("registrar expiration", "2026-12-01T00:00:00Z"),
                ("expiration", "2027-12-01T00:00:00Z"),
            ],
            "2027-12-01T00:00:00",
        ),
        ([("registrar expiration", "2026-12-01T00:00:00.5Z")], "2026-12-01T00:00:00.5"),
    ],
)
def test_rdap_answers_are_read(events: list[tuple[str, str]], expected: str) -> None:
    raw = json.dumps(rdap_json(*events)).encode()
    assert rdap.expiry_in(raw) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"<html>", "not JSON"),
        (b"[]", "no dates"),
        (b"{}", "no dates"),
        (b'{"events": {"a": 1}}', "no dates"),
        (b'{"events": [null, 7, {"eventAction": "expiration"}]}', "no expiry"),
        (b'{"events": [{"eventAction": "expiration", "eventDate": "soon"}]}', "no expiry"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_rdap_answers_without_a_date_say_why(raw: bytes, why: str) -> None:
    with pytest.raises(NoAnswer, match=why):
        rdap.expiry_in(raw)


# --- Asking real servers on loopback ------------------------------------------------------------

WhoisServer = Callable[[str], str]


@pytest.fixture
def whois_server() -> Iterator[WhoisServer]:
    """Starts a WHOIS server with one answer, and returns its ``host:port``."""
    listeners: list[Listener] = []

    def start(answer: str) -> str:
        def handler(connection: Connection) -> None:
            question = connection.read_until(b"\r\n").decode().strip()
            connection.send(answer.replace("{question}", question).encode())

        listeners.append(Listener(handler))
        return f"127.0.0.1:{listeners[-1].port}"

    yield start
    for listener in listeners:
        listener.close()


@pytest.fixture
def registries(tmp_path: Path, httpserver: HTTPServer) -> Callable[..., str]:
    """Writes a list of registries for .test to a new file, in IANA's form."""
    count = iter(range(100))

    def write(url: str | None = None, **more: Any) -> str:
        path = tmp_path / f"bootstrap-{next(count)}.json"
        services = [[["test"], [url or httpserver.url_for("/rdap/")]]]
        path.write_text(json.dumps({"version": "1.0", "services": services, **more}))
        return str(path)

    return write


def ask(bootstrap: str, servers: dict[str, str] | None = None, **more: Any) -> Any:
    more.setdefault("timeout", 60)
    more.setdefault("network", Network(Policy.parse("loopback"), SystemNames()))
    return domain_expiry(
        more.pop("domain", "example.test"),
        bootstrap=bootstrap,
        now=NOW,
        whois_servers=servers,
        **more,
    )


def test_the_expiry_comes_from_the_registry_by_rdap(
    httpserver: HTTPServer, registries: Callable[..., str]
) -> None:
    answer = rdap_json(("expiration", "2027-08-13T04:00:00Z"))
    httpserver.expect_request("/rdap/domain/example.test").respond_with_json(answer)
    expiry = ask(registries(), {})
    assert (expiry.expires_at, expiry.source) == (datetime(2027, 8, 13, 4, tzinfo=UTC), "rdap")
    assert (expiry.domain, expiry.note) == ("example.test", None)


def test_the_list_of_registries_is_read_from_a_url_once(httpserver: HTTPServer) -> None:
    services = [[["test"], [httpserver.url_for("/rdap")]]]
    empty = {"services": [[["64496"], ["https://rdap.invalid/"]]]}
    nets = {"services": [[["192.0.2.0/24"], ["https://rdap.invalid/"]]]}
    nets6 = {"services": [[["2001:db8::/32"], ["https://rdap.invalid/"]]]}
    saved = {"timestamp": 1, "dns": {"services": services}, "asn": empty, "object": empty}
    saved |= {"ipv4": nets, "ipv6": nets6}
    httpserver.expect_request("/all.json").respond_with_json(saved)
    answer = rdap_json(("expiration", "2027-08-13T04:00:00Z"))
    httpserver.expect_request("/rdap/domain/example.test").respond_with_json(answer)
    for _ in range(2):
        assert ask(httpserver.url_for("/all.json"), {}).source == "rdap"
    asked = [request.path for request, _ in httpserver.log]
    assert asked.count("/all.json") == 1


def test_whois_is_asked_when_rdap_gives_no_date(
    httpserver: HTTPServer, registries: Callable[..., str], whois_server: WhoisServer
) -> None:
    httpserver.expect_request("/rdap/domain/example.test").respond_with_data("no", status=404)
    server = whois_server("domain: {question}\nexpires: 2027-01-02\n")
    for expiry in (
        ask(registries(), {"test": server}),
        ask(registries(), {"*": server}),
        ask(registries(whois={"test": server})),
        ask(registries("ftp://only.example/"), {"test": server}),
    ):
        assert (expiry.expires_at, expiry.source) == (datetime(2027, 1, 2, tzinfo=UTC), "whois")


@pytest.mark.parametrize(
    ("named", "member"),
    [
        ("   Domain Name: uk.test.", "unicodeName"),
        ("[Domain] uk.test", "ldhName"),
        ("Domain name:\n        uk.test\n", "ldhName"),
    ],
)
def test_an_answer_about_the_suffix_above_is_none(
    httpserver: HTTPServer,
    registries: Callable[..., str],
    whois_server: WhoisServer,
    named: str,
    member: str,
) -> None:
    answer = rdap_json(("expiration", "2027-08-13T04:00:00Z"))
    answer.pop("ldhName", None)
    answer[member] = "UK.TEST"
    httpserver.expect_request("/rdap/domain/shop.uk.test").respond_with_json(answer)
    servers = {"uk.test": whois_server(f"{named}\nexpires: 2027-01-02\n"), "test": "127.0.0.1:1"}
    expiry = ask(registries(), servers, domain="shop.uk.test")
    assert expiry.expires_at is None
    assert expiry.note.count("the registry answers for uk.test, not for shop.uk.test") == 2


def test_a_private_suffix_may_have_a_registry_of_its_own(
    httpserver: HTTPServer, registries: Callable[..., str], whois_server: WhoisServer
) -> None:
    server = whois_server("Domain Name: shop.uk.test\nexpires: 2027-01-02\n")
    servers = {"uk.test": server, "test": "127.0.0.1:1", "*": "127.0.0.1:1"}
    httpserver.expect_request("/rdap/domain/shop.uk.test").respond_with_data("no", status=404)
    assert ask(registries(), servers, domain="shop.uk.test").source == "whois"


def test_an_unknown_expiry_has_a_note_that_says_why(
    httpserver: HTTPServer, registries: Callable[..., str], whois_server: WhoisServer
) -> None:
    httpserver.expect_request("/rdap/domain/example.test").respond_with_data("no", status=429)
    expiry = ask(registries(), {"test": whois_server("No match for {question}\n")})
    assert (expiry.expires_at, expiry.source) == (None, None)
    assert expiry.note == (
        "RDAP: the registry accepts no more queries for now. "
        "WHOIS: the registry does not know example.test."
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("no JSON", "could not be loaded"),
        ("{}", "no list of domain registries"),
        (
            '{"services": [[["other"], ["https://rdap.invalid/"]]]}',
            "no registry is known for .test",
        ),
        ('{"services": [1, 2]}', "could not be"),
    ],
)
def test_a_broken_list_of_registries_gives_an_unknown_expiry(
    tmp_path: Path, content: str, why: str
) -> None:
    path = tmp_path / "bootstrap.json"
    path.write_text(content)
    expiry = ask(str(path), {})
    assert expiry.expires_at is None
    assert why in expiry.note
    assert "WHOIS: no server is known for .test." in expiry.note


def test_a_missing_list_and_dead_servers_give_an_unknown_expiry(
    registries: Callable[..., str],
) -> None:
    closed, hole = ClosedPort(), BlackHole()
    try:
        assert "could not be loaded" in ask("/no/such/file.json", {}).note
        expiry = ask(
            registries(f"http://127.0.0.1:{closed.port}/"), {"test": f"127.0.0.1:{closed.port}"}
        )
        assert expiry.note == (
            "RDAP: 127.0.0.1 refused the connection. WHOIS: 127.0.0.1 could not be reached."
        )
        silent = f"127.0.0.1:{hole.port}"
        expiry = ask(registries(f"http://{silent}/"), {"test": silent}, timeout=1)
        assert expiry.note.count("in time") == 2
    finally:
        closed.close()
        hole.close()


def test_endless_answers_are_cut_off(
    httpserver: HTTPServer, registries: Callable[..., str]
) -> None:
    def endless(_: Request) -> Response:
        return Response(iter(lambda: b" " * 65536, None), content_type="application/json")

    def talk(connection: Connection) -> None:
        while True:
            connection.send(b"and so on\n" * 1000)

    httpserver.expect_request("/rdap/domain/example.test").respond_with_handler(endless)
    listener = Listener(talk)
    try:
        expiry = ask(registries(), {"test": f"127.0.0.1:{listener.port}"}, timeout=60)
    finally:
        listener.close()
    assert "the answer is too large" in expiry.note
    assert "the answer has no expiry date" in expiry.note


def test_a_redirect_is_followed_only_where_policy_allows(
    httpserver: HTTPServer, registries: Callable[..., str]
) -> None:
    answer = rdap_json(("expiration", "2027-08-13T04:00:00Z"))
    httpserver.expect_request("/rdap/domain/example.test").respond_with_data(
        status=302, headers={"Location": "/elsewhere"}
    )
    httpserver.expect_request("/elsewhere").respond_with_json(answer)
    allowed = ask(registries(), {})
    assert allowed.source == "rdap"
    httpserver.clear_log()
    refused = ask(registries(), {}, network=Network(Policy(), SystemNames()))
    assert refused.expires_at is None
    assert "127.0.0.1 is a loopback address" in refused.note
    assert [request.path for request, _ in httpserver.log] == ["/rdap/domain/example.test"]


def test_a_redirect_loop_ends(httpserver: HTTPServer, registries: Callable[..., str]) -> None:
    httpserver.expect_request("/rdap/domain/example.test").respond_with_data(
        status=302, headers={"Location": "/rdap/domain/example.test"}
    )
    assert "redirects more than" in ask(registries(), {}).note
