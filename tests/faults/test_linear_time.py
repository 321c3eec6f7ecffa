"""Text from outside is read in time linear to its length: a reader that runs for minutes would
block the interpreter, and with it every check.

Each row of ``READERS`` is a reader and its worst input as a function of a size. These are timed, so
`make test` leaves them out; test_linear_patterns.py holds the patterns among them by their form.
"""

from __future__ import annotations

import gc
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard
from gunicorn.config import Config

from app.alerts import words as alert_words
from app.alerts.answers import retry_after
from app.api.operations import FORM, JSON, Body
from app.checks.curl import exchange
from app.checks.expiry import rdap, whois
from app.checks.expiry.registry import NoAnswer
from app.checks.http import compose
from app.checks.redact import Redactor
from app.codec import foreign
from app.commands.web import bodies
from app.commands.web import connection as web_connection
from app.errors import Invalid, Unavailable
from app.forms.monitor import MonitorForm
from app.forms.schema import bind
from app.forms.status_page import StatusPageForm
from app.imports import files, kuma, table
from app.net.client import Network, Response
from app.net.codings import Decoder, Undecodable, charset, codings
from app.net.hosts import SystemNames
from app.net.policy import Policy
from app.records import BODY_CAP_BYTES, MAX_FORM_BYTES, CheckSpec, Pair
from app.rules import addresses, channel_values, comments, masking, recurrence, slugs, url
from app.rules import text as rules
from app.rules.linked import linked
from app.stores.remote import connection, listing, meaning

NOW = datetime(2026, 11, 21, tzinfo=UTC)
BASE = url.parse_url("http://a.example/dir/page")
SPEC = CheckSpec(
    url="http://a.example/?q=secret-in-the-query",
    request_headers=(Pair("X-Token", "aaaaaaab"), Pair("Cookie", "a=aaaaaaaa; b=bbbbbbbb")),
    auth=("user", "password"),
    request_body="aaaaaaaa bbbbbbbb",
)
SECRETS = masking.secrets_in_url("https://x.example/aaaaaaab/aaaabbbb?key=aaaaaaaa")
ENCODED = masking.secrets_in_url(f"https://x.example/{'%25' * 30}/{'%5C%20' * 30}b")
CLIENT: Any = SimpleNamespace(setblocking=bool)
GUNICORN = Config()  # takes long to make
NETWORK = Network(Policy(), SystemNames())
EMPTY_ZSTD = zstandard.ZstdCompressor().compress(b"")

CEILING = 5.0  # seconds for the larger input, on any machine
RATIO = 3.2  # of a reader whose input doubles: 2 is linear, 4 is quadratic
# How a reader says no. Anything else that it raises is a fault of its own.
REFUSALS = (ValueError, NoAnswer, Undecodable, Invalid, Unavailable)
NOISE = 0.05  # seconds in which no ratio says anything


