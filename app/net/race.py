"""Connect to several addresses of one target over TCP; the first connection wins."""

from __future__ import annotations

import errno
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, zip_longest

from cachetools import LRUCache

from app.net.loop import WRITE, Loop, Timer
from app.records import Warn

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
    Without one, ``errors`` are the system's error numbers, and ``silent`` says that the time was
    over before every address had one.
    """

    tcp: socket.socket | None = None
    address: str | None = None
    errors: tuple[int, ...] = ()
    silent: bool = False

    @property
    def own_error(self) -> int | None:
        """The error number of a fault of this machine, such as a lack of file descriptors."""
        return next((number for number in self.errors if number in OWN_ERRORS), None)

    @property
    def error(self) -> int:
        """The most specific error number."""
        if self.own_error is not None:
            return self.own_error
        if self.silent or not self.errors:
            return errno.ETIMEDOUT
        return next((number for number in _BY_PRECEDENCE if number in self.errors), self.errors[0])


# If several addresses failed, the first of these is reported.
_BY_PRECEDENCE = (errno.ECONNREFUSED, errno.ECONNRESET, errno.ETIMEDOUT)
# Faults of this machine, not of the target.
OWN_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Race:
    """Connects on the loop's thread. ``deadline`` is monotonic; ``stagger``: seconds before the
    next address is tried too, 0 for all together.
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
        self._on_done: Callable[[RaceResult], None] | None = None

    def start(self, on_done: Callable[[RaceResult], None]) -> None:
        """Begin to connect. ``on_done`` is called once, perhaps before this returns."""
        self._on_done = on_done
        self._timers.append(self._loop.call_at(self._deadline, self._time_out))
        self._try_more()

    def cancel(self) -> None:
        """Close everything; ``on_done`` is not called any more."""
        self._on_done = None
        self._release()

    def _try_more(self) -> None:
        while self._untried and self._on_done is not None:
            is_pending = self._try(self._untried.popleft())
            if is_pending and self._stagger and self._untried:
                due = time.monotonic() + self._stagger
                self._timers.append(self._loop.call_at(due, self._try_more))
                return
        self._end_if_none_left()

    def _try(self, address: str) -> bool:
        """Start to connect. Returns whether the connection is pending."""
        family = socket.AF_INET6 if is_ipv6(address) else socket.AF_INET
        type_ = socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        try:
            tcp = socket.socket(family, type_)
        except OSError as error:  # the machine lacks the family, or file descriptors
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
        on_done, self._on_done = self._on_done, None
        if on_done is not None:
            on_done(raced)
        elif raced.tcp is not None:
            self._loop.hang_up(raced.tcp)


# --- The other address family ---------------------------------------------------------------------
#
# Test the address family that a check did not use. A dead family is a warning, not an outage
# (decision 10).
#
# curl connects to both families at the same time, as browsers do, and reports only the faster one.
# So ``Families`` opens a TCP connection to the other family, and ends it at once. IPv4 that
# accepted it is not tested again for ALIVE_SECONDS. After a failure the next tests are short: a
# name with a dead family must not stay slow to check.

ALIVE_SECONDS = 300.0  # how long IPv4 that accepted a connection is not tested again
DEAD_SECONDS = 900.0  # how long after a failure a test waits only DEAD_WAIT
DEAD_WAIT = 1.0  # seconds
MIN_WAIT = 0.3  # seconds; with less time, only a family that failed recently is tested
ROUTE_SECONDS = 5.0  # how long the result of ``has_route`` is cached
_MAX_CACHED = 20_000
_NO_ROUTE = frozenset({errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})

_Key = tuple[tuple[str, ...], int]


def has_route(address: str) -> bool:
    """Whether this machine has a route to the address. Sends nothing."""
    family = socket.AF_INET6 if is_ipv6(address) else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as udp:
            udp.connect((address, 9))
    except OSError as error:
        return error.errno not in _NO_ROUTE
    return True


def routed(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """The addresses of the families to which this machine has a route; all addresses if it has a
    route to neither.

    Browsers do the same. Otherwise a machine without IPv6 would report a name whose IPv4 address
    refuses connections as unreachable.
    """
    six = next((address for address in addresses if is_ipv6(address)), None)
    four = next((address for address in addresses if not is_ipv6(address)), None)
    if six is None or four is None:
        return addresses
    period = int(time.monotonic() / ROUTE_SECONDS)
    alive = {is_ipv6(address) for address in (six, four) if _cached_route(address, period)}
    return tuple(address for address in addresses if is_ipv6(address) in alive) or addresses


@lru_cache(maxsize=4096)
def _cached_route(address: str, period: int) -> bool:
    """``has_route``, cached for each ``period``: a number that changes every few seconds."""
    return has_route(address)


class Families:
    """Tests which families of a name accept connections, and caches the results. All methods are
    called on the loop's thread.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._cached: LRUCache[_Key, tuple[bool, float]] = LRUCache(_MAX_CACHED)
        self._races: set[Race] = set()

    def test(
        self, addresses: Sequence[str], used: str, port: int, deadline: float,
        on_done: Callable[[Warn | None], None],
    ) -> None:  # fmt: skip
        """Call ``on_done`` with a warning if the family that was not used is dead; with None if it
        is alive or was not tested.

        ``addresses``: the addresses of a name that the policy allows; ``used``: the one that
        answered. ``deadline`` is monotonic. Without a test, ``on_done`` is called before this
        returns.
        """
        unused = tuple(address for address in addresses if is_ipv6(address) != is_ipv6(used))
        if not unused or len(unused) == len(addresses) or not has_route(unused[0]):
            on_done(None)
            return
        warning = Warn.IPV6_UNREACHABLE if is_ipv6(unused[0]) else Warn.IPV4_UNREACHABLE
        key = (unused, port)
        alive, since = self._cached.get(key, (None, 0.0))
        now = time.monotonic()
        # IPv6 is tried first. If IPv4 was used nevertheless, IPv6 may have failed since its test.
        if alive and now - since < ALIVE_SECONDS and not is_ipv6(unused[0]):
            on_done(None)
            return
        seconds = deadline - now
        if alive is False and now - since < DEAD_SECONDS:
            seconds = min(seconds, DEAD_WAIT)
        elif seconds < MIN_WAIT:
            on_done(None)
            return
        race = Race(self._loop, unused, port, now + seconds)
        self._races.add(race)

        def finished(raced: RaceResult) -> None:
            self._races.discard(race)
            if raced.tcp is not None:
                self._loop.hang_up(raced.tcp)
            self._cached[key] = (raced.tcp is not None, time.monotonic())
            on_done(None if raced.tcp is not None else warning)

        race.start(finished)

    def close(self) -> None:
        for race in self._races:
            race.cancel()
        self._races.clear()
