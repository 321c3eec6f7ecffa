"""From what happened to a verdict, a cause code and a sentence (decisions.md 10).

``failure_on_wire`` tells one request's faults apart; ``judge`` adds status, text, slowness and
warnings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

import pycurl

from app.checks.certificate import (
    Certificate,
    Judgement,
    TrustStore,
    fits_host,
    judge_chain,
    read_certificate,
    wrong_host,
)
from app.checks.http.story import Story
from app.checks.http.wire import Seen
from app.checks.outcome import RESET, Failure, connect_failure, verdict_of
from app.checks.redact import Redactor
from app.checks.text import excerpt, judge_text
from app.net.charset import decode
from app.records import HEADERS_CAP_BYTES, TEXT_CONDITIONS, Cause, Verdict, Warn
from app.rules.statuses import is_accepted
from app.rules.time import days_left

# OpenSSL's reasons (the low 23 bits of its error code) that mean: no common version.
_OPENSSL_ERROR = re.compile(r"error:([0-9A-Fa-f]{8})")
_ALERT = 1000  # reasons from here on are alerts that the other side sent
_PROTOCOL_REASONS = frozenset(
    {
        _ALERT + 70,  # alert protocol_version
        _ALERT + 86,  # alert inappropriate_fallback
        116,  # bad protocol version number
        166,  # version too high
        191,  # no protocols available
        258,  # unsupported protocol
        259,  # unsupported TLS version
        396,  # version too low
    }
)
_NOT_TLS_REASONS = frozenset(
    {155, 156, 198, 252, 267}
)  # an HTTP request, a wrong version number, and such
_UNEXPECTED_EOF = 294
_WEIRD_SERVER_REPLY = 8  # pycurl knows it by the name of an FTP error
_TOO_LARGE = 100  # and this one not at all
# curl's words when an HTTP/2 server refuses the stream (GOAWAY, REFUSED_STREAM), also on each new
# connection that curl then tries.
_TURNED_AWAY = "tried 5 times before giving up"

# OpenSSL's verify results, for the rare chain in which we find no fault ourselves.
_VERIFY_FAULTS = {
    9: Cause.TLS_NOT_YET_VALID,
    10: Cause.TLS_EXPIRED,
    18: Cause.TLS_SELF_SIGNED,
    20: Cause.TLS_UNTRUSTED,
    21: Cause.TLS_INCOMPLETE_CHAIN,
    62: Cause.TLS_HOSTNAME,
    64: Cause.TLS_HOSTNAME,
}
# Faults of the body, which say less than a status that is not accepted.
_BEHIND_THE_STATUS = frozenset({Cause.BODY_TRUNCATED, Cause.TIMEOUT_BODY, Cause.INVALID_HTTP})

_CERTIFICATE_CODES = frozenset({pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_ISSUER_ERROR})
# Bytes came, but no HTTP answer.
_GARBAGE_CODES = frozenset({pycurl.E_UNSUPPORTED_PROTOCOL, _WEIRD_SERVER_REPLY, _TOO_LARGE})
_OUR_CODES = frozenset(
    {
        pycurl.E_FAILED_INIT,
        pycurl.E_URL_MALFORMAT,
        pycurl.E_COULDNT_RESOLVE_HOST,
        pycurl.E_OUT_OF_MEMORY,
        pycurl.E_BAD_FUNCTION_ARGUMENT,
        pycurl.E_SSL_CACERT_BADFILE,
        pycurl.E_SSL_ENGINE_NOTFOUND,
        pycurl.E_SSL_ENGINE_SETFAILED,
    }
)


@dataclass(slots=True)
class Judged:
    verdict: Verdict
    failure: Failure | None
    warnings: tuple[str, ...]
    matched: str | None = None
    leaf: Certificate | None = None
    leaf_host: str | None = None


def judge(story: Story, trust: TrustStore, response_ms: int | None) -> Judged:
    """The verdict of a whole check."""
    leaf, leaf_host = _leaf(story)
    failure = story.failure
    matched: str | None = None
    warnings = list(story.warnings)
    seen = story.last.seen if story.last else None
    if failure is None and seen is not None:
        failure = failure_on_wire(seen, trust, story.checked_at)
        if failure is None or failure.code in _BEHIND_THE_STATUS:
            failure = _bad_status(seen, story) or failure
        if seen.cut:
            warnings.append(Warn.BODY_CUT_AT_CAP)
        if failure is None and story.spec.alert_condition in TEXT_CONDITIONS:
            failure, matched = _text(seen, story)
    days = story.spec.ssl_alert_days
    if leaf and days is not None and days_left(leaf.not_after, story.checked_at) <= days:
        warnings.append(Warn.TLS_EXPIRING)
    verdict, failure = verdict_of(failure, story.spec, response_ms)
    words = tuple(str(word) for word in warnings)
    return Judged(verdict, failure, words, matched, leaf, leaf_host)


def _leaf(story: Story) -> tuple[Certificate | None, str | None]:
    """The server's certificate that ends first, of all hops, and whose it is: without that of a
    host that only redirects, visitors do not get to the page either.
    """
    found = [
        (leaf, hop.target.ascii_host)
        for hop in reversed(story.hops)  # of equals the last: its chain is in the evidence
        if hop.seen is not None and hop.seen.certificates
        if (leaf := read_certificate(hop.seen.certificates[0])) is not None
    ]
    return min(found, key=lambda one: one[0].not_after, default=(None, None))


def _bad_status(seen: Seen, story: Story) -> Failure | None:
    """A status that is not accepted; it outranks what went wrong in the body behind it."""
    if not seen.complete or not seen.status:
        return None
    if is_accepted(seen.status, story.spec.accepted_statuses):
        return None
    return Failure(
        f"{Cause.HTTP_STATUS}:{seen.status}",
        f"The server answered {reason(seen.status)}; accepted are {story.spec.accepted_statuses}.",
    )


def reason(status: int) -> str:
    """``503 Service Unavailable``."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _text(seen: Seen, story: Story) -> tuple[Failure | None, str | None]:
    lookup = story.spec.alert_text_lookup or ""
    text = decode(seen.body, seen.header("content-type"))
    cause = judge_text(story.spec.alert_condition, lookup, text, seen.cut)
    shown = lookup if len(lookup) <= 80 else lookup[:79] + "…"
    failure = None
    if cause is not None:
        verb = "contains" if cause == Cause.TEXT_FOUND else "does not contain"
        failure = Failure(
            cause,
            f"The answer ({reason(seen.status)}, {len(seen.body)} bytes) {verb} "
            f"the text “{shown}”.",
        )
    return failure, excerpt(text, lookup, Redactor(story.spec)) if lookup else None


