"""Send one question to the DNS servers, retry it, and validate and read the answer. Runs on the
check loop; nothing here blocks.

Each attempt has its own random id and its own socket, hence a random port. The socket is connected,
so the kernel drops packets from other hosts. An answer must carry the id and the question. A
truncated answer is fetched again over TCP.
"""

from __future__ import annotations

import errno
import secrets
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype

from app.net.hosts import DnsServer
from app.net.loop import READ, WRITE, Loop, Timer
from app.records import Cause

A = dns.rdatatype.A
AAAA = dns.rdatatype.AAAA

ROUNDS = 3
FIRST_WAIT = 0.8  # seconds to wait for a server in the first round; doubles with each round
_TCP_WAIT = 3.0
_MAX_CHAIN = 16  # CNAMEs in a row; more is taken for a loop
# Any other error code is SERVFAIL to us (decision 10)
_FAULT_OF_RCODE = {dns.rcode.REFUSED: Cause.DNS_REFUSED}


@dataclass(frozen=True, slots=True)
class DnsAnswer:
    """The result of one question: addresses with their TTL in seconds, or ``fault``. Both are empty
    if the name has no such record.
    """

    addresses: tuple[str, ...] = ()
    ttl: int = 0
    fault: Cause | None = None
    server: DnsServer | None = None


