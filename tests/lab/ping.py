"""Hosts that no machine has on its loopback: sockets for ICMP whose other side follows a script."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

from app.net import icmp

SILENT, SLOW, NOT_ALLOWED = "127.66.0.1", "127.66.0.2", "127.66.0.3"
SLOW_SECONDS = 0.05
ROUTER = "192.0.2.1"
# The answer to an echo: bytes, the number of an error that a router reports, or nothing.
Script = Callable[[bytes], bytes | int | None]


class PlayedSocket:
    """A socket for ICMP whose other side follows a script."""

    def __init__(self, script: Script) -> None:
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ours.setblocking(False)
        self._script = script
        self._errors: list[int] = []

    def fileno(self) -> int:
        return self._ours.fileno()

    def send(self, packet: bytes) -> None:
        reply = self._script(packet)
        if isinstance(reply, int):
            self._errors.append(reply)
        if reply is not None:
            self._theirs.send(b"" if isinstance(reply, int) else reply)

    def recvmsg(self, size: int, notes: int, flags: int = 0) -> object:
        if not flags:
            return self._ours.recvmsg(size, notes)
        if not self._errors:
            raise BlockingIOError
        offender = struct.pack("=HH", socket.AF_INET, 0) + socket.inet_aton(ROUTER) + bytes(8)
        # 2: the error came by ICMP; type 3, code 1: no route to the host
        error = struct.pack("=IBBBBII", self._errors.pop(0), 2, 3, 1, 0, 0, 0) + offender
        return b"", [(socket.IPPROTO_IP, 11, error)], 0, None

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


def answer(packet: bytes) -> bytes:
    kind = {8: 0, 128: 129}[packet[0]]
    return bytes([kind]) + packet[1:]


def silence(_packet: bytes) -> None:
    return None


class SlowSocket(PlayedSocket):
    """Each answer comes after ``SLOW_SECONDS``."""

    def send(self, packet: bytes) -> None:
        timer = threading.Timer(SLOW_SECONDS, self._send, [packet])
        timer.daemon = True
        timer.start()

    def _send(self, packet: bytes) -> None:
        with suppress(OSError):  # the check has ended
            super().send(packet)


@contextmanager
def played() -> Iterator[None]:
    """Play the hosts above; all others are what they are."""
    real = icmp.open_socket

    def open_socket(address: str) -> tuple[Any, bool]:
        if address == NOT_ALLOWED:
            raise icmp.PingNotAllowed
        if address == SILENT:
            return PlayedSocket(silence), False
        if address == SLOW:
            return SlowSocket(answer), False
        return real(address)

    with patch.object(icmp, "open_socket", open_socket):
        yield
