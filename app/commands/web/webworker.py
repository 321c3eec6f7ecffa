"""A gunicorn worker whose threads never wait for a client.

gunicorn's own gthread gives a connection a thread from its first byte on: sixteen clients that send
one byte a second block everybody. Here the event loop reads requests and sends answers, each within
a time limit for the whole; a thread gets a request when all of it has arrived (the docstring of the
package has the exceptions). When too many connections are open or too many bytes are in memory, the
connection that has waited longest is closed: an honest client waits milliseconds.
"""

from __future__ import annotations

import errno
import json
import logging
import selectors
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from gunicorn.http import wsgi
from gunicorn.http.errors import LimitRequestHeaders, NoMoreData
from gunicorn.workers.gthread import ThreadWorker

from app.access.security_log import MAX_A_MINUTE, EventLimit
from app.commands.web.bodies import Malformed
from app.commands.web.connection import ClientConnection
from app.headers import ALWAYS
from app.i18n import N_, _
from app.middleware import EARLY
from app.records import DRAINED_BYTES, MAX_BODY_BYTES, MAX_FORM_BYTES, PING_DRAINED_BYTES
from app.slots import PING_THREADS

log = logging.getLogger(__name__)

# The paths with one thread each, which answers while all other threads are busy.
OWN_THREADS = ("/healthz", "/readyz")
_ACCEPTED_AT_ONCE = 64
_EXPIRY_PAUSE = 0.2  # seconds between two checks for late connections
_NO_MORE_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_BODY_NEEDED = object()
_CONTINUE = 100  # the status with which the application asks for the body
_LATE = N_("The request did not arrive in time.")
# The requests that gunicorn refuses before the application sees them, by status.
REFUSED = {
    414: N_("The address is too long. Send long values in the body."),
    431: N_("The header is too large."),
    501: N_("The transfer coding of the body is unknown. Send it as chunked."),
}
# The beginning of gunicorn's log lines about such requests.
BEGINS = "Invalid request from ip="
MAX_CHARACTERS = 300
UNREADABLE = N_("The request cannot be read: it is not valid HTTP.")


@dataclass(frozen=True, slots=True)
class Limits:
    """A time limit in seconds is for a whole header, body or answer, however steadily its bytes
    arrive.
    """

    idle_seconds: float = 2.0  # a kept connection, until the next request begins
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    answer_seconds: float = 60.0  # for the client to take the answer, or the next part of a file
    closing_seconds: float = 5.0  # for the client to read the last answer and close
    ask_seconds: float = 1.0  # after which the application is asked whether it needs the body
    connections: int = 2000  # fewer if the system allows fewer files
    head_bytes: int = 64 * 1024
    body_bytes: int = MAX_FORM_BYTES
    buffered_bytes: int = 64 * 1024 * 1024  # of all connections that wait in the event loop


