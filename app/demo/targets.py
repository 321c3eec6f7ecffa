"""Local servers that fail by a script, which depends on the minute of the clock.

They listen on loopback: an HTTP server with a script for each path, a mail server that greets, a
mail server with STARTTLS, an HTTPS server whose certificate expires within days, one whose
certificate is self-signed, and a DNS server.
"""

from __future__ import annotations

import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import dns.message
import dns.rdatatype
import dns.rrset
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
PEM = serialization.Encoding.PEM


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    """The answer of a target. ``wait``: seconds before the first byte."""

    status: int = 200
    body: str = "<h1>All well</h1>"
    wait: float = 0.0
    location: str | None = None


# The answer of a path at a given minute of the hour.
Script = Callable[[int], TargetAnswer]


def _well(minute: int) -> TargetAnswer:
    return TargetAnswer(wait=0.02)


def _flapping(minute: int) -> TargetAnswer:
    if minute % 12 < 4:
        return TargetAnswer(503, "The pool of workers is exhausted", 0.02)
    return TargetAnswer(wait=0.03)


def _sometimes_slow(minute: int) -> TargetAnswer:
    return TargetAnswer(wait=0.9 if minute % 10 < 7 else 0.12)


def _text_comes_and_goes(minute: int) -> TargetAnswer:
    return TargetAnswer(body="Out of stock" if minute % 20 < 6 else "<p>In stock</p>", wait=0.04)


def _queue_grows(minute: int) -> TargetAnswer:
    state = "degraded" if minute % 30 < 8 else "ok"
    return TargetAnswer(body=f'{{"status": "{state}", "queue": {minute % 30 * 7}}}', wait=0.02)


