"""Turn the trace of a check into its Outcome: figures, verdict, and the evidence of what it saw:

    {"url", "request": {"method", "hops"}, "status_line", "headers": [[name, value]],
     "body", "body_bytes" (read, decoded), "body_cut" ("body" is only its beginning),
     "resolved": [addresses], "refused": [addresses], "ip", "http_version",
     "tls": [{"subject", "issuer", "not_before", "not_after", "sha256", "names"}],
     "timings": {"dns", "connect", "tls", "ttfb", "download"},
     "redirects": [{"status_line" (of the redirect), "url" (its target), "ip" (of the target)}],
     "curl": {"code", "words"}}

Secrets are masked: see app/checks/redact.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.checks.certificate import TrustStore, describe
from app.checks.curl.exchange import Exchange
from app.checks.curl.failures import anything_arrived
from app.checks.http.trace import Hop, Trace
from app.checks.http.verdict import judge
from app.checks.outcome import GoodEvidence, strip_controls
from app.checks.redact import Redactor
from app.codec.evidence import fitted
from app.net.codings import charset
from app.records import (
    EVIDENCE_BODY_BYTES,
    MAX_RESULT_CAUSE,
    MAX_URL,
    Outcome,
    Result,
    Timings,
    Verdict,
)
from app.rules.text import shortened

# Bytes of the body that are searched for secrets: more than evidence has, so that a secret that
# crosses the end of the excerpt is masked too.
_SEARCHED_BYTES = 2 * EVIDENCE_BODY_BYTES
_MAX_HEADER_LINES = 100
_MAX_HEADER_VALUE = 2048


def make_outcome(trace: Trace, trust: TrustStore, good: GoodEvidence) -> Outcome:
    timings, response_ms = figures(trace)
    judgement = judge(trace, trust, response_ms)
    exchange = trace.last.exchange if trace.last else None
    failure, leaf, verdict = judgement.failure, judgement.leaf, judgement.verdict
    hide: Callable[[str], str] = str
    if failure or len(trace.hops) > 1:
        # A redirect may echo secrets, and the sentence of the cause may quote the redirect.
        hide = Redactor(trace.spec).text
    result = Result(
        checked_at=trace.checked_at,
        verdict=verdict,
        monitor_id=trace.spec.monitor_id,
        cause_code=failure.code if failure else None,
        cause=shortened(hide(failure.sentence), MAX_RESULT_CAUSE) if failure else None,
        status_code=(exchange.status or None) if exchange and exchange.has_headers else None,
        response_time=response_ms,
        timings=timings,
        ip=exchange.ip if exchange else None,
        http_version=exchange.http_version if exchange else None,
        redirects=tuple(hide(hop.target.url)[:MAX_URL] for hop in trace.hops[1:]),
        warnings=judgement.warnings,
        location=trace.location,
        assertions=judgement.assertions,
    )
    fingerprint = leaf.fingerprint if leaf else None
    answer: tuple[object, ...] = ()
    if exchange:
        answer = (trace.spec.url, exchange.status, exchange.ip, fingerprint, len(trace.hops))
    has_evidence = verdict != Verdict.UP or good.register(trace.spec.monitor_id, answer)
    return Outcome(
        result=result,
        evidence=make_evidence(trace, timings) if has_evidence else None,
        ssl_issued_at=leaf.not_before if leaf else None,
        ssl_expires_at=leaf.not_after if leaf else None,
        ssl_fingerprint=fingerprint,
        ssl_host=judgement.leaf_host,
        answered=has_answered(trace),
        matched=judgement.matched,
    )


def has_answered(trace: Trace) -> bool:
    """Whether any byte of an answer, even a certificate or a TLS alert, came from the target."""
    return any(hop.exchange is not None and anything_arrived(hop.exchange) for hop in trace.hops)


def figures(trace: Trace) -> tuple[Timings, int | None]:
    """Milliseconds in each phase over all hops, and their total. The total is None unless the last
    answer was read to its end, or as far as it is needed.
    """
    dns: float | None = None
    phases = [-1.0, -1.0, -1.0, -1.0]
    total = 0.0
    for hop in trace.hops:
        if (spent := hop.resolution.dns) is not None:
            dns = (dns or 0.0) + spent
            total += spent
        if hop.exchange is not None:
            total += hop.exchange.total
            _add_phases(hop.exchange, phases)
    last = trace.last.exchange if trace.last else None
    whole = last is not None and last.has_headers and (last.code == 0 or last.stopped)
    timings = Timings(
        None if dns is None else round(dns * 1000),
        *(None if phase < 0 else round(phase * 1000) for phase in phases),
    )
    return timings, round(total * 1000) if whole else None


def _add_phases(exchange: Exchange, phases: list[float]) -> None:
    """Add one request's connect, tls, ttfb and download, in seconds; -1 means not reached. The
    phase in which the request ended, well or not, gets all time up to the end.
    """
    # The phase ttfb lasts until the headers are complete, even if a part of them has arrived.
    ends = (
        exchange.connect,
        exchange.tls,
        exchange.first_byte if exchange.has_headers else 0.0,
        exchange.total,
    )
    secure = exchange.request.target.scheme == "https"
    begin = 0.0
    for index, end in enumerate(ends):
        if index == 1 and not secure:
            continue
        reached = end if end > 0 else exchange.total
        phases[index] = max(phases[index], 0.0) + max(0.0, reached - begin)
        if end <= 0:
            return
        begin = end


# --- Evidence


def make_evidence(trace: Trace, timings: Timings) -> dict[str, Any]:
    """The evidence of a check, ready for ``json.dumps``."""
    redactor = Redactor(trace.spec)
    evidence: dict[str, Any] = {
        "url": redactor.text(trace.spec.url),
        "request": {"method": str(trace.spec.request_method), "hops": len(trace.hops)},
        "timings": timings.by_phase(),
        "redirects": [
            _redirect(previous, hop, redactor)
            for previous, hop in zip(trace.hops, trace.hops[1:], strict=False)
        ],
    }
    if trace.last is not None:
        evidence.update(_last(trace.last, redactor))
    return fitted(evidence)


def _redirect(previous: Hop, hop: Hop, redactor: Redactor) -> dict[str, Any]:
    """One redirect: the status line that sent it, its target, and the address that answered."""
    line = previous.exchange.status_line if previous.exchange else None
    return {
        "status_line": None if line is None else strip_controls(redactor.text(line)),
        "url": redactor.text(hop.target.url)[:MAX_URL],
        "ip": hop.exchange.ip if hop.exchange else None,
    }


def _last(hop: Hop, redactor: Redactor) -> dict[str, Any]:
    evidence = hop.resolution.as_evidence()
    exchange = hop.exchange
    if exchange is None:
        return evidence
    curl = {"code": exchange.code, "words": redactor.text(exchange.words)}
    evidence.update(
        status_line=strip_controls(redactor.text(exchange.status_line)) or None,
        headers=[
            [strip_controls(name), strip_controls(redactor.header(name, value))[:_MAX_HEADER_VALUE]]
            for name, value in exchange.headers[:_MAX_HEADER_LINES]
        ],
        body=_body(exchange.body, exchange.header("content-type"), redactor),
        body_bytes=len(exchange.body),
        body_cut=exchange.cut or len(exchange.body) > EVIDENCE_BODY_BYTES,
        ip=exchange.ip,
        http_version=exchange.http_version,
        tls=[describe(pem) for pem in exchange.certificates],
        curl=curl if exchange.code and not exchange.stopped else None,
    )
    return evidence


def _body(body: bytes, content_type: str | None, redactor: Redactor) -> str:
    """The first 4 KiB as text, without control characters."""
    name, mark = charset(body, content_type)
    text = body[mark:_SEARCHED_BYTES].decode(name, errors="replace")
    if len(body) > _SEARCHED_BYTES:
        # Masks are shorter than secrets: after many of them, the end of the text is in the 4 KiB.
        text = redactor.text(text.rstrip("\ufffd"), cut=True)  # half a character prevents a match
    else:
        text = redactor.text(text)
    excerpt = text.encode("utf-8", "replace")[:EVIDENCE_BODY_BYTES].decode("utf-8", "ignore")
    return strip_controls(excerpt) if len(body) > EVIDENCE_BODY_BYTES else strip_controls(text)
