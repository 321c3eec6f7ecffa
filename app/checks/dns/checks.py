"""One check of DNS: look up the server if the URL names one, and ask it for one type of record.

``judge`` says why it is down. The evidence has ``answers``, ``flags``, ``rcode`` and ``server``; an
answer is ``{"name", "ttl", "type", "data"}``.

NOERROR with a record of the requested type is ``up``. A text condition searches the records, one on
each line, as ``dig +short`` writes them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from app.rules.dns_url import DnsTarget
from app.rules.text import shortened


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
