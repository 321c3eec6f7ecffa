"""Is the other address family alive? A dead one is a warning, not an outage (decisions.md 10).

curl races the families as browsers do and uses the winner; what became of the loser it does not
say. So the family that was not used gets a TCP connection of its own, closed at once. A living one
is not tried again for a while, and a dead one is waited for only once, so that a name with a dead
family is not slower to check for ever.
"""

from __future__ import annotations

import errno
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache

from app.net.loop import Loop
from app.net.race import Race, Raced, is_six
from app.records import Warn

ALIVE_SECONDS = 300.0  # how long a living family is taken for granted
DEAD_SECONDS = 900.0  # how long a family known as dead is not waited for in full
DEAD_WAIT = 1.0  # seconds for it to come back
LEAST_WAIT = 0.3  # with less time left, nothing can be said
ROUTE_SECONDS = 5.0  # how long a route is taken for granted
_REMEMBERED = 20_000
_NO_ROUTE = frozenset({errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})

_Key = tuple[tuple[str, ...], int]


def has_route(address: str) -> bool:
    """Whether this machine would know where to send a packet for the address. Sends nothing."""
    family = socket.AF_INET6 if is_six(address) else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as udp:
            udp.connect((address, 9))
    except OSError as error:
        return error.errno not in _NO_ROUTE
    return True


def routed(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """Without those of a family that this machine has no route to, unless that leaves none.

    Browsers do the same. Where there is no IPv6, a name whose IPv4 refuses would else be called
    unreachable.
    """
    six = next((one for one in addresses if is_six(one)), None)
    four = next((one for one in addresses if not is_six(one)), None)
    if six is None or four is None:
        return addresses
    turn = int(time.monotonic() / ROUTE_SECONDS)
    alive = {is_six(one) for one in (six, four) if _known_route(one, turn)}
    return tuple(one for one in addresses if is_six(one) in alive) or addresses


@lru_cache(maxsize=4096)
def _known_route(address: str, turn: int) -> bool:
    """As ``has_route``, asked once in each turn of some seconds."""
    return has_route(address)


class Families:
    """Knows which families of a name take connections. Lives on the loop's thread."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._known: OrderedDict[_Key, tuple[bool, float]] = OrderedDict()
        self._races: set[Race] = set()

    def judge(
        self,
        addresses: Sequence[str],
        used: str,
        port: int,
        deadline: float,
        done: Callable[[Warn | None], None],
    ) -> None:
        """Call ``done`` with a warning when the family that was not used is dead; at once where
        that is known.

        ``addresses`` are the open ones of a name, ``used`` the one that answered, ``deadline`` in
        monotonic seconds.
        """
        others = tuple(address for address in addresses if is_six(address) != is_six(used))
        if not others or len(others) == len(addresses) or not has_route(others[0]):
            done(None)
            return
        warning = Warn.IPV6_UNREACHABLE if is_six(others[0]) else Warn.IPV4_UNREACHABLE
        key = (others, port)
        alive, since = self._known.get(key, (None, 0.0))
        now = time.monotonic()
        # IPv6 is tried first: when IPv4 was used all the same, what we knew of IPv6 is in doubt.
        if alive and now - since < ALIVE_SECONDS and not is_six(others[0]):
            done(None)
            return
        left = deadline - now
        if alive is False and now - since < DEAD_SECONDS:
            left = min(left, DEAD_WAIT)
        elif left < LEAST_WAIT:
            done(None)
            return
        race = Race(self._loop, others, port, now + left)
        self._races.add(race)

        def finished(raced: Raced) -> None:
            self._races.discard(race)
            if raced.tcp is not None:
                raced.tcp.close()
            self._remember(key, raced.tcp is not None)
            done(None if raced.tcp is not None else warning)

        race.start(finished)

    def _remember(self, key: _Key, alive: bool) -> None:
        self._known.pop(key, None)
        self._known[key] = (alive, time.monotonic())
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def close(self) -> None:
        for race in self._races:
            race.cancel()
        self._races.clear()
