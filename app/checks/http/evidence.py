"""What a check saw, as JSON. The incident's page shows it beside the last good answer.

    {"url", "request": {"method", "hops"}, "status_line", "headers": [[name, value]],
     "body", "body_bytes" (read, decoded), "body_cut" (this is only its beginning),
     "resolved": [addresses], "refused": [addresses], "ip", "http_version",
     "tls": [{"subject", "issuer", "not_before", "not_after", "sha256", "names"}],
     "timings": {"dns", "connect", "tls", "ttfb", "download"},
     "redirects": [{"status_line" (that sent us on), "url" (where to), "ip"}],
     "curl": {"code", "words"}}

Secrets are masked: see app/checks/redact.py.
"""

from __future__ import annotations

from typing import Any

from app.checks.certificate import facts
from app.checks.http.trace import Hop, Trace
from app.checks.outcome import addresses, clean
from app.checks.redact import Redactor
from app.codec.evidence import fitted
from app.net.charset import charset
from app.records import EVIDENCE_BODY_BYTES, MAX_URL, Timings

# Bytes of the body that are searched for secrets: more than are kept, so that a secret across the
# edge of what is kept is masked too.
_MAX_LOOK = 2 * EVIDENCE_BODY_BYTES
_MAX_HEADER_LINES = 100
_MAX_HEADER_VALUE = 2048


def make_evidence(trace: Trace, timings: Timings) -> dict[str, Any]:
    """The evidence of a check, ready for ``json.dumps``."""
    redactor = Redactor(trace.spec)
    evidence: dict[str, Any] = {
        "url": redactor.text(trace.spec.url),
        "request": {"method": str(trace.spec.request_method), "hops": len(trace.hops)},
        "timings": timings.by_phase(),
        "redirects": [
            _redirect(before, hop, redactor)
            for before, hop in zip(trace.hops, trace.hops[1:], strict=False)
        ],
    }
    if trace.last is not None:
        evidence.update(_last(trace.last, redactor))
    return fitted(evidence)


def _redirect(before: Hop, hop: Hop, redactor: Redactor) -> dict[str, Any]:
    """One redirect: the status line that sent it, its target, and the address that answered."""
    return {
        "status_line": clean(redactor.text(before.exchange.status_line))
        if before.exchange
        else None,
        "url": redactor.text(hop.target.url)[:MAX_URL],
        "ip": hop.exchange.ip if hop.exchange else None,
    }


def _last(hop: Hop, redactor: Redactor) -> dict[str, Any]:
    evidence = addresses(hop.resolved, hop.refusals)
    exchange = hop.exchange
    if exchange is None:
        return evidence
    evidence.update(
        status_line=clean(redactor.text(exchange.status_line)) or None,
        headers=[
            [clean(name), clean(redactor.header(name, value))[:_MAX_HEADER_VALUE]]
            for name, value in exchange.headers[:_MAX_HEADER_LINES]
        ],
        body=_body(exchange.body, exchange.header("content-type"), redactor),
        body_bytes=len(exchange.body),
        body_cut=exchange.cut or len(exchange.body) > EVIDENCE_BODY_BYTES,
        ip=exchange.ip,
        http_version=exchange.http_version,
        tls=[facts(pem) for pem in exchange.certificates],
        curl={"code": exchange.code, "words": redactor.text(exchange.words)}
        if exchange.code and not exchange.stopped
        else None,
    )
    return evidence


def _body(body: bytes, content_type: str | None, redactor: Redactor) -> str:
    """The first 4 KiB as text, without control characters."""
    name, mark = charset(body, content_type)
    text = body[mark:_MAX_LOOK].decode(name, errors="replace")
    if len(body) > _MAX_LOOK:
        # Masks are shorter than secrets: after many of them, the end of the text is in the 4 KiB.
        text = redactor.text(text.rstrip("\ufffd"), cut=True)  # half a character prevents a match
    else:
        text = redactor.text(text)
    excerpt = text.encode("utf-8", "replace")[:EVIDENCE_BODY_BYTES].decode("utf-8", "ignore")
    return clean(excerpt) if len(body) > EVIDENCE_BODY_BYTES else clean(text)
