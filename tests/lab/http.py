"""An HTTP/1 server that misbehaves on request: the path names what happens.

A route is a function of the exchange; ``/status/503`` calls ``status`` with the argument ``503``.
Well-behaved answers go through ``Exchange.answer``, all others write their bytes themselves.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from tests.lab.net import Connection

Route = Callable[["Exchange"], None]
ROUTES: dict[str, Route] = {}
MARKER = "wakeful-canary"
PAGE = f"<!doctype html><title>Lab</title><p>All is well: {MARKER}</p>".encode()
OK = b"HTTP/1.1 200 OK\r\n"


@dataclass
class Exchange:
    """One request and the connection to answer it on. ``argument`` is the path after the route."""

    connection: Connection
    method: str
    argument: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    keep: bool = field(default=True)

    def send(self, data: bytes) -> None:
        self.connection.send(data)

    def answer(
        self,
        body: bytes = PAGE,
        status: str = "200 OK",
        headers: Iterable[tuple[str, str]] = (),
        content_type: str | None = "text/html; charset=utf-8",
    ) -> None:
        """A whole and correct answer."""
        lines = [f"HTTP/1.1 {status}"]
        if content_type:
            lines.append(f"Content-Type: {content_type}")
        lines += [f"{name}: {value}" for name, value in headers]
        lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        self.send(head if self.method == "HEAD" else head + body)

    def head_only(self, *lines: str) -> None:
        """A status line and these headers, and no more than that."""
        self.send(OK + b"".join(line.encode() + b"\r\n" for line in lines) + b"\r\n")

    def redirect(self, location: str, status: str = "302 Found") -> None:
        self.answer(b"", status, [("Location", location)])

    def drip(self, data: bytes, pause: float) -> None:
        """One byte at a time, ``pause`` seconds apart, until the client hangs up."""
        for byte in data:
            self.send(bytes([byte]))
            if self.connection.wait_until_gone(pause):
                return


def route(function: Route) -> Route:
    ROUTES[function.__name__.strip("_").replace("_", "-")] = function
    return function


def serve(connection: Connection) -> None:
    """Answer the requests of one connection until a route or the client ends it."""
    while True:
        exchange = _read(connection)
        if exchange is None:
            return
        name, _, _ = exchange.argument.partition("/")
        exchange.argument = exchange.argument[len(name) + 1 :]
        handler = ROUTES.get(name)
        if handler is None:
            exchange.answer(b"no such route", "404 Not Found")
        else:
            handler(exchange)
        if handler is None or connection.sock.fileno() < 0 or not exchange.keep:
            return


def _read(connection: Connection) -> Exchange | None:
    data = connection.read_until(b"\r\n\r\n")
    if b"\r\n\r\n" not in data:
        return None
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.receive()
    parts = urlsplit(target)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    return Exchange(connection, method, unquote(parts.path[1:]), query, headers, body)


# --- Good answers, some of them odd -------------------------------------------------------------


@route
def good(x: Exchange) -> None:
    x.answer()


@route
def status(x: Exchange) -> None:
    """The status in the path. 204 and 304 have no body."""
    if x.argument in ("204", "304"):
        x.send(f"HTTP/1.1 {x.argument} Nothing\r\n\r\n".encode())
        return
    x.answer(status=f"{x.argument} Of That Name")


@route
def method_status(x: Exchange) -> None:
    """``/method-status/HEAD/405``: that status for that method, 200 for all others."""
    method, _, code = x.argument.partition("/")
    x.answer(status=f"{code} Of That Name" if x.method == method else "200 OK")


@route
def header_status(x: Exchange) -> None:
    """503 when the request carries X-Lab, else 200."""
    x.answer(status="503 Told So" if "x-lab" in x.headers else "200 OK")


@route
def basic_auth(x: Exchange) -> None:
    """200 for the user ``ann`` with the password ``pässword:1``, else 401."""
    wanted = "Basic " + base64.b64encode("ann:pässword:1".encode()).decode()
    given = x.headers.get("authorization")
    x.answer(status="200 OK" if given == wanted else "401 Unauthorized")


@route
def echo_body(x: Exchange) -> None:
    """The request's body as the answer's."""
    x.answer(x.body or b"(no body)")


@route
def cache_buster(x: Exchange) -> None:
    """200 when the request has a query parameter and no-cache headers, else 412."""
    fresh = bool(x.query) and "no-cache" in x.headers.get("cache-control", "")
    x.answer(status="200 OK" if fresh else "412 Cached")


@route
def http_1_0(x: Exchange) -> None:
    """No length: the end of the connection is the end of the body."""
    x.send(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + PAGE)
    x.keep = False


@route
def bare_line_feeds(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\nContent-Length: %d\n\n" % len(PAGE) + PAGE)


@route
def early_hints(x: Exchange) -> None:
    """Two informational answers before the real one."""
    x.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" * 2)
    x.answer()


@route
def chunked(x: Exchange) -> None:
    """The page in chunks of three bytes, so that every word is split."""
    pieces = [PAGE[i : i + 3] for i in range(0, len(PAGE), 3)]
    x.head_only("Content-Type: text/html; charset=utf-8", "Transfer-Encoding: chunked")
    for piece in pieces:
        x.send(b"%x\r\n%s\r\n" % (len(piece), piece))
    x.send(b"0\r\n\r\n")


@route
def no_content_type(x: Exchange) -> None:
    x.answer(content_type=None)


@route
def empty_page(x: Exchange) -> None:
    x.answer(b"")


@route
def late(x: Exchange) -> None:
    """A good answer after so many milliseconds."""
    if not x.connection.wait_until_gone(int(x.argument) / 1000):
        x.answer()


# --- Heads that are none ------------------------------------------------------------------------


def _raw(name: str, data: bytes) -> None:
    """A route that sends these bytes and closes with a FIN."""

    def send_and_close(x: Exchange) -> None:
        x.send(data)
        x.keep = False

    ROUTES[name] = send_and_close


_raw("garbage-status-line", b"ICY OK all fine\r\n\r\nhello")
_raw("status-not-a-number", b"HTTP/1.1 abc OK\r\n\r\nhello")
_raw("binary-noise", bytes(range(128, 256)) * 4)
_raw("http-0-9", b"<html>just a body</html>")
_raw("tls-alert", b"\x15\x03\x01\x00\x02\x02\x0a")
_raw("negative-length", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello")
_raw("length-is-a-word", b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nhello")
_raw("bad-chunk-size", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n")
_raw("huge-chunk-size", OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"F" * 40 + b"\r\nhello")
_raw("chunk-too-long", OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello, world\r\n0\r\n\r\n")
_raw("cut-chunk", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\nhello")
_raw("no-last-chunk", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
_raw("cut-body", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + PAGE)
_raw("cut-before-body", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
_LENGTH = b"Content-Length: %d\r\n" % len(PAGE)
_WHOLE = _LENGTH + b"\r\n" + PAGE
_raw("unasked-continue", b"HTTP/1.1 100 Continue\r\n\r\n" + OK + _WHOLE)
_raw("only-continue", b"HTTP/1.1 102 Processing\r\n\r\n")
_raw("switching", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
_raw("status-000", b"HTTP/1.1 000 None\r\n" + _WHOLE)
_raw("status-of-four-digits", b"HTTP/1.1 2000 OK\r\n" + _WHOLE)
_raw("empty-line-first", b"\r\n" + OK + _WHOLE)
_raw("no-reason", b"HTTP/1.1 200\r\n" + _WHOLE)
_raw("status-999", b"HTTP/1.1 999 Request denied\r\n" + _WHOLE)
_raw("two-lengths", OK + b"Content-Length: 5\r\n" + _WHOLE)
_raw("same-length-twice", OK + _LENGTH + _WHOLE)
_raw("header-without-colon", OK + b"this is no header\r\n" + _WHOLE)
_raw("nul-in-header", OK + b"X-A: b\0c\r\n" + _WHOLE)
_raw("folded-header", OK + b"X-A: b\r\n  c\r\n" + _WHOLE)
_raw("trailers", OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n")
_raw("length-and-chunks", OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
     b"5\r\nhello\r\n0\r\n\r\n")  # fmt: skip
_raw("location-empty", b"HTTP/1.1 302 Found\r\nLocation:\r\nContent-Length: 0\r\n\r\n")


@route
def slow_close(x: Exchange) -> None:
    """A whole answer on a connection that then stays open."""
    x.answer()
    x.connection.wait_until_gone()


@route
def longer_than_said(x: Exchange) -> None:
    """More bytes than the length says; the connection stays open."""
    x.send(OK + b"Content-Length: 5\r\n\r\n" + PAGE)
    x.connection.wait_until_gone()


@route
def without_length_or_end(x: Exchange) -> None:
    """The end of the connection would be the end of the body, but never comes."""
    x.send(b"HTTP/1.0 200 OK\r\n\r\n" + PAGE)
    x.connection.wait_until_gone()


@route
def reset_after_whole(x: Exchange) -> None:
    """A RST right behind the last byte of an answer with a length. Nothing is missing."""
    x.answer()
    x.connection.reset()


@route
def reset_instead_of_end(x: Exchange) -> None:
    """A RST where, without a length, a FIN should say that the body is whole."""
    x.send(OK + b"\r\n" + PAGE)
    x.connection.wait_until_gone(0.15)
    x.connection.reset()


@route
def cookie_maze(x: Exchange) -> None:
    """A redirect to itself with another cookie each time: never the same request twice."""
    number = x.headers.get("cookie", "n=0").partition("=")[2]
    cookie = ("Set-Cookie", f"n={int(number) + 1}; Path=/")
    x.answer(b"", "302 Found", [cookie, ("Location", "/cookie-maze")])


@route
def reset_in_body(x: Exchange) -> None:
    """RST in the middle of the body, once the client has had time to read what came before."""
    x.head_only("Content-Length: 1000")
    x.send(b"hello")
    x.connection.wait_until_gone(0.15)
    x.connection.reset()


@route
def reset_in_chunks(x: Exchange) -> None:
    x.head_only("Transfer-Encoding: chunked")
    x.send(b"5\r\nhello\r\n")
    x.connection.wait_until_gone(0.15)
    x.connection.reset()


@route
def many_headers(x: Exchange) -> None:
    """Headers of so many KiB in all, on lines of 1 KiB."""
    line = b"X-Filler: " + b"a" * 1012 + b"\r\n"
    x.send(OK + line * int(x.argument) + b"Content-Length: 2\r\n\r\nok")
    x.keep = False


@route
def one_huge_header(x: Exchange) -> None:
    x.send(OK + b"X-Filler: " + b"a" * 80_000 + b"\r\nContent-Length: 2\r\n\r\nok")
    x.keep = False


@route
def endless_headers(x: Exchange) -> None:
    """Headers at full speed, for ever."""
    x.send(OK)
    while True:
        x.send(b"X-More: and more and more and more\r\n" * 100)


# --- Slowness -----------------------------------------------------------------------------------


@route
def drip_headers(x: Exchange) -> None:
    """A header that never ends, one byte at a time."""
    x.send(OK + b"X-Slow: ")
    x.drip(b"z" * 10_000, 0.1)


@route
def drip_status_line(x: Exchange) -> None:
    x.drip(b"HTTP/1.1 200 " + b"O" * 10_000, 0.1)


@route
def drip_body(x: Exchange) -> None:
    """A long body, one byte a second."""
    x.head_only("Content-Length: 100000")
    x.drip(b"z" * 100_000, 1.0)


@route
def drip_body_without_end(x: Exchange) -> None:
    """A body without a length, ten bytes a second."""
    x.head_only("Content-Type: text/plain")
    x.drip(b"z" * 100_000, 0.1)


@route
def stalled_body(x: Exchange) -> None:
    """Half of the body, then silence."""
    x.head_only(f"Content-Length: {len(PAGE) * 2}")
    x.send(PAGE)
    x.connection.wait_until_gone()


@route
def no_body(x: Exchange) -> None:
    """Headers that promise a body, then silence."""
    x.head_only("Content-Length: 1000")
    x.connection.wait_until_gone()


@route
def endless_body(x: Exchange) -> None:
    """A body at full speed, for ever."""
    x.head_only("Content-Type: text/plain")
    while True:
        x.send(b"endless " * 8192)


@route
def stream(x: Exchange) -> None:
    """``/stream/audio/mpeg``: bytes of that type, for ever."""
    x.head_only(f"Content-Type: {x.argument}")
    x.drip(b"z" * 100_000, 0.1)


@route
def stream_in_chunks(x: Exchange) -> None:
    x.head_only(f"Content-Type: {x.argument}", "Transfer-Encoding: chunked")
    x.send(b"5\r\nhello\r\n")
    x.connection.wait_until_gone()


@route
def icy_stream(x: Exchange) -> None:
    """A radio of SHOUTcast, whose status line names no version of HTTP."""
    x.send(f"ICY 200 OK\r\nContent-Type: {x.argument}\r\nicy-name: Lab\r\n\r\n".encode())
    x.drip(b"z" * 100_000, 0.1)


@route
def silent_stream(x: Exchange) -> None:
    """The headers of a stream, and not one byte of it."""
    x.head_only(f"Content-Type: {x.argument}")
    x.connection.wait_until_gone()


@route
def sized_stream(x: Exchange) -> None:
    """The type of a stream, with a length, and half of that."""
    x.head_only(f"Content-Type: {x.argument}", f"Content-Length: {len(PAGE) * 2}")
    x.send(PAGE)
    x.keep = False


# --- Redirects ----------------------------------------------------------------------------------


@route
def hops(x: Exchange) -> None:
    """``/hops/5``: five redirects, then a good page."""
    left = int(x.argument)
    if left:
        x.redirect(f"/hops/{left - 1}")
    else:
        x.answer()


@route
def loop(x: Exchange) -> None:
    """A to B to A."""
    x.redirect("/loop/b" if x.argument == "a" else "/loop/a")


@route
def loop_to_itself(x: Exchange) -> None:
    x.redirect("/loop-to-itself")


@route
def slow_hops(x: Exchange) -> None:
    """Redirects that take 300 ms each, or ``?ms=``: only their sum breaks the time limit."""
    pause = x.query.get("ms", "300")
    if not x.connection.wait_until_gone(int(pause) / 1000):
        left = int(x.argument)
        if left:
            x.redirect(f"/slow-hops/{left - 1}?ms={pause}")
        else:
            x.answer()


@route
def cookie_wall(x: Exchange) -> None:
    """Sets a cookie and sends the client to the same URL, as many login pages do. Not a loop."""
    if "seen=1" in x.headers.get("cookie", ""):
        x.answer()
    else:
        x.answer(b"", "302 Found", [("Set-Cookie", "seen=1; Path=/"), ("Location", "/cookie-wall")])


@route
def to(x: Exchange) -> None:
    """A redirect to the Location in ``?url=``, with the status in the path (302 without one)."""
    x.redirect(x.query["url"], f"{x.argument or 302} Moved")


@route
def without_location(x: Exchange) -> None:
    """A redirect that says where to by nothing."""
    x.answer(b"choose yourself", "302 Found")


@route
def see_other(x: Exchange) -> None:
    """303: what follows must be a GET, without the body."""
    x.redirect("/must-be-get", "303 See Other")


@route
def must_be_get(x: Exchange) -> None:
    x.answer(status="200 OK" if x.method == "GET" and not x.body else "405 Wrong Method")


@route
def keep_method(x: Exchange) -> None:
    """307: what follows must be the same method with the same body."""
    x.redirect("/must-be-post", "307 Temporary Redirect")


@route
def must_be_post(x: Exchange) -> None:
    x.answer(status="200 OK" if x.method == "POST" and x.body == b"a=1" else "405 Wrong Method")


@route
def no_secrets(x: Exchange) -> None:
    """400 when a request brings what was meant for another host."""
    leaked = {"authorization", "cookie", "x-secret"} & set(x.headers)
    x.answer(status="400 Leaked" if leaked else "200 OK")


@route
def set_cookie(x: Exchange) -> None:
    """A redirect to ``?url=`` that sets ``?cookie=``."""
    x.answer(b"", "302 Found", [("Set-Cookie", x.query["cookie"]), ("Location", x.query["url"])])


@route
def echo_cookie(x: Exchange) -> None:
    """The request's cookies as the body."""
    x.answer(x.headers.get("cookie", "").encode())


@route
def who_asks(x: Exchange) -> None:
    """200 for the User-Agent ``curl/8``, else 403."""
    x.answer(status="200 OK" if x.headers.get("user-agent") == "curl/8" else "403 Forbidden")
