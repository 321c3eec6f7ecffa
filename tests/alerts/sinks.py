"""Real servers in place of the services: an HTTP sink and a mail server, both on loopback.

The HTTP sink stores the requests it gets and answers with a list of ``Reply`` for each path, in
order, repeating the last one. A path without a script answers 200.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

HANG_SECONDS = 60


@dataclass(frozen=True)
class Reply:
    """``act``: "answer", "echo" (answer with all that was sent), "hang", "reset", or "drip" (a
    header line without end).
    """

    status: int = 200
    body: str = "ok"
    headers: tuple[tuple[str, str], ...] = ()
    act: str = "answer"


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    raw: bytes
    at: float

    @property
    def json(self) -> Any:
        assert self.headers["content-type"].startswith("application/json")
        return json.loads(self.raw)

    @property
    def form(self) -> dict[str, str]:
        assert self.headers["content-type"] == "application/x-www-form-urlencoded"
        return dict(parse_qsl(self.raw.decode(), strict_parsing=True))


class HttpSink:
    """``context``: speak TLS with it."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.replies: dict[str, list[Reply]] = defaultdict(list)
        self.open = True  # closed, every request is reset: the service is down
        self.arrived = threading.Condition()
        self.stopping = threading.Event()
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sink.take(self)

            def log_message(self, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *args: Any) -> None:
                pass  # the tests make clients disconnect

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self.arrived:
            script = self.replies[handler.path]
            reply = (script.pop(0) if len(script) > 1 else script[0]) if script else Reply()
            if self.open:
                self.requests.append(Request(handler.path, headers, raw, time.monotonic()))
            else:
                reply = Reply(act="reset")
            self.arrived.notify_all()
        handler.close_connection = True
        if reply.act == "echo":
            echo = f"{self.url}{handler.path} {headers.get('authorization')} {raw.decode()}"
            reply = Reply(reply.status, f"{echo} {echo.upper()} {quote(echo)}")
        self._act(handler, reply)

    def _act(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        if reply.act == "reset":
            linger = struct.pack("ii", 1, 0)
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            handler.connection.close()
        elif reply.act == "hang":
            self.stopping.wait(HANG_SECONDS)
        elif reply.act == "drip":
            handler.send_response(200)
            handler.flush_headers()
            while not self.stopping.wait(0.1):
                handler.wfile.write(b"X-Drip: 1\r\n")
        else:
            handler.send_response(reply.status)
            for name, value in reply.headers:
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(reply.body.encode())

    def to(self, path: str) -> list[Request]:
        with self.arrived:
            return [request for request in self.requests if request.path == path]

    def wait_for(self, enough: Callable[[], bool], seconds: float = 90.0) -> None:
        with self.arrived:
            assert self.arrived.wait_for(enough, seconds), self.requests

    def close(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()


@dataclass
class MailSink:
    """A mail server. ``script``: answers to RCPT by address, in order, the last one again."""

    hostname: str = "127.0.0.1"
    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    envelopes: list[tuple[str, list[str]]] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    script: dict[str, list[str]] = field(default_factory=dict)

    async def handle_RCPT(
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        answers = self.script.get(address, ["250 OK"])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.envelopes.append((envelope.mail_from, list(envelope.rcpt_tos)))
        return "250 2.0.0 queued as 4711"

    def authenticate(self, server: Any, session: Any, envelope: Any, how: str, data: Any) -> Any:
        self.logins.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=data.password == b"mail password 123")


class _Controller(Controller):
    """aiosmtpd with a free port, which it reports; aiosmtpd itself needs a fixed one."""

    def _trigger_server(self) -> None:
        assert self.server is not None
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextlib.contextmanager
def mail_sink(sink: MailSink | None = None, **options: Any) -> Iterator[MailSink]:
    sink = sink or MailSink()
    if options.get("auth_required"):
        options["authenticator"] = sink.authenticate
    controller = _Controller(sink, hostname="127.0.0.1", port=0, **options)
    controller.start()
    sink.port = controller.port
    try:
        yield sink
    finally:
        controller.stop()


TOKEN = "123456:AAF-secretpartofthetoken"
TWILIO_OK = Reply(201, '{"sid": "SM42", "status": "queued"}')
TWILIO_PATH = "/2010-04-01/Accounts/AC0account/Messages.json"


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    """A service that takes alerts."""
    made = HttpSink()
    yield made
    made.close()


@pytest.fixture
def mail() -> Iterator[MailSink]:
    with mail_sink() as made:
        yield made
