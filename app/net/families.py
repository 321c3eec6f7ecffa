"""Test the address family that a check did not use. A dead one is a warning, not an outage
(decision 10).

curl connects to both families at once, as browsers do, and reports only the faster one. So this
module opens a TCP connection to the other family, and ends it at once. A family that accepted it is
not tested again for ALIVE_SECONDS. After a failure the next tests are short: a name with a dead
family must not stay slow to check.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Sequence
from functools import lru_cache

from cachetools import LRUCache

from app.net.loop import Loop
from app.net.race import Race, RaceResult, is_ipv6
from app.records import Warn

ALIVE_SECONDS = 300.0  # how long a family that accepted a connection is not tested again
DEAD_SECONDS = 900.0  # how long tests of a dead family wait only DEAD_WAIT
DEAD_WAIT = 1.0  # seconds
MIN_WAIT = 0.3  # seconds; with less time left, there is no test
ROUTE_SECONDS = 5.0  # how long it is cached whether there is a route
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
    """The addresses without those of a family that this machine has no route to; all of them if
    none would be left.

    Browsers do the same. Without this, a machine without IPv6 would report a name whose IPv4
    address refuses connections as unreachable.
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
    """Tests which families of a name accept connections, and caches that. On the loop's thread."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._cached: LRUCache[_Key, tuple[bool, float]] = LRUCache(_MAX_CACHED)
        self._races: set[Race] = set()

    def test(
        self, addresses: Sequence[str], used: str, port: int, deadline: float,
        done: Callable[[Warn | None], None],
    ) -> None:  # fmt: skip
        """Call ``done`` with a warning if the family that was not used is dead, else with None.

        ``addresses`` are those of a name that policy allows, ``used`` is the one that answered,
        ``deadline`` is in monotonic seconds. ``done`` is called at once if the result is cached.
        """
        unused = tuple(address for address in addresses if is_ipv6(address) != is_ipv6(used))
        if not unused or len(unused) == len(addresses) or not has_route(unused[0]):
            done(None)
            return
        warning = Warn.IPV6_UNREACHABLE if is_ipv6(unused[0]) else Warn.IPV4_UNREACHABLE
        key = (unused, port)
        alive, since = self._cached.get(key, (None, 0.0))
        now = time.monotonic()
        # IPv6 is tried first: if IPv4 was used all the same, IPv6 may have failed since its test.
        if alive and now - since < ALIVE_SECONDS and not is_ipv6(unused[0]):
            done(None)
            return
        left = deadline - now
        if alive is False and now - since < DEAD_SECONDS:
            left = min(left, DEAD_WAIT)
        elif left < MIN_WAIT:
            done(None)
            return
        race = Race(self._loop, unused, port, now + left)
        self._races.add(race)

        def finished(raced: RaceResult) -> None:
            self._races.discard(race)
            if raced.tcp is not None:
                self._loop.hang_up(raced.tcp)
            self._cached[key] = (raced.tcp is not None, time.monotonic())
            done(None if raced.tcp is not None else warning)

        race.start(finished)

    def close(self) -> None:
        for race in self._races:
            race.cancel()
        self._races.clear()