SCRIPTS: dict[str, Script] = {
    "/shop": lambda minute: TargetAnswer(wait=0.06),
    "/newsletter": _queue_grows,
    "/api": lambda minute: TargetAnswer(body='{"ok": true}', wait=0.015),
    "/docs": lambda minute: TargetAnswer(wait=0.03),
    "/assets": lambda minute: TargetAnswer(body="." * 200_000, wait=0.01),
    "/login": _flapping,
    "/search": _sometimes_slow,
    "/stock": _text_comes_and_goes,
    "/payments": lambda minute: TargetAnswer(500, "Internal Server Error", 0.05),
    "/blog": lambda minute: TargetAnswer(302, "", 0.01, location="/blog"),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "demo"
    sys_version = ""

    def do_GET(self) -> None:
        script = SCRIPTS.get(self.path.partition("?")[0], _well)
        answer = script(datetime.now(UTC).minute)
        time.sleep(answer.wait)  # this is the slowness that the demonstration shows
        body = answer.body.encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if answer.location:
            self.send_header("Location", answer.location)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """The webhooks that alerts go to: all accept messages, but for one that was removed."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_removed = self.path.startswith("/hooks/is_removed")
        body = b"This hook was removed" if is_removed else b"ok"
        self.send_response(404 if is_removed else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal belongs to the service."""


def greeting(minute: int) -> bytes:
    """The greeting of the mail server, which refuses every client for some minutes."""
    return b"421 Too busy, try later\r\n" if minute % 15 < 3 else b"220 mail ESMTP ready\r\n"


class _Quiet:
    """A server with a thread for each client, which does not log lost connections."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass


class _Greeter(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(greeting(datetime.now(UTC).minute))


class _Mail(_Quiet, socketserver.ThreadingTCPServer):
    pass


def starts_tls(minute: int) -> bool:
    """Whether the submission server offers TLS at this minute."""
    return minute % 18 >= 4


class _Submission(socketserver.StreamRequestHandler):
    """SMTP as far as STARTTLS."""

    server: _SubmissionServer

    def handle(self) -> None:
        self.wfile.write(b"220 submission ESMTP ready\r\n")
        while line := self.rfile.readline():
            if line.upper().startswith(b"STARTTLS"):
                break
            self.wfile.write(b"250-submission\r\n250 STARTTLS\r\n")
        if not starts_tls(datetime.now(UTC).minute):
            self.wfile.write(b"454 TLS is not available\r\n")
            return
        self.wfile.write(b"220 Go ahead\r\n")
        self.server.context.wrap_socket(self.connection, server_side=True).recv(1)


class _SubmissionServer(_Mail):
    def __init__(self, address: tuple[str, int], context: ssl.SSLContext) -> None:
        super().__init__(address, _Submission)
        self.context = context


def records(minute: int) -> Sequence[str]:
    """The MX records in DNS, which are missing for some minutes."""
    return () if minute % 25 < 4 else ("10 mail.shop.example.",)


class _Names(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        data, udp = self.request
        query = dns.message.from_wire(data)
        answer = dns.message.make_response(query)
        name, record_type = query.question[0].name, query.question[0].rdtype
        values = records(datetime.now(UTC).minute)
        if values and record_type == dns.rdatatype.MX:
            answer.answer.append(dns.rrset.from_text_list(name, 300, "IN", "MX", values))
        udp.sendto(answer.to_wire(), self.client_address)


class _NameServer(_Quiet, socketserver.ThreadingUDPServer):
    pass


class _Server(_Quiet, ThreadingHTTPServer):
    context: ssl.SSLContext | None = None

    def finish_request(self, request: object, client_address: object) -> None:
        # In the thread of the connection, so that a client that does not begin TLS blocks no other.
        if self.context is not None:
            try:
                request = self.context.wrap_socket(request, server_side=True)  # type: ignore[arg-type]
            except OSError:
                return
        super().finish_request(request, client_address)  # type: ignore[arg-type]


class Targets:
    """All listeners. ``http``, ``expiring`` and ``self_signed`` are their base URLs, ``mail`` is a
    port that greets, ``submission`` one with STARTTLS, ``names`` the server of a dns: URL.

    ``authority`` is the file of the authority that signed the expiring certificate.
    """

    def __init__(self, folder: Path) -> None:
        self.authority = folder / "demo-authority.pem"
        self._servers: list[socketserver.TCPServer] = []
        self.http = self._serve("http", None)
        expiring = self._context(folder, days=6)
        self.expiring = self._serve("https", expiring)
        self.self_signed = self._serve("https", self._context(folder, days=300, self_signed=True))
        self.mail = self._start("tcp", _Mail((HOST, 0), _Greeter))
        self.submission = self._start("tls", _SubmissionServer((HOST, 0), expiring))
        self.names = self._start("dns", _NameServer((HOST, 0), _Names))

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def _serve(self, scheme: str, context: ssl.SSLContext | None) -> str:
        server = _Server((HOST, 0), _Handler)
        server.context = context
        return self._start(scheme, server)

    def _start(self, scheme: str, server: socketserver.TCPServer) -> str:
        self._servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"{scheme}://{HOST}:{server.server_address[1]}"

    def _context(self, folder: Path, *, days: int, self_signed: bool = False) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        if self_signed:
            chain = [_certificate("127.0.0.1", key, "127.0.0.1", key, days, authority=False)]
        else:
            root_key = ec.generate_private_key(ec.SECP256R1())
            root = _certificate("Demo authority", root_key, "Demo authority", root_key, 3650, True)
            self.authority.write_bytes(root.public_bytes(PEM))
            chain = [_certificate("127.0.0.1", key, "Demo authority", root_key, days, False)]
        path = folder / f"demo-{'self' if self_signed else 'leaf'}.pem"
        path.touch(mode=0o600)
        kind = serialization.PrivateFormat.PKCS8
        secret = key.private_bytes(PEM, kind, serialization.NoEncryption())
        path.write_bytes(b"".join([secret, *(cert.public_bytes(PEM) for cert in chain)]))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    days: int,
    authority: bool,
) -> x509.Certificate:
    now = datetime.now(UTC)

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    builder = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=80))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if not authority:
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())
