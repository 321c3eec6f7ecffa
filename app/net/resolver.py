"""Resolve names without blocking: a stub resolver on the check loop, with a cache that honours
TTLs.

/etc/hosts and ``localhost`` come first (hosts.py). Otherwise several servers are asked for A and
AAAA in parallel (dnsquery.py). ``resolve`` does the same for callers that may block, such as alert
senders.

No library's resolver fits: a check must tell NXDOMAIN from silence and judge each address before it
connects. dnspython's resolver blocks its thread, and libcurl reports only that a name did not
resolve.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address

import dns.exception
import dns.name
import dns.rdatatype
from cachetools import TLRUCache

from app.i18n import N_, _
from app.net.dnsquery import AAAA, A, DnsAnswer, Question
from app.net.hosts import DnsServer, SystemNames
from app.net.loop import Loop, Timer
from app.records import Cause

CACHE_SIZE = 20_000
MAX_TTL = 300  # seconds; a longer TTL is cut to this
NEGATIVE_TTL = 2  # short, because a name that has just been created must not stay missing
PARTIAL_TTL = 5  # one family answered, the other did not
SECOND_FAMILY_WAIT = 0.25  # seconds to wait for the other family once one has answered
SILENCE_SECONDS = 10.0  # for how long a server that did not answer is asked after all others
STALE_SECONDS = 120.0  # longer than any look-up takes
MAX_ADDRESSES = 64  # of each family; curl tries one after another while there is time


@dataclass(frozen=True, slots=True)
class Resolved:
    """The addresses of a name, IPv6 first. Without any, ``cause`` and ``sentence`` say why."""

    host: str
    addresses: tuple[str, ...] = ()
    cause: Cause | None = None
    sentence: str = ""


class Cache:
    """Answers by name until they expire. If it is full, the least recently used one is dropped.
    Threads may share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: TLRUCache[str, tuple[Resolved, float]] = TLRUCache(
            CACHE_SIZE, lambda _host, answer, now: now + answer[1], time.monotonic
        )

    def get(self, host: str) -> Resolved | None:
        with self._lock:
            answer = self._answers.get(host)
        return None if answer is None else answer[0]

    def put(self, resolved: Resolved, seconds: float) -> None:
        with self._lock:
            self._answers[resolved.host] = resolved, seconds


class Resolver:
    """Looks up names on the thread of ``loop``."""

    def __init__(
        self, loop: Loop, names: SystemNames | None = None, cache: Cache | None = None
    ) -> None:
        self.loop = loop
        self._names = names or SystemNames()
        self._cache = Cache() if cache is None else cache
        self._running: dict[str, _Lookup] = {}
        self._silent: dict[DnsServer, float] = {}

    def without_dns(self, host: str) -> Resolved | None:
        """The answer for an IP address, a name of this machine, or a cached name; None if DNS must
        be asked. ``host`` is an IP address, or a name in lower-case ASCII. For a name with a final
        dot, no search domain is tried.
        """
        cached = self._cache.get(host)
        if cached is not None:
            return cached
        local = self._names.local(host)
        if local is not None:
            return Resolved(host, _ordered(local))
        with suppress(ValueError):  # 1.2.3.256 is a name
            return Resolved(host, (str(ip_address(host)),))
        return None

    def look_up(self, host: str, on_done: Callable[[Resolved], None]) -> Callable[[], None]:
        """Look up ``host`` and call ``on_done``; concurrent callers share one look-up. Returns a
        function that cancels the call of ``on_done``.
        """
        running = self._running.get(host)
        if running is not None and time.monotonic() - running.created_at > STALE_SECONDS:
            # Only a fault of ours leaves a look-up behind; it must not block this name for ever.
            running.cancel()
            running = None
        if running is None:
            running = _Lookup(self, host)
            running.waiting.append(on_done)
            self._running[host] = running
            try:
                running.start()
            except BaseException:
                self._running.pop(host, None)
                raise
        else:
            running.waiting.append(on_done)
        waiting = running.waiting

        def remove() -> None:
            if on_done in waiting:
                waiting.remove(on_done)

        return remove

    def result_so_far(self, host: str, seconds: float) -> Resolved:
        """The result when a caller's ``seconds`` run out during the look-up of ``host``.

        If one server was silent and another one failed, the failure is reported.
        """
        running = self._running.get(host)
        part = running.answer_so_far() if running else None
        return fault_of(host, part, seconds) if part else timed_out(host, seconds)

    def close(self) -> None:
        for lookup in list(self._running.values()):
            lookup.cancel()
        self._running.clear()

    # --- for _Lookup

    def candidates(self, host: str) -> tuple[str, ...]:
        return self._names.config().names(host)

    def servers(self) -> Sequence[DnsServer]:
        """The servers in order; those that did not answer recently come last."""
        now = time.monotonic()
        return sorted(
            self._names.config().servers, key=lambda server: self._silent.get(server, 0.0) > now
        )

    def note_silence(self, server: DnsServer) -> None:
        self._silent[server] = time.monotonic() + SILENCE_SECONDS

    def finished(self, lookup: _Lookup, resolved: Resolved, ttl: float) -> None:
        self._running.pop(lookup.host, None)
        self._cache.put(resolved, ttl)
        for on_done in list(lookup.waiting):
            on_done(resolved)


