"""The prober: what it sends, what it returns, and that nothing ends its thread.

tests/lab/table.py has the cause of each failure; this file has what its rows cannot show.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import certifi
import pytest
import trustme

from app.checks.http.compose import ChainContents
from app.checks.prober import Bundle, Prober
from app.net import race
from app.net.policy import Policy
from app.records import MASK, Cause, CheckSpec, Outcome, Pair, Timings, Verdict, Warn
from app.rules.url import parse_url
from tests.checks.servers import NameServer, Trap, Web, closing, host, http
from tests.lab import old_tls
from tests.lab.net import BlackHole, Listener
from tests.support.loopback import IPV6

LOOPBACK = Policy.parse("loopback")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def names() -> Iterator[NameServer]:
    zone: Any = {
        name: host(name, "127.0.0.1") for name in ("a.test", "b.test", "bücher.test", "tls.test")
    }
    zone["dual.test"] = host("dual.test", "127.0.0.1", "::1")
    server = NameServer(zone)
    yield server
    server.close()


@pytest.fixture(scope="module")
def prober(
    names: NameServer, authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prober]:
    bundle = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    prober = Prober(
        policy=lambda: LOOPBACK,
        dns_servers=[names.server],
        ca_bundle=str(bundle),
        location="lab",
        user_agent="Wakeful/test",
    )
    yield prober
    prober.close(5)


@pytest.fixture
def web() -> Iterator[Web]:
    """Answers by path: /to/STATUS?LOCATION redirects, any other path is a page."""

    def answer(head: str, body: bytes) -> bytes:
        path = head.split(" ")[1]
        if path.startswith("/to/"):
            return http(f"{path[4:7]} Moved", b"", f"Location: {path[8:]}")
        if path.startswith("/cookies"):
            return http(
                "302 Found", b"", "Location: /deep/page", "Set-Cookie: one=1; Path=/; HttpOnly",
                "Set-Cookie: two=2; Path=/elsewhere", "Set-Cookie: gone=1; Max-Age=0",
                "Set-Cookie: three=a=b",
            )  # fmt: skip
        return http("200 OK", b"hello")

    web = Web(answer)
    yield web
    web.close()


def spec(web: Web, path: str = "/", name: str = "a.test", **fields: Any) -> CheckSpec:
    return CheckSpec(url=f"http://{name}:{web.port}{path}", **{"timeout": 30.0} | fields)


def sent(web: Web, number: int = -1) -> dict[str, str]:
    """A request as received: the request line under "", headers by lower-case name."""
    line, *lines = web.heads[number].split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return {"": line} | {name.lower().rstrip(":"): value for name, _, value in pairs}


# --- What goes out --------------------------------------------------------------------------------


def test_a_check_without_options_sends_only_default_headers(prober: Prober, web: Web) -> None:
    assert prober.check(spec(web, "/x?y=1")).result.verdict == Verdict.UP
    assert sent(web) == {
        "": "GET /x?y=1 HTTP/1.1",
        "host": f"a.test:{web.port}",
        "user-agent": "Wakeful/test",
        "accept": "*/*",
        "accept-encoding": "gzip, deflate, br, zstd",
    }


@pytest.mark.parametrize(
    ("method", "body", "line", "length"),
    [
        ("GET", None, "GET", None), ("GET", "a=1", "GET", "3"), ("HEAD", None, "HEAD", None),
        ("HEAD", "a=1", "HEAD", None), ("POST", None, "POST", "0"), ("POST", "grün", "POST", "5"),
        ("PUT", None, "PUT", "0"), ("PUT", "x", "PUT", "1"), ("PATCH", None, "PATCH", "0"),
        ("DELETE", None, "DELETE", None), ("DELETE", "x", "DELETE", "1"),
        ("OPTIONS", None, "OPTIONS", None),
    ],
)  # fmt: skip
def test_each_method_is_sent_with_its_body(
    prober: Prober, web: Web, method: str, body: str | None, line: str, length: str | None
) -> None:
    outcome = prober.check(spec(web, request_method=method, request_body=body))
    head = sent(web)
    assert outcome.result.verdict == Verdict.UP, outcome.result.cause
    assert head[""] == f"{line} / HTTP/1.1"
    assert head.get("content-length") == length
    assert "expect" not in head
    assert web.bodies[-1] == (b"" if length is None else (body or "").encode())
    prober.check(spec(web))
    assert sent(web)[""] == "GET / HTTP/1.1", "nothing is left of it for the next check"
    assert "content-length" not in sent(web)


def test_own_headers_are_sent_unchanged_and_replace_defaults(prober: Prober, web: Web) -> None:
    headers = [
        ("X-Token", "sécret"), ("x-empty", ""), ("User-Agent", "mine"), ("Accept", "text/html"),
        ("Accept-Encoding", "identity"), ("Host", "other.test"), ("Content-Length", "999"),
        ("Authorization", "Bearer t0ken"), ("Cookie", "a=1"),
    ]  # fmt: skip
    prober.check(
        spec(
            web, request_headers=tuple(Pair(*header) for header in headers), auth=("ann", "secret")
        )
    )
    head = sent(web)
    assert head["x-token"].encode("latin-1").decode() == "sécret"
    assert head["x-empty"] == ""
    assert [head[name] for name in ("user-agent", "accept", "accept-encoding", "host")] == [
        "mine", "text/html", "identity", "other.test",
    ]  # fmt: skip
    assert head["authorization"] == "Bearer t0ken"
    assert head["cookie"] == "a=1"
    assert "content-length" not in head, "a wrong length would hang the check"


def test_basic_auth_is_sent_at_once_and_in_utf_8(prober: Prober, web: Web) -> None:
    prober.check(spec(web, auth=("änn", "p:ä")))
    assert len(web.heads) == 1
    assert base64.b64decode(sent(web)["authorization"].removeprefix("Basic ")).decode() == "änn:p:ä"


def test_the_cache_buster_is_fresh_for_each_request(prober: Prober, web: Web) -> None:
    for _ in range(2):
        prober.check(spec(web, "/to/302?/page?x=1", cache_buster=True))
    lines = [sent(web, number)[""].split(" ")[1] for number in range(4)]
    values = {line.rpartition("=")[2] for line in lines}
    assert len(values) == 4
    assert lines[1].startswith("/page?x=1&wakeful_cache_buster=")
    assert lines[1].count("wakeful_cache_buster") == 1
    assert sent(web)["cache-control"] == sent(web)["pragma"] == "no-cache"


# --- Redirects ------------------------------------------------------------------------------------

SECRETS = {
    "auth": ("ann", "secret"),
    "request_headers": (Pair("X-Token", "secret"), Pair("Cookie", "s=1")),
}


def test_secrets_go_to_the_first_origin_alone(prober: Prober, web: Web) -> None:
    """a.test, a.test again, b.test, and back to a.test: all but b.test see them."""
    b, a = f"http://b.test:{web.port}", f"http://a.test:{web.port}"
    chain = f"/to/302?/to/307?{b}/to/308?{a}/end"
    result = prober.check(spec(web, chain, **SECRETS)).result
    assert result.verdict == Verdict.UP
    secret = [
        [name in sent(web, number) for name in ("authorization", "x-token", "cookie")]
        for number in range(4)
    ]
    assert secret == [[True] * 3, [True] * 3, [False] * 3, [True] * 3]
    assert result.redirects == (f"{a}/to/307?{b}/to/308?{a}/end", f"{b}/to/308?{a}/end", f"{a}/end")


OPEN_HEADERS = {
    "User-Agent": "curl/8", "Accept": "text/plain", "Accept-Language": "de",
    "Cache-Control": "no-store", "Pragma": "x",
}  # fmt: skip


def test_headers_that_are_no_secret_go_to_every_origin(prober: Prober, web: Web) -> None:
    headers = tuple(Pair(name, value) for name, value in OPEN_HEADERS.items())
    hidden = tuple(
        Pair(name, "x") for name in ("Referer", "Origin", "Host", "Accept-Charset", "Content-Type")
    )
    chain = f"/to/302?http://b.test:{web.port}/end"
    prober.check(spec(web, chain, request_headers=headers + hidden))
    for number in (0, 1):
        request = sent(web, number)
        assert {name: request[name.lower()] for name in OPEN_HEADERS} == OPEN_HEADERS
    assert sent(web, 0)["host"] == "x"
    assert request["host"] == f"b.test:{web.port}"
    assert not {"referer", "origin", "accept-charset", "content-type"} & set(request)


@pytest.mark.parametrize(
    ("first", "to", "goes"),
    [
        ("http://a.test/", "https://a.test/x", True),
        ("http://a.test:80/", "https://a.test:443/", True),
        ("http://a.test/", "http://a.test/x", True),
        ("http://a.test/", "https://www.a.test/", False),
        ("http://a.test/", "https://a.test:8443/", False),
        ("http://a.test:8080/", "https://a.test/", False),
        ("https://a.test/", "http://a.test/", False),
        ("http://a.test/", "http://a.test:443/", False),
    ],
)
def test_a_step_from_http_to_https_of_one_host_keeps_secrets(
    first: str, to: str, goes: bool
) -> None:
    fields: dict[str, Any] = {"request_method": "POST", "request_body": "a=1"} | SECRETS
    contents, target = ChainContents(CheckSpec(url=first, **fields)), parse_url(to)
    lines = b"\n".join(contents.headers(target)).lower()
    assert [name in lines for name in (b"authorization:", b"x-token:", b"cookie:")] == [goes] * 3
    assert contents.body(target) == (b"a=1" if goes else b"")
    assert (contents.withheld(target) is None) is goes


JSON = {"request_body": '{"a": 1}', "request_headers": (Pair("Content-Type", "application/json"),)}


@pytest.mark.parametrize("method", ["POST", "DELETE", "GET"])
def test_a_body_goes_with_its_type_and_to_no_other_origin(
    prober: Prober, web: Web, method: str
) -> None:
    b, a = f"http://b.test:{web.port}", f"http://a.test:{web.port}"
    chain = f"/to/307?/to/308?{b}/to/307?{a}/end"
    prober.check(spec(web, chain, request_method=method, **JSON))
    body = JSON["request_body"].encode()  # type: ignore[union-attr]
    types = [sent(web, number).get("content-type") for number in range(4)]
    assert web.bodies == [body, body, b"", body]
    assert types == ["application/json", "application/json", None, "application/json"]
    assert all(head.startswith(f"{method} ") for head in web.heads)


def test_a_type_goes_with_its_body(prober: Prober, web: Web) -> None:
    prober.check(spec(web, "/to/303?/end", request_method="POST", **JSON))
    assert sent(web)[""].startswith("GET ")
    assert "content-type" not in sent(web)


@pytest.mark.parametrize(
    ("status", "fields", "says"),
    [
        (401, SECRETS, "user name and password, headers (Cookie, X-Token)."),
        (403, JSON | {"request_method": "POST"}, "headers (Content-Type), request body."),
        (401, {"request_headers": (Pair("User-Agent", "x"),)}, None),
        (401, {}, None),
        (500, SECRETS, None),
    ],
)
def test_the_cause_says_what_a_redirect_left_out(
    prober: Prober, status: int, fields: dict[str, Any], says: str | None
) -> None:
    refuses = Web(lambda head, body: http(f"{status} No"))
    first = Web(lambda head, body: http("307 M", b"", f"Location: http://b.test:{refuses.port}/"))
    with closing(refuses, first):
        here = prober.check(spec(refuses, **fields)).result
        elsewhere = prober.check(spec(first, **fields)).result
    assert here.cause is not None
    assert elsewhere.cause is not None
    assert "not sent" not in here.cause
    if says is None:
        assert elsewhere.cause == here.cause
    else:
        assert f"b.test:{refuses.port}" in elsewhere.cause
        assert elsewhere.cause.endswith(says)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_another_port_or_scheme_is_another_origin(
    prober: Prober, web: Web, authority: trustme.CA, scheme: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("a.test").configure_cert(context)
    other = Web(lambda head, body: http(), context=context if scheme == "https" else None)
    with closing(other):
        prober.check(spec(web, f"/to/302?{scheme}://a.test:{other.port}/", **SECRETS))
    assert sent(web)["x-token"] == "secret"
    assert not {"x-token", "authorization", "cookie"} & set(sent(other))


def test_cookies_live_within_one_chain_and_their_path(prober: Prober, web: Web) -> None:
    for _ in range(2):
        prober.check(spec(web, "/cookies"))
    assert "cookie" not in sent(web, 0)
    assert sent(web, 1)["cookie"] == "one=1; three=a=b"
    assert "cookie" not in sent(web, 2), "the next check is a new visitor"


def test_cookies_go_to_every_port_of_their_host(prober: Prober, web: Web) -> None:
    location = f"Location: http://a.test:{web.port}/"
    first = Web(lambda head, body: http("302 Found", b"", location, "Set-Cookie: s=ü; Path=/"))
    with closing(first):
        prober.check(spec(first))
    assert sent(web)["cookie"] == "s=ü".encode().decode("latin-1"), "byte for byte"


@pytest.mark.parametrize(
    ("method", "status", "then"),
    [("POST", 301, "GET"), ("POST", 302, "GET"), ("POST", 303, "GET"), ("POST", 307, "POST"),
     ("POST", 308, "POST"), ("PUT", 302, "PUT"), ("PUT", 303, "GET"), ("HEAD", 303, "HEAD"),
     ("DELETE", 301, "DELETE")],
)  # fmt: skip
def test_methods_change_at_redirects_as_in_browsers(
    prober: Prober, web: Web, method: str, status: int, then: str
) -> None:
    prober.check(spec(web, f"/to/{status}?/end", request_method=method, request_body="a=1"))
    assert sent(web)[""] == f"{then} /end HTTP/1.1"
    kept = then == method and method != "HEAD"
    assert web.bodies[-1] == (b"a=1" if kept else b"")


def test_a_redirect_is_followed_without_waiting_for_its_body(prober: Prober) -> None:
    """A browser shows a site whose redirects announce a body that never arrives, so it is up."""

    def answer(head: str, body: bytes) -> bytes:
        if head.startswith("GET /end"):
            return http()
        return b"HTTP/1.1 302 Found\r\nLocation: /end\r\nContent-Length: 100\r\n\r\n"

    web = Web(answer)
    with closing(web):
        result = prober.check(spec(web, timeout=30)).result
    assert (result.verdict, result.status_code) == (Verdict.UP, 200)
    assert result.response_time is not None
    assert result.response_time < 20_000


# --- What comes back ------------------------------------------------------------------------------


def test_a_result_has_its_figures(prober: Prober, web: Web) -> None:
    outcome = prober.check(spec(web, "/to/302?/end", monitor_id=7))
    result = outcome.result
    assert (result.monitor_id, result.location, result.status_code) == (7, "lab", 200)
    assert (result.ip, result.http_version, result.warnings) == ("127.0.0.1", "1.1", ())
    assert result.redirects == (f"http://a.test:{web.port}/end",)
    assert result.checked_at.tzinfo is not None
    timings = result.timings
    assert timings.tls is None
    for phase in (timings.dns, timings.connect, timings.ttfb, timings.download):
        assert phase is not None
    assert result.response_time is not None
    assert 0 <= result.response_time < 30_000
    assert outcome.answered
    assert outcome.evidence is not None
    step = {"status_line": "HTTP/1.1 302 Moved", "url": result.redirects[0], "ip": "127.0.0.1"}
    assert outcome.evidence["redirects"] == [step]


def test_a_phase_that_was_not_reached_has_no_time(prober: Prober) -> None:
    result = prober.check(CheckSpec(url="http://gone.test/", timeout=30)).result
    assert result.timings.dns is not None
    assert result.timings == Timings(dns=result.timings.dns)
    assert result.response_time is None
    hole = BlackHole("127.0.0.1", 0)
    with closing(hole):
        outcome = prober.check(CheckSpec(url=f"http://a.test:{hole.port}/", timeout=0.5))
    timings = outcome.result.timings
    assert (timings.tls, timings.ttfb, timings.download) == (None, None, None)
    assert timings.connect is not None
    assert 400 <= timings.connect <= 5000
    assert not outcome.answered


def test_each_https_check_returns_the_certificate(prober: Prober, authority: trustme.CA) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("tls.test").configure_cert(context)
    web = Web(lambda head, body: http(), context=context)
    with closing(web):
        url = f"https://tls.test:{web.port}/"
        outcome = prober.check(CheckSpec(url=url, timeout=30))
        unverified = prober.check(
            CheckSpec(url=f"https://a.test:{web.port}/", timeout=30, verify_tls=False)
        )
        wrong = prober.check(CheckSpec(url=f"https://a.test:{web.port}/", timeout=30))
    assert (outcome.result.verdict, wrong.result.cause_code) == (Verdict.UP, Cause.TLS_HOSTNAME)
    assert outcome.result.timings.tls is not None
    assert outcome.ssl_expires_at is not None
    assert outcome.ssl_fingerprint == unverified.ssl_fingerprint == wrong.ssl_fingerprint
    assert outcome.evidence is not None
    [leaf] = outcome.evidence["tls"]
    assert leaf["sha256"] == outcome.ssl_fingerprint
    assert leaf["names"] == ["tls.test"]
    assert leaf["not_after"] == f"{outcome.ssl_expires_at:%Y-%m-%dT%H:%M:%SZ}"
    assert leaf["not_before"] == f"{outcome.ssl_issued_at:%Y-%m-%dT%H:%M:%SZ}"


def test_an_old_server_is_accepted_where_nothing_is_verified_and_nowhere_else(
    prober: Prober, authority: trustme.CA
) -> None:
    """One check after another has the same handle of curl."""
    leaf = authority.issue_cert("tls.test", key_type=trustme.KeyType.RSA)
    pem = leaf.private_key_pem.bytes() + leaf.cert_chain_pems[0].bytes()
    server = Listener(old_tls.without_secure_renegotiation(pem))
    with closing(server):
        url = f"https://tls.test:{server.port}/"
        causes = [
            prober.check(CheckSpec(url=url, timeout=30, verify_tls=verify)).result.cause_code
            for verify in (True, False, True, False)
        ]
    assert causes == [Cause.TLS_HANDSHAKE, None] * 2


def test_the_certificate_that_expires_first_on_a_chain_of_redirects_is_returned(
    prober: Prober, authority: trustme.CA
) -> None:
    context, soon = (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for _ in range(2))
    authority.issue_cert("tls.test").configure_cert(context)
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
    authority.issue_cert("a.test", not_after=ends).configure_cert(soon)
    last = Web(lambda head, body: http(), context=context)
    moved = f"Location: https://tls.test:{last.port}/"
    first = Web(lambda head, body: http("301 Moved", b"", moved), context=soon)
    with closing(last), closing(first):
        through = prober.check(CheckSpec(url=f"https://a.test:{first.port}/", timeout=30))
        straight = prober.check(CheckSpec(url=f"https://tls.test:{last.port}/", timeout=30))
    assert (through.ssl_host, through.ssl_expires_at) == ("a.test", ends)
    assert straight.ssl_host == "tls.test"


@pytest.mark.parametrize("ending", ["with", "without"])
def test_a_body_may_end_with_the_connection_without_tls_close_notify(
    prober: Prober, authority: trustme.CA, ending: str
) -> None:
    """Many old servers just close the connection; browsers show the page, so it is up."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("tls.test").configure_cert(context)
    length = "Content-Length: 99\r\n" if ending == "with" else ""
    web = Web(lambda head, body: f"HTTP/1.1 200 OK\r\n{length}\r\nhello".encode(), context=context)
    with closing(web):
        result = prober.check(CheckSpec(url=f"https://tls.test:{web.port}/", timeout=30)).result
    expected = Cause.BODY_TRUNCATED if ending == "with" else None
    assert result.cause_code == expected


