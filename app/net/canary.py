"""Does our own network work? Canaries are hosts that somebody else keeps running.

Asked only when many monitors fail at once (decisions.md 9, ``CANARIES``). They are exempt from
policy: an admin names them, and no byte is sent to them beyond the TCP handshake.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

# Addresses, not names: with our own resolver broken, a name could not be asked whether the network
# works. Three operators, so that one operator's bad day does not blind us, on anycast addresses
# that take TCP on port 443 (DNS over HTTPS) from everywhere.
DEFAULT_CANARIES: tuple[tuple[str, int], ...] = (
    ("1.1.1.1", 443),  # Cloudflare
    ("8.8.8.8", 443),  # Google
    ("9.9.9.9", 443),  # Quad9
)


def parse_canaries(text: str | None) -> tuple[tuple[str, int], ...]:
    """Read ``host:port,...``; an IPv6 address stands in brackets.

    None means the default ones, empty text none at all. Raises ValueError with a sentence.
    """
    if text is None:
        return DEFAULT_CANARIES
    return tuple(_host_port(part.strip()) for part in text.split(",") if part.strip())


def _host_port(part: str) -> tuple[str, int]:
    host, _, port = part.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise ValueError(f"{part!r} has no port from 1 to 65535. Write host:port.")
    if bracketed:
        host = host[1:-1]
    if not host or (":" in host) != bracketed:
        raise ValueError(f"{part!r} is not host:port. Write IPv6 addresses as [::1]:443.")
    return host, int(port)


def network_works(canaries: Sequence[tuple[str, int]], timeout: float = 3.0) -> bool:
    """Whether at least one canary answers a TCP connect, by accepting or by refusing it.

    All are asked at once; the first answer ends the wait, at most ``timeout`` seconds. Without any
    canary there is nothing to blame the network by, so it counts as working. Never raises.
    """
    if not canaries:
        return True
    deadline = time.monotonic() + timeout
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
    for host, port in canaries:
        # A thread each: the system's look-up of a name blocks, and cannot be stopped, for many
        # seconds just when the network is down. The threads are left behind and end by themselves.
        asking = threading.Thread(
            target=lambda host=host, port=port: answers.put(_answers(host, port, deadline)),
            name=f"canary {host}",
            daemon=True,
        )
        asking.start()
    for _ in canaries:
        try:
            if answers.get(timeout=max(0.0, deadline - time.monotonic())):
                return True
        except queue.Empty:
            return False
    return False


def _answers(host: str, port: int, deadline: float) -> bool:
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False  # a name that cannot be looked up is a canary that does not answer
    return any(_takes(row[0], row[4], deadline) for row in rows)


def _takes(family: int, address: Any, deadline: float) -> bool:
    left = deadline - time.monotonic()
    if left <= 0:
        return False
    try:
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.settimeout(left)
            one.connect(address)
    except ConnectionRefusedError:
        return True  # the refusal travelled the network to us just as well
    except OSError:
        return False
    return True
