"""Text from outside is read in time linear to its length: a regular expression that runs for
minutes would block the interpreter, and with it every check.

Each row of ``READERS`` is a reader and its worst input as a function of a size. The last test fails
if a module of app/ gets a pattern that no row covers.
"""

from __future__ import annotations

import ast
import gc
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard
from gunicorn.config import Config

import app
from app import config, proxies
from app.access import audit
from app.alerts import words as alert_words
from app.alerts.answers import retry_after
from app.alerts.channels import apprise_child, discord, slack, teams, telegram
from app.api.call import FORM, JSON, Body
from app.checks.expiry import rdap, whois
from app.checks.expiry.registry import NoAnswer
from app.checks.http import compose, exchange, telling, wire
from app.checks.redact import Redactor
from app.codec import foreign
from app.codec import values as remote_values
from app.commands.web import bodies
from app.commands.web import connection as web_connection
from app.db import contents
from app.engine.agent import trouble
from app.errors import Invalid, Unavailable
from app.forms.binding import bind
from app.forms.monitor import MonitorForm
from app.forms.status_page import StatusPageForm
from app.imports import files, kuma, table, values
from app.net import charset
from app.net.client import Network, Response
from app.net.codings import Decoder, Undecodable, codings
from app.net.hosts import SystemNames
from app.net.policy import Policy
from app.pages import front, history
from app.records import BODY_CAP_BYTES, MAX_FORM_BYTES, CheckSpec, Pair
from app.rules import (
    addresses,
    brackets,
    channel_values,
    comments,
    masking,
    posts,
    quiet_hours,
    recurrence,
    service_url,
    slugs,
    sms,
    statuses,
    url,
)
from app.rules import text as rules
from app.stores.remote import connection, listing, meaning
from app.web.frame import fragments
from app.web.shown import months, timeline

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
    redactor.whole(value, len(value) // 2, len(value) // 2 + 10)


def check_answer(value: str) -> None:
    """What a sender reads of the answer to an alert."""
    for kind in ("text/html", "application/json"):
        response = Response(503, {"Content-Type": kind, "Retry-After": value}, value)
        masking.clean(response.words, SECRETS)
        retry_after(response.headers, response.body, NOW)


def remember_cookies(value: str) -> None:
    carried = compose.Carried(SPEC)
    carried.remember(BASE, [value, *value.split("\n")])
    carried.state(BASE)


def stream(value: str) -> None:
    wire._STREAM.search(value.encode())


def headers(value: str) -> None:
    lines = [b"HTTP/1.1 200 OK\r\n", *(line.encode() + b"\r\n" for line in value.split("\n"))]
    exchange.read_headers(lines)


def redirect(value: str) -> None:
    found = url.join(BASE, value)
    compose.without_buster(found.url)


def post_links(value: str) -> None:
    list(posts.parts(value))


def api_json(value: str) -> None:
    bind(MonitorForm, Body(value.encode(), JSON).pairs())


def api_form(value: str) -> None:
    bind(MonitorForm, Body(value.encode(), FORM).pairs())


def page_json(value: str) -> None:
    bind(StatusPageForm, Body(value.encode(), JSON).pairs())


def page_form(value: str) -> None:
    bind(StatusPageForm, Body(value.encode(), FORM).pairs())


def remote_answer(value: str) -> None:
    one = connection.RemoteConnection("http://other.example", "wkf_a_key", NETWORK)
    told = SimpleNamespace(status_code=200, headers={"Date": value, "Retry-After": value})
    one._note_clock(told)
    connection._pause(told)
    one._json(value.encode())


def remote_record(value: str) -> None:
    """A monitor of a server that speaks the base API alone, the same text at every place."""
    fields = {
        "name": "a", "interval": value, "ssl_alert_days": value, "alertCondition": value,
        "request_headers": [value], "alerts": [{"key": "email", "value": value}],
        "maintenance_start_at": value, value: value,
    }  # fmt: skip
    foreign.monitor({"id": 1, **fields}, own=lambda: False)


def remote_fault(value: str) -> None:
    """Where a server names the fields that it refuses, and leads to."""
    body = {"errors": [{"field": value, "message": "No."}]}
    answer = connection.ServerAnswer(422, body, {"Location": value}, "", True, None)
    meaning.read(answer)
    _ = answer.is_elsewhere
    listing.CURSOR.search(value)


def remote_values_of(value: str) -> None:
    for read in (
        remote_values.whole,
        remote_values.moment,
        remote_values.texts,
        remote_values.flag,
    ):
        read(value)


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
    ("whois: newlines and a label", whois_answer, around("", "\n", "expires"), 32_000),
    ("whois: labels", whois_answer, times("expires\n"), 32_000),
    ("whois: labels of one line", whois_answer, times("expires "), 32_000),
    ("whois: dots behind a label", whois_answer, around("expires on", ". "), 32_000),
    ("whois: percent signs", whois_answer, times("% \n"), 32_000),
    ("whois: dates that are none", whois_answer, times("expires: 2027-99-99 T1:1\n"), 32_000),
    ("masking: percent signs", lambda text: masking.clean(text, ENCODED), times("%25"), 32_000),
    ("masking: 252525", lambda text: masking.clean(text, ENCODED), around("%", "25"), 32_000),
    ("masking: backslashes", lambda text: masking.clean(text, ENCODED), times("\\\\ "), 32_000),
    ("whois: a date that never ends", whois.parse_date, times("T "), 32_000),
    ("whois: a date of digits", whois.parse_date, around("2027-01-01 1:1", "1"), 32_000),
    ("whois: referrals", whois_answer, times("refer: \n"), 32_000),
    ("whois: no referral", whois_answer, around("refer:", " ", "a b"), 32_000),
    ("rdap: a long date", rdap_answer, times("1 a:"), 500_000),
    ("rdap: many dates", lambda n: rdap_answer("Nonday 99 99", times=n), lambda n: n, 20_000),
    ("rdap: nested", lambda s: rdap.expiry_in(s.encode()), times('{"events":['), 500_000),
    ("rdap: a number", lambda s: rdap.expiry_in(s.encode()), times("9"), 500_000),
    ("charset: header", lambda s: charset.charset(b"", s), around("charset=", " ", ";"), 32_000),
    ("charset: header again", lambda s: charset.charset(b"", s), times("charset= "), 32_000),
    ("charset: label", lambda s: charset.charset(b"", s), around("charset=", "a"), 32_000),
    ("charset: meta", lambda s: charset.charset(s.encode(), None), times("<meta charset= "), 9_000),
    ("charset: spaces", lambda s: charset.charset(s.encode(), None),
     lambda n: "<meta charset=" * (n // 28) + " " * (n // 2), 30_000),
    ("charset: xml", lambda s: charset.charset(s.encode(), None), around("<?xml encoding", " "),
     30_000),
    ("charset: comments", lambda s: charset.charset(s.encode(), None), times("<!--"), 30_000),
    ("charset: style", lambda s: charset.charset(s.encode(), None), around("@charset", " "), 9_000),
    ("headers: folded", headers, around("a: b", "\n c"), 30_000),
    ("headers: of one letter", headers, times("a:\n"), 30_000),
    ("evidence: starts of secrets", spec_redactor, times("aaaa"), 30_000),
    ("evidence: secrets", spec_redactor, times("password"), 30_000),
    ("evidence: users", spec_redactor, times("//a"), 30_000),
    ("evidence: one long user", spec_redactor, around("//", "a"), 30_000),
    ("contents: ids", contents.is_ids, around(",", "1,", "x"), 30_000),
    ("telling: curl's words", telling.tidy, times("error:00000000:"), 30_000),
    ("telling: a bracket", telling.tidy, times(" (1"), 30_000),
    ("telling: openssl", telling.openssl_reason, times("error:0000000"), 30_000),
    ("location: marks", redirect, around("http://", "\u0315\u0300"), 10_000),
    ("location: marks behind a tab", redirect, around("/\t/", "\u0315\u0300"), 10_000),
    ("location: international", redirect, around("http://", "ü."), 10_000),
    ("location: dots", redirect, times("../"), 30_000),
    ("location: at signs", redirect, around("http://", "@"), 30_000),
    ("location: digits", redirect, around("http://", "0."), 30_000),
    ("location: port", redirect, around("http://a:", "9"), 30_000),
    ("location: cache busters", redirect, times("?wakeful_cache_buster=0"), 30_000),
    ("cookies: semicolons", remember_cookies, around("a=b", ";"), 30_000),
    ("cookies: a date", remember_cookies, around("a=b; Expires=", "1: "), 30_000),
    ("cookies: an age", remember_cookies, around("a=b; Max-Age=", "0"), 30_000),
    ("stream: spaces", stream, around("\ncontent-type:", " \t"), 500_000),
    ("cookies: many", remember_cookies, times("a=b\n"), 30_000),
    ("codings: names", lambda s: codings([s]), times("gzip,"), 30_000),
    ("codings: empty frames", lambda n: Decoder(["zstd"], BODY_CAP_BYTES).feed(EMPTY_ZSTD * n),
     lambda n: n, 8_000),
    ("statuses: commas", statuses.parse_statuses, around("200", ","), 30_000),
    ("statuses: digits", statuses.parse_statuses, around("200-", "2"), 30_000),
    *(
        (f"receiver: {unit[:12]}", check_answer, times(unit), 8_000)
        for unit in ("<a ", '<a x="', "<a\t/", "<!--", "<!", "</", "<script", "&", "&#9", "[",
                     '{"a":', "9", " ", "aaaa", "<", "<![CDATA[", "\n<", "Mon, ", "1-")
    ),
    ("apprise: log", lambda s: apprise_child.refused_for_good([s]), times("error=1"), 30_000),
    ("slack: calls", slack.escape, times("@channe"), 30_000),
    ("messages: times", lambda s: alert_words.localized(s, str, lambda at, _text: str(at)),
     times("2026-11-21 08:00 UT"), 60_000),
    ("teams: status of another", teams._INNER.search, times("endpoint returned HTTP error "),
     30_000),
    ("teams: words", teams._PASSING.search, times("TooManyThrott"), 30_000),
    ("teams: markdown", teams._MARKDOWN.findall, times("*_"), 30_000),
    ("telegram: the id of a group", telegram._CHAT.fullmatch, around("-", "1"), 30_000),
    ("discord: markdown", discord.escape, times("*_"), 30_000),
    ("remote: spaces", remote_answer, times(" "), 200_000),
    ("remote: nested", remote_answer, times("["), 200_000),
    ("remote: a number", remote_answer, times("9"), 200_000),
    ("remote: escapes", remote_answer, around('"', "\\u00", '"'), 200_000),
    ("remote: a date", remote_answer, times("1-"), 60_000),
    ("remote: a date of ASP.NET", remote_answer, around("/Date(", "9", ")"), 60_000),
    ("remote: a clock of another age", remote_answer,
     around("Sat, 21 Nov 2026 08:00:09 +", "9"), 60_000),
    ("remote: a value of digits", remote_values_of, times("9"), 200_000),
    ("remote: a value of commas", remote_values_of, times(","), 200_000),
    ("remote: capitals of a name", remote_record, times("aA"), 60_000),
    ("remote: a cut text", remote_record, around("", ".", "a"), 60_000),
    ("remote: a mask", remote_record, around("[", "*", "a"), 60_000),
    ("remote: brackets of a mask", remote_record, times("[<(hidden "), 60_000),
    ("remote: days", remote_record, around("", "9", " day"), 60_000),
    ("remote: a header", remote_record, around("a:", " ", "b"), 60_000),
    ("remote: condition", remote_record, times("- "), 60_000),
    ("remote: a field's path", remote_fault, times("a/[A."), 60_000),
    ("remote: where it leads", remote_fault, times("log-sign_curso"), 60_000),
    ("settings: a link", lambda s: service_url.is_link(s, {s: "1"}),
     around("", "_SERVICE_PORT_A", "a"), 30_000),
    ("settings: a link's value", lambda s: service_url.is_link("A_PORT", {"A_PORT": s}),
     around("tcp://", "a"), 30_000),
    ("settings: names of containers",
     lambda s: service_url.is_link("A_NAME", {"A_NAME": s}), around("", "/a", "/"), 30_000),
    ("settings: a number", config._DECIMAL.fullmatch, around("1", "1", "x"), 30_000),
    ("settings: an account", lambda s: sms.parse(f"twilio://{s}:a@b"), around("", "a", "+"),
     30_000),
    ("request: a folder", proxies.is_folder, around("", "/a", "/.."), 30_000),
    ("remote: a cron line", recurrence.repeat_fault, times("1,"), 30_000),
    ("remote: a cron line of digits", recurrence.repeat_fault, around("0 0 1 1 ", "9"), 30_000),
    ("api: names", api_form, times("alerts[1][key]=a&"), 100_000),
    ("api: indices", api_form,
     lambda n: "&".join(f"tags[{'0' * (k % 50)}{k}]=a" for k in range(n // 50)), 100_000),
    ("api: brackets", api_form, times("a[[["), 100_000),
    ("api: a long index", api_form, around("alerts[", "9", "][key]=a"), 100_000),
    ("api: nested", api_json, times('{"a":['), 100_000),
    ("api: a number", api_json, around('{"interval": ', "9", "}"), 100_000),
    ("api: an exponent", api_json, around('{"interval": 1e', "9", "}"), 100_000),
    ("api: members", api_json, lambda n: json.dumps({f"a{k}": k for k in range(n)}), 8_000),
    ("api: a list", api_json, lambda n: json.dumps({"tags": ["a"] * n}), 8_000),
    ("paste: spaces", table.cells, around("a,http://x", " ", "b"), 20_000),
    ("paste: only spaces", table.cells, around("a", " ", "b"), 20_000),
    ("paste: commas", table.cells, times(", "), 20_000),
    ("paste: commas and letters", table.cells, times(",a"), 20_000),
    ("paste: spaces behind a comma", table.cells, around("a,", " ", "b"), 20_000),
    ("paste: quotes", table.cells, around('a,"http://x', '" '), 20_000),
    ("paste: a scheme", table.cells, around("", "a", ","), 20_000),
    ("paste: dots of a host", table.cells, around("", "a.", " b"), 20_000),
    ("paste: hosts", table.cells, around("", "a.a:1/", ", b c"), 20_000),
    ("paste: a port", table.cells, around("a:", "1", " b"), 20_000),
    ("import: a csv of quotes", import_file, times('",'), 100_000),
    ("import: a csv with a header", import_file, around("url,name\n", 'a.b,"c"\n'), 20_000),
    ("import: one long cell", import_file, around("url,name\n", "a"), 100_000),
    ("import: variables", import_file, around("endpoints:\n- url: ", "$a{$"), 100_000),
    ("import: a condition", import_file,
     around("endpoints:\n- conditions: ['[STATUS] == any(", "200,", ")']"), 30_000),
    ("import: endpoints", import_file, around("endpoints:\n", "- name: a\n"), 20_000),
    ("import: yaml brackets", import_file, around("endpoints: ", "["), 100_000),
    ("import: yaml braces", import_file, around("endpoints: ", "{"), 100_000),
    ("import: yaml quotes", import_file, around("endpoints: ", "'"), 100_000),
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
    ("import: a span", values.seconds, times("1h"), 30_000),
    ("request: line ends", lambda s: web_connection._BARE_LF.search(s.encode()), times("\r"),
     30_000),
    ("request: chunks of one byte", chunked, times("1\r\na\r\n"), 300_000),
    ("request: chunk extensions", chunked, times("1;a=b\r\na\r\n"), 300_000),
    ("request: one chunk", chunked, around("fffff0\r\n", "a"), 1_000_000),
    ("request: trailers", chunked, around("0\r\n", "a:\r\n"), 300_000),
    ("request: chunk size", lambda s: bodies._CHUNK_SIZE.fullmatch(s.encode()),
     around("1", " ", "x"), 8_000),
    ("request: chunk extension", lambda s: bodies._CHUNK_SIZE.fullmatch(s.encode()),
     around("1", " ;", "\0"), 8_000),
    ("request: trailer", lambda s: bodies._TRAILER.fullmatch(s.encode()), around("a:", " ", "\0"),
     30_000),
    ("request: a body in small steps", unread_body, lambda n: n, 1_000_000),
    ("request: many short ones", pipelined, times("GET / HTTP/1.1\r\n\r\n"), 30_000),
    ("form: email", lambda s: channel_values._email(s, False), times("a@"), 30_000),
    ("form: email of dots", lambda s: channel_values._email(s, False), around("a@", "a."),
     30_000),
    ("form: telegram", channel_values.parse_telegram, around("1:", "a"), 30_000),
    ("form: sender", addresses.sender_parts, times('"a '), 30_000),
    ("form: sender of brackets", addresses.sender_parts, times('<">'), 30_000),
    ("form: address of dots", addresses.check, around("", "a.", "@b"), 30_000),
    ("form: integer", rules.integer, times("9"), 30_000),
    ("form: moment", rules.moment, times("1 "), 30_000),
    ("form: header name", rules.header_name, around("", "a", " "), 30_000),
    ("post: links", post_links, times("http://a "), 30_000),
    ("post: no links", post_links, times("http:/"), 30_000),
    ("post: the end of a link", post_links, around("http://a", ".)"), 30_000),
    ("form: clock", quiet_hours.parse_clock, times("1"), 30_000),
    ("form: name in brackets", brackets.parse, around("a[", "1"), 30_000),
    ("form: name in three brackets", brackets.parse, around("a[1][b][", "1"), 30_000),
    ("form: groups", page_form, times("groups[0][monitors][1]=1&"), 100_000),
    ("form: groups of many digits", page_form, around("groups[0][monitors][", "1"), 100_000),
    ("json: groups", page_json, around('{"groups":[{"name":"a","monitors":[', "1,", "1]}]}"),
     60_000),
    ("slug: hyphens", slugs.check, times("a-"), 200_000),
    ("slug: a name", slugs.of_name, times("\u0315\u0300"), 20_000),
    ("host name: marks", url.host_name, times("\u0315\u0300"), 10_000),
    ("host name: labels", url.host_name, times("a."), 30_000),
    ("status page: links", front.linked, times("http://a"), 15_000),
    ("status page: ends of links", front.linked, times("http://a.b....."), 15_000),
    ("status page: month", lambda s: history._MONTH.fullmatch(s), times("1"), 30_000),
    ("form: month", lambda s: months._MONTH.fullmatch(s), times("1"), 30_000),
    ("comment: heads", comments.remarks, times("[2026-01-01 00:00:00 UTC, a\n"), 10_000),
    ("comment: brackets", comments.remarks, times("["), 10_000),
    ("timeline: durations", lambda s: timeline._DURATION.sub("", s), times("9"), 60_000),
    ("timeline: dots", lambda s: timeline._DURATION.sub("", s), times("9.9 "), 60_000),
    ("agent: an answer of a proxy", lambda s: trouble.TUNNEL.match(s),
     around("Tunnel connection failed: ", "1"), 60_000),
    ("live: texts", lambda s: fragments._TOKEN.sub("", fragments._AGING.sub("", s)),
     times("<time data-ago"), 30_000),
    ("audit: secret fields", audit._SECRET.search, times("password_se"), 60_000),
    ("live: tokens", lambda s: fragments._TOKEN.sub("", fragments._AGING.sub("", s)),
     times('<name="csrf_token"'), 30_000),
    ("text: no control character", rules.characters, times("ä"), 500_000),
    ("text: lines", lambda text: rules.characters(text, lines=True), times("a\n"), 500_000),
    ("text: one line", lambda text: rules.one_line(text, len(text)), times("a\n "), 100_000),
    ("agent: a proxy's answer", trouble.TUNNEL.match,
     around("Tunnel connection failed: ", "1"), 500_000),
]  # fmt: skip


def seconds(read: Callable[[Any], object], value: Any) -> float:
    began = time.thread_time()  # of the processor: another process may take it away meanwhile
    with suppress(*REFUSALS):
        read(value)
    return time.thread_time() - began


@pytest.fixture(scope="module", autouse=True)
def _little_garbage() -> Iterator[None]:
    """What the other tests hold is left out when garbage is collected before each measurement."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize(
    ("read", "worst", "size"),
    [pytest.param(*row[1:], id=row[0]) for row in READERS],
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


# The patterns of app/ by module. A pattern without a name is listed by its function.
PATTERNS = """
access/audit.py _SECRET
alerts/channels/apprise_child.py _STATUS
alerts/channels/discord.py _MARKDOWN
alerts/channels/email.py _DOTS
alerts/words.py _WRITTEN
alerts/channels/slack.py _CALLS_PEOPLE
alerts/channels/teams.py _INNER
alerts/channels/teams.py _MARKDOWN
alerts/channels/teams.py _PASSING
alerts/channels/telegram.py _CHAT
checks/expiry/whois.py _ENDS
checks/expiry/whois.py _LIMITED
checks/expiry/whois.py _NAMED
checks/expiry/whois.py _REFERRAL
checks/expiry/whois.py _TIME
checks/expiry/whois.py _UNKNOWN_DOMAIN
checks/expiry/whois.py _ZONE
checks/expiry/whois.py parse_date
checks/http/compose.py _BUSTED
checks/outcome.py _CONTROL
checks/http/telling.py _OPENSSL_ERROR
checks/http/wire.py _STREAM
checks/http/telling.py tidy
checks/redact.py _SECRET_NAME
checks/redact.py _USER_INFO
checks/redact.py _body_secrets
codec/foreign.py _AMOUNT
codec/foreign.py _CLOCK
codec/foreign.py _HEADER
codec/foreign.py _MASK
codec/foreign.py _PARTLY
codec/foreign.py _WORD_STARTS
codec/foreign.py _condition
codec/foreign.py _days
codec/foreign.py _whole_seconds
codec/values.py _DATE
codec/values.py _NUMBER
config.py _DECIMAL
config.py _SURROGATE
commands/web/bodies.py _CHUNK_SIZE
commands/web/bodies.py _TRAILER
commands/web/connection.py _BARE_LF
db/contents.py is_ids
engine/agent/trouble.py TUNNEL
forms/location.py _NAME
imports/gatus_conditions.py _CODE
imports/table.py _HOST
imports/table.py _URL
imports/variables.py _VARIABLE
net/charset.py _COMMENTS
net/charset.py _DECLARATIONS
net/charset.py _HEADER_CHARSET
net/client.py _PAGE
net/client.py _COMMENT
net/client.py _TAG
proxies.py _SEGMENT
rules/addresses.py _LABEL
rules/addresses.py _LITERAL
rules/addresses.py _LOCAL
rules/addresses.py _SENDER
rules/brackets.py _NAME
rules/channel_values.py TELEGRAM_TOKEN
rules/channel_values.py _APPRISE
rules/channel_values.py _CHAT
rules/channel_values.py _E164
rules/channel_values.py _THREAD
rules/comments.py _HEAD
rules/masking.py spellings
rules/posts.py _LINK
rules/quiet_hours.py _CLOCK
rules/service_url.py _CONTAINERS
rules/service_url.py _LINK
rules/service_url.py _URL
rules/sms.py _ACCOUNT
rules/text.py _CONTROL
rules/text.py _CONTROL_BUT_LINES
rules/text.py _INTEGER
rules/text.py _MOMENT
rules/text.py _TOKEN
rules/text.py moment
rules/url.py _AUTHORITY
rules/url.py _FORBIDDEN_IN_HOST
rules/url.py _LEGACY_IPV4
rules/url.py _SHAPE
stores/remote/connection.py _ESCAPED
stores/remote/connection.py _LOGIN
stores/remote/listing.py CURSOR
stores/remote/meaning.py _path
stores/remote/meaning.py _snake
web/frame/fragments.py _AGING
web/frame/fragments.py _TOKEN
pages/history.py _MONTH
web/shown/months.py _MONTH
web/shown/timeline.py _DURATION
"""


def patterns() -> set[str]:
    """Every use of ``re`` in app/, by the module and the name or function that it belongs to."""
    root = Path(app.__file__).parent
    found = set()
    for path in sorted(root.rglob("*.py")):
        for owner in ast.parse(path.read_text()).body:
            names = [ast.unparse(one) for one in getattr(owner, "targets", [])]
            name = names[0] if names else getattr(owner, "name", "")
            for node in ast.walk(owner):
                called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
                if called.startswith("re.") and called != "re.escape":
                    found.add(f"{path.relative_to(root)} {name}")
    return found


def test_every_pattern_has_been_looked_at() -> None:
    """A new pattern needs a row in ``READERS`` with its worst input, then a line in the list."""
    assert patterns() == set(PATTERNS.split("\n")) - {""}