# --- Evidence -------------------------------------------------------------------------------------


def test_evidence_has_the_answer_and_no_secret(prober: Prober) -> None:
    secrets = ["pa$$wörd", "t0ken-1234567", "c00kie-value", "body secret & more"]

    def answer(head: str, body: bytes) -> bytes:
        echo = head.encode("latin-1") + body + b"\x00\x1b[31m" + json.dumps(secrets).encode()
        return http(
            "503 Service Unavailable",
            echo + b"pa%24%24w%C3%B6rd" + b"x" * 8000,
            "Set-Cookie: session=abcdef; Path=/; HttpOnly",
            "X-Auth-Token: server-side-token",
            "X-Echo: t0ken-1234567",
            "Content-Type: text/plain; charset=utf-8",
        )

    web = Web(answer)
    with closing(web):
        headers = {"X-Key": "t0ken-1234567", "Cookie": "a=c00kie-value", "Accept": "text/plain"}
        sent: dict[str, Any] = {"request_method": "POST", "request_body": "body secret & more"}
        sent |= {"request_headers": tuple(Pair(*header) for header in headers.items())}
        outcome = prober.check(spec(web, auth=("ann", "pa$$wörd"), **sent))
    evidence = outcome.evidence
    assert evidence is not None
    text = json.dumps(evidence, ensure_ascii=False)
    for secret in [*secrets, "pa%24", "abcdef", "server-side-token", "YW5uOn"]:
        assert secret not in text
    assert evidence["status_line"] == "HTTP/1.1 503 Service Unavailable"
    assert ["Set-Cookie", f"session={MASK}; Path=/; HttpOnly"] in evidence["headers"]
    assert ["X-Echo", MASK] in evidence["headers"]
    assert "Accept: text/plain" in evidence["body"], "what is no secret stays readable"
    assert len(evidence["body"].encode()) <= 4096 + 100
    assert not set(evidence["body"]) & {"\x00", "\x1b"}
    assert evidence["body_bytes"] > 8000
    assert evidence["body_cut"]
    assert evidence["resolved"] == ["127.0.0.1"]
    assert set(evidence["timings"]) == {"dns", "connect", "tls", "ttfb", "download"}


