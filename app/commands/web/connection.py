"""One client's connection to the web server: the bytes received, and those to be sent.

Nothing here waits. The event loop (webworker.py) reads and sends when the socket is ready; a
request thread finds the whole request in memory and leaves its answer there.
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
    """``sock`` is what gunicorn writes to; ``socket`` is the real one. ``folder``: with which paths
    may begin.
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
        self.keep = False  # for another request
        # Used by the event loop: what to do when the socket is ready, and the time limit for it.
        self.handler: Callable[[ClientConnection], None]
        self.until = 0.0
        self.ask_at = 0.0  # when to ask whether the application needs the body
        self.counted = 0
        self.drained = 0
        self.renew()

    def renew(self) -> None:
        """Prepare for the next request. Bytes of it that have arrived already are kept."""
        self.request: Any = None
        self._body: Length | Chunks | None = None
        self._searched = 0
        self.asked = False

    @property
    def buffered(self) -> int:
        """The bytes in memory for this connection."""
        body = len(self._body.content) if self._body else 0
        return len(self.received) + body + self.sock.size

    def receive(self) -> int:
        """Read what the socket has; returns the number of bytes."""
        try:
            data = self.socket.recv(RECEIVED_AT_ONCE)
        except BlockingIOError:
            return 0
        self.received += data
        self.ended = not data
        return len(data)

    @property
    def path(self) -> str:
        """The request's path in Wakeful, decoded as the application's; empty as long as it is not
        known.
        """
        path = self._target().partition("?")[0]
        return unquote(path, "latin-1").removeprefix(self._folder)

    def _target(self) -> str:
        if self.request is not None:
            return str(self.request.path)
        line = bytes(self.received[:_LINE_SHOWN]).partition(b"\r\n")[0].split(b" ")
        return line[1].decode("latin-1") if len(line) > 1 else ""

    def has_head(self) -> bool:
        """Whether the header is complete, or invalid: gunicorn then says what is wrong."""
        start = max(0, self._searched - len(_HEAD_END))
        self._searched = len(self.received)
        complete = self.received.find(_HEAD_END, start) >= 0
        return complete or _BARE_LF.search(self.received, start) is not None

    def parse(self, cfg: Config, most_bytes: int) -> None:
        """Read the header into ``request``, whose body has at most ``most_bytes``. Raises what
        gunicorn's parser raises.
        """
        # Only the header: gunicorn would copy what follows, for each of many pipelined requests.
        end = self.received.find(_HEAD_END) + len(_HEAD_END)
        head = self.received if end < len(_HEAD_END) else self.received[:end]
        self.request = next(http.get_parser(cfg, [bytes(head)], self.client))
        del self.received[: len(head)]
        self.request.body = io.BytesIO()  # in place of gunicorn's reader, see bodies.py
        self._body = _body_of(self.request, most_bytes)

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
        """Read what has arrived of the body; returns whether it is complete. Raises Malformed."""
        self.body.take(self.received)
        return self.body.complete

    def seal(self) -> None:
        """Give the request its body. If that is incomplete, the start of the next request is
        unknown, so the connection is closed after the answer.
        """
        # gunicorn would write this line itself, in the middle of the answer.
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
        """Whether the client has certainly gone. One that only ends its own side still reads."""
        poller = select.poll()
        poller.register(self.socket, 0)  # poll always reports errors and resets
        return bool(poller.poll(0))

    def close(self) -> None:
        self.sock.drop()
        with suppress(OSError):
            self.socket.close()


def _body_of(request: Any, most_bytes: int) -> Length | Chunks:
    """gunicorn has refused a body with both headers, and one with two lengths."""
    codings = [value for name, value in request.headers if name == _CODING]
    if not codings:
        return Length(int(dict(request.headers).get("CONTENT-LENGTH", 0)), most_bytes)
    if [coding.lower() for coding in codings] != ["chunked"]:
        raise UnsupportedTransferCoding(", ".join(codings))
    return Chunks(most_bytes)


@dataclass(slots=True)
class FilePart:
    """The part of a file that is to be sent: ``remaining`` bytes from ``offset`` on."""

    fd: int
    offset: int
    remaining: int


class SendBuffer:
    """The answer that is to be sent, as the kind of socket that gunicorn writes to. Sending never
    waits: a client that does not read its answer must not hold the thread that made it. ``size``:
    the bytes of it in memory.
    """

    def __init__(self, client: socket.socket) -> None:
        self._socket = client
        self._unsent: deque[memoryview | FilePart] = deque()
        self.size = 0

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        if not self._unsent:
            view = view[self._sent(view) :]
        if view:
            self._unsent.append(view)
            self.size += len(view)

    def sendfile(self, file: BinaryIO, offset: int, count: int) -> None:
        """Send bytes of a file. Those of a large one are read as the client takes them, because a
        backup may be larger than the memory; a small one would keep a file open for each client
        that does not read. The caller may close the file.
        """
        if count <= FILE_AT_ONCE:
            self.sendall(os.pread(file.fileno(), count, offset))
        else:
            self._unsent.append(FilePart(os.dup(file.fileno()), offset, count))

    @property
    def sends_file(self) -> bool:
        return bool(self._unsent) and isinstance(self._unsent[0], FilePart)

    def flush(self) -> bool:
        """Send as much as the socket takes; returns whether that was all. Raises OSError."""
        while self._unsent:
            part = self._unsent[0]
            if isinstance(part, FilePart):
                if not self._flush_file(part):
                    return False
            else:
                sent = self._sent(part)
                self.size -= sent
                if sent < len(part):
                    self._unsent[0] = part[sent:]
                    return False
            self._unsent.popleft()
        return True

    def _flush_file(self, part: FilePart) -> bool:
        """Send so much that a fast client leaves time for the others; whether that was all."""
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
        """Forget what was not sent."""
        for part in self._unsent:
            if isinstance(part, FilePart):
                os.close(part.fd)
        self._unsent.clear()

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
