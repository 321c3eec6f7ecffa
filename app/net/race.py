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

STAGGER_SECONDS = 0.25  # before the next address is tried in parallel (RFC 8305)


def is_ipv6(address: str) -> bool:
    return ":" in address


def interleaved(addresses: Sequence[str]) -> tuple[str, ...]:
    """IPv6 and IPv4 in turn, so that a dead family does not use up the time of a check."""
    six = [address for address in addresses if is_ipv6(address)]
    four = [address for address in addresses if not is_ipv6(address)]
    return tuple(address for address in chain(*zip_longest(six, four)) if address is not None)


@dataclass(frozen=True, slots=True)
class RaceResult:
    """The result of a race. ``tcp`` is the connection to ``address``, which the caller closes.
    Without one, ``errors`` are the system's error numbers; addresses that stayed silent have none.
    """

    tcp: socket.socket | None = None
    address: str | None = None
    errors: tuple[int, ...] = ()
    silent: bool = False

    @property
    def ours(self) -> int | None:
        """The error number of a fault of this machine, such as no file descriptor being left."""
        return next((number for number in self.errors if number in OURS), None)

    @property
    def error(self) -> int:
        """The most specific error number."""
        if self.ours is not None:
            return self.ours
        if self.silent or not self.errors:
            return errno.ETIMEDOUT
        return next((number for number in _BY_PRECEDENCE if number in self.errors), self.errors[0])


# If several addresses failed, the first of these is reported.
_BY_PRECEDENCE = (errno.ECONNREFUSED, errno.ECONNRESET, errno.ETIMEDOUT)
# Faults of this machine, not of the target.
OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Race:
    """Connects on the loop's thread. ``deadline`` is monotonic; ``stagger``: seconds before the
    next address is tried too, 0 for all at once.
    """

    def __init__(
        self, loop: Loop, addresses: Sequence[str], port: int, deadline: float, stagger: float = 0.0
    ) -> None:
        self._loop = loop
        self._untried = deque(addresses)
        self._port = port
        self._deadline = deadline
        self._stagger = stagger
        self._sockets: dict[int, tuple[socket.socket, str]] = {}
        self._errors: list[int] = []
        self._timers: list[Timer] = []
        self._done: Callable[[RaceResult], None] | None = None

    def start(self, done: Callable[[RaceResult], None]) -> None:
        """Begin to connect. ``done`` is called once, perhaps before this returns."""
        self._done = done
        self._timers.append(self._loop.call_at(self._deadline, self._time_out))
        self._try_more()

    def cancel(self) -> None:
        """Close everything; ``done`` is not called any more."""
        self._done = None
        self._release()

    def _try_more(self) -> None:
        while self._untried and self._done is not None:
            is_pending = self._try(self._untried.popleft())
            if is_pending and self._stagger and self._untried:
                due = time.monotonic() + self._stagger
                self._timers.append(self._loop.call_at(due, self._try_more))
                return
        self._end_if_none_left()

    def _try(self, address: str) -> bool:
        """Start to connect. Returns whether the connection is pending."""
        family = socket.AF_INET6 if is_ipv6(address) else socket.AF_INET
        kind = socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        try:
            tcp = socket.socket(family, kind)
        except OSError as error:  # no such family here, or no file descriptor left
            self._errors.append(error.errno or 0)
            return False
        code = tcp.connect_ex((address, self._port))
        if code == 0:
            self._finish(RaceResult(tcp, address))
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
            self._finish(RaceResult(tcp, address))
            return
        tcp.close()
        self._errors.append(code)
        if self._untried:
            self._try_more()
        else:
            self._end_if_none_left()

    def _end_if_none_left(self) -> None:
        if not self._sockets and not self._untried:
            self._finish(RaceResult(errors=tuple(self._errors)))

    def _time_out(self) -> None:
        self._finish(RaceResult(errors=tuple(self._errors), silent=True))

    def _release(self) -> None:
        for timer in self._timers:
            timer.cancel()
        for fd, (tcp, _address) in self._sockets.items():
            self._loop.unwatch(fd)
            self._loop.hang_up(tcp)  # it may have been accepted a moment ago
        self._sockets.clear()
        self._untried.clear()

    def _finish(self, raced: RaceResult) -> None:
        self._release()
        done, self._done = self._done, None
        if done is not None:
            done(raced)
        elif raced.tcp is not None:
            self._loop.hang_up(raced.tcp)