def test_a_secret_across_the_edge_of_what_is_kept_is_masked_too(prober: Prober) -> None:
    web = Web(lambda head, body: http("500 Oh", b"x" * 4090 + b"t0ken-1234567" + b"y" * 100))
    with closing(web):
        outcome = prober.check(spec(web, request_headers=(Pair("X-Key", "t0ken-1234567"),)))
    assert outcome.evidence is not None
    assert "t0k" not in outcome.evidence["body"]


@pytest.mark.parametrize("piece", ["t0ken-é-1234567 ", "abcdefghi"])
@pytest.mark.parametrize("shift", range(0, 60, 14))
def test_the_beginning_of_a_long_secret_is_masked_when_it_is_echoed_many_times(
    prober: Prober, piece: str, shift: int
) -> None:
    """With masks in their place, the end of the text that is read is within the part that is
    stored.
    """
    secret = f"{piece * 60}end"
    page = b"x" * shift + f"{secret}\n".encode() * 20
    web = Web(lambda head, body: http("500 Oh", page, "Content-Type: text/plain; charset=utf-8"))
    with closing(web):
        outcome = prober.check(
            spec(web, request_method="POST", auth=("ann", secret), request_body="a=1")
        )
    assert outcome.evidence is not None
    body = outcome.evidence["body"]
    assert body.startswith("x" * shift + MASK)
    assert piece[:4] not in body


