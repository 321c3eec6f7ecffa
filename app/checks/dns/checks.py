"""One check of DNS: look up the server if the URL names one, and ask it for one type of record.

``judge`` says why it is down. The evidence has ``answers``, ``flags``, ``rcode`` and ``server``; an
answer is ``{"name", "ttl", "type", "data"}``.

NOERROR with a record of the requested type is ``up``. A text condition searches the records, one on
each line, as ``dig +short`` writes them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset

from app.checks.outcome import Failure, excerpt, judge_text, strip_controls, whole_ms
from app.checks.redact import Redactor
from app.checks.running import Resolution, RunningCheck
from app.codec.evidence import MAX_ENTRIES
from app.i18n import N_, _, _n
from app.net.dnsquery import DnsAnswer, RecordQuestion
from app.net.hosts import DnsServer
from app.net.loop import Timer
from app.net.race import interleaved, routed
from app.net.resolver import fault_of
from app.records import TEXT_CONDITIONS, AssertionSource, Cause, CheckSpec, Outcome, Timings
from app.rules.text import shortened
from app.rules.url import Target, ascii_host, refuse_odd_characters, take_apart


@dataclass(slots=True)
class DnsTrace:
    """The course of a check. ``message`` is the last message that a server sent, even one with an
    error; ``took`` is in seconds.
    """

    target: DnsTarget
    resolution: Resolution = field(default_factory=Resolution)
    answer: DnsAnswer = field(default_factory=DnsAnswer)
    message: dns.message.Message | None = None
    took: float | None = None

    @property
    def records(self) -> Iterator[tuple[dns.rrset.RRset, str]]:
        """Each record of the answer as text, with its set. Only records of the requested name, and
        of the names to which its aliases lead, are an answer; others are left out.
        """
        answer = self.message.answer if self.message else []
        aliases = {
            rrset.name: [alias.target for alias in rrset]
            for rrset in answer
            if rrset.rdtype == dns.rdatatype.CNAME
        }
        names: set[dns.name.Name] = set()
        waiting = [dns.name.from_text(self.target.ascii_host)]
        while waiting:
            if (name := waiting.pop()) not in names:
                names.add(name)
                waiting += aliases.get(name, ())
        for rrset in answer:
            for record in rrset if rrset.name in names else ():
                yield rrset, strip_controls(record.to_text())

    @property
    def text(self) -> str:
        return "\n".join(record for _rrset, record in self.records)

    @property
    def of_type(self) -> tuple[str, ...]:
        """The records of the requested type, without the aliases that lead to them."""
        rdtype = dns.rdatatype.from_text(self.target.rdtype)
        return tuple(record for rrset, record in self.records if rrset.rdtype == rdtype)


class DnsCheck(RunningCheck):
    target: DnsTarget

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._began_at = 0.0
        self._question: RecordQuestion | None = None
        self._timer: Timer | None = None
        self.trace = DnsTrace(self.target)

    def begin(self) -> None:
        if self.target.server is None:
            self._ask(self.tools.resolver.servers())
        else:
            self.look_up(self.target.server, self._resolved)

    def cancel(self) -> None:
        if self._question is not None:
            self._question.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def _resolved(self, resolution: Resolution) -> None:
        self.trace.resolution = resolution
        if resolution.failure is not None:
            self._finish()
            return
        tried = interleaved(routed(resolution.addresses))
        self._ask([DnsServer(address, self.target.port) for address in tried])

    def _ask(self, servers: Sequence[DnsServer]) -> None:
        self._began_at = time.monotonic()
        self._timer = self.tools.loop.call_at(self.deadline, self.guard(self._time_out))
        is_default = self.target.server is None
        self._question = RecordQuestion(
            self.tools.loop,
            dns.name.from_text(self.target.ascii_host),
            dns.rdatatype.from_text(self.target.rdtype),
            servers,
            self.guard(self._answered),
            self.tools.resolver.note_silence if is_default else lambda _server: None,
        )
        self._question.start()

    def _time_out(self) -> None:
        if self._question is not None:
            self._answered(self._question.answer_so_far())

    def _answered(self, answer: DnsAnswer) -> None:
        self.trace.answer, self.trace.took = answer, time.monotonic() - self._began_at
        if self._question is not None:
            self.trace.message = self._question.message
        self._finish()

    def _finish(self) -> None:
        self.cancel()
        self.on_done(make_outcome(self, self.trace))


def make_outcome(check: RunningCheck, trace: DnsTrace) -> Outcome:
    spec, resolution, server = check.spec, trace.resolution, trace.answer.server
    spent = (resolution.dns or 0.0) + (trace.took or 0.0)
    lookup = spec.alert_text_lookup if spec.alert_condition in TEXT_CONDITIONS else None
    ip = server.address if server else None
    return check.build_outcome(
        resolution,
        judge(trace, spec),
        response_ms=whole_ms(spent) if trace.message is not None else None,
        timings=Timings(dns=whole_ms(resolution.dns), ttfb=whole_ms(trace.took)),
        ip=ip,
        single={AssertionSource.ANSWER: trace.of_type},
        answer=(ip, *sorted(record for _rrset, record in trace.records)),
        evidence=lambda: {"server": None if server is None else str(server), **_message(trace)},
        # An error from the installation's own name servers may be a fault of our network: they
        # answer so if they cannot reach the servers of the domain.
        answered=trace.message is not None
        and (trace.target.server is not None or bool(trace.of_type)),
        matched=excerpt(trace.text, lookup, Redactor(spec)) if lookup else None,
    )


def _message(trace: DnsTrace) -> dict[str, Any]:
    if trace.message is None:
        return {}
    answers = [
        {
            "name": rrset.name.to_text(),
            "ttl": rrset.ttl,
            "type": dns.rdatatype.to_text(rrset.rdtype),
            "data": record,
        }
        for rrset, record in trace.records
    ]
    return {
        "answers": answers[:MAX_ENTRIES],
        "flags": dns.flags.to_text(trace.message.flags).lower(),
        "rcode": dns.rcode.to_text(trace.message.rcode()),
    }


def judge(trace: DnsTrace, spec: CheckSpec) -> Failure | None:
    if trace.resolution.failure is not None:
        return trace.resolution.failure
    name = trace.target.ascii_host
    if trace.answer.fault is not None:
        resolved = fault_of(name, trace.answer, trace.took or 0.0)
        return Failure(trace.answer.fault, resolved.sentence)
    if not trace.of_type:
        sentence = N_("The name %(name)s has no %(type)s record, by DNS server %(server)s.")
        values = {"name": name, "type": trace.target.rdtype, "server": trace.answer.server}
        return Failure(Cause.DNS_NO_ANSWER, _(sentence, **values))
    lookup = spec.alert_text_lookup or ""
    cause = judge_text(spec.alert_condition, lookup, trace.text, cut=False)
    if cause is None:
        return None
    records = _n("%(num)s record", "%(num)s records", trace.text.count("\n") + 1)
    sentence = (
        N_("The answer (%(records)s) contains the text “%(text)s”.")
        if cause == Cause.TEXT_FOUND
        else N_("The answer (%(records)s) does not contain the text “%(text)s”.")
    )
    return Failure(cause, _(sentence, records=records, text=shortened(lookup, 80)))


# --- The address of a check -----------------------------------------------------------------------
#
# ``dns:[//SERVER[:PORT]/]NAME[?type=TYPE]`` (RFC 4501).

TYPES = ("A", "AAAA", "CNAME", "MX", "NS", "TXT", "SRV", "CAA", "SOA", "PTR")
PORT = 53

_SHAPE = re.compile(
    r"dns:(?://(?P<server>[^/?#]*+)/?|/)?(?P<name>[^/?#]*+)(?:\?(?P<query>[^#]*))?", re.IGNORECASE
)
# A slash is part of the names that RFC 2317 gives to small reverse zones.
_LABEL = re.compile(r"[a-z0-9_*/-]{1,63}")
_MAX_NAME = 253


@dataclass(frozen=True, slots=True)
class DnsTarget(Target):
    """``ascii_host`` is the requested name. ``server``: the name server in the URL; None for the
    name servers of the installation.
    """

    rdtype: str = "A"
    server: Target | None = None

    @property
    def url(self) -> str:
        server = "" if self.server is None else f"//{self.server.netloc}/"
        return f"dns:{server}{self.ascii_host}?type={self.rdtype}"


def read(text: str) -> DnsTarget:
    """Take a dns: URL apart. Raises ValueError with a sentence."""
    refuse_odd_characters(text)
    parts = _SHAPE.fullmatch(text)
    if parts is None:
        raise ValueError(_("A dns: URL is a name and its type, as dns:example.org?type=MX."))
    server = parts["server"] or None
    server_target = None if server is None else take_apart(f"dns://{server}", {"dns": PORT})
    rdtype = _type(parts["query"] or "")
    name = _name(unquote(parts["name"]), rdtype)
    return DnsTarget(
        scheme="dns",
        host=unquote(parts["name"]),
        ascii_host=name,
        port=PORT if server_target is None else server_target.port,
        request_target="/",
        absolute=True,
        rdtype=rdtype,
        server=server_target,
    )


def _type(query: str) -> str:
    """The requested type. RFC 4501 has a semicolon between parts, people write ``&``."""
    values: dict[str, str] = {}
    for part in filter(None, re.split("[;&]", query)):
        key, _equals, value = part.partition("=")
        if key.lower() not in ("type", "class") or key.lower() in values:
            raise ValueError(_("After the question mark, name a type alone, such as ?type=MX."))
        values[key.lower()] = value.upper()
    if values.get("class", "IN") != "IN":
        raise ValueError(_("Only the class IN can be checked. Leave the class out."))
    rdtype = values.get("type", "A")
    if rdtype not in TYPES:
        raise ValueError(_("The type is one of these: %(types)s.", types=", ".join(TYPES)))
    return rdtype


def _name(name: str, rdtype: str) -> str:
    """The name to ask for, without a final dot. For the type PTR, an IP address becomes its reverse
    name.
    """
    if name == ".":
        return name
    if rdtype == "PTR":
        with suppress(ValueError):
            return ip_address(name).reverse_pointer
    plain = ascii_host(name.removesuffix("."))
    if len(plain) > _MAX_NAME or not all(map(_LABEL.fullmatch, plain.split("."))):
        raise ValueError(_("The URL needs a name that DNS can have, as dns:example.org?type=MX."))
    return plain