def times(unit: str) -> Callable[[int], str]:
    """``unit`` again and again, ``n`` characters in all."""
    return lambda n: (unit * (n // len(unit) + 1))[:n]


def around(before: str, unit: str, after: str = "") -> Callable[[int], str]:
    return lambda n: before + times(unit)(n) + after


def spec_redactor(value: str) -> None:
    redactor = Redactor(SPEC)
    redactor.text(value, cut=True)
    redactor.header("x-other", value)
    redactor.header("set-cookie", value)
    redactor.widened(value, len(value) // 2, len(value) // 2 + 10)


def check_answer(value: str) -> None:
    """The parts of an answer to an alert that a sender reads."""
    for kind in ("text/html", "application/json"):
        response = Response(503, {"Content-Type": kind, "Retry-After": value}, value)
        masking.clean(response.words, SECRETS)
        retry_after(response.headers, response.body, NOW)


def remember_cookies(value: str) -> None:
    carried = compose.Carried(SPEC)
    carried.store_cookies(BASE, [value, *value.split("\n")])
    carried.state(BASE)


def headers(value: str) -> None:
    lines = [b"HTTP/1.1 200 OK\r\n", *(line.encode() + b"\r\n" for line in value.split("\n"))]
    exchange.read_headers(lines)


def redirect(value: str) -> None:
    joined = url.join(BASE, value)
    compose.without_buster(joined.url)


def api_json(value: str) -> None:
    bind(MonitorForm, Body(value.encode(), JSON).pairs())


def api_form(value: str) -> None:
    bind(MonitorForm, Body(value.encode(), FORM).pairs())


def page_json(value: str) -> None:
    bind(StatusPageForm, Body(value.encode(), JSON).pairs())


def page_form(value: str) -> None:
    bind(StatusPageForm, Body(value.encode(), FORM).pairs())


def remote_answer(value: str) -> None:
    remote = connection.RemoteConnection("http://other.example", "wkf_a_key", NETWORK)
    answer = SimpleNamespace(status_code=200, headers={"Date": value, "Retry-After": value})
    remote._note_clock(answer)
    connection._pause(answer)
    remote._json(value.encode())


def remote_record(value: str) -> None:
    """A monitor of a server that speaks the base API alone, the same text at every place."""
    fields = {
        "name": "a", "interval": value, "ssl_alert_days": value, "alertCondition": value,
        "request_headers": [value], "alerts": [{"key": "email", "value": value}],
        "maintenance_start_at": value, value: value,
    }  # fmt: skip
    foreign.monitor({"id": 1, **fields}, is_wakeful=lambda: False)


def remote_fault(value: str) -> None:
    """The parts of an answer in which a server names the fields that it refuses, and its links."""
    body = {"errors": [{"field": value, "message": "No."}]}
    answer = connection.ServerAnswer(422, body, {"Location": value}, "", True, None)
    meaning.read(answer)
    _ = answer.was_turned_away
    listing.CURSOR.search(value)


def chunked(value: str) -> None:
    """A body in chunks, as much at once as the event loop reads."""
    body = bodies.Chunks(MAX_FORM_BYTES)
    body._frames = -(10**9)  # without the bound that ends it early
    received = bytearray()
    for at in range(0, len(value), web_connection.RECEIVED_AT_ONCE):
        received += value[at : at + web_connection.RECEIVED_AT_ONCE].encode()
        with suppress(bodies.Malformed):
            body.take(received)


def pipelined(value: str) -> None:
    """Short requests that arrived together."""
    conn = web_connection.ClientConnection(CLIENT, ("127.0.0.1", 1), None)
    conn.received += value.encode()
    while conn.has_head():
        conn.parse(GUNICORN, MAX_FORM_BYTES)
        conn.renew()


def unread_body(n: int) -> None:
    """A body that the application takes in small steps."""
    conn = web_connection.ClientConnection(CLIENT, ("127.0.0.1", 1), None)
    conn.received += b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % n + b"a" * n
    conn.parse(GUNICORN, MAX_FORM_BYTES)
    assert conn.take_body()
    conn.seal()
    while conn.request.body.read(64):
        pass


def import_file(value: str) -> None:
    files.read(value.encode())


def import_kuma(fields: Any) -> None:
    entry = {"type": "http", "name": "a", "url": "https://a.example", **fields}
    kuma.read({"monitorList": [entry]})


def import_kuma_mail(size: int) -> None:
    """One notification of all monitors: both are long."""
    config = {"type": "smtp", "smtpTo": "ops@example.org," * size}
    monitors = [{"type": "http", "notificationIDList": {"1": True}}] * size
    notification = {"id": 1, "config": json.dumps(config)}
    kuma.read({"monitorList": monitors, "notificationList": [notification]})


def import_gatus_mail(size: int) -> None:
    """One provider of all endpoints: both are long. A quarter of the size is enough: each
    line takes long to read, and the product of both is still far above the noise.
    """
    provider = f"alerting: {{email: {{to: '{'ops@example.org,' * (size // 4)}'}}}}\n"
    endpoints = "- {alerts: [{type: email}]}\n" * (size // 4)
    files.read(f"{provider}endpoints:\n{endpoints}".encode())


def whois_answer(value: str) -> None:
    with suppress(whois.NoAnswer):
        whois._referred(value, "example")
    whois.expiry_in(value)


def rdap_answer(*dates: str, times: int = 1) -> None:
    events = [{"eventAction": "expiration", "eventDate": date} for date in dates] * times
    rdap.expiry_in(json.dumps({"events": events}).encode())


# Reader, its worst input by size, and the size of the smaller of the two inputs.
READERS: list[tuple[str, Callable[[Any], object], Callable[[int], Any], int]] = [
    ("whois: spaces behind a label", whois_answer, around("expires", " "), 32_000),
    ("whois: newlines", whois_answer, times("\n"), 32_000),
    ("whois: labels", whois_answer, times("expires\n"), 32_000),
    ("whois: percent signs", whois_answer, times("% \n"), 32_000),
    ("whois: dates that are none", whois_answer, times("expires: 2027-99-99 T1:1\n"), 32_000),
    ("masking: percent signs", lambda text: masking.clean(text, ENCODED), times("%25"), 32_000),
    ("masking: backslashes", lambda text: masking.clean(text, ENCODED), times("\\\\ "), 32_000),
    ("rdap: a long date", rdap_answer, times("1 a:"), 500_000),
    ("rdap: many dates", lambda n: rdap_answer("Nonday 99 99", times=n), lambda n: n, 20_000),
    ("rdap: nested", lambda s: rdap.expiry_in(s.encode()), times('{"events":['), 500_000),
    ("rdap: a number", lambda s: rdap.expiry_in(s.encode()), times("9"), 500_000),
    ("charset: header", lambda s: charset(b"", s), around("charset=", " ", ";"), 32_000),
    ("charset: meta", lambda s: charset(s.encode(), None), times("<meta charset= "), 9_000),
    ("charset: spaces", lambda s: charset(s.encode(), None),
     lambda n: "<meta charset=" * (n // 28) + " " * (n // 2), 30_000),
    ("charset: comments", lambda s: charset(s.encode(), None), times("<!--"), 30_000),
    ("headers: folded", headers, around("a: b", "\n c"), 30_000),
    ("headers: of one letter", headers, times("a:\n"), 30_000),
    ("evidence: starts of secrets", spec_redactor, times("aaaa"), 30_000),
    ("evidence: secrets", spec_redactor, times("password"), 30_000),
    ("evidence: users", spec_redactor, times("//a"), 30_000),
    ("evidence: one long user", spec_redactor, around("//", "a"), 30_000),
    ("location: marks", redirect, around("http://", "\u0315\u0300"), 10_000),
    ("location: international", redirect, around("http://", "ü."), 10_000),
    ("location: dots", redirect, times("../"), 30_000),
    ("location: at signs", redirect, around("http://", "@"), 30_000),
    ("cookies: semicolons", remember_cookies, around("a=b", ";"), 30_000),
    ("cookies: a date", remember_cookies, around("a=b; Expires=", "1: "), 30_000),
    ("cookies: many", remember_cookies, times("a=b\n"), 30_000),
    ("codings: names", lambda s: codings([s]), times("gzip,"), 30_000),
    ("codings: empty frames", lambda n: Decoder(["zstd"], BODY_CAP_BYTES).feed(EMPTY_ZSTD * n),
     lambda n: n, 8_000),
    ("statuses: commas", rules.parse_statuses, around("200", ","), 30_000),
    *(
        (f"receiver: {unit[:12]}", check_answer, times(unit), 8_000)
        for unit in ("<a ", '<a x="', "<a\t/", "<!--", "<!", "</", "<script", "&", "&#9", "[",
                     '{"a":', "9", " ", "aaaa", "<", "<![CDATA[", "\n<", "Mon, ", "1-")
    ),
    ("messages: times", lambda s: alert_words.localized(s, str, lambda at, _text: str(at)),
     times("2026-11-21 08:00 UT"), 60_000),
    ("remote: spaces", remote_answer, times(" "), 200_000),
    ("remote: nested", remote_answer, times("["), 200_000),
    ("remote: a number", remote_answer, times("9"), 200_000),
    ("remote: escapes", remote_answer, around('"', "\\u00", '"'), 200_000),
    ("remote: capitals of a name", remote_record, times("aA"), 60_000),
    ("remote: brackets of a mask", remote_record, times("[<(hidden "), 60_000),
    ("remote: a field's path", remote_fault, times("a/[A."), 60_000),
    ("remote: a cron line", recurrence.is_repeat, times("1,"), 30_000),
    ("api: names", api_form, times("alerts[1][key]=a&"), 100_000),
    ("api: indices", api_form,
     lambda n: "&".join(f"tags[{'0' * (k % 50)}{k}]=a" for k in range(n // 50)), 100_000),
    ("api: brackets", api_form, times("a[[["), 100_000),
    ("api: nested", api_json, times('{"a":['), 100_000),
    ("api: a number", api_json, around('{"interval": ', "9", "}"), 100_000),
    ("api: members", api_json, lambda n: json.dumps({f"a{k}": k for k in range(n)}), 8_000),
    ("api: a list", api_json, lambda n: json.dumps({"tags": ["a"] * n}), 8_000),
    ("paste: spaces", table.cells, around("a,http://x", " ", "b"), 20_000),
    ("paste: hosts", table.cells, around("", "a.a:1/", ", b c"), 20_000),
    ("import: a csv of quotes", import_file, times('",'), 100_000),
    ("import: a csv with a header", import_file, around("url,name\n", 'a.b,"c"\n'), 20_000),
    ("import: one long cell", import_file, around("url,name\n", "a"), 100_000),
    ("import: variables", import_file, around("endpoints:\n- url: ", "$a{$"), 100_000),
    ("import: a condition", import_file,
     around("endpoints:\n- conditions: ['[STATUS] == any(", "200,", ")']"), 30_000),
    ("import: endpoints", import_file, around("endpoints:\n", "- name: a\n"), 20_000),
    ("import: yaml brackets", import_file, around("endpoints: ", "["), 100_000),
    ("import: yaml braces", import_file, around("endpoints: ", "{"), 100_000),
    ("import: yaml aliases", import_file, around("endpoints: [&a b", ", *a", "]"), 30_000),
    ("import: json brackets", import_file, times("["), 100_000),
    ("import: json monitors", import_file, around('{"monitorList": [{}', ", {}", "]}"), 20_000),
    ("import: headers of one monitor", import_kuma,
     lambda n: {"headers": {f"a{k}": "b" for k in range(n)}}, 60_000),
    ("import: tags of one monitor", import_kuma,
     lambda n: {"tags": [{"name": f"a{k}"} for k in range(n)]}, 60_000),
    ("import: one mail list of all monitors", import_kuma_mail, lambda n: n, 8_000),
    ("import: mail addresses of all endpoints", import_gatus_mail, lambda n: n, 8_000),
    ("import: merged mappings", import_file,
     lambda n: f"endpoints:\n- <<: [{','.join(f'{{k{k}: 1}}' for k in range(n))}]\n", 8_000),
    ("import: conditions of one endpoint", import_file,
     around("endpoints:\n- conditions:\n", "  - '[STATUS] != 404'\n"), 60_000),
    ("import: a long text by alias", import_file,
     lambda n: f"endpoints:\n- name: &a {'a' * n}\n" + "- name: *a\n" * (n // 10), 20_000),
    ("request: chunks of one byte", chunked, times("1\r\na\r\n"), 300_000),
    ("request: chunk extensions", chunked, times("1;a=b\r\na\r\n"), 300_000),
    ("request: one chunk", chunked, around("fffff0\r\n", "a"), 1_000_000),
    ("request: trailers", chunked, around("0\r\n", "a:\r\n"), 300_000),
    ("request: a body in small steps", unread_body, lambda n: n, 1_000_000),
    ("request: many short ones", pipelined, times("GET / HTTP/1.1\r\n\r\n"), 30_000),
    ("form: email of dots", lambda s: channel_values._email(s, False), around("a@", "a."),
     30_000),
    ("form: sender of brackets", addresses.sender_parts, times('<">'), 30_000),
    ("form: address of dots", addresses.check, around("", "a.", "@b"), 30_000),
    ("text: links", linked, times("http://a "), 15_000),
    ("text: the end of a link", linked, around("http://a", ".)"), 30_000),
    ("form: groups", page_form, times("groups[0][monitors][1]=1&"), 100_000),
    ("form: groups of many digits", page_form, around("groups[0][monitors][", "1"), 100_000),
    ("json: groups", page_json, around('{"groups":[{"name":"a","monitors":[', "1,", "1]}]}"),
     60_000),
    ("slug: a name", slugs.of_name, times("\u0315\u0300"), 20_000),
    ("host name: marks", url.host_name, times("\u0315\u0300"), 10_000),
    ("text: links without gaps", linked, times("http://a"), 15_000),
    ("text: ends of links", linked, times("http://a.b....."), 15_000),
    ("comment: heads", comments.remarks, times("[2026-01-01 00:00:00 UTC, a\n"), 10_000),
    ("text: lines", lambda text: rules.characters(text, lines=True), times("a\n"), 500_000),
    ("text: one line", lambda text: rules.one_line(text, len(text)), times("a\n "), 100_000),
]  # fmt: skip


def seconds(read: Callable[[Any], object], value: Any) -> float:
    began = time.thread_time()  # of the processor: another process may take it away meanwhile
    with suppress(*REFUSALS):
        read(value)
    return time.thread_time() - began


pytestmark = pytest.mark.more


@pytest.fixture(scope="module", autouse=True)
def _little_garbage() -> Iterator[None]:
    """Objects of other tests are left out when garbage is collected before each measurement."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize(
    ("read", "worst", "size"), [pytest.param(*row[1:], id=row[0]) for row in READERS]
)
def test_twice_the_input_takes_twice_the_time(
    read: Callable[[Any], object], worst: Callable[[int], Any], size: int
) -> None:
    small, large = worst(size), worst(2 * size)
    gc.collect()
    after = seconds(read, large)
    if after < NOISE:
        return
    before = min(seconds(read, small) for _ in range(3))
    for _attempt in range(15):  # a busy machine takes longer now and then, never less
        assert after < CEILING
        if after < max(NOISE, RATIO * before):
            return
        after = min(after, seconds(read, large))
    pytest.fail(f"{before:.3f} s for {size}, {after:.3f} s for twice as much")


def test_no_size_is_so_small_that_a_quadratic_pattern_passes_as_noise() -> None:
    smallest = min(row[3] for row in READERS)
    quadratic = re.compile("a*b").search
    assert min(seconds(quadratic, "a" * 2 * smallest) for _ in range(3)) > NOISE