# --- one request ----------------------------------------------------------------------------------
# -----------------


def failure_on_wire(seen: Seen, trust: TrustStore, now: datetime) -> Failure | None:
    """What went wrong in one request; None when a whole answer came, whatever its status."""
    early = _our_own(seen)
    if early is not None:
        return early
    if seen.overflow or seen.code == _TOO_LARGE:
        return Failure(
            Cause.HEADERS_TOO_LARGE,
            f"The response headers are larger than {HEADERS_CAP_BYTES // 1024} KiB in all.",
        )
    if seen.undecodable is not None:
        return Failure(Cause.INVALID_HTTP, f"The body cannot be decoded: {seen.undecodable}.")
    named = _common_name_only(seen)
    if named is not None:
        return named
    if seen.complete and not seen.status:
        return Failure(
            Cause.INVALID_HTTP,
            f"The answer is not valid HTTP: it has no status "
            f"(it begins with {f'“{seen.status_line}”' if seen.status_line else 'an empty line'}).",
        )
    if seen.redirect or seen.cut:
        return None  # ended by us, with all that we wanted
    if seen.code == 0:
        return _whole(seen)
    if seen.code == pycurl.E_OPERATION_TIMEDOUT:
        return _timeout(seen)
    if seen.code == pycurl.E_COULDNT_CONNECT:
        return _connect(seen)
    if seen.code in _CERTIFICATE_CODES:
        return _certificate(seen, trust, now)
    if seen.code == pycurl.E_SSL_CONNECT_ERROR or _late_alert(seen):
        return _handshake(seen)
    return _exchange(seen)