class WebWorker(ThreadWorker):  # type: ignore[misc] # gunicorn ships no types
    """Its application (``WebServer``) has ``limits``, and a ``folder`` for all of its paths."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.on_turn: Callable[[], object] = lambda: None  # called at each turn of the event loop
        self._limits: Limits = self.app.limits
        # Connections that the event loop handles, the one that has waited longest first.
        self._parked: dict[ClientConnection, None] = {}
        self._buffered = 0
        self._expiry_due = 0.0
        self.log.error_log.addFilter(RefusalFilter())

    def init_signals(self) -> None:
        super().init_signals()
        # SIGHUP comes when a terminal closes. gunicorn's arbiter handles it and goes on serving.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def is_parent_alive(self) -> bool:
        """True, because no arbiter runs. ``serve.end_with`` notices the end of a supervisor."""
        return True

    def notify(self) -> None:
        self.on_turn()

    def init_process(self) -> None:
        self._own_threads = {path: ThreadPoolExecutor(1, path.strip("/")) for path in OWN_THREADS}
        # A separate thread, so that complete requests do not queue behind questions about slow
        # bodies.
        self._early_pool = ThreadPoolExecutor(1, "before-body")
        # At midnight, all jobs ping at once, and pings wait for each other. Pages must not wait.
        self._ping_pool = ThreadPoolExecutor(PING_THREADS, "ping")
        super().init_process()

    # --- connections come and go

    def accept(self, listener: socket.socket) -> None:
        for _turn in range(_ACCEPTED_AT_ONCE):
            try:
                client, address = listener.accept()
            except OSError as fault:
                if fault.errno in _NO_MORE_FILES:
                    self._close_oldest()
                return
            self.nr_conns += 1
            conn = ClientConnection(client, address, listener.getsockname(), self.app.folder)
            self._park(conn, self._read_head, self._limits.head_seconds)

    def _park(
        self,
        conn: ClientConnection,
        handler: Callable[[ClientConnection], None],
        seconds: float,
        events: int = selectors.EVENT_READ,
    ) -> None:
        """Call ``handler`` when the socket is ready; after ``seconds`` the connection is late."""
        conn.handler, conn.deadline = handler, time.monotonic() + seconds
        self._parked[conn] = None
        self._count_bytes(conn)
        self.poller.register(conn.socket, events, partial(self._ready, conn))

    def _unpark(self, conn: ClientConnection) -> None:
        if conn in self._parked:
            del self._parked[conn]
            self._buffered -= conn.counted
            conn.counted = 0
            self.poller.unregister(conn.socket)

    def _count_bytes(self, conn: ClientConnection) -> None:
        self._buffered += conn.buffered - conn.counted
        conn.counted = conn.buffered

    def _ready(self, conn: ClientConnection, _socket: object) -> None:
        if conn in self._parked:  # not closed by an event that came together with this one
            self._handle(conn, conn.handler)
        if conn in self._parked:
            self._count_bytes(conn)

    def _handle(self, conn: ClientConnection, handler: Callable[[ClientConnection], None]) -> None:
        """Call a handler. An error in one connection must not end the event loop."""
        try:
            handler(conn)
        except OSError:
            self._close(conn)
        except Exception:
            log.exception("A connection failed because of an internal error")
            self._close(conn)

    def _close(self, conn: ClientConnection) -> None:
        self._unpark(conn)
        conn.close()
        self.nr_conns -= 1

    def _close_oldest(self) -> None:
        if self._parked:
            self._close(next(iter(self._parked)))

    # --- a request arrives

    def _read_head(self, conn: ClientConnection) -> None:
        idle = not conn.received
        if conn.receive() and idle and conn.keeps_alive:
            conn.deadline = time.monotonic() + self._limits.head_seconds
        self._process_head(conn)

    def _process_head(self, conn: ClientConnection) -> None:
        too_large = len(conn.received) > self._limits.head_bytes
        if not conn.has_head() and not too_large:
            if conn.ended:
                self._close(conn)
            return
        try:
            conn.parse(self.cfg, self._limits.body_bytes)
        except (NoMoreData, StopIteration):
            self._refuse(conn, LimitRequestHeaders(_("The header is too large.")))
        except Exception as fault:
            self._refuse(conn, fault)
        else:
            conn.handler = self._read_body
            conn.deadline = time.monotonic() + self._limits.body_seconds
            conn.ask_at = time.monotonic() + self._limits.ask_seconds
            if not conn.body.complete and _is_ping(conn):
                conn.body.max_drained = PING_DRAINED_BYTES
            self._process_body(conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Send gunicorn's answer, with the headers that all other answers have."""
        page = _ErrorSocket()
        super().handle_error(req, page, addr, exc)
        status, line, headers = bytes(page.written).partition(b"\r\n")
        added = "".join(f"{name}: {value}\r\n" for name, value in ALWAYS)
        if line:
            client.sendall(status + line + added.encode() + headers)

    def _refuse(self, conn: ClientConnection, fault: Exception) -> None:
        conn.keeps_alive = False
        page = _ErrorSocket()
        super().handle_error(None, page, conn.client, fault)
        status = HTTPStatus(int(page.written.split(maxsplit=2)[1]))
        # gunicorn's reason may belong to another status: "501 Bad Request".
        line = f"{status.value} {status.phrase}"
        conn.sock.sendall(_refusal(conn, line, _(REFUSED.get(status.value, UNREADABLE))))
        self._unpark(conn)
        self._send(conn)

    def _read_body(self, conn: ClientConnection) -> None:
        conn.receive()
        self._process_body(conn)

    def _process_body(self, conn: ClientConnection) -> None:
        try:
            complete = conn.take_body()
        except Malformed:
            self._serve(conn)
            return
        # A proxy drops an answer that comes in the middle of the body: Caddy closes its connection
        # to us, and visitors get half a page or none. curl fails, and so does the job that pings.
        # So a body that is a little too large, or that of a ping, is read to its end, as any other.
        is_over = conn.body.too_large and not conn.body.is_drained and conn.body.has_beginning
        if complete or conn.ended or is_over:
            # The application refuses a body that is too large or incomplete.
            self._serve(conn)
        elif conn.expects_continue and not conn.was_asked:
            self._ask(conn)

    # --- a thread answers

    def _serve(self, conn: ClientConnection) -> None:
        self._unpark(conn)
        conn.seal()
        if conn.body.length > MAX_BODY_BYTES and _is_ping(conn):
            conn.request.force_close()
        self._hand_over(conn, self._answer, self._pool_of(conn))

    def _pool_of(self, conn: ClientConnection) -> Any:
        if _is_ping(conn):
            return self._ping_pool
        return self._own_threads.get(conn.path, self.tpool)

    def _hand_over(
        self, conn: ClientConnection, answer: Callable[[ClientConnection], object], pool: Any
    ) -> None:
        pool.submit(self._guarded, conn, answer).add_done_callback(
            lambda future: self.method_queue.defer(self.finish_request, conn, future)
        )

    def _ask(self, conn: ClientConnection) -> None:
        """Ask the application for an answer without the body, which is slow or not sent yet."""
        if conn.body.is_drained and not _is_ping(conn):  # the beginning of a ping's is kept
            self._serve(conn)
            return
        conn.was_asked = True
        self._unpark(conn)
        self._hand_over(conn, self._early, self._early_pool)

    def _answer(self, conn: ClientConnection) -> object:
        """Answer the request; returns whether the connection stays open. Runs in a thread."""
        return not conn.is_broken() and bool(self.handle_request(conn.request, conn))

    def _guarded(
        self, conn: ClientConnection, answer: Callable[[ClientConnection], object]
    ) -> object:
        try:
            return answer(conn)
        except (ConnectionError, NoMoreData, StopIteration):
            return False  # the client has gone, or gunicorn has broken an answer off
        except Exception as fault:
            self.handle_error(conn.request, conn.sock, conn.client, fault)
            return False

    def _early(self, conn: ClientConnection) -> object:
        expects, conn.request._expected_100_continue = conn.expects_continue, False
        response, environ = wsgi.create(conn.request, conn.sock, conn.client, conn.server, self.cfg)
        environ[EARLY] = True
        answer = self.wsgi(environ, response.start_response)
        if response.status_code == _CONTINUE:
            if expects:
                conn.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            return _BODY_NEEDED
        response.force_close()
        for part in answer:
            response.write(part)
        response.close()
        return False

    # --- the answer leaves

    def finish_request(self, conn: ClientConnection, future: Future[object]) -> None:
        """Go on after a thread has answered. Runs in the event loop."""
        result = False if future.cancelled() or future.exception() else future.result()
        conn.keeps_alive = result is True
        self._handle(conn, self._await_body if result is _BODY_NEEDED else self._send)

    def _await_body(self, conn: ClientConnection) -> None:
        self._park(conn, self._read_body, conn.deadline - time.monotonic())
        self._process_body(conn)

    def _send(self, conn: ClientConnection) -> None:
        """Send the answer, now and as the client takes it. Raises OSError."""
        if not conn.sock.flush():
            seconds = self._limits.answer_seconds
            if conn not in self._parked:
                self._park(conn, self._send, seconds, selectors.EVENT_WRITE)
            elif conn.sock.sends_file:  # each part of a file has the time limit
                conn.deadline = time.monotonic() + seconds
                self._parked[conn] = self._parked.pop(conn)  # now the last to be closed
            return
        self._unpark(conn)
        if conn.keeps_alive:
            self._await_next(conn)
        else:
            self._hang_up(conn)

    def _await_next(self, conn: ClientConnection) -> None:
        conn.renew()
        limits = self._limits
        seconds = limits.head_seconds if conn.received else limits.idle_seconds
        self._park(conn, self._read_head, seconds)
        self._process_head(conn)  # a client may send several requests without waiting

    def _hang_up(self, conn: ClientConnection) -> None:
        """Close the connection after the client has closed it. If the client still sends, the
        system would otherwise reset the connection, and the client would lose an unread answer.
        """
        conn.received.clear()
        with suppress(OSError):
            conn.socket.shutdown(socket.SHUT_WR)
        if conn.ended:
            self._close(conn)
        else:
            self._park(conn, self._drain, self._limits.closing_seconds)

    def _drain(self, conn: ClientConnection) -> None:
        conn.drained_bytes += conn.receive()
        conn.received.clear()
        if conn.ended or conn.drained_bytes > DRAINED_BYTES:
            self._close(conn)

    # --- time runs out (gunicorn's loop calls these, after each wait for events and when it stops)

    def murder_pending(self) -> None:
        """Close connections that are late, and the oldest ones if there are too many."""
        while self._parked and self._is_full():
            self._close_oldest()
        now = time.monotonic()
        if now < self._expiry_due:
            return
        self._expiry_due = now + _EXPIRY_PAUSE
        for conn in list(self._parked):
            if conn.handler == self._read_body and not conn.was_asked and conn.ask_at <= now:
                self._ask(conn)
            elif conn.deadline <= now:
                self._expire(conn)

    def _is_full(self) -> bool:
        return (
            self.nr_conns >= self.worker_connections or self._buffered > self._limits.buffered_bytes
        )

    def _expire(self, conn: ClientConnection) -> None:
        has_begun = conn.handler == self._read_head and bool(conn.received)
        if conn.handler != self._read_body and not has_begun:
            self._close(conn)
            return
        if conn.handler == self._read_body and _is_ping(conn):
            self._handle(conn, self._serve)  # a ping counts, whatever becomes of its body
            return
        conn.keeps_alive = False
        self._unpark(conn)
        self._handle(conn, self._refuse_late)

    def _refuse_late(self, conn: ClientConnection) -> None:
        conn.sock.sendall(_refusal(conn, "408 Request Timeout", _(_LATE)))
        self._send(conn)

    def _cap_keepalive(self, deadline: float) -> None:
        """The worker stops: close connections that have not sent a request by ``deadline``."""
        for conn in self._parked:
            if conn.handler in (self._read_head, self._drain):
                conn.deadline = min(conn.deadline, deadline)


