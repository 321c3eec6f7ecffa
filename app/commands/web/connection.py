"""One client's connection to the web server: the received bytes, and the bytes to send.

Nothing here waits. The event loop (webworker.py) reads and sends when the socket is ready. A
request thread finds the whole request in memory, and puts its answer there.
"""

from __future__ import annotations

import errno
import io
import os
import re
import select
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import unquote

from gunicorn import http
from gunicorn.config import Config
from gunicorn.http.errors import UnsupportedTransferCoding

from app.commands.web.bodies import Chunks, Length

RECEIVED_AT_ONCE = 64 * 1024
FILE_AT_ONCE = 1024 * 1024
_LINE_SHOWN = 256  # bytes of a request line that are enough to tell the API's paths
_HEAD_END = b"\r\n\r\n"
_CODING = "TRANSFER-ENCODING"
_BARE_LF = re.compile(rb"(?<!\r)\n")


class ClientConnection:
    """gunicorn writes to ``sock``; ``socket`` is the real socket. ``folder``: the folder of
    PUBLIC_URL, with which paths may begin.
    """

    def __init__(self, client: socket.socket, address: Any, server: Any, folder: str = "") -> None:
        client.setblocking(False)
        self.socket = client
        self.sock = SendBuffer(client)
        self.client = address
        self.server = server
        self._folder = folder
        self.received = bytearray()
        self.ended = False  # the client sends no more
        self.keeps_alive = False  # open for another request
        # For the event loop: what to call when the socket is ready, and the time limit for it.
        self.handler: Callable[[ClientConnection], None]
        self.deadline = 0.0
        self.ask_at = 0.0  # when to ask whether the application needs the body
        self.counted = 0  # the ``buffered`` bytes that the event loop has counted
        self.drained_bytes = 0  # read and dropped, after the answer
        self.renew()

    def renew(self) -> None:
        """Prepare for the next request. Bytes of it that have arrived already are kept."""
        self.request: Any = None
        self._body: Length | Chunks | None = None
        self._searched = 0
        self.was_asked = False  # whether the application was asked for an answer without the body

    @property
    def buffered(self) -> int:
        """The bytes in memory for this connection."""
        body = len(self._body.content) if self._body else 0
        return len(self.received) + body + self.sock.size

    def receive(self) -> int:
        """Read from the socket; returns the number of bytes."""
        try:
            data = self.socket.recv(RECEIVED_AT_ONCE)
        except BlockingIOError:
            return 0
        self.received += data
        self.ended = not data
        return len(data)

    @property
    def path(self) -> str:
        """The request's path without the folder, decoded as for the application; empty until it has
        arrived.
        """
        path = self._target().partition("?")[0]
        return unquote(path, "latin-1").removeprefix(self._folder)

    def _target(self) -> str:
        if self.request is not None:
            return str(self.request.path)
        line = bytes(self.received[:_LINE_SHOWN]).partition(b"\r\n")[0].split(b" ")
        return line[1].decode("latin-1") if len(line) > 1 else ""

    def has_head(self) -> bool:
        """Whether the header can be parsed: it is complete, or it is certainly invalid."""
        start = max(0, self._searched - len(_HEAD_END))
        self._searched = len(self.received)
        complete = self.received.find(_HEAD_END, start) >= 0
        return complete or _BARE_LF.search(self.received, start) is not None

    def parse(self, cfg: Config, max_bytes: int) -> None:
        """Read the header into ``request``, whose body may have ``max_bytes``. Raises the
        exceptions of gunicorn's parser.
        """
        # Only the header: gunicorn would copy the bytes after it, for each of many pipelined
        # requests.
        end = self.received.find(_HEAD_END) + len(_HEAD_END)
        head = self.received if end < len(_HEAD_END) else self.received[:end]
        self.request = next(http.get_parser(cfg, [bytes(head)], self.client))
        del self.received[: len(head)]
        self.request.body = io.BytesIO()  # in place of gunicorn's reader, see bodies.py
        self._body = _body_of(self.request, max_bytes)

    @property
    def expects_continue(self) -> bool:
        """Whether the client waits for ``100 Continue`` before it sends the body."""
        return bool(self.request._expected_100_continue)

    @property
    def body(self) -> Length | Chunks:
        if self._body is None:
            raise LookupError("The header is read first.")
        return self._body

    def take_body(self) -> bool:
        """Move received bytes to the body; returns whether it is complete. Raises Malformed."""
        self.body.take(self.received)
        return self.body.complete

    def seal(self) -> None:
        """Give the request its body. If the body is incomplete, the start of the next request is
        unknown, so the connection is closed after the answer.
        """
        # Otherwise gunicorn would write "100 Continue" in the middle of the answer.
        self.request._expected_100_continue = False
        if not self.body.complete:
            self.request.force_close()
            self.received.clear()
        self.request.body = io.BytesIO(self.body.content)
        self.request.headers = [
            ("CONTENT-LENGTH", str(self.body.length)) if name == _CODING else (name, value)
            for name, value in self.request.headers
        ]

    def is_broken(self) -> bool:
        """Whether the client has certainly gone. A client that has only ended its side still
        reads.
        """
        poller = select.poll()
        poller.register(self.socket, 0)  # poll always reports errors and resets
        return bool(poller.poll(0))

    def close(self) -> None:
        self.sock.drop()
        with suppress(OSError):
            self.socket.close()