class _Lookup:
    """The look-up of a name: both families in parallel, the names of the search list one by one."""

    def __init__(self, resolver: Resolver, host: str) -> None:
        self.host = host
        self.created_at = time.monotonic()
        self.waiting: list[Callable[[Resolved], None]] = []
        self._resolver = resolver
        self._names = list(resolver.candidates(host))
        self._parts: dict[dns.rdatatype.RdataType, DnsAnswer] = {}
        self._questions: dict[dns.rdatatype.RdataType, Question] = {}
        self._timer: Timer | None = None
        self._worst: DnsAnswer | None = None
        self._began_at = time.monotonic()

    def start(self) -> None:
        try:
            name = dns.name.from_text(self._names.pop(0))
        except dns.exception.DNSException:
            fault = fault_of(self.host, DnsAnswer(fault=Cause.DNS_NXDOMAIN))
            self._resolver.finished(self, fault, NEGATIVE_TTL)
            return
        self._parts = {}
        servers = self._resolver.servers()
        loop, note_silence = self._resolver.loop, self._resolver.note_silence
        self._questions = {
            rdtype: Question(loop, name, rdtype, servers, self._receiver(rdtype), note_silence)
            for rdtype in (AAAA, A)
        }
        for question in list(self._questions.values()):
            question.start()

    def answer_so_far(self) -> DnsAnswer | None:
        """The most important error from a server so far (``_GRAVITY``); None without one."""
        parts = [
            self._parts.get(rdtype) or question.answer_so_far()
            for rdtype, question in self._questions.items()
        ]
        worst = min(parts, key=lambda part: _GRAVITY[part.fault], default=None)
        return None if worst is None or worst.fault in (None, Cause.DNS_TIMEOUT) else worst

    def cancel(self) -> None:
        self.waiting.clear()
        self._stop()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for question in self._questions.values():
            question.cancel()

    def _receiver(self, rdtype: dns.rdatatype.RdataType) -> Callable[[DnsAnswer], None]:
        def received(part: DnsAnswer) -> None:
            self._parts[rdtype] = part
            if len(self._parts) == 2:
                self._conclude()
            elif part.addresses:
                self._timer = self._resolver.loop.call_later(SECOND_FAMILY_WAIT, self._conclude)

        return received

    def _conclude(self) -> None:
        self._stop()
        parts = list(self._parts.values())
        addresses = [address for part in parts for address in part.addresses]
        if addresses:
            is_complete = len(parts) == 2 and all(
                part.fault in (None, Cause.DNS_NXDOMAIN) for part in parts
            )
            ttl = min(part.ttl for part in parts if part.addresses)
            resolved = Resolved(self.host, _ordered(addresses))
            self._resolver.finished(
                self, resolved, min(ttl, MAX_TTL if is_complete else PARTIAL_TTL)
            )
            return
        worst = min(parts, key=lambda part: _GRAVITY[part.fault])
        if self._worst is None or _GRAVITY[worst.fault] < _GRAVITY[self._worst.fault]:
            self._worst = worst
        if self._names and worst.fault in (None, Cause.DNS_NXDOMAIN):
            self.start()
            return
        ttl = NEGATIVE_TTL if worst.fault in (None, Cause.DNS_NXDOMAIN) else 0
        resolved = fault_of(self.host, self._worst, time.monotonic() - self._began_at)
        self._resolver.finished(self, resolved, ttl)


