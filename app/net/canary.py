"""Test whether this instance's own network works, by connecting to hosts that other people run.

Canaries are asked when many monitors fail at once (decisions.md 9, ``CANARIES``), and hourly to
learn which of them accept connections at all. They are exempt from policy: an admin names them, and
nothing is sent to them beyond the TCP handshake.
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

from app.i18n import _

Canary = tuple[str, int]  # host and port

# The setting that stores the canaries' responses, by place: each place has its own network.
MEMORY = "canaries"
ASK_SECONDS = 3.0


class Said(StrEnum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOTHING = "nothing"


# Addresses, not names: a broken resolver would make every name fail. Three operators, so that one
# operator's outage does not count as ours, on anycast addresses that accept TCP on port 443 (DNS
# over HTTPS) from everywhere.
DEFAULT_CANARIES: tuple[Canary, ...] = (
    ("1.1.1.1", 443),  # Cloudflare
    ("8.8.8.8", 443),  # Google
    ("9.9.9.9", 443),  # Quad9
)


def parse_canaries(text: str | None) -> tuple[Canary, ...]:
    """Read ``host:port,...``; an IPv6 address is in brackets.

    None means the default ones, empty text none. Raises ValueError with a sentence.
    """
    if text is None:
        return DEFAULT_CANARIES
    return tuple(_host_port(part.strip()) for part in text.split(",") if part.strip())


def _host_port(part: str) -> Canary:
    host, _colon, port = part.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise ValueError(
            _("%(part)s has no port from 1 to 65535. Write host:port.", part=repr(part))
        )
    if bracketed:
        host = host[1:-1]
    if not host or (":" in host) != bracketed:
        raise ValueError(
            _("%(part)s is not host:port. Write IPv6 addresses as [::1]:443.", part=repr(part))
        )
    return host, int(port)


def name_of(canary: Canary) -> str:
    """A canary as the setting writes it."""
    host, port = canary
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def network_works(
    canaries: Sequence[Canary], accepted: Collection[str] = (), timeout: float = ASK_SECONDS
) -> bool:
    """Whether at least one canary answers a TCP connect.

    ``accepted`` names those that have accepted a connection before. A refusal from one of these is
    no answer: a firewall or a captive portal refuses in its place. A refusal from any other counts,
    or a canary that always refuses would be useless.

    The first answer ends the wait of at most ``timeout`` seconds. Without canaries the network
    counts as working. Never raises.
    """
    return not canaries or any(
        said is Said.ACCEPTED or (said is Said.REFUSED and name_of(canary) not in accepted)
        for canary, said in _answers(canaries, timeout)
    )


def ask(canaries: Sequence[Canary], timeout: float = ASK_SECONDS) -> dict[str, Said]:
    """How each canary responds to a TCP connect, by its name. Never raises."""
    responses = {name_of(canary): said for canary, said in _answers(canaries, timeout)}
    return {name: responses.get(name, Said.NOTHING) for name in map(name_of, canaries)}


def read_memory(text: str | None, place: str) -> dict[str, Said]:
    """How the canaries of a place have responded so far, from the setting ``MEMORY``."""
    try:
        kept = json.loads(text or "{}").get(place, {})
        return {str(name): Said(said) for name, said in kept.items()}
    except (AttributeError, ValueError):  # unreadable: learn it again
        return {}


def write_memory(text: str | None, place: str, responses: Mapping[str, Said]) -> str:
    """The setting with new responses added; that a canary has accepted once is kept for ever."""
    try:
        kept = dict(json.loads(text or "{}"))
    except (TypeError, ValueError):
        kept = {}
    before = read_memory(text, place)
    proven = {name: said for name, said in before.items() if said is Said.ACCEPTED}
    kept[place] = {**before, **responses, **proven}
    return json.dumps(kept, sort_keys=True)


def have_accepted(memory: Mapping[str, Said]) -> frozenset[str]:
    return frozenset(name for name, said in memory.items() if said is Said.ACCEPTED)


def only_refuse(canaries: Sequence[Canary], memory: Mapping[str, Said]) -> list[str]:
    """The names of canaries that have refused and never accepted, for a warning to the admin."""
    return [name for name in map(name_of, canaries) if memory.get(name) is Said.REFUSED]


def _answers(canaries: Sequence[Canary], timeout: float) -> Iterator[tuple[Canary, Said]]:
    """The responses as they arrive. All canaries are asked at once; late ones are left out."""
    deadline = time.monotonic() + timeout
    answers: queue.SimpleQueue[tuple[Canary, Said]] = queue.SimpleQueue()
    for canary in canaries:
        # One thread each: the system's look-up of a name blocks, and cannot be cancelled, for many
        # seconds when the network is down. Threads that are left over end by themselves.
        asking = threading.Thread(
            target=lambda one=canary: answers.put((one, _asked(one, deadline))),
            name=f"canary {canary[0]}",
            daemon=True,
        )
        asking.start()
    for _canary in canaries:
        try:
            yield answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return


def _asked(canary: Canary, deadline: float) -> Said:
    """The best response of any of its addresses."""
    host, port = canary
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return Said.NOTHING  # a name that cannot be resolved counts as no answer
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
