"""Just enough HTTP/2 (RFC 9113) to answer one request well, or to break the answer."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.lab.http import PAGE
from tests.lab.net import Connection, Handler

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INTERNAL_ERROR, REFUSED_STREAM = 2, 7
STATUS_200 = b"\x88"  # the HPACK static table's entry 8
STATUS_500 = b"\x8e"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


class _Reader:
    """Frames from a connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.buffer = b""

    def take(self, size: int) -> bytes:
        while len(self.buffer) < size:
            chunk = self.connection.receive()
            if not chunk:
                raise ConnectionError("The client went away.")
            self.buffer += chunk
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def frame(self) -> tuple[int, int, int]:
        """Kind, flags and stream of the next frame; its payload is dropped."""
        head = self.take(9)
        length = struct.unpack("!I", b"\0" + head[:3])[0]
        kind, flags, stream = struct.unpack("!BBI", head[3:])
        self.take(length)
        return kind, flags, stream


def _speak(connection: Connection, answer: Callable[[Connection, int], None]) -> None:
    """Exchange the settings, wait for the request, answer it."""
    reader = _Reader(connection)
    reader.take(len(PREFACE))
    connection.send(frame(SETTINGS, 0, 0))
    while True:
        kind, flags, stream = reader.frame()
        if kind == SETTINGS and not flags & ACK:
            connection.send(frame(SETTINGS, ACK, 0))
        if kind == HEADERS:
            answer(connection, stream)
            return


HANDLERS: dict[str, Handler] = {}
Answer = Callable[[Connection, int], None]


def fault(function: Answer) -> Answer:
    """Registers what answers a request, given the connection and the request's stream."""

    def handler(connection: Connection) -> None:
        _speak(connection, function)

    HANDLERS[function.__name__] = handler
    return function


def _header(name: bytes, value: bytes) -> bytes:
    """A header field written out, neither compressed nor remembered."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def _error(code: int) -> bytes:
    return struct.pack("!I", code)


def _goaway(last: int, code: int = 0) -> bytes:
    """The server leaves; it has dealt with streams up to ``last``."""
    return frame(GOAWAY, 0, 0, struct.pack("!II", last, code))


def _begin(c: Connection, stream: int, *more: bytes) -> None:
    """Status 200 and a part of the body."""
    c.send(frame(HEADERS, END_HEADERS, stream, STATUS_200 + b"".join(more)))
    c.send(frame(DATA, 0, stream, PAGE[:20]))


def _all(c: Connection, stream: int, *more: bytes) -> None:
    """A whole answer."""
    c.send(frame(HEADERS, END_HEADERS, stream, STATUS_200 + b"".join(more)))
    c.send(frame(DATA, END_STREAM, stream, PAGE))
    c.wait_until_gone(2.0)


@fault
def h2_good(c: Connection, stream: int) -> None:
    _all(c, stream)


@fault
def h2_trailers(c: Connection, stream: int) -> None:
    _begin(c, stream)
    c.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, _header(b"x-sum", b"1")))
    c.wait_until_gone(2.0)


@fault
def h2_early_hints(c: Connection, stream: int) -> None:
    c.send(frame(HEADERS, END_HEADERS, stream, _header(b":status", b"103")))
    _all(c, stream)


@fault
def h2_goaway_after_this(c: Connection, stream: int) -> None:
    """A server that is being restarted: it announces that, and still answers what it has taken."""
    c.send(_goaway(2**31 - 1) + _goaway(stream))
    _all(c, stream)


@fault
def h2_goaway_refuses(c: Connection, stream: int) -> None:
    c.send(_goaway(0))
    c.finish()


@fault
def h2_goaway_asks_for_calm(c: Connection, stream: int) -> None:
    c.send(_goaway(0, 11))
    c.finish()


@fault
def h2_goaway_in_body(c: Connection, stream: int) -> None:
    _begin(c, stream)
    c.send(_goaway(stream))
    c.finish()


@fault
def h2_refused_stream(c: Connection, stream: int) -> None:
    c.send(frame(RST_STREAM, 0, stream, _error(REFUSED_STREAM)))
    c.wait_until_gone(2.0)


@fault
def h2_status_500(c: Connection, stream: int) -> None:
    c.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_500))
    c.wait_until_gone(2.0)


@fault
def h2_stream_reset(c: Connection, stream: int) -> None:
    """RST_STREAM instead of headers."""
    c.send(frame(RST_STREAM, 0, stream, _error(INTERNAL_ERROR)))
    c.wait_until_gone(2.0)


@fault
def h2_stream_reset_in_body(c: Connection, stream: int) -> None:
    """RST_STREAM after the headers and half of the body."""
    _begin(c, stream)
    c.send(frame(RST_STREAM, 0, stream, _error(INTERNAL_ERROR)))
    c.wait_until_gone(2.0)


@fault
def h2_closed_before_headers(c: Connection, stream: int) -> None:
    c.finish()


@fault
def h2_closed_in_body(c: Connection, stream: int) -> None:
    _begin(c, stream)
    c.finish()


@fault
def h2_tcp_reset(c: Connection, stream: int) -> None:
    c.reset()


@fault
def h2_tcp_reset_in_body(c: Connection, stream: int) -> None:
    _begin(c, stream)
    c.wait_until_gone(0.15)
    c.reset()


@fault
def h2_length_too_long(c: Connection, stream: int) -> None:
    _all(c, stream, _header(b"content-length", b"5000"))


@fault
def h2_length_too_short(c: Connection, stream: int) -> None:
    _all(c, stream, _header(b"content-length", b"5"))


@fault
def h2_no_status(c: Connection, stream: int) -> None:
    c.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, _header(b"x-a", b"1")))
    c.wait_until_gone(2.0)


@fault
def h2_broken_compression(c: Connection, stream: int) -> None:
    c.send(frame(HEADERS, END_HEADERS, stream, b"\xff" * 6))
    c.wait_until_gone(2.0)


@fault
def h2_header_bomb(c: Connection, stream: int) -> None:
    """A header of 4,000 bytes, remembered, and then named 8,000 times by one byte each."""
    long = b"\x40\x03x-a\x7f\xa1\x1e" + b"b" * 4000
    c.send(frame(HEADERS, END_HEADERS, stream, STATUS_200 + long + b"\xbe" * 8000))
    c.wait_until_gone(2.0)


@fault
def h2_endless_headers(c: Connection, stream: int) -> None:
    c.send(frame(HEADERS, 0, stream, STATUS_200))
    while True:
        c.send(frame(CONTINUATION, 0, stream, _header(b"x-a", b"b" * 100) * 100))


@fault
def h2_ping_flood(c: Connection, stream: int) -> None:
    while True:
        c.send(frame(PING, 0, 0, b"12345678") * 100)


@fault
def h2_silent(c: Connection, stream: int) -> None:
    c.wait_until_gone()


@fault
def h2_stalled_body(c: Connection, stream: int) -> None:
    _begin(c, stream)
    c.wait_until_gone()


def h2_no_settings(connection: Connection) -> None:
    """Agrees to HTTP/2 in the handshake and then says nothing, not even its settings."""
    connection.wait_until_gone()


def h2_in_name_only(connection: Connection) -> None:
    """Agrees to HTTP/2 in the handshake and then speaks HTTP/1."""
    connection.read_until(b"SM\r\n\r\n")
    connection.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    connection.finish()


HANDLERS |= {handler.__name__: handler for handler in (h2_no_settings, h2_in_name_only)}
