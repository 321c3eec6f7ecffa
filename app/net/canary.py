"""Does our own network work? Canaries are hosts that somebody else keeps running.

Asked when many monitors fail at once (decisions.md 9, ``CANARIES``), and each hour to learn which
of them accept connections at all. They are exempt from policy: an admin names them, and no byte is
sent to them beyond the TCP handshake.
"""

from __future__ import annotations

import json
import queue
import socket
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

Canary = tuple[str, int]  # host and port

# The setting that keeps what canaries have said, by place: each place has a network of its own.
MEMORY = "canaries"
ASK_SECONDS = 3.0


class Said(StrEnum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOTHING = "nothing"


# Addresses, not names: with our own resolver broken, a name could not be asked whether the network
# works. Three operators, so that one operator's bad day does not blind us, on anycast addresses
# that take TCP on port 443 (DNS over HTTPS) from everywhere.
DEFAULT_CANARIES: tuple[Canary, ...] = (
    ("1.1.1.1", 443),  # Cloudflare
    ("8.8.8.8", 443),  # Google
    ("9.9.9.9", 443),  # Quad9
)


def parse_canaries(text: str | None) -> tuple[Canary, ...]:
    """Read ``host:port,...``; an IPv6 address stands in brackets.

    None means the default ones, empty text none at all. Raises ValueError with a sentence.
    """
    if text is None:
        return DEFAULT_CANARIES
    return tuple(_host_port(part.strip()) for part in text.split(",") if part.strip())


def _host_port(part: str) -> Canary:
    host, _, port = part.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise ValueError(f"{part!r} has no port from 1 to 65535. Write host:port.")
    if bracketed:
        host = host[1:-1]
    if not host or (":" in host) != bracketed:
        raise ValueError(f"{part!r} is not host:port. Write IPv6 addresses as [::1]:443.")
    return host, int(port)


def name_of(canary: Canary) -> str:
    """A canary as the setting has it."""
    host, port = canary
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def network_works(
    canaries: Sequence[Canary], accepted: Collection[str] = (), timeout: float = ASK_SECONDS
) -> bool:
    """Whether at least one canary answers a TCP connect. ``accepted`` names those that have
    accepted one before: a firewall or a captive portal refuses in their place, so their refusal is
    no answer. That of a canary which has never accepted is one, or it would be worth nothing.

    The first answer ends the wait, at most ``timeout`` seconds. Without any canary there is nothing
    to blame the network by, so it counts as working. Never raises.
    """
    return not canaries or any(
        said is Said.ACCEPTED or (said is Said.REFUSED and name_of(canary) not in accepted)
        for canary, said in _answers(canaries, timeout)
    )


def ask(canaries: Sequence[Canary], timeout: float = ASK_SECONDS) -> dict[str, Said]:
    """What each canary does with a TCP connect, by its name. Never raises."""
    told = {name_of(canary): said for canary, said in _answers(canaries, timeout)}
    return {name: told.get(name, Said.NOTHING) for name in map(name_of, canaries)}


def read_memory(text: str | None, place: str) -> dict[str, Said]:
    """What the canaries of a place have said so far, from the setting ``MEMORY``."""
    try:
        kept = json.loads(text or "{}").get(place, {})
        return {str(name): Said(said) for name, said in kept.items()}
    except (AttributeError, ValueError):  # it is learnt anew
        return {}


def write_memory(text: str | None, place: str, told: Mapping[str, Said]) -> str:
    """The setting with what was told now: who has accepted once is never forgotten."""
    try:
        kept = dict(json.loads(text or "{}"))
    except (TypeError, ValueError):
        kept = {}
    before = read_memory(text, place)
    proven = {name: said for name, said in before.items() if said is Said.ACCEPTED}
    kept[place] = {**before, **told, **proven}
    return json.dumps(kept, sort_keys=True)


def have_accepted(memory: Mapping[str, Said]) -> frozenset[str]:
    return frozenset(name for name, said in memory.items() if said is Said.ACCEPTED)


def only_refuse(canaries: Sequence[Canary], memory: Mapping[str, Said]) -> list[str]:
    """Those that have refused and never accepted, by name: worth naming to a person."""
    return [name for name in map(name_of, canaries) if memory.get(name) is Said.REFUSED]


def _answers(canaries: Sequence[Canary], timeout: float) -> Iterator[tuple[Canary, Said]]:
    """What each says, as it comes; all are asked at once, and who is late says nothing."""
    deadline = time.monotonic() + timeout
    answers: queue.SimpleQueue[tuple[Canary, Said]] = queue.SimpleQueue()
    for canary in canaries:
        # A thread each: the system's look-up of a name blocks, and cannot be stopped, for many
        # seconds just when the network is down. The threads are left behind and end by themselves.
        asking = threading.Thread(
            target=lambda one=canary: answers.put((one, _asked(one, deadline))),
            name=f"canary {canary[0]}",
            daemon=True,
        )
        asking.start()
    for _ in canaries:
        try:
            yield answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return


def _asked(canary: Canary, deadline: float) -> Said:
    """The best that any of its addresses says."""
    host, port = canary
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return Said.NOTHING  # a name that cannot be looked up is a canary that does not answer
    best = Said.NOTHING
    for row in rows:
        said = _connected(row[0], row[4], deadline)
        if said is Said.ACCEPTED:
            return said
        best = said if said is Said.REFUSED else best
    return best


def _connected(family: int, address: Any, deadline: float) -> Said:
    left = deadline - time.monotonic()
    if left <= 0:
        return Said.NOTHING
    try:
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.settimeout(left)
            one.connect(address)
    except ConnectionRefusedError:
        return Said.REFUSED
    except OSError:
        return Said.NOTHING
    return Said.ACCEPTED
