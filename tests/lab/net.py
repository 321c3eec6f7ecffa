"""Listeners: a socket that accepts, and a thread for each connection that runs a handler.

Everything that is opened here is closed by ``Listener.close``: a socket left to the garbage
collector is a ResourceWarning, and warnings are errors.
"""

from __future__ import annotations

import contextlib
import fcntl
import select
import socket
import struct
import sys
import termios
import threading
from collections.abc import Callable
from pathlib import Path

Handler = Callable[["Connection"], None]


def _as_in_proc(address: str, port: int) -> str:
    """An IPv4 address and port as ``/proc/net/tcp`` writes them."""
    return f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}:{port:04X}"


def _unacknowledged(sock: socket.socket) -> int:
    """Bytes that were sent and have not arrived."""
    return int.from_bytes(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def _unread(local: str, remote: str) -> int:
    """Bytes that wait in the socket of this machine with these two ends; 0 if there is none."""
    for row in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, at, to, _, queues, *_ = row.split()
        if (at, to) == (local, remote):
            return int(queues.partition(":")[2], 16)
    return 0


class Connection:
    """One accepted connection and the manners, good and bad, that a handler may show on it."""

    def __init__(self, sock: socket.socket, stopping: threading.Event) -> None:
        self.sock = sock
        self.stopping = stopping

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def receive(self, size: int = 65536) -> bytes:
        """Some bytes; none at the end, or when the lab is closing."""
        return self.sock.recv(size)

    def read_until(self, mark: bytes, limit: int = 1 << 20) -> bytes:
        """Everything up to the first read that holds ``mark``, or up to the end."""
        data = b""
        while mark not in data and len(data) < limit:
            chunk = self.receive()
            if not chunk:
                break
            data += chunk
        return data

    def wait_until_gone(self, seconds: float = 60.0) -> bool:
        """Say nothing until the client hangs up; False when ``seconds`` went by first."""
        while select.select([self.sock], [], [], seconds)[0]:
            if not self.sock.recv(65536):
                return True
        return False

    def wait_until_read(self) -> None:
        """Until the client, on this machine, has read all that was sent. A RST that arrives earlier
        makes its connect fail, and the bytes are lost.
        """
        ours, theirs = (
            _as_in_proc(*end) for end in (self.sock.getsockname(), self.sock.getpeername())
        )
        while not self.stopping.is_set():
            if not _unacknowledged(self.sock) and not _unread(local=theirs, remote=ours):
                return
            self.stopping.wait(0.005)

    def reset(self) -> None:
        """Close with a RST instead of a FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def finish(self) -> None:
        """Close with a FIN. UnreadShards bytes would make it a RST, so what the client sent is
        read.
        """
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
            self.wait_until_gone(2.0)
        self.sock.close()


class Listener:
    """Accepts on ``address`` and hands each connection to ``handler`` in a thread of its own.

    ``connections`` counts what was accepted: a test of something that must not connect reads it.
    """

    def __init__(self, handler: Handler, address: str = "127.0.0.1", port: int = 0) -> None:
        self.handler = handler
        self.connections = 0
        self.sock = listening(address, port, backlog=128)
        self.address = address
        self.port: int = self.sock.getsockname()[1]
        self._stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return  # close() has shut the listening socket
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            with self._lock:
                self.connections += 1
                self._open.add(sock)
                self._threads = [t for t in self._threads if t.is_alive()] + [thread]
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        connection = Connection(sock, self._stopping)
        try:
            # The client may hang up at any moment; that is never the lab's fault.
            with contextlib.suppress(OSError):
                self.handler(connection)
                if connection.sock.fileno() >= 0:
                    connection.finish()
        finally:
            connection.sock.close()
            sock.close()
            with self._lock:
                self._open.discard(sock)

    def close(self) -> None:
        self._stopping.set()
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)  # wakes accept(), which close() alone does not
        self.sock.close()
        self._acceptor.join(5)
        with self._lock:
            threads, open_now = list(self._threads), list(self._open)
        for sock in open_now:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(5)


def bound(address: str, port: int = 0) -> socket.socket:
    """A TCP socket that holds its port, also one whose last connections have just been closed. The
    caller closes it.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    return sock


def listening(address: str, port: int = 0, *, backlog: int) -> socket.socket:
    """A listening TCP socket. The caller closes it."""
    sock = bound(address, port)
    sock.listen(backlog)
    return sock


def has_ipv6() -> bool:
    """Whether this machine has ::1; some containers have no IPv6 at all."""
    try:
        listening("::1", backlog=1).close()
    except OSError:
        return False
    return True


class ClosedPort:
    """A port that refuses connections: bound, so that nobody else takes it, and never listening."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self.sock = bound(address, port)
        self.address = address
        self.port: int = self.sock.getsockname()[1]

    def close(self) -> None:
        self.sock.close()


class BlackHole:
    """A port where a SYN is never answered: the accept queue is full, so Linux drops the SYN."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self.sock = listening(address, port, backlog=0)
        self.address = address
        self.port: int = self.sock.getsockname()[1]
        self._plugs: list[socket.socket] = []
        self._fill()

    def _fill(self) -> None:
        """Connect until a connection no longer completes."""
        for _ in range(8):
            plug = socket.socket(self.sock.family, socket.SOCK_STREAM)
            plug.setblocking(False)
            self._plugs.append(plug)
            plug.connect_ex((self.address, self.port))
            if not select.select([], [plug], [], 0.1)[1]:
                return
        raise RuntimeError("The accept queue never filled: this kernel has no black hole to offer.")

    def close(self) -> None:
        for plug in self._plugs:
            plug.close()
        self.sock.close()