@pytest.mark.parametrize("login", ["zoe:pw", "zoe:p@w", "zoe@site:pw", f"zoe:{'pw' * 400}"])
def test_the_login_in_a_location_is_shown_nowhere(prober: Prober, login: str) -> None:
    to = f"Location: http://{login}@a.test/"
    web = Web(lambda head, body: http("302 Found", to.encode(), to))
    with closing(web):
        outcome = prober.check(spec(web))
    assert outcome.result.cause_code == Cause.REDIRECT_BLOCKED
    shown = f"{outcome.result} {outcome.evidence}"
    assert f"//{MASK}@a.test" in shown
    assert "zoe" not in shown
    assert "pw" not in shown.replace("password", "")


def test_the_excerpt_of_a_matched_text_is_redacted(prober: Prober) -> None:
    web = Web(lambda head, body: http("200 OK", b"hello t0ken-1234567 world"))
    with closing(web):
        key = (Pair("X-Key", "t0ken-1234567"),)
        text = {"alert_condition": "url_no_text", "alert_text_lookup": "hello"}
        outcome = prober.check(spec(web, request_headers=key, **text))
    assert outcome.matched == f"hello {MASK} world"


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("http://ada:pa55word@shop.example/x", f"http://{MASK}@shop.example/x"),
        ("ftp://shop.example/?key=t0ken-1234567", f"ftp://shop.example/?key={MASK}"),
    ],
)
def test_a_secret_in_a_location_is_masked_in_cause_and_evidence(
    prober: Prober, location: str, shown: str
) -> None:
    web = Web(lambda head, body: http("302 Found", b"", f"Location: {location}"))
    with closing(web):
        outcome = prober.check(spec(web, request_headers=(Pair("X-Key", "t0ken-1234567"),)))
    assert outcome.result.cause_code == Cause.REDIRECT_BLOCKED
    assert shown in (outcome.result.cause or "")
    assert ["Location", shown] in (outcome.evidence or {})["headers"]
    for secret in ("pa55word", "t0ken-1234567"):
        assert secret not in repr(outcome.result) + repr(outcome.evidence)


