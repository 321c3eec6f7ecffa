"""Turn the trace of a check of a TLS server into its outcome; ``judge`` says why it is down.

The evidence is ``{"url", "resolved", "refused", "ip", "timings", "tls", "banner"}``: the
certificates as those of https, and the reply that did not start TLS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from app.checks.certificate import TrustStore, facts, read_certificate
from app.checks.connection import Connection
from app.checks.curl.exchange import Exchange
from app.checks.curl.failures import handshake
from app.checks.outcome import Failure, clean, milliseconds
from app.checks.running import RunningCheck
from app.i18n import N_, _
from app.records import AssertionSource, Cause, Outcome, Timings, Warn
from app.rules.text import shortened
from app.rules.time import warns


@dataclass(slots=True)
class TlsTrace(Connection):
    """``refusal``: a reply that does not start TLS. ``tls``: seconds from the connection to the end
    of the handshake, STARTTLS included.
    """

    refusal: bytes | None = None
    exchange: Exchange | None = None
    tls: float | None = None

    @property
    def certificates(self) -> tuple[str, ...]:
        return self.exchange.certificates if self.exchange else ()


def make_outcome(check: RunningCheck, trace: TlsTrace) -> Outcome:
    at = check.checked_at
    leaf = read_certificate(trace.certificates[0]) if trace.certificates else None
    expires = leaf and warns(check.spec.ssl_alert_days, leaf.not_before, leaf.not_after, at)
    failure = judge(trace, check.tools.trust, at)
    phases = (trace.resolution.dns, trace.connect, trace.tls)
    return check.outcome_of(
        trace.resolution,
        failure,
        timings=Timings(*map(milliseconds, phases)),
        response_ms=milliseconds(sum(filter(None, phases))) if failure is None else None,
        ip=trace.ip,
        warnings=(*trace.warnings, *([str(Warn.TLS_EXPIRING)] if expires else ())),
        answer=(trace.ip, leaf and leaf.fingerprint),
        single={AssertionSource.CERTIFICATE_DAYS: leaf and leaf.days_left(at)},
        evidence=lambda: evidence(trace),
        answered=trace.ip is not None,
        ssl_issued_at=leaf and leaf.not_before,
        ssl_expires_at=leaf and leaf.not_after,
        ssl_fingerprint=leaf and leaf.fingerprint,
        ssl_host=leaf and trace.target.ascii_host,
    )


def evidence(trace: TlsTrace) -> dict[str, Any]:
    figures: dict[str, Any] = {"tls": [facts(pem) for pem in trace.certificates]}
    if trace.refusal is not None:
        figures["banner"] = clean(trace.refusal.decode("utf-8", "backslashreplace"))
        figures["banner_bytes"] = len(trace.refusal)
    return figures


def judge(trace: TlsTrace, trust: TrustStore, now: datetime) -> Failure | None:
    if (failure := trace.failure) is not None:
        # As https names a reset: the handshake had hardly begun.
        is_reset = failure.code == Cause.CONNECTION_RESET
        return replace(failure, code=Cause.TLS_HANDSHAKE) if is_reset else failure
    if trace.exchange is not None:
        return handshake(trace.exchange, trust, now)
    if trace.refusal is not None:
        cause = Cause.STARTTLS_REFUSED
        sentence = N_(
            "The server at %(ip)s port %(port)s does not start TLS. It answered “%(reply)s”."
        )
    elif trace.broken_by is not None or trace.closed:
        cause = Cause.TLS_HANDSHAKE
        sentence = (
            N_("The server at %(ip)s port %(port)s closed the connection before TLS began.")
            if trace.closed
            else N_("The server at %(ip)s port %(port)s reset the connection before TLS began.")
        )
    else:
        cause = Cause.TIMEOUT_TLS
        sentence = N_(
            "The server at %(ip)s port %(port)s did not answer in the protocol %(protocol)s within"
            " the limit of %(limit)s s, so TLS did not begin."
        )
    values = {
        "ip": trace.ip,
        "port": trace.target.port,
        "reply": shortened(clean((trace.refusal or b"").decode("utf-8", "replace")).strip(), 100),
        "protocol": trace.spec.starttls,
        "limit": f"{trace.spec.timeout:g}",
    }
    return Failure(cause, _(sentence, **values))