class RefusalFilter(logging.Filter):
    """Shortens gunicorn's log lines about requests that it refuses, and limits their number in each
    minute. Other lines are not changed.

    Such a line quotes the request, up to 64 KB, and anybody may send such requests without end:
    they would fill the disk.
    """

    def __init__(self, bound: EventLimit | None = None) -> None:
        super().__init__()
        self._bound = bound or EventLimit(MAX_A_MINUTE)

    def filter(self, record: logging.LogRecord) -> bool:
        line = record.getMessage()
        if not line.startswith(BEGINS):
            return True
        is_allowed, left_out = self._bound.count(BEGINS)
        if len(line) > MAX_CHARACTERS:
            line = f"{line[:MAX_CHARACTERS]}…"
        if left_out:
            line += f" (left out before: {left_out[BEGINS]})"
        record.msg, record.args = line, None
        return is_allowed


class _ErrorSocket:
    """Collects the answer that gunicorn writes for an error. It has the methods of a socket that
    gunicorn calls.
    """

    def __init__(self) -> None:
        self.written = bytearray()

    def sendall(self, data: bytes) -> None:
        self.written += data

    def gettimeout(self) -> float:
        return 0.0


def _is_ping(conn: ClientConnection) -> bool:
    from app.api.pings import is_ping  # loaded with the application, after the start

    return is_ping(conn.path)


def _refusal(conn: ClientConnection, status: str, sentence: str) -> bytes:
    """The refusal of a request that the application does not get, in JSON if its path is that of
    the API. ``status``: the code and the reason.
    """
    kind, text = "text/plain", sentence + "\n"
    if conn.path.startswith("/api/"):
        kind = "application/json"
        text = json.dumps({"message": sentence, "status": int(status[:3])})
    head = (
        f"HTTP/1.1 {status}\r\nConnection: close\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(text.encode())}\r\n"
        + "".join(f"{name}: {value}\r\n" for name, value in ALWAYS)
        + "\r\n"
    )
    return (head + text).encode()