@pytest.mark.parametrize(
    "path", ["/circle", "/maze", "/once", "/status", "/number"], ids=lambda path: path[1:]
)
def test_secrets_that_a_target_echoes_are_masked_everywhere(prober: Prober, path: str) -> None:
    secret = "t0ken-123/ä"
    echo = quote(secret, safe="")

    def answer(head: str, body: bytes) -> bytes:
        place = head.split(" ")[1].partition("?")[0]
        following = {"/circle": "/circle", "/once": "/end"}.get(place)
        if place.startswith("/maze"):
            following = f"/maze{len(head)}"
        if following:
            return http("302 Found", b"", f"Location: {following}?k={echo}")
        if place == "/number":
            return f"HTTP/1.1 000 {secret}\r\n\r\n".encode()
        return http(f"500 {secret}", secret.encode(), f"X-Echo: {secret}")

    web = Web(answer)
    with closing(web):
        outcome = prober.check(spec(web, path, request_headers=(Pair("X-Key", secret),)))
    message = repr(outcome)
    assert MASK in message
    for spelling in (secret, echo, secret.encode().decode("latin-1")):
        assert spelling not in message


def test_good_evidence_is_made_when_something_changed(prober: Prober) -> None:
    status = ["200 OK"]
    web = Web(lambda head, body: http(status[0]))
    with closing(web):
        monitor = spec(web, monitor_id=101)
        made = [prober.check(monitor).evidence is not None for _ in range(3)]
        status[0] = "201 Created"
        made.append(prober.check(monitor).evidence is not None)
        status[0] = "500 Oh"
        made += [prober.check(monitor).evidence is not None for _ in range(2)]
        unsaved = prober.check(spec(web)).evidence
        status[0] = "201 Created"
        made.append(prober.check(spec(web, "/other", monitor_id=101)).evidence is not None)
    assert made == [True, False, False, True, True, True, True]
    assert unsaved is not None


