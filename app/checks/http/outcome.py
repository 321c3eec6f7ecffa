"""Turn the trace of a check into its Outcome: figures, verdict, evidence."""

from __future__ import annotations

from collections.abc import Callable

from app.checks.certificate import TrustStore
from app.checks.curl.exchange import Exchange
from app.checks.curl.failures import anything_arrived
from app.checks.http.evidence import make_evidence
from app.checks.http.trace import Trace
from app.checks.http.verdict import HttpVerdict, judge
from app.checks.outcome import GoodEvidence
from app.checks.redact import Redactor
from app.records import MAX_RESULT_CAUSE, MAX_URL, Outcome, Result, Timings, Verdict
from app.rules.text import shortened


class Outcomes:
    """Makes outcomes from traces."""

    def __init__(self, trust: TrustStore, location: str) -> None:
        self._trust = trust
        self._location = location
        self._good = GoodEvidence()

    def make(self, trace: Trace) -> Outcome:
        timings, response_ms = figures(trace)
        judgement = judge(trace, self._trust, response_ms)
        exchange = trace.last.exchange if trace.last else None
        hide: Callable[[str], str] = str
        if judgement.failure or len(trace.hops) > 1:
            # A redirect may echo secrets, and sentences about causes quote it.
            hide = Redactor(trace.spec).text
        result = Result(
            checked_at=trace.checked_at,
            verdict=judgement.verdict,
            monitor_id=trace.spec.monitor_id,
            cause_code=judgement.failure.code if judgement.failure else None,
            cause=shortened(hide(judgement.failure.sentence), MAX_RESULT_CAUSE)
            if judgement.failure
            else None,
            status_code=exchange.status or None
            if exchange is not None and exchange.complete
            else None,
            response_time=response_ms,
            timings=timings,
            ip=exchange.ip if exchange else None,
            http_version=exchange.http_version if exchange else None,
            redirects=tuple(hide(url)[:MAX_URL] for url in trace.redirects),
            warnings=judgement.warnings,
            location=self._location,
            assertions=judgement.assertions,
        )
        has_evidence = judgement.verdict != Verdict.UP or self._wants_good(
            trace, exchange, judgement
        )
        return Outcome(
            result=result,
            evidence=make_evidence(trace, timings) if has_evidence else None,
            ssl_issued_at=judgement.leaf.not_before if judgement.leaf else None,
            ssl_expires_at=judgement.leaf.not_after if judgement.leaf else None,
            ssl_fingerprint=judgement.leaf.fingerprint if judgement.leaf else None,
            ssl_host=judgement.leaf_host,
            answered=answered(trace),
            matched=judgement.matched,
        )

    def _wants_good(self, trace: Trace, exchange: Exchange | None, judgement: HttpVerdict) -> bool:
        leaf = judgement.leaf.fingerprint if judgement.leaf else None
        answer = (
            (trace.spec.url, exchange.status, exchange.ip, leaf, len(trace.hops))
            if exchange
            else ()
        )
        return self._good.is_due(trace.spec.monitor_id, answer)


def answered(trace: Trace) -> bool:
    """Whether any byte of an answer, even a certificate or a TLS alert, came from the target."""
    return any(hop.exchange is not None and anything_arrived(hop.exchange) for hop in trace.hops)


def figures(trace: Trace) -> tuple[Timings, int | None]:
    """Milliseconds in each phase over all hops, and in all if the last answer was read to its end
    or to the cap.
    """
    dns: float | None = None
    phases = [-1.0, -1.0, -1.0, -1.0]
    total = 0.0
    for hop in trace.hops:
        if hop.dns is not None:
            dns = (dns or 0.0) + hop.dns
            total += hop.dns
        if hop.exchange is not None:
            total += hop.exchange.total
            _add_phases(hop.exchange, phases)
    last = trace.last.exchange if trace.last else None
    whole = last is not None and last.complete and (last.code == 0 or last.stopped)
    timings = Timings(
        None if dns is None else round(dns * 1000),
        *(None if phase < 0 else round(phase * 1000) for phase in phases),
    )
    return timings, round(total * 1000) if whole else None


def _add_phases(exchange: Exchange, phases: list[float]) -> None:
    """Add one request's connect, tls, ttfb and download, in seconds; -1 means not reached. The
    phase in which the request ended, well or not, gets the rest of its time.
    """
    # Until the headers are complete, the request waits for its first byte, though one has arrived.
    ends = (
        exchange.connect,
        exchange.tls,
        exchange.first_byte if exchange.complete else 0.0,
        exchange.total,
    )
    secure = exchange.request.target.scheme == "https"
    before = 0.0
    for index, end in enumerate(ends):
        if index == 1 and not secure:
            continue
        reached = end if end > 0 else exchange.total
        phases[index] = max(phases[index], 0.0) + max(0.0, reached - before)
        if end <= 0:
            return
        before = end
