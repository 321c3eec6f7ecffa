"""Test whether this installation's network works, by connecting to hosts that other people run
(``CANARIES``).

Canaries are asked when many monitors fail together (decision 9), and hourly to learn which of them
accept connections at all. The policy does not judge them: an admin names them, and nothing is sent
to them beyond the TCP handshake.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from enum import StrEnum
from typing import TYPE_CHECKING

from app.i18n import _
from app.net.hosts import DnsServer, SystemNames
from app.net.loop import HANG_UP_SECONDS, Loop
from app.net.race import STAGGER_SECONDS, Race, RaceResult, interleaved, routed
from app.rules.url import take_apart

if TYPE_CHECKING:
    from app.net.resolver import Resolved, Resolver

log = logging.getLogger(__name__)

Canary = tuple[str, int]  # host and port

# The setting that stores the canaries' responses, by place: each place has its own network.
MEMORY = "canaries"
ASK_SECONDS = 3.0


class CanaryAnswer(StrEnum):
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
    sentence = _("%(part)s is not host:port, such as [::1]:443.", part=repr(part))
    if not part.rpartition("]")[2].count(":") == 1 or any(mark in part for mark in "/?#"):
        raise ValueError(sentence)
    try:
        target = take_apart(f"tcp://{part}", {"tcp": None})
    except ValueError as fault:
        raise ValueError(f"{sentence} {fault}") from None
    return target.dns_name, target.port


def name_of(canary: Canary) -> str:
    """A canary as the setting writes it."""
    host, port = canary
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def network_works(
    canaries: Sequence[Canary],
    accepted: Collection[str] = (),
    timeout: float = ASK_SECONDS,
    *,
    dns_servers: Sequence[DnsServer] = (),
) -> bool:
    """Whether at least one canary answers a TCP connect.

    ``accepted`` names canaries that have accepted a connection before. A refusal from one of these
    is no answer, because a firewall or a captive portal may have sent it. A refusal from any other
    counts: otherwise a canary that always refuses would be useless.

    Waits for the first answer, for ``timeout`` seconds at most. Without canaries, and after an
    error of Wakeful, which is logged, the network counts as working: otherwise outages would be
    hidden. Never raises.
    """
    try:
        return not canaries or any(
            answer is CanaryAnswer.ACCEPTED
            or (answer is CanaryAnswer.REFUSED and name_of(canary) not in accepted)
            for canary, answer in _answers(canaries, timeout, dns_servers)
        )
    except Exception:
        log.exception("The canaries cannot be asked, so Wakeful's own network counts as working.")
        return True


def ask(
    canaries: Sequence[Canary],
    timeout: float = ASK_SECONDS,
    *,
    dns_servers: Sequence[DnsServer] = (),
) -> dict[str, CanaryAnswer]:
    """The response of each canary to a TCP connect, by its name. Raises only for our own faults."""
    answers = _answers(canaries, timeout, dns_servers)
    responses = {name_of(canary): answer for canary, answer in answers}
    return {name: responses.get(name, CanaryAnswer.NOTHING) for name in map(name_of, canaries)}


def read_memory(text: str | None, place: str) -> dict[str, CanaryAnswer]:
    """The stored responses of a place's canaries. ``text``: the setting ``MEMORY``."""
    try:
        answers = json.loads(text or "{}").get(place, {})
        return {str(name): CanaryAnswer(answer) for name, answer in answers.items()}
    except (AttributeError, ValueError):  # unreadable: learn it again
        return {}


def write_memory(text: str | None, place: str, responses: Mapping[str, CanaryAnswer]) -> str:
    """The setting with new responses added. A canary that accepted once stays ``ACCEPTED``."""
    try:
        by_place = dict(json.loads(text or "{}"))
    except (TypeError, ValueError):
        by_place = {}
    before = read_memory(text, place)
    proven = {name: answer for name, answer in before.items() if answer is CanaryAnswer.ACCEPTED}
    by_place[place] = {**before, **responses, **proven}
    return json.dumps(by_place, sort_keys=True)


def have_accepted(memory: Mapping[str, CanaryAnswer]) -> frozenset[str]:
    return frozenset(name for name, answer in memory.items() if answer is CanaryAnswer.ACCEPTED)


def only_refuse(canaries: Sequence[Canary], memory: Mapping[str, CanaryAnswer]) -> list[str]:
    """The names of canaries that have refused and never accepted, for a warning to the admin."""
    return [name for name in map(name_of, canaries) if memory.get(name) is CanaryAnswer.REFUSED]


_Answer = tuple[Canary, CanaryAnswer] | Exception


def _answers(
    canaries: Sequence[Canary], timeout: float, dns_servers: Sequence[DnsServer]
) -> Iterator[tuple[Canary, CanaryAnswer]]:
    """The responses as they arrive, until the time is over. Raises for faults of ours."""
    deadline = time.monotonic() + timeout
    answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
    # In a thread, so that nobody waits for the connections to end.
    asking = threading.Thread(
        target=_ask, args=(canaries, dns_servers, deadline, answers.put), name="canary", daemon=True
    )
    asking.start()
    for _canary in canaries:
        try:
            answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return
        if isinstance(answer, Exception):
            raise answer
        yield answer


def _ask(
    canaries: Sequence[Canary],
    dns_servers: Sequence[DnsServer],
    deadline: float,
    put: Callable[[_Answer], None],
) -> None:
    """Ask all canaries in parallel, then end the connections."""
    # Imported here: every command reads the settings, and so this module, but few ask DNS.
    from app.net.resolver import Resolver

    unanswered = len(canaries)

    def answered(answer: _Answer) -> None:
        nonlocal unanswered
        unanswered -= 1
        put(answer)

    try:
        with (
            closing(Loop(put)) as loop,
            closing(Resolver(loop, SystemNames(tuple(dns_servers)))) as names,
        ):
            for canary in canaries:
                _begin(canary, deadline, loop, names, answered)
            while unanswered and (remaining := deadline - time.monotonic()) > 0:
                loop.run_once(remaining)
            loop.settle(HANG_UP_SECONDS)
    except Exception as fault:
        put(fault)


def _begin(
    canary: Canary, deadline: float, loop: Loop, names: Resolver, put: Callable[[_Answer], None]
) -> None:
    """Look up the name of one canary, and connect to its addresses."""

    def connect(resolved: Resolved) -> None:
        if not resolved.addresses:  # a name that cannot be resolved counts as no answer
            put((canary, CanaryAnswer.NOTHING))
            return
        addresses = interleaved(routed(resolved.addresses))
        Race(loop, addresses, canary[1], deadline, STAGGER_SECONDS).start(raced)

    def raced(race: RaceResult) -> None:
        if race.tcp is not None:
            loop.hang_up(race.tcp)
            put((canary, CanaryAnswer.ACCEPTED))
        elif race.own_error is not None:
            put(OSError(race.own_error, os.strerror(race.own_error)))
        else:
            is_refused = errno.ECONNREFUSED in race.errors
            put((canary, CanaryAnswer.REFUSED if is_refused else CanaryAnswer.NOTHING))

    host = canary[0].lower()
    resolved = names.without_dns(host)
    if resolved is None:
        names.look_up(host, connect)
    else:
        connect(resolved)