# --- Two families ---------------------------------------------------------------------------------


@IPV6
def test_only_the_first_check_waits_for_a_dead_family(prober: Prober) -> None:
    web = Web(lambda head, body: http())
    hole = BlackHole("::1", web.port)
    with closing(web, hole):
        took = []
        for _ in range(2):
            began = time.monotonic()
            result = prober.check(spec(web, name="dual.test", timeout=4.0)).result
            took.append(time.monotonic() - began)
            assert (result.verdict, result.ip) == (Verdict.UP, "127.0.0.1")
            assert result.warnings == (Warn.IPV6_UNREACHABLE,)
    assert took[0] > 3.0, "the first time it gets all the time there is"
    assert took[1] < took[0] - 1.0


@IPV6
def test_a_dead_family_of_a_redirecting_host_is_a_warning_and_not_a_failure(
    prober: Prober, web: Web
) -> None:
    page = f"http://a.test:{web.port}/"
    first = Web(lambda head, body: http("302 Found", b"", f"Location: {page}"))
    hole = BlackHole("::1", first.port)
    with closing(first, hole):
        result = prober.check(spec(first, name="dual.test", timeout=3.0)).result
    assert (result.verdict, result.redirects) == (Verdict.UP, (page,))
    assert result.warnings == (Warn.IPV6_UNREACHABLE,)