def _our_own(seen: Seen) -> Failure | None:
    if seen.fault is not None:
        return Failure(Cause.CHECK_ERROR, f"The check itself failed: {type(seen.fault).__name__}.")
    if seen.vetoed is not None and seen.connect == 0:
        return Failure(Cause.BLOCKED_BY_POLICY, seen.vetoed.sentence)
    if seen.code in _OUR_CODES:
        return Failure(
            Cause.CHECK_ERROR,
            f"The check itself failed: {seen.words or f'curl error {seen.code}'}.",
        )
    return None


def heard(seen: Seen) -> bool:
    """Whether any byte came back: headers, a certificate, a TLS alert, or something that is no HTTP
    at all.
    """
    if seen.lines or seen.certificates or seen.status:
        return True
    if seen.code in (pycurl.E_SSL_CONNECT_ERROR, pycurl.E_RECV_ERROR):
        return _openssl_reason(seen.words) not in (0, _UNEXPECTED_EOF)
    return seen.code in _GARBAGE_CODES


def is_spoilt(seen: Seen) -> bool:
    """Whether an answer, such as a redirect, came from a server that curl trusts but we do not."""
    return _common_name_only(seen) is not None


def _common_name_only(seen: Seen) -> Failure | None:
    """curl takes a common name where no alternative name is; browsers have not for years
    (decisions.md 10).
    """
    if not seen.request.verify_tls or not seen.certificates or seen.code in _CERTIFICATE_CODES:
        return None
    leaf = read_certificate(seen.certificates[0])
    host = seen.request.target.ascii_host
    return None if leaf is None or fits_host(leaf, host) else _failure(wrong_host(leaf, host))


def _failure(judgement: Judgement) -> Failure:
    return Failure(judgement.cause, judgement.sentence)


def _whole(seen: Seen) -> Failure | None:
    if not seen.complete:
        return Failure(
            Cause.EMPTY_RESPONSE,
            f"{_server(seen)} closed the connection before the headers were complete.",
        )
    if not seen.coding_whole:
        return Failure(
            Cause.BODY_TRUNCATED,
            f"The compressed body ends before its end, after {len(seen.body)} decoded bytes.",
        )
    return None


def _timeout(seen: Seen) -> Failure:
    after = f"within the limit of {seen.request.limit:g} s"
    if seen.connect == 0:
        tried = ", ".join(seen.request.addresses[:3])
        return Failure(
            Cause.TIMEOUT_CONNECT,
            f"No TCP connection to {tried} port {seen.request.target.port} {after}.",
        )
    connected = f"connected after {_ms(seen.connect)}"
    if seen.request.target.scheme == "https" and seen.tls == 0:
        return Failure(
            Cause.TIMEOUT_TLS,
            f"The TLS handshake{_where(seen)} was not complete {after} ({connected}).",
        )
    if not seen.complete:
        begun = "the headers did not end" if seen.lines else "no answer came"
        return Failure(
            Cause.TIMEOUT_TTFB,
            f"The request was sent{_to(seen)}, but {begun} {after} ({connected}).",
        )
    return Failure(
        Cause.TIMEOUT_BODY,
        f"The body was not complete {after}: {len(seen.body)} bytes had come "
        f"(headers after {_ms(seen.first_byte)}).",
    )


def _connect(seen: Seen) -> Failure:
    place = f"{', '.join(seen.request.addresses[:3])} port {seen.request.target.port}"
    if seen.os_errno in RESET and seen.request.target.scheme == "https":
        return Failure(
            Cause.TLS_HANDSHAKE, f"The connection was reset by {place} before the TLS handshake."
        )
    return connect_failure(seen.os_errno, place, seen.total) or Failure(
        Cause.HOST_UNREACHABLE, f"The host cannot be reached at {place}: {seen.words}."
    )


def _certificate(seen: Seen, trust: TrustStore, now: datetime) -> Failure:
    chain = [one for pem in seen.certificates if (one := read_certificate(pem)) is not None]
    found = judge_chain(chain, seen.request.target.ascii_host, trust, now)
    if found is not None:
        return _failure(found)
    cause = _VERIFY_FAULTS.get(seen.verify_result, Cause.TLS_UNTRUSTED)
    return Failure(cause, f"The certificate cannot be verified: {_tidy(seen.words)}.")