# The fault that is reported when A and AAAA (or two search names) fail differently. NXDOMAIN
# concerns the name itself, so it wins; "no address" is reported only if both families have none.
_GRAVITY: dict[Cause | None, int] = {
    Cause.DNS_NXDOMAIN: 0, Cause.DNS_SERVFAIL: 1, Cause.DNS_REFUSED: 2, Cause.DNS_TIMEOUT: 3,
    None: 4,
}  # fmt: skip


def _ordered(addresses: Sequence[str]) -> tuple[str, ...]:
    """IPv6 first, as browsers try them; without duplicates, a bounded number of each family."""
    unique = list(dict.fromkeys(addresses))
    six = [address for address in unique if ":" in address][:MAX_ADDRESSES]
    four = [address for address in unique if ":" not in address][:MAX_ADDRESSES]
    return (*six, *four)


_SENTENCES = {
    Cause.DNS_NXDOMAIN: N_("The name %(host)s does not exist in DNS: NXDOMAIN%(by_server)s."),
    Cause.DNS_SERVFAIL: N_("DNS could not resolve %(host)s: SERVFAIL%(by_server)s."),
    Cause.DNS_REFUSED: N_("DNS refused to resolve %(host)s: REFUSED%(by_server)s."),
    Cause.DNS_TIMEOUT: N_("No DNS server answered for %(host)s within %(seconds)s s."),
    Cause.DNS_NO_ADDRESS: N_(
        "The name %(host)s exists in DNS but has no address: no A and no AAAA record%(by_server)s."
    ),
}


# RFC 6762. A browser on the same network reaches such a name, so the sentence must say why a check
# does not reach it.
_MDNS = N_(
    "Names that end in .local are answered by mDNS, which Wakeful does not ask. Use the IP address,"
    " or add the name to DNS or to /etc/hosts."
)


def fault_of(host: str, part: DnsAnswer, seconds: float = 0.0) -> Resolved:
    """The result for a name without addresses, by the answer of a server."""
    server = " " + _("(said by DNS server %(server)s)", server=part.server) if part.server else ""
    cause = part.fault or Cause.DNS_NO_ADDRESS
    sentence = _(_SENTENCES[cause], host=host, by_server=server, seconds=f"{seconds:.3g}")
    if host.removesuffix(".").endswith(".local"):
        sentence += f" {_(_MDNS)}"
    return Resolved(host, (), cause, sentence)


def resolve(
    host: str, timeout: float, *, names: SystemNames | None = None, cache: Cache | None = None
) -> Resolved:
    """Resolve ``host``, waiting up to ``timeout`` seconds. Never raises for a name that cannot be
    resolved.

    ``host`` is a name as it is sent (``Target.dns_name``), or an IP address, which is returned
    unchanged.
    """
    loop = Loop()
    resolver = Resolver(loop, names, cache)
    try:
        resolved = resolver.without_dns(host)
        if resolved is not None:
            return resolved
        answers: list[Resolved] = []
        resolver.look_up(host, answers.append)
        deadline = time.monotonic() + timeout
        while not answers and (remaining := deadline - time.monotonic()) > 0:
            loop.run_once(remaining)
        return answers[0] if answers else timed_out(host, timeout)
    finally:
        resolver.close()
        loop.close()


def timed_out(host: str, seconds: float) -> Resolved:
    """The result when the caller's own time runs out during the look-up."""
    return fault_of(host, DnsAnswer(fault=Cause.DNS_TIMEOUT), seconds)
