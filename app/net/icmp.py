"""ICMP echo (ping) on the check loop: a series of echoes to one address, and the result of each.

Linux allows a datagram socket for ICMP to the groups in ``net.ipv4.ping_group_range``, and a raw
socket to processes with CAP_NET_RAW. Both are connected here, so the kernel drops packets of other
hosts, and both queue the ICMP errors of routers (IP_RECVERR).
"""

from __future__ import annotations

import secrets
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from app.i18n import N_, _
from app.net.loop import READ, Loop, Timer
from app.net.race import is_ipv6

_NOT_ALLOWED = N_(
    "This machine does not let Wakeful send pings. Put its group into the sysctl"
    " net.ipv4.ping_group_range, such as “0 2147483647”, or give it CAP_NET_RAW."
)
# Numbers of Linux that the module ``socket`` lacks, by IP version: the level, the options to
# receive errors and hop limits, and the type of a message that has the hop limit.
_RECVERR = {4: (socket.IPPROTO_IP, 11, 12, 2), 6: (socket.IPPROTO_IPV6, 25, 51, 52)}
_MSG_ERRQUEUE = 0x2000
_REQUEST, _REPLY = {4: 8, 6: 128}, {4: 0, 6: 129}
_HEADER = struct.Struct("!BBHHH")  # type, code, checksum, id, sequence
_ERROR = struct.Struct("=IBBBBII")  # number, origin, type, code, padding, info, data
_PADDING = bytes(48)  # to the 56 bytes that ping sends
_MAX_PACKET = 2048


class PingNotAllowed(Exception):
    """This machine allows neither kind of socket. ``str`` is a sentence."""

    def __str__(self) -> str:
        return _(_NOT_ALLOWED)


@dataclass(slots=True)
class Echo:
    """One echo. Times in seconds, ``sent_at`` monotonic. ``error``: a number of the system.
    ``router``: the router that reported it; None if this machine did.
    """

    sent_at: float
    seconds: float | None = None
    ttl: int | None = None
    error: int | None = None
    router: str | None = None


def why_not() -> str:
    """Why this machine cannot ping; empty if it can. Sends nothing."""
    try:
        open_socket("127.0.0.1")[0].close()
    except PingNotAllowed as fault:
        return str(fault)
    except OSError:
        return ""
    return ""


def open_socket(address: str) -> tuple[socket.socket, bool]:
    """A socket connected to this address, and whether it is a raw one, on which answers over IPv4
    begin with the IP header. Raises PingNotAllowed, or OSError as ``connect`` does.
    """
    version = 6 if is_ipv6(address) else 4
    family = socket.AF_INET6 if version == 6 else socket.AF_INET
    protocol = socket.IPPROTO_ICMPV6 if version == 6 else socket.IPPROTO_ICMP
    level, errors, hops, _hop = _RECVERR[version]
    for type_ in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            flags = socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
            opened = socket.socket(family, type_ | flags, protocol)
        except PermissionError:
            continue
        try:
            opened.setsockopt(level, errors, 1)
            opened.setsockopt(level, hops, 1)
            opened.connect((address, 0))
        except BaseException:
            opened.close()
            raise
        return opened, type_ == socket.SOCK_RAW
    raise PingNotAllowed