@IPV6
def test_a_family_that_accepts_is_not_tested_in_each_check(prober: Prober) -> None:
    six = Web(lambda head, body: http(), address="::1")
    taken = threading.Semaphore(0)
    four = Listener(lambda connection: taken.release(), "127.0.0.1", six.port)
    with closing(six, four):
        for _ in range(3):
            result = prober.check(spec(six, name="dual.test")).result
            assert (result.ip, result.warnings) == ("::1", ())
        assert taken.acquire(timeout=60)
        assert four.connections == 1


@pytest.mark.parametrize(
    ("roads", "kept"),
    [
        ("4 and 6", ("2001:db8::1", "2001:db8::2", "192.0.2.1")),
        ("4", ("192.0.2.1",)),
        ("6", ("2001:db8::1", "2001:db8::2")),
        ("none", ("2001:db8::1", "2001:db8::2", "192.0.2.1")),
    ],
)
def test_a_family_without_a_route_is_left_out(
    monkeypatch: pytest.MonkeyPatch, roads: str, kept: tuple[str, ...]
) -> None:
    """Its "no route" would hide the other family's error, such as a refusal."""
    monkeypatch.setattr(
        race, "has_route", lambda address: ("6" if ":" in address else "4") in roads
    )
    race._cached_route.cache_clear()
    assert race.routed(("2001:db8::1", "2001:db8::2", "192.0.2.1")) == kept
    assert race.routed(("2001:db8::1",)) == ("2001:db8::1",)
    race._cached_route.cache_clear()


# --- The thread -----------------------------------------------------------------------------------


def gather(prober: Prober, specs: list[CheckSpec]) -> list[Outcome]:
    futures: list[Future[Outcome]] = [Future() for _ in specs]
    for spec, future in zip(specs, futures, strict=True):
        prober.submit(spec, future.set_result)
    return [future.result(90) for future in futures]


def test_many_checks_run_at_once_and_leave_nothing_open(prober: Prober, web: Web) -> None:
    # 60 s: 400 at once take longer than the usual limit where other programs have the processor.
    gather(prober, [spec(web, timeout=60)] * 50)
    before = len(os.listdir("/proc/self/fd"))
    outcomes = gather(prober, [spec(web, timeout=60, monitor_id=number) for number in range(400)])
    assert {outcome.result.verdict for outcome in outcomes} == {Verdict.UP}
    assert [outcome.result.monitor_id for outcome in outcomes] == list(range(400))
    assert prober.in_flight == 0
    after = len(os.listdir("/proc/self/fd"))
    assert after - before < 50, "connections of the test's server may still be closing"


