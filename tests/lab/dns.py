"""A DNS server whose every answer is a row of a table, over UDP and TCP, twice: two name servers.

A name below ``lab.test`` that has no row is a plain host on 127.0.0.1. Answers carry a TTL of 0, so
that nothing learned in one check is used in the next.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset

from tests.lab import ping
from tests.lab.net import Connection, Listener


@dataclass(frozen=True)
class Question:
    """The questions that were asked. ``server`` is 0 or 1; ``times`` counts how often it was asked
    before.
    """

    message: dns.message.Message
    name: str
    kind: str
    server: int
    tcp: bool
    times: int

    def reply(self, *records: tuple[str, str, str], rcode: int = dns.rcode.NOERROR) -> bytes:
        """An answer with these (name, type, value) records."""
        message = dns.message.make_response(self.message, recursion_available=True)
        message.set_rcode(dns.rcode.Rcode(rcode))
        for name, kind, value in records:
            message.answer.append(dns.rrset.from_text(f"{name}.", 0, "IN", kind, value))
        return message.to_wire()


@dataclass(frozen=True)
class Sent:
    """One datagram that leaves the server, ``after`` so many seconds."""

    wire: bytes
    after: float = 0.0


Answer = Callable[[Question], Sequence[Sent]]


def addresses(*values: str) -> Answer:
    """A plain answer: those of ``values`` that are of the family asked for."""

    def answer(question: Question) -> Sequence[Sent]:
        wanted = [v for v in values if (":" in v) == (question.kind == "AAAA")]
        kind = question.kind
        return [Sent(question.reply(*[(question.name, kind, v) for v in wanted]))]

    return answer


def failing(rcode: int) -> Answer:
    """Every question fails with this code."""
    return lambda question: [Sent(question.reply(rcode=rcode))]


def silence(question: Question) -> Sequence[Sent]:
    return []


def late(seconds: float, answer: Answer) -> Answer:
    return lambda question: [Sent(sent.wire, seconds) for sent in answer(question)]


def first_server(broken: Answer, healthy: Answer) -> Answer:
    """The first name server is broken, the second is not."""
    return lambda question: (broken if question.server == 0 else healthy)(question)


def one_family(kind: str, answer: Answer, other: Answer) -> Answer:
    """``answer`` to questions of this type, ``other`` to the rest."""
    return lambda question: (answer if question.kind == kind else other)(question)


def truncated(answer: Answer) -> Answer:
    """Over UDP only a note that the answer is too long; over TCP the answer."""

    def maybe(question: Question) -> Sequence[Sent]:
        if question.tcp:
            return answer(question)
        message = dns.message.make_response(question.message, recursion_available=True)
        message.flags |= dns.flags.TC
        return [Sent(message.to_wire())]

    return maybe


def changing(*steps: Answer) -> Answer:
    """The first question is answered by the first step, and so on; the last step stays."""
    return lambda question: steps[min(question.times, len(steps) - 1)](question)


def wrong_id(question: Question) -> Sequence[Sent]:
    """An answer to another question."""
    wire = addresses("127.0.0.1")(question)[0].wire
    return [Sent(struct.pack("!H", (question.message.id + 1) % 65536) + wire[2:])]


def forged_then_right(question: Question) -> Sequence[Sent]:
    """An answer with a wrong id and an address of its own comes first, the true one after it."""
    forged = addresses("127.9.9.9")(question)[0].wire
    forged = struct.pack("!H", (question.message.id + 1) % 65536) + forged[2:]
    return [Sent(forged), Sent(addresses("127.0.0.1")(question)[0].wire, 0.02)]


def alias(*chain: str, ends: str | None = "127.0.0.1", rcode: int = dns.rcode.NOERROR) -> Answer:
    """A chain of CNAMEs that ends at an address, or nowhere."""

    def answer(question: Question) -> Sequence[Sent]:
        names = [question.name, *chain]
        links = itertools.pairwise(names)
        records = [(name, "CNAME", f"{target}.") for name, target in links]
        if ends and (":" in ends) == (question.kind == "AAAA"):
            records.append((names[-1], question.kind, ends))
        return [Sent(question.reply(*records, rcode=rcode))]

    return answer


HERE = addresses("127.0.0.1")


def half_an_answer(question: Question) -> Sequence[Sent]:
    return [Sent(HERE(question)[0].wire[:14])]


def cut_everywhere(question: Question) -> Sequence[Sent]:
    """Too long for UDP, and over TCP nothing: as behind a firewall that lets UDP through alone."""
    return [] if question.tcp else truncated(HERE)(question)


def echo(question: Question) -> Sequence[Sent]:
    """The question itself, as some boxes on the way send it back."""
    return [Sent(question.message.to_wire())]


def of_another_name(question: Question) -> Sequence[Sent]:
    """The right type, but of a name that was not asked for, and that no alias leads to."""
    return [Sent(question.reply(("other.lab.test", question.kind, "127.0.0.1")))]


# Keys are labels below lab.test.
ZONE: dict[str, Answer] = {
    "nxdomain": failing(dns.rcode.NXDOMAIN),
    "servfail": failing(dns.rcode.SERVFAIL),
    "refused": failing(dns.rcode.REFUSED),
    "notimp": failing(dns.rcode.NOTIMP),
    "formerr": failing(dns.rcode.FORMERR),
    "silent": silence,
    "no-address": addresses(),
    "latency": late(0.2, HERE),
    "handshake-latency": late(0.2, HERE),  # rows run at once, and checks share a look-up
    "too-late": late(5.0, HERE),
    "truncated": truncated(HERE),
    "wrong-id": wrong_id,
    "forged": forged_then_right,
    "alias": alias("target.lab.test"),
    "long-alias": alias(*[f"step-{i}.lab.test" for i in range(6)]),
    "alias-to-nowhere": alias("gone.lab.test", ends=None, rcode=dns.rcode.NXDOMAIN),
    "alias-loop": alias("other.lab.test", "alias-loop.lab.test", ends=None),
    "alias-to-itself": alias("alias-to-itself.lab.test", ends=None),
    "first-silent": first_server(silence, HERE),
    "first-servfail": first_server(failing(dns.rcode.SERVFAIL), HERE),
    "servfail-and-silent": first_server(failing(dns.rcode.SERVFAIL), silence),
    "refused-and-silent": first_server(silence, failing(dns.rcode.REFUSED)),
    "half-an-answer": half_an_answer,
    "cut-everywhere": cut_everywhere,
    "echo": echo,
    "of-another-name": of_another_name,
    "-hyphen": HERE,
    "under_score": HERE,
    "a-nxdomain": one_family("A", failing(dns.rcode.NXDOMAIN), addresses("::1")),
    "first-refused": first_server(failing(dns.rcode.REFUSED), HERE),
    "aaaa-servfail": one_family("AAAA", failing(dns.rcode.SERVFAIL), HERE),
    "aaaa-silent": one_family("AAAA", silence, HERE),
    "aaaa-nxdomain": one_family("AAAA", failing(dns.rcode.NXDOMAIN), HERE),
    "dual": addresses("127.0.0.1", "::1"),
    "v6-only": addresses("::1"),
    "one-dead-backend": addresses("127.0.0.77", "127.0.0.1"),
    "many": addresses(*[f"127.0.0.{i}" for i in range(60, 67)], "127.0.0.1"),
    "unreachable": addresses("127.255.255.255"),
    "no-echo": addresses(ping.SILENT),
    "slow-echo": addresses(ping.SLOW),
    "not-allowed": addresses(ping.NOT_ALLOWED),
    "closed-address": addresses("10.11.12.13"),
    "metadata": addresses("169.254.169.254"),
    "mapped": addresses("::ffff:10.11.12.13"),
    "open-and-closed": addresses("10.11.12.13", "127.0.0.1"),
    "xn--bcher-kva": HERE,
    "rebinding": changing(HERE, addresses("169.254.169.254")),
}


class DnsServers:
    """Both name servers. ``settings`` is their value for DNS_SERVERS."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._servers = [self._start(index) for index in range(2)]
        self.addresses = [("127.0.0.1", tcp.port) for tcp, _ in self._servers]
        self.settings = ",".join(f"{host}:{port}" for host, port in self.addresses)

    def port_on_ipv6(self) -> int:
        """The port of one more, which is on ::1."""
        with self._lock:
            if len(self._servers) == 2:
                self._servers.append(self._start(0, "::1"))
            return self._servers[2][0].port

    def _start(self, index: int, address: str = "127.0.0.1") -> tuple[Listener, socket.socket]:
        tcp = Listener(lambda connection: self._serve_tcp(connection, index), address)
        udp = socket.socket(tcp.sock.family, socket.SOCK_DGRAM)
        udp.bind((address, tcp.port))
        thread = threading.Thread(target=self._serve_udp, args=(udp, index), daemon=True)
        thread.start()
        self._threads.append(thread)
        return tcp, udp

    def _serve_udp(self, udp: socket.socket, index: int) -> None:
        while not self._stopping.is_set():
            try:
                data, client = udp.recvfrom(4096)
            except OSError:
                return
            if not data:
                continue  # close() sends itself an empty datagram to wake up
            for sent in self._answers(data, index, tcp=False):
                if sent.after:
                    self._later(udp, sent, client)
                else:
                    udp.sendto(sent.wire, client)

    def _later(self, udp: socket.socket, sent: Sent, client: tuple[str, int]) -> None:
        def wait_and_send() -> None:
            if not self._stopping.wait(sent.after):
                with contextlib.suppress(OSError):
                    udp.sendto(sent.wire, client)

        thread = threading.Thread(target=wait_and_send, daemon=True)
        with self._lock:
            self._threads = [t for t in self._threads if t.is_alive()] + [thread]
        thread.start()

    def _serve_tcp(self, connection: Connection, index: int) -> None:
        head = connection.receive(2)
        if len(head) == 1:
            head += connection.receive(1)
        if len(head) < 2:
            return
        (length,) = struct.unpack("!H", head)
        data = b""
        while len(data) < length:
            chunk = connection.receive(length - len(data))
            if not chunk:
                return
            data += chunk
        for sent in self._answers(data, index, tcp=True):
            if not self._stopping.wait(sent.after):
                connection.send(struct.pack("!H", len(sent.wire)) + sent.wire)

    def _answers(self, data: bytes, index: int, *, tcp: bool) -> Sequence[Sent]:
        try:
            message = dns.message.from_wire(data)
        except dns.exception.DNSException:
            return []
        asked = message.question[0]
        name = asked.name.to_text(omit_final_dot=True).lower()
        kind = dns.rdatatype.to_text(asked.rdtype)
        with self._lock:
            times = self.asked[name, kind]
            self.asked[name, kind] += 1
        question = Question(message, name, kind, index, tcp, times)
        return answer_for(name)(question)

    def close(self) -> None:
        self._stopping.set()
        for tcp, udp in self._servers:
            tcp.close()
            with socket.socket(udp.family, socket.SOCK_DGRAM) as waker:
                waker.sendto(b"", udp.getsockname())
        for thread in self._threads:
            thread.join(5)
        for _, udp in self._servers:
            udp.close()


def answer_for(name: str) -> Answer:
    """The row for ``name``. A number behind its label makes it a name that nobody asked for yet."""
    label, _, zone = name.partition(".")
    if not f".{zone}".endswith(".lab.test"):
        return failing(dns.rcode.NXDOMAIN)
    stem, _, number = label.rpartition("-")
    return ZONE.get(stem if number.isdigit() and stem in ZONE else label, HERE)
