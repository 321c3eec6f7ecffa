"""Just enough HTTP/2 (RFC 9113) to answer one request well, or to break it by a stream error."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.lab.http import PAGE
from tests.lab.net import Connection

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS = 0, 1, 3, 4
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INTERNAL_ERROR = 2
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


def h2_good(connection: Connection) -> None:
    def answer(c: Connection, stream: int) -> None:
        c.send(frame(HEADERS, END_HEADERS, stream, STATUS_200))
        c.send(frame(DATA, END_STREAM, stream, PAGE))
        c.wait_until_gone(2.0)

    _speak(connection, answer)


def h2_status_500(connection: Connection) -> None:
    def answer(c: Connection, stream: int) -> None:
        c.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_500))
        c.wait_until_gone(2.0)

    _speak(connection, answer)


def h2_stream_reset(connection: Connection) -> None:
    """RST_STREAM instead of headers."""

    def answer(c: Connection, stream: int) -> None:
        c.send(frame(RST_STREAM, 0, stream, struct.pack("!I", INTERNAL_ERROR)))
        c.wait_until_gone(2.0)

    _speak(connection, answer)


def h2_stream_reset_in_body(connection: Connection) -> None:
    """RST_STREAM after the headers and half of the body."""

    def answer(c: Connection, stream: int) -> None:
        c.send(frame(HEADERS, END_HEADERS, stream, STATUS_200))
        c.send(frame(DATA, 0, stream, PAGE[:20]))
        c.send(frame(RST_STREAM, 0, stream, struct.pack("!I", INTERNAL_ERROR)))
        c.wait_until_gone(2.0)

    _speak(connection, answer)


def h2_silent(connection: Connection) -> None:
    _speak(connection, lambda c, stream: c.wait_until_gone() and None)


def h2_stalled_body(connection: Connection) -> None:
    def answer(c: Connection, stream: int) -> None:
        c.send(frame(HEADERS, END_HEADERS, stream, STATUS_200))
        c.send(frame(DATA, 0, stream, PAGE[:20]))
        c.wait_until_gone()

    _speak(connection, answer)


def h2_closed_before_headers(connection: Connection) -> None:
    _speak(connection, lambda c, stream: None)


HANDLERS = {
    handler.__name__: handler
    for handler in (
        h2_good,
        h2_status_500,
        h2_stream_reset,
        h2_stream_reset_in_body,
        h2_silent,
        h2_stalled_body,
        h2_closed_before_headers,
    )
}