class Question:
    """Asks for one record type of one name. ``on_done`` is called once, on the loop, unless
    ``cancel`` came first.
    """

    def __init__(
        self, loop: Loop, name: dns.name.Name, rdtype: dns.rdatatype.RdataType,
        servers: Sequence[DnsServer], on_done: Callable[[DnsAnswer], None],
        on_silence: Callable[[DnsServer], None],
    ) -> None:  # fmt: skip
        self._loop = loop
        self._name = name
        self._rdtype = rdtype
        self._servers = servers
        self._on_done: Callable[[DnsAnswer], None] | None = on_done
        self._on_silence = on_silence
        self._attempt = -1
        self._hops = 0
        self._timer: Timer | None = None
        self._sockets: list[socket.socket] = []
        self._faults: dict[DnsServer, Cause] = {}

    def start(self) -> None:
        self._next()

    def cancel(self) -> None:
        self._on_done = None
        self._release()

    def _release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for sock in self._sockets:
            self._loop.unwatch(sock.fileno())
            sock.close()
        self._sockets.clear()

    def _finish(self, part: DnsAnswer) -> None:
        on_done, self._on_done = self._on_done, None
        self._release()
        if on_done is not None:
            on_done(part)

    def _wait(self, seconds: float, call: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, call)

    def _next(self) -> None:
        """Ask the next server that has not failed yet; give up after the last round."""
        while self._on_done is not None:
            self._attempt += 1
            round_, index = divmod(self._attempt, len(self._servers))
            if round_ >= ROUNDS or len(self._faults) == len(self._servers):
                self._finish(self.answer_so_far())
                return
            server = self._servers[index]
            if server in self._faults:
                continue
            pause = FIRST_WAIT * 2**round_
            if self._send(server):
                self._wait(pause, partial(self._note_silence, server))
                return
            if index == len(self._servers) - 1:
                # No server can be reached. Without a pause, this would loop a thousand times a
                # second.
                self._wait(pause, self._next)
                return

    def _note_silence(self, server: DnsServer) -> None:
        self._on_silence(server)
        self._next()

    def answer_so_far(self) -> DnsAnswer:
        """The result if nothing more arrives: the error of a server, or a timeout."""
        faults = set(self._faults.values())
        for fault in (Cause.DNS_SERVFAIL, Cause.DNS_REFUSED):
            if fault in faults:
                failed = next(server for server, error in self._faults.items() if error == fault)
                return DnsAnswer(fault=fault, server=failed)
        return DnsAnswer(fault=Cause.DNS_TIMEOUT)

    def _failed(self, server: DnsServer, fault: Cause) -> None:
        """The server answered with an error: ask another one."""
        self._faults[server] = fault
        self._next()

    def _query(self) -> dns.message.Message:
        return dns.message.make_query(self._name, self._rdtype, id=secrets.randbits(16))

    def _open(self, server: DnsServer, type_: socket.SocketKind) -> socket.socket:
        family = socket.AF_INET6 if ":" in server.address else socket.AF_INET
        sock = socket.socket(family, type_ | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        self._sockets.append(sock)
        return sock

    def _close(self, sock: socket.socket) -> None:
        self._loop.unwatch(sock.fileno())
        sock.close()
        self._sockets.remove(sock)

    # --- UDP

    def _send(self, server: DnsServer) -> bool:
        query = self._query()
        try:
            udp = self._open(server, socket.SOCK_DGRAM)
            udp.connect((server.address, server.port))
            udp.send(query.to_wire())
        except OSError:
            return False
        self._loop.watch(udp.fileno(), READ, lambda fd, events: self._received(udp, server, query))
        return True

    def _received(self, udp: socket.socket, server: DnsServer, query: dns.message.Message) -> None:
        try:
            data = udp.recv(65_535)
        except BlockingIOError:
            return
        except OSError:  # the port is closed: do not wait for this server
            is_latest = udp is self._sockets[-1]
            self._close(udp)
            if is_latest and self._attempt % len(self._servers) < len(self._servers) - 1:
                self._next()
            return
        if data[:2] != struct.pack("!H", query.id):
            return  # forged or late: keep waiting for the real answer
        answer = _parse(data)
        if answer is not None and not query.is_response(answer):
            return
        if answer is not None and answer.flags & dns.flags.TC:
            self._close(udp)
            self._ask_over_tcp(server)
        else:
            self._read(answer, server)

    # --- TCP, for answers that do not fit

    def _ask_over_tcp(self, server: DnsServer) -> None:
        query = self._query()
        tcp = self._open(server, socket.SOCK_STREAM)
        code = tcp.connect_ex((server.address, server.port))
        if code not in (0, errno.EINPROGRESS):
            self._close(tcp)
            self._failed(server, Cause.DNS_SERVFAIL)
            return
        self._wait(_TCP_WAIT, lambda: self._failed(server, Cause.DNS_SERVFAIL))
        exchange = _TcpExchange(tcp, query.to_wire())

        def ready(fd: int, events: int) -> None:
            try:
                data = exchange.step()
            except OSError:
                self._close(tcp)
                self._failed(server, Cause.DNS_SERVFAIL)
                return
            if data is not None:
                answer = _parse(data)
                # An answer that is truncated over TCP too is invalid.
                is_response = answer is not None and query.is_response(answer)
                is_whole = answer is not None and not answer.flags & dns.flags.TC
                self._read(answer if is_response and is_whole else None, server)
            elif exchange.sent:
                self._loop.watch(fd, READ, ready)

        self._loop.watch(tcp.fileno(), WRITE, ready)

    # --- reading

    def _read(self, answer: dns.message.Message | None, server: DnsServer) -> None:
        if answer is None:
            self._failed(server, Cause.DNS_SERVFAIL)
            return
        code = answer.rcode()
        if code not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
            self._failed(server, _FAULT_OF_RCODE.get(code, Cause.DNS_SERVFAIL))
            return
        target, ttl, addresses = _follow(answer, self._name, self._rdtype)
        if target is None:
            # A CNAME loop: other servers have it too.
            self._finish(DnsAnswer(fault=Cause.DNS_SERVFAIL, server=server))
        elif addresses:
            self._finish(DnsAnswer(addresses, ttl, server=server))
        elif code == dns.rcode.NXDOMAIN:
            self._finish(DnsAnswer(fault=Cause.DNS_NXDOMAIN, server=server))
        elif target != self._name and not _has_no_record(answer):
            self._ask_for(target, server)
        else:
            self._finish(DnsAnswer(server=server))

    def _ask_for(self, target: dns.name.Name, server: DnsServer) -> None:
        """Ask for the target of a CNAME that a server sent without the target's records. A client
        of authoritative servers must do so.
        """
        self._hops += 1
        if self._hops > _MAX_CHAIN:
            self._finish(DnsAnswer(fault=Cause.DNS_SERVFAIL, server=server))
            return
        self._release()
        self._name, self._attempt = target, -1
        self._faults.clear()
        self._next()


class RecordQuestion(Question):
    """The question of a DNS check. The whole answer is the result: its aliases are not followed by
    further questions. ``message``: the last message of a server, even one with an error.
    """

    message: dns.message.Message | None = None

    def _read(self, answer: dns.message.Message | None, server: DnsServer) -> None:
        self.message = answer or self.message
        if answer is None or answer.rcode() not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
            super()._read(answer, server)
        else:
            is_missing = answer.rcode() == dns.rcode.NXDOMAIN
            fault = Cause.DNS_NXDOMAIN if is_missing else None
            self._finish(DnsAnswer(fault=fault, server=server))


class _TcpExchange:
    """A query and its answer, each with two bytes of length before it (RFC 1035 4.2.2)."""

    def __init__(self, tcp: socket.socket, query: bytes) -> None:
        self._tcp = tcp
        self._out = struct.pack("!H", len(query)) + query
        self._in = bytearray()

    @property
    def sent(self) -> bool:
        return not self._out

    def step(self) -> bytes | None:
        """Send or receive as much as the socket allows. Returns the answer once it is complete;
        raises OSError if it cannot complete.
        """
        try:
            if self._out:
                self._out = self._out[self._tcp.send(self._out) :]
                return None
            data = self._tcp.recv(65_535)
        except BlockingIOError:
            return None
        if not data:
            raise ConnectionError("the DNS server closed the connection")
        self._in += data
        if len(self._in) < 2 or len(self._in) < 2 + (
            length := struct.unpack("!H", self._in[:2])[0]
        ):
            return None
        return bytes(self._in[2 : 2 + length])


def _parse(data: bytes) -> dns.message.Message | None:
    try:
        return dns.message.from_wire(
            data, ignore_trailing=True, one_rr_per_rrset=False, raise_on_truncation=False
        )
    except (dns.exception.DNSException, ValueError, struct.error):
        return None


def _follow(
    answer: dns.message.Message, name: dns.name.Name, rdtype: dns.rdatatype.RdataType
) -> tuple[dns.name.Name | None, int, tuple[str, ...]]:
    """The name at the end of the CNAME chain (None for a loop), the lowest TTL of the chain, and
    the addresses.
    """
    ttl = 2**31
    visited = {name}
    for _ in range(_MAX_CHAIN):
        rrset = answer.get_rrset(answer.answer, name, dns.rdataclass.IN, rdtype)
        if rrset:
            return name, min(ttl, rrset.ttl), tuple(record.address for record in rrset)
        alias = answer.get_rrset(answer.answer, name, dns.rdataclass.IN, dns.rdatatype.CNAME)
        if not alias:
            return name, ttl, ()
        ttl = min(ttl, alias.ttl)
        name = alias[0].target
        if name in visited:
            break
        visited.add(name)
    return None, 0, ()


def _has_no_record(answer: dns.message.Message) -> bool:
    """Whether the answer says that the name has no such record."""
    return any(rrset.rdtype == dns.rdatatype.SOA for rrset in answer.authority)
