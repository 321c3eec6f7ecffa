"""Why is an HTTP check down? The verdict of a whole check (decision 10): ``judge``.

The first that applies: a failure before the answer (DNS, policy, redirects: ``Trace.failure``), a
failure of the connection or of TLS (``checks/curl/failures.py``), a status that is not accepted, a
text condition (``checks/outcome.py``), an assertion (``rules/assertions.py``), slowness. A status
outranks a fault in the body.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from app.checks.certificate import ServerCertificate, TrustStore, read_certificate
from app.checks.curl.exchange import Exchange
from app.checks.curl.failures import failure_on_wire
from app.checks.http.trace import Trace
from app.checks.outcome import Failure, excerpt, judge_text, verdict_of
from app.checks.redact import Redactor
from app.i18n import N_, _
from app.net.codings import decode
from app.records import (
    SOURCES_OF_BODY,
    TEXT_CONDITIONS,
    AssertionSource,
    Cause,
    CheckedAssertion,
    CheckSpec,
    Verdict,
    Warn,
)
from app.rules.assertions import AnswerParts, evaluate, unevaluated
from app.rules.text import is_accepted, shortened
from app.rules.time import warns

# Faults of the body: a status that is not accepted outranks them, because it says more.
_BEHIND_THE_STATUS = frozenset({Cause.BODY_TRUNCATED, Cause.TIMEOUT_BODY, Cause.INVALID_HTTP})


@dataclass(slots=True)
class HttpVerdict:
    verdict: Verdict
    failure: Failure | None
    warnings: tuple[str, ...]
    matched: str | None = None
    leaf: ServerCertificate | None = None
    leaf_host: str | None = None
    assertions: tuple[CheckedAssertion, ...] = ()


def judge(trace: Trace, trust: TrustStore, response_ms: int | None) -> HttpVerdict:
    """The verdict of a whole check."""
    leaf, leaf_host = _leaf(trace)
    failure = trace.failure
    matched: str | None = None
    checked = unevaluated(trace.spec.assertions)
    warnings = list(trace.warnings)
    exchange = trace.last.exchange if trace.last else None
    if failure is None and exchange is not None:
        failure = failure_on_wire(exchange, trust, trace.checked_at)
        if failure is None or failure.code in _BEHIND_THE_STATUS:
            failure = _bad_status(exchange, trace) or failure
        if exchange.cut:
            warnings.append(Warn.BODY_CUT_AT_CAP)
        if exchange.stream:
            warnings.append(Warn.STREAM_OPEN)
        if failure is None:
            failure, matched, checked = _content(exchange, trace, leaf, response_ms)
    setting = trace.spec.ssl_alert_days
    if leaf and warns(setting, leaf.not_before, leaf.not_after, trace.checked_at):
        warnings.append(Warn.TLS_EXPIRING)
    verdict, failure = verdict_of(failure, trace.spec, response_ms)
    words = tuple(str(word) for word in warnings)
    return HttpVerdict(verdict, failure, words, matched, leaf, leaf_host, checked)


def asks_body(spec: CheckSpec) -> bool:
    return spec.alert_condition in TEXT_CONDITIONS or any(
        assertion.source in SOURCES_OF_BODY for assertion in spec.assertions
    )


def _leaf(trace: Trace) -> tuple[ServerCertificate | None, str | None]:
    """The certificate that expires first of those of all hops, and its host. A host that only
    redirects counts too: without its certificate, visitors cannot reach the page.
    """
    leaves = [
        (leaf, hop.target.ascii_host)
        for hop in reversed(trace.hops)  # of equal ones the last: the evidence has its chain
        if hop.exchange is not None and hop.exchange.certificates
        if (leaf := read_certificate(hop.exchange.certificates[0])) is not None
    ]
    return min(leaves, key=lambda pair: pair[0].not_after, default=(None, None))


def _bad_status(exchange: Exchange, trace: Trace) -> Failure | None:
    """The failure of a status that is not accepted; None for an accepted one."""
    if not exchange.has_headers or not exchange.status:
        return None
    if is_accepted(exchange.status, trace.spec.accepted_statuses):
        return None
    status, accepted = reason(exchange.status), trace.spec.accepted_statuses
    sentence = N_("The server answered %(status)s; expected %(accepted)s.")
    sentence = _(sentence, status=status, accepted=accepted)
    if trace.withheld and 400 <= exchange.status < 500:
        host, what = trace.withheld
        dropped = N_(
            "The redirect to %(host)s led to another origin, so this was not sent: %(what)s."
        )
        sentence += " " + _(dropped, host=host, what=what)
    return Failure(f"{Cause.HTTP_STATUS}:{exchange.status}", sentence)


def reason(status: int) -> str:
    """``503 Service Unavailable``."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _content(
    exchange: Exchange, trace: Trace, leaf: ServerCertificate | None, response_ms: int | None
) -> tuple[Failure | None, str | None, tuple[CheckedAssertion, ...]]:
    """Judge the text condition and the assertions. A failed text condition outranks an assertion.
    Returns the failure, the excerpt around the text, and the assertions.
    """
    spec = trace.spec
    if spec.alert_condition not in TEXT_CONDITIONS and not spec.assertions:
        return None, None, ()
    answer = _answer(exchange, trace, leaf, response_ms)
    failure, matched = None, None
    if spec.alert_condition in TEXT_CONDITIONS:
        failure, matched = _text(exchange, trace, answer.body)
    checked, sentence = evaluate(spec.assertions, answer)
    if failure is None and sentence is not None:
        failure = Failure(Cause.ASSERTION_FAILED, sentence)
    return failure, matched, checked


def _answer(
    exchange: Exchange, trace: Trace, leaf: ServerCertificate | None, response_ms: int | None
) -> AnswerParts:
    single = {
        AssertionSource.STATUS: exchange.status,
        AssertionSource.SIZE: len(exchange.body),
        AssertionSource.URL: trace.hops[-1].target.url,
        AssertionSource.RESPONSE_TIME: response_ms,
        AssertionSource.CERTIFICATE_DAYS: leaf.whole_days_left(trace.checked_at) if leaf else None,
    }
    content_type = exchange.header("content-type")
    return AnswerParts(
        single,
        exchange.headers,
        lambda is_json: decode(exchange.body, content_type, declared=not is_json),
        cut=exchange.cut,
        hide=Redactor(trace.spec).text,
    )


def _text(exchange: Exchange, trace: Trace, text: str) -> tuple[Failure | None, str | None]:
    lookup = trace.spec.alert_text_lookup or ""
    cause = judge_text(trace.spec.alert_condition, lookup, text, exchange.cut)
    beginning = shortened(lookup, 80)
    failure = None
    if cause is not None:
        sentence = (
            N_("The answer (%(status)s, %(size)s bytes) contains the text “%(text)s”.")
            if cause == Cause.TEXT_FOUND
            else N_("The answer (%(status)s, %(size)s bytes) does not contain the text “%(text)s”.")
        )
        size = len(exchange.body)
        status = reason(exchange.status)
        failure = Failure(cause, _(sentence, status=status, size=size, text=beginning))
    return failure, excerpt(text, lookup, Redactor(trace.spec)) if lookup else None
