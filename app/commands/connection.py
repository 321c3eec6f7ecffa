"""One client's connection to the web server: what has arrived of a request, and what is to be sent.

Nothing here waits. The event loop (webworker.py) reads and sends when the socket is ready; a
request thread finds the whole request in memory and leaves its answer there.
"""

from __future__ import annotations

import re
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gunicorn import http
from gunicorn.config import Config

RECEIVED_AT_ONCE = 64 * 1024
_HEAD_END = b"\r\n\r\n"
_BARE_LF = re.compile(rb"(?<!\r)\n")
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(;.*)?", re.DOTALL)
_LONGEST_CHUNK_LINE = 8190  # gunicorn's own limit


class Malformed(Exception):
    """Nobody can tell where this body ends."""


class Connection:
    """``sock`` is what gunicorn writes to; ``socket`` is the real one."""

    def __init__(self, client: socket.socket, address: Any, server: Any) -> None:
        client.setblocking(False)
        self.socket = client
        self.sock = SendBuffer(client)
        self.client = address
        self.server = server
        self.received = bytearray()
        self.ended = False  # the client sends no more
        self.keep = False  # for another request
        # The event loop's own notes: what it does when the socket is ready, and until when.
        self.step: Callable[[Connection], None]
        self.until = 0.0
        self.ask_at = 0.0  # whether the application needs the body
        self.counted = 0
        self.drained = 0
        self.renew()

    def renew(self) -> None:
        """Be ready for the next request. Those of its bytes that have arrived already stay."""
        self.request: Any = None
        self._parser: Any = None
        self._body: _Length | _Chunks | None = None
        self._searched = 0
        self.asked = False

    @property
    def held(self) -> int:
        """The bytes in memory for this connection."""
        return len(self.received) + self.sock.size

    def receive(self) -> int:
        """Take what the socket has; how much that is."""
        try:
            data = self.socket.recv(RECEIVED_AT_ONCE)
        except BlockingIOError:
            return 0
        self.received += data
        self.ended = not data
        return len(data)

    def has_head(self) -> bool:
        """Whether the header is all there, or can never be: gunicorn then says what is wrong."""
        start = max(0, self._searched - len(_HEAD_END))
        self._searched = len(self.received)
        found = self.received.find(_HEAD_END, start) >= 0
        return found or _BARE_LF.search(self.received, start) is not None

    def parse(self, cfg: Config) -> None:
        """Read the header into ``request``. Raises what gunicorn's parser raises."""
        self._parser = http.get_parser(cfg, [bytes(self.received)], self.client)
        self.request = next(self._parser)
        self.received = bytearray(self._parser.unreader.take_buffered())
        headers = dict(self.request.headers)  # gunicorn has refused both names together, or twice
        chunked = "TRANSFER-ENCODING" in headers
        self._body = _Chunks() if chunked else _Length(int(headers.get("CONTENT-LENGTH", 0)))

    @property
    def expects_continue(self) -> bool:
        """Whether the client sends the body only when it is told to."""
        return bool(self.request._expected_100_continue)

    def body_end(self) -> int | None:
        """Where the body ends in ``received``; None while it has not all arrived.

        Raises Malformed.
        """
        if self._body is None:
            raise LookupError("The header is read first.")
        return self._body.end(self.received)

    def is_larger(self, most: int) -> bool:
        """Whether the body is, or certainly becomes, larger than so many bytes."""
        if self._body is None:
            raise LookupError("The header is read first.")
        # Twice: a body of many small chunks is mostly their frames.
        return self._body.size(self.received) > most or len(self.received) > 2 * most

    def seal(self, end: int | None) -> None:
        """Give the request its body. The rest is the next request's, or, without an ``end``, all of
        it is this one's and the connection is closed after it.
        """
        # gunicorn would write this line itself, in the middle of the answer.
        self.request._expected_100_continue = False
        if end is None:
            self.request.force_close()
        self._parser.unreader.unread(bytes(self.received[:end]))
        self.received = bytearray() if end is None else self.received[end:]

    def is_clean(self) -> bool:
        """Whether gunicorn's parser read the body to the same end, so that the next request starts
        where we say. Two opinions on that let one client smuggle requests past a proxy.
        """
        return bool(self._parser.finish_body()) and not self._parser.unreader.take_buffered()

    def close(self) -> None:
        with suppress(OSError):
            self.socket.close()


class _Length:
    """A body of known length."""

    def __init__(self, length: int) -> None:
        self._length = length

    def end(self, received: bytearray) -> int | None:
        return self._length if len(received) >= self._length else None

    def size(self, _received: bytearray) -> int:
        return self._length


class _Chunks:
    """Finds the end of a chunked body, going on where it was. It decodes nothing and judges little:
    gunicorn's parser does both when all is there.
    """

    def __init__(self) -> None:
        self._line = 0  # where the next line begins that tells a size, or is a trailer
        self._searched = 0
        self._in_trailers = False
        self._sizes = 0

    def end(self, received: bytearray) -> int | None:
        while self._line <= len(received):
            stop = received.find(b"\r\n", max(self._line, self._searched))
            if stop < 0:
                if len(received) - self._line > _LONGEST_CHUNK_LINE:
                    raise Malformed
                self._searched = max(self._line, len(received) - 1)
                return None
            line = bytes(received[self._line : stop])
            self._line = stop + 2
            if not self._in_trailers:
                self._read_size(line)
            elif not line:
                return self._line
        return None

    def size(self, received: bytearray) -> int:
        """What has arrived of it without the frames: the application must see that it is too much,
        so what a chunk merely promises does not count.
        """
        return self._sizes - max(0, self._line - 2 - len(received))

    def _read_size(self, line: bytes) -> None:
        found = _CHUNK_SIZE.fullmatch(line)
        if found is None:
            raise Malformed
        size = int(found[1], 16)
        self._in_trailers = size == 0
        self._sizes += size
        if size:
            self._line += size + 2


class SendBuffer:
    """What is to be sent, as the kind of socket that gunicorn writes to. Sending never waits: a
    client that does not read its answer must not hold the thread that made it.
    """

    def __init__(self, client: socket.socket) -> None:
        self._socket = client
        self._left: deque[memoryview] = deque()
        self.size = 0

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        if not self._left:
            view = view[self._sent(view) :]
        if view:
            self._left.append(view)
            self.size += len(view)

    def flush(self) -> bool:
        """Send what goes; whether that was all. Raises OSError."""
        while self._left:
            sent = self._sent(self._left[0])
            self.size -= sent
            if sent < len(self._left[0]):
                self._left[0] = self._left[0][sent:]
                return False
            self._left.popleft()
        return True

    def _sent(self, view: memoryview) -> int:
        try:
            return self._socket.send(view) if view else 0
        except BlockingIOError:
            return 0

    def gettimeout(self) -> float:
        return 0.0

    def shutdown(self, how: int) -> None:
        """gunicorn ends a connection so when an answer breaks off. The event loop does that."""
        raise OSError("The event loop closes connections.")

    def close(self) -> None:
        """See ``shutdown``."""
