"""Connect to several addresses of one target over TCP; the first connection wins."""

from __future__ import annotations

import errno
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from app.net.loop import WRITE, Loop, Timer

APART = 0.25  # seconds before the next address is tried in parallel (RFC 8305)


def is_six(address: str) -> bool:
    return ":" in address


def by_turns(addresses: Sequence[str]) -> tuple[str, ...]:
    """IPv6 and IPv4 in turn, so that a dead family does not use up the time of a check."""
    six = [address for address in addresses if is_six(address)]
    four = [address for address in addresses if not is_six(address)]
    return tuple(address for address in chain(*zip_longest(six, four)) if address is not None)


@dataclass(frozen=True, slots=True)
class Raced:
    """The result of a race. ``tcp`` is the connection to ``address``, which the caller closes.
    Without one, ``errors`` are the system's error numbers; addresses that stayed silent have none.
    """

    tcp: socket.socket | None = None
    address: str | None = None
    errors: tuple[int, ...] = ()
    silent: bool = False

    @property
    def ours(self) -> int | None:
        """The error of this machine, such as having no file descriptor left, if there was one."""
        return next((number for number in self.errors if number in _OURS), None)

    @property
    def error(self) -> int:
        """The error that says most of why there is no connection."""
        if self.ours is not None:
            return self.ours
        if self.silent or not self.errors:
            return errno.ETIMEDOUT
        return next((number for number in _MOST_SPECIFIC if number in self.errors), self.errors[0])


# If several addresses failed, the first of these says most.
_MOST_SPECIFIC = (errno.ECONNREFUSED, errno.ECONNRESET, errno.ETIMEDOUT)
# Faults of this machine, which say nothing about the target.
_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Race:
    """Lives on the loop's thread. ``deadline`` is monotonic; with ``apart`` 0 all are tried at
    once.
    """

    def __init__(
        self,
        loop: Loop,
        addresses: Sequence[str],
        port: int,
        deadline: float,
        *,
        apart: float = 0.0,
    ) -> None:
        self._loop = loop
        self._left = deque(addresses)
        self._port = port
        self._deadline = deadline
        self._apart = apart
        self._sockets: dict[int, tuple[socket.socket, str]] = {}
        self._errors: list[int] = []
        self._timers: list[Timer] = []
        self._done: Callable[[Raced], None] | None = None

    def start(self, done: Callable[[Raced], None]) -> None:
        """``done`` is called once, perhaps before this returns."""
        self._done = done
        self._timers.append(self._loop.call_at(self._deadline, self._too_late))
        self._try_more()

    def cancel(self) -> None:
        """Close everything; ``done`` is not called any more."""
        self._done = None
        self._release()

    def _try_more(self) -> None:
        while self._left and self._done is not None:
            begun = self._try(self._left.popleft())
            if begun and self._apart and self._left:
                due = time.monotonic() + self._apart
                self._timers.append(self._loop.call_at(due, self._try_more))
                return
        self._end_if_lost()

    def _try(self, address: str) -> bool:
        """Start to connect. Returns whether the connection is pending."""
        family = socket.AF_INET6 if is_six(address) else socket.AF_INET
        kind = socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        try:
            tcp = socket.socket(family, kind)
        except OSError as error:  # no such family here, or no file descriptor left
            self._errors.append(error.errno or 0)
            return False
        code = tcp.connect_ex((address, self._port))
        if code == 0:
            self._finish(Raced(tcp, address))
            return False
        if code != errno.EINPROGRESS:
            tcp.close()
            self._errors.append(code)
            return False
        self._sockets[tcp.fileno()] = tcp, address
        self._loop.watch(tcp.fileno(), WRITE, self._ready)
        return True

    def _ready(self, fd: int, events: int) -> None:
        if fd not in self._sockets:
            return
        tcp, address = self._sockets[fd]
        code = tcp.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        self._loop.unwatch(fd)
        del self._sockets[fd]
        if code == 0:
            self._finish(Raced(tcp, address))
            return
        tcp.close()
        self._errors.append(code)
        if self._left:
            self._try_more()
        else:
            self._end_if_lost()

    def _end_if_lost(self) -> None:
        if not self._sockets and not self._left:
            self._finish(Raced(errors=tuple(self._errors)))

    def _too_late(self) -> None:
        self._finish(Raced(errors=tuple(self._errors), silent=True))

    def _release(self) -> None:
        for timer in self._timers:
            timer.cancel()
        for fd, (tcp, _address) in self._sockets.items():
            self._loop.unwatch(fd)
            self._loop.hang_up(tcp)  # it may have been accepted a moment ago
        self._sockets.clear()
        self._left.clear()

    def _finish(self, raced: Raced) -> None:
        self._release()
        done, self._done = self._done, None
        if done is not None:
            done(raced)
        elif raced.tcp is not None:
            self._loop.hang_up(raced.tcp)