class Series:
    """Sends ``count`` echoes to ``address``, ``pause`` seconds apart. ``changed`` is called on the
    loop after each answer, each error, and when the last echo was sent. ``start`` raises
    PingNotAllowed.
    """

    def __init__(
        self, loop: Loop, address: str, count: int, pause: float, changed: Callable[[], None]
    ) -> None:
        self.address = address
        self.echoes: list[Echo] = []
        self._loop, self._count, self._pause, self._changed = loop, count, pause, changed
        self._version = 6 if is_ipv6(address) else 4
        self._id, self._token = secrets.randbits(16), secrets.token_bytes(8)
        self._timer: Timer | None = None
        self._socket: socket.socket | None = None

    def start(self) -> None:
        try:
            self._socket, self._is_raw = open_socket(self.address)
        except OSError as error:
            # Such as no route: each echo would fail with the same error.
            self.echoes = [Echo(time.monotonic(), error=error.errno)] * self._count
            self._changed()
            return
        self._loop.watch(self._socket.fileno(), READ, self._ready)
        self._send()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._socket is not None:
            self._loop.unwatch(self._socket.fileno())
            self._socket.close()
            self._socket = None

    @property
    def answers(self) -> Sequence[Echo]:
        return [echo for echo in self.echoes if echo.seconds is not None]

    @property
    def is_sent(self) -> bool:
        return len(self.echoes) == self._count

    @property
    def is_over(self) -> bool:
        """Whether nothing more can arrive."""
        return self.is_sent and all(
            echo.seconds is not None or echo.error is not None for echo in self.echoes
        )

    def _send(self) -> None:
        if self._socket is None:
            return
        echo = Echo(time.monotonic())
        try:
            self._socket.send(self._packet(len(self.echoes)))
        except BlockingIOError:
            pass  # it counts as lost
        except OSError as error:
            echo.error = error.errno
        self.echoes.append(echo)
        if not self.is_sent:
            self._timer = self._loop.call_later(self._pause, self._send)
        if self.is_sent or echo.error is not None:
            self._changed()

    def _packet(self, sequence: int) -> bytes:
        type_, payload = _REQUEST[self._version], self._token + _PADDING
        sum_ = _checksum(_HEADER.pack(type_, 0, 0, self._id, sequence) + payload)
        return _HEADER.pack(type_, 0, sum_, self._id, sequence) + payload

    def _ready(self, _fd: int, _events: int) -> None:
        while self._socket is not None and (self._read_error() or self._read_answer()):
            self._changed()

    def _read_error(self) -> bool:
        """Read an error of a router, or of this machine, for the first echo without an answer."""
        if self._socket is None:
            return False
        try:
            _data, notes, _flags, _from = self._socket.recvmsg(_MAX_PACKET, 512, _MSG_ERRQUEUE)
        except OSError:
            return False
        for _level, _type, note in notes:
            if len(note) >= _ERROR.size:
                number, origin, *_rest = _ERROR.unpack_from(note)
                # An origin of 1 is this machine.
                self._failed(number, None if origin == 1 else _offender(note[_ERROR.size :]))
                return True
        return False

    def _failed(self, number: int, router: str | None) -> None:
        for echo in self.echoes:
            if echo.seconds is None and echo.error is None:
                echo.error, echo.router = number, router
                return

    def _read_answer(self) -> bool:
        if self._socket is None:
            return False
        try:
            data, notes, _flags, _from = self._socket.recvmsg(_MAX_PACKET, 512)
        except BlockingIOError:
            return False
        except OSError as error:
            self._failed(error.errno or 0, None)
            return True
        if self._is_raw and self._version == 4 and data:
            data = data[(data[0] & 0x0F) * 4 :]
        if len(data) < _HEADER.size + len(self._token):
            return True
        type_, _code, _sum, _id, sequence = _HEADER.unpack_from(data)
        # A raw socket also gets the answers to other processes and, on loopback, our own requests.
        is_reply = type_ == _REPLY[self._version] and data[_HEADER.size :].startswith(self._token)
        if is_reply and sequence < len(self.echoes) and self.echoes[sequence].seconds is None:
            echo = self.echoes[sequence]
            echo.seconds = time.monotonic() - echo.sent_at
            echo.ttl = self._hop_limit(notes)
        return True

    def _hop_limit(self, notes: Sequence[tuple[int, int, bytes]]) -> int | None:
        level, _errors, _hops, name = _RECVERR[self._version]
        for note_level, type_, note in notes:
            if (note_level, type_) == (level, name) and len(note) == 4:
                return int.from_bytes(note, sys.byteorder)
        return None


def _offender(data: bytes) -> str | None:
    """The address of the router that sent an error, from a ``sockaddr`` of the kernel."""
    with suppress(ValueError, struct.error, OSError):
        (family,) = struct.unpack_from("=H", data)
        if family == socket.AF_INET:
            return socket.inet_ntop(family, data[4:8])
        if family == socket.AF_INET6:
            return socket.inet_ntop(family, data[8:24])
    return None


def _checksum(packet: bytes) -> int:
    """The checksum of ICMP (RFC 1071). The kernel writes that of ICMPv6, which covers addresses."""
    total: int = sum(struct.unpack(f"!{len(packet) // 2}H", packet))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
