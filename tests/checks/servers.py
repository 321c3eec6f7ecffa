"""Small real servers for the tests of checks: DNS from a table, a trap, HTTP with fixed answers."""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

from app.net.hosts import DnsServer
from tests.lab.net import Connection, Listener
from tests.lab.tls import over_tls

Records = Sequence[tuple[str, str, str]]  # (name, type, value)
# The answer for a name: records, or a function of (query, how often the name was asked before) that
# returns a message, raw bytes, or None for no answer.
Answer = Records | Callable[[dns.message.Message, int], dns.message.Message | bytes | None]


class NameServer:
    """A DNS server over UDP and TCP on 127.0.0.1. ``zone`` may be changed while it runs."""

    def __init__(self, zone: dict[str, Answer] | None = None, ttl: int = 0) -> None:
        self.zone: dict[str, Answer] = zone or {}
        self.ttl = ttl
        self.asked: Counter[tuple[str, str]] = Counter()
        self.over_tcp = 0
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._tcp.getsockname()[1])
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        self._end, self._ended = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def server(self) -> DnsServer:
        return DnsServer("127.0.0.1", self.port)

    def close(self) -> None:
        self._end.close()
        self._thread.join(5)
        for closable in (self._tcp, self._udp, self._ended):
            closable.close()

    def _serve(self) -> None:
        while True:
            ready, _, _ = select.select([self._udp, self._tcp, self._ended], [], [])
            if self._ended in ready:
                return
            if self._udp in ready:
                data, peer = self._udp.recvfrom(4096)
                for answer in self._answers(data):
                    self._udp.sendto(answer, peer)
            if self._tcp in ready:
                with self._tcp.accept()[0] as connection:
                    connection.settimeout(5)
                    self.over_tcp += 1
                    data = connection.recv(4096)
                    for answer in self._answers(data[2:], tcp=True):
                        connection.sendall(struct.pack("!H", len(answer)) + answer)

    def _answers(self, data: bytes, tcp: bool = False) -> list[bytes]:
        query = dns.message.from_wire(data)
        question = query.question[0]
        name = question.name.to_text(omit_final_dot=True)
        kind = dns.rdatatype.to_text(question.rdtype)
        times = self.asked[name, kind]
        self.asked[name, kind] += 1
        entry = self.zone.get(name)
        if callable(entry):
            answer = entry(query, times)
            if answer is None:
                return []
            return [answer if isinstance(answer, bytes) else answer.to_wire(max_size=65_535)]
        return [reply(query, entry, ttl=self.ttl).to_wire()]


def reply(
    query: dns.message.Message,
    records: Records | None,
    *,
    rcode: dns.rcode.Rcode = dns.rcode.NOERROR,
    ttl: int = 0,
) -> dns.message.Message:
    """An answer with the ``records`` that match the question, CNAMEs always; None is NXDOMAIN."""
    message = dns.message.make_response(query, recursion_available=True)
    message.set_rcode(dns.rcode.NXDOMAIN if records is None else rcode)
    wanted = dns.rdatatype.to_text(query.question[0].rdtype)
    grouped: dict[tuple[str, str], list[str]] = {}
    for name, kind, value in records or ():
        if kind in (wanted, "CNAME"):
            grouped.setdefault((name, kind), []).append(value)
    for (name, kind), values in grouped.items():
        message.answer.append(dns.rrset.from_text_list(f"{name}.", ttl, "IN", kind, values))
    return message


def host(name: str, *addresses: str) -> Records:
    """Address records for a name."""
    return [(name, "AAAA" if ":" in address else "A", address) for address in addresses]


class Trap:
    """Listens on every address of this machine, in both families, and records connections."""

    def __init__(self) -> None:
        self._socket = socket.create_server(
            ("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512
        )
        self._socket.setblocking(False)
        self.port = int(self._socket.getsockname()[1])

    def caught(self) -> list[str]:
        """The addresses that were connected to. The kernel completes a connection even before it is
        accepted, so none is missed.
        """
        records = []
        while True:
            try:
                connection, _ = self._socket.accept()
            except BlockingIOError:
                return records
            records.append(connection.getsockname()[0])
            connection.close()

    def close(self) -> None:
        self._socket.close()


class Web:
    """An HTTP/1.1 server whose answer is a function of the request's head and body."""

    def __init__(
        self, answer: Callable[[str, bytes], bytes], address: str = "127.0.0.1", context: Any = None
    ) -> None:
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self._answer = answer
        handler = self._serve if context is None else over_tls(context, self._serve)
        self._listener = Listener(handler, address)
        self.port = self._listener.port

    def _serve(self, connection: Connection) -> None:
        head, _, body = connection.read_until(b"\r\n\r\n").partition(b"\r\n\r\n")
        text = head.decode("latin-1")
        lengths = (line[15:] for line in text.split("\r\n") if line[:15].lower() == LENGTH)
        length = int(next(lengths, 0))
        while len(body) < length and (piece := connection.receive()):
            body += piece
        if head:
            self.heads.append(text)
            self.bodies.append(body)
            connection.send(self._answer(text, body))

    def close(self) -> None:
        self._listener.close()


LENGTH = "content-length:"


def http(status: str = "200 OK", body: bytes = b"hello", *headers: str) -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8") + body


@contextmanager
def closing(*things: Any) -> Iterator[None]:
    try:
        yield
    finally:
        for thing in things:
            thing.close()