def _body_of(request: Any, max_bytes: int) -> Length | Chunks:
    """The body that the header declares. gunicorn has refused a request with both a length and a
    coding, and one with two lengths.
    """
    codings = [value for name, value in request.headers if name == _CODING]
    if not codings:
        return Length(int(dict(request.headers).get("CONTENT-LENGTH", 0)), max_bytes)
    if [coding.lower() for coding in codings] != ["chunked"]:
        raise UnsupportedTransferCoding(", ".join(codings))
    return Chunks(max_bytes)


@dataclass(slots=True)
class FilePart:
    """A part of a file to send: ``remaining`` bytes from ``offset`` on."""

    fd: int
    offset: int
    remaining: int


class SendBuffer:
    """The unsent part of the answer. It has the methods of a socket that gunicorn calls. Sending
    never waits: a client that does not read must not block the thread that made the answer.
    ``size``: the unsent bytes in memory.
    """

    def __init__(self, client: socket.socket) -> None:
        self._socket = client
        self._unsent: deque[memoryview | FilePart] = deque()
        self.size = 0

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        if not self._unsent:
            view = view[self._send_now(view) :]
        if view:
            self._unsent.append(view)
            self.size += len(view)

    def sendfile(self, file: BinaryIO, offset: int, count: int) -> None:
        """Send bytes of a file. A large part is read as the client takes it, because a backup may
        be larger than the memory. A small part is read now: otherwise each client that does not
        read would keep a file open. The caller may close the file.
        """
        if count <= FILE_AT_ONCE:
            self.sendall(os.pread(file.fileno(), count, offset))
        else:
            self._unsent.append(FilePart(os.dup(file.fileno()), offset, count))

    @property
    def sends_file(self) -> bool:
        return bool(self._unsent) and isinstance(self._unsent[0], FilePart)

    def flush(self) -> bool:
        """Send as much as the socket takes; returns whether everything was sent. Raises OSError."""
        while self._unsent:
            part = self._unsent[0]
            if isinstance(part, FilePart):
                if not self._flush_file(part):
                    return False
            else:
                sent = self._send_now(part)
                self.size -= sent
                if sent < len(part):
                    self._unsent[0] = part[sent:]
                    return False
            self._unsent.popleft()
        return True

    def _flush_file(self, part: FilePart) -> bool:
        """Send at most FILE_AT_ONCE bytes, so that a fast client leaves time for others. Returns
        whether the whole part was sent.
        """
        with suppress(BlockingIOError):
            sent = os.sendfile(
                self._socket.fileno(), part.fd, part.offset, min(part.remaining, FILE_AT_ONCE)
            )
            if not sent:
                raise OSError(errno.EIO, "A file that is being sent was cut off.")
            part.offset += sent
            part.remaining -= sent
        if part.remaining:
            return False
        os.close(part.fd)
        return True

    def drop(self) -> None:
        """Drop the unsent part of the answer."""
        for part in self._unsent:
            if isinstance(part, FilePart):
                os.close(part.fd)
        self._unsent.clear()

    def _send_now(self, view: memoryview) -> int:
        """Send as much as the socket takes; returns the number of bytes."""
        try:
            return self._socket.send(view) if view else 0
        except BlockingIOError:
            return 0

    def gettimeout(self) -> float:
        return 0.0

    def shutdown(self, how: int) -> None:
        """gunicorn calls this when an answer breaks off. Raises OSError, because the event loop
        ends the connection.
        """
        raise OSError("The event loop closes connections.")

    def close(self) -> None:
        """Do nothing: the event loop closes the connection."""