def test_checks_beyond_the_limit_wait_until_others_finish(names: NameServer) -> None:
    prober = Prober(policy=lambda: LOOPBACK, dns_servers=[names.server])
    prober._max_running = 3
    most, now, lock = 0, 0, threading.Lock()

    def answer(head: str, body: bytes) -> bytes:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1
        return http()

    web = Web(answer)
    with closing(web):
        outcomes = gather(prober, [spec(web)] * 30)
        # More than the depth of calls that Python allows: each starts the next when it ends.
        refused = gather(prober, [CheckSpec(url="http://10.0.0.1/")] * 1200)
    prober.close(5)
    assert {outcome.result.verdict for outcome in outcomes} == {Verdict.UP}
    assert most <= 3
    assert len(refused) == 1200


def test_a_fault_of_ours_is_check_error_and_the_next_check_is_fine(
    names: NameServer, web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    policies: list[Any] = [None, LOOPBACK]
    prober = Prober(policy=lambda: policies.pop(0), dns_servers=[names.server])
    broken = prober.check(spec(web, monitor_id=3)).result
    fine = prober.check(spec(web)).result
    prober.close(5)
    assert (broken.verdict, broken.cause_code) == (Verdict.UNKNOWN, Cause.CHECK_ERROR)
    assert broken.monitor_id == 3
    assert "AttributeError" in (broken.cause or "")
    assert "monitor 3" in caplog.text
    assert fine.verdict == Verdict.UP


def test_an_exception_while_judging_is_check_error(
    prober: Prober, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("app.checks.http.outcome.judge", fail)
        assert prober.check(spec(web)).result.cause_code == Cause.CHECK_ERROR
    with monkeypatch.context() as patch:
        patch.setattr("app.checks.curl.wire.Wire.exchange", fail)
        assert prober.check(spec(web)).result.cause_code == Cause.CHECK_ERROR
    assert prober.check(spec(web)).result.verdict == Verdict.UP
    assert prober.in_flight == 0


def test_an_exception_in_done_does_not_affect_other_checks(
    prober: Prober, web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    called = threading.Event()

    def fail(outcome: Outcome) -> None:
        called.set()
        raise ZeroDivisionError

    prober.submit(spec(web), fail)
    assert called.wait(60)
    assert prober.check(spec(web)).result.verdict == Verdict.UP
    assert "ZeroDivisionError" in caplog.text


def test_close_waits_for_checks_and_returns_the_unfinished_ones(names: NameServer) -> None:
    trap = Trap()  # accepts connections and never answers
    web = Web(lambda head, body: http())
    prober = Prober(policy=lambda: LOOPBACK, dns_servers=[names.server])
    finished: list[Outcome] = []
    with closing(trap, web):
        stuck = CheckSpec(url=f"http://a.test:{trap.port}/", timeout=30, monitor_id=9)
        prober.submit(stuck, finished.append)
        for _ in range(20):
            prober.submit(spec(web), finished.append)
        rest = prober.close(2)
    assert rest == [stuck]
    assert len(finished) == 20
    assert prober.close() == []
    with pytest.raises(RuntimeError, match="closed"):
        prober.submit(stuck, finished.append)


def test_a_missing_ca_bundle_raises_at_the_start() -> None:
    with pytest.raises(OSError, match="no-such-file"):
        Prober(policy=lambda: LOOPBACK, ca_bundle="/no-such-file.pem")


def test_the_added_authorities_are_no_file_that_a_killed_process_could_leave(
    tmp_path: Path,
) -> None:
    own = tmp_path / "own.pem"
    own.write_text("our own")
    bundle = Bundle(str(own))
    try:
        assert os.stat(bundle.path).st_nlink == 0
        for _ in range(2):
            assert Path(bundle.path).read_text() == f"our own\n{Path(certifi.where()).read_text()}"
    finally:
        bundle.close()
    assert not os.path.exists(bundle.path)


def test_proxies_of_the_environment_are_not_used(
    prober: Prober, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = Trap()
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{trap.port}")
    with closing(trap):
        assert prober.check(spec(web)).result.verdict == Verdict.UP
        assert trap.caught() == []