def _openssl_reason(words: str) -> int:
    found = _OPENSSL_ERROR.search(words)
    return int(found[1], 16) & 0x7FFFFF if found else 0


def _late_alert(seen: Seen) -> bool:
    """In TLS 1.3 a server that wants a client certificate says so after our side of the handshake
    is done.
    """
    return (
        not seen.complete
        and not seen.lines
        and seen.code == pycurl.E_RECV_ERROR
        and (_openssl_reason(seen.words) >= _ALERT)
    )


def _handshake(seen: Seen) -> Failure:
    why = _openssl_reason(seen.words)
    if why in _PROTOCOL_REASONS:
        return Failure(
            Cause.TLS_PROTOCOL,
            f"{_server(seen)} speaks no TLS version that we speak (1.2 and 1.3): "
            f"{_tidy(seen.words)}.",
        )
    if why in _NOT_TLS_REASONS:
        return Failure(
            Cause.TLS_HANDSHAKE,
            f"The TLS handshake{_where(seen)} failed: what answers there is not TLS "
            f"({_tidy(seen.words)}).",
        )
    if why == _UNEXPECTED_EOF:
        return Failure(
            Cause.TLS_HANDSHAKE,
            f"The connection was closed during the TLS handshake{_where(seen)}.",
        )
    if seen.os_errno in RESET:
        return Failure(
            Cause.TLS_HANDSHAKE, f"The connection was reset during the TLS handshake{_where(seen)}."
        )
    return Failure(
        Cause.TLS_HANDSHAKE, f"The TLS handshake{_where(seen)} failed: {_tidy(seen.words)}."
    )


def _exchange(seen: Seen) -> Failure | None:
    """Faults between the request and the end of the body."""
    reset = seen.os_errno in RESET or "reset by peer" in seen.words
    closed = _openssl_reason(seen.words) == _UNEXPECTED_EOF
    if seen.complete and closed and not seen.delimited:
        return _whole(
            seen
        )  # ended without a TLS farewell, as many old servers do; browsers show the page
    if seen.complete and (reset or closed or seen.code == pycurl.E_PARTIAL_FILE):
        how = "reset" if reset else "closed"
        return Failure(
            Cause.BODY_TRUNCATED,
            f"The connection was {how} in the middle of the body, after {len(seen.body)} bytes "
            f"({_tidy(seen.words)}).",
        )
    if reset:
        return Failure(
            Cause.CONNECTION_RESET,
            f"{_server(seen)} reset the connection before the headers were complete.",
        )
    if closed or (seen.code == pycurl.E_GOT_NOTHING and seen.status != 101):
        return Failure(
            Cause.EMPTY_RESPONSE,
            f"{_server(seen)} closed the connection without an answer.",
        )
    if _TURNED_AWAY in seen.words:
        return Failure(
            Cause.INVALID_HTTP,
            f"{_server(seen)} takes HTTP/2 connections, but refused the request each time.",
        )
    return Failure(Cause.INVALID_HTTP, f"The answer is not valid HTTP: {_tidy(seen.words)}.")


def _where(seen: Seen) -> str:
    return f" with {_place(seen)}" if seen.ip else ""


def _to(seen: Seen) -> str:
    return f" to {_place(seen)}" if seen.ip else ""


def _server(seen: Seen) -> str:
    return f"The server at {_place(seen)}" if seen.ip else "The server"


def _place(seen: Seen) -> str:
    return f"{seen.ip} port {seen.request.target.port}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _tidy(words: str) -> str:
    """curl's and OpenSSL's words without their numbers."""
    words = re.sub(r"error:[0-9A-Fa-f]{8}:[^:]*::?", "", words)
    words = words.replace("TLS connect error: ", "").replace(
        "SSL certificate OpenSSL verify result: ", ""
    )
    words = re.sub(r" \(\d+\)$", "", words.strip())
    return words.rstrip(".") or "no details"
