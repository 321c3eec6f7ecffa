"""The failure of one request, by what happened on the wire (decision 10)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pycurl

from app.checks.certificate import TrustStore, fits_host, judge_chain, read_certificate, wrong_host
from app.checks.curl.exchange import Exchange
from app.checks.outcome import RESET, Failure, connect_failure
from app.i18n import N_, _
from app.records import HEADERS_CAP_BYTES, Cause

_WEIRD_SERVER_REPLY = 8  # pycurl has it only under the name of an FTP error
_TOO_LARGE = 100  # pycurl does not have it
# curl's message when an HTTP/2 server refuses the stream (GOAWAY, REFUSED_STREAM), on each of the
# new connections that curl tries too.
_TURNED_AWAY = "tried 5 times before giving up"
# curl says "HTTP/2 stream 1 reset by curl (error 0xb ENHANCE_YOUR_CALM)" of what the server sent.
_H2_REFUSAL = re.compile("ENHANCE_YOUR_CALM|INADEQUATE_SECURITY|HTTP_1_1_REQUIRED|REFUSED_STREAM")

# The server sent bytes, but not HTTP.
_GARBAGE_CODES = frozenset({pycurl.E_UNSUPPORTED_PROTOCOL, _WEIRD_SERVER_REPLY, _TOO_LARGE})
_OUR_CODES = frozenset({
    pycurl.E_FAILED_INIT, pycurl.E_URL_MALFORMAT, pycurl.E_COULDNT_RESOLVE_HOST,
    pycurl.E_OUT_OF_MEMORY, pycurl.E_BAD_FUNCTION_ARGUMENT, pycurl.E_SSL_CACERT_BADFILE,
    pycurl.E_SSL_ENGINE_NOTFOUND, pycurl.E_SSL_ENGINE_SETFAILED,
})  # fmt: skip


def failure_on_wire(exchange: Exchange, trust: TrustStore, now: datetime) -> Failure | None:
    """The failure of one request; None if a whole answer arrived, whatever its status, or as much
    of it as is needed.
    """
    own_fault = _own_fault(exchange)
    if own_fault is not None:
        return own_fault
    if exchange.overflow or exchange.code == _TOO_LARGE:
        sentence = N_("The response headers are larger than %(most)s KiB in all.")
        return failure(exchange, Cause.HEADERS_TOO_LARGE, sentence, most=HEADERS_CAP_BYTES // 1024)
    if exchange.undecodable is not None:
        sentence = N_("The body cannot be decoded: %(why)s.")
        return failure(exchange, Cause.INVALID_HTTP, sentence, why=exchange.undecodable)
    wrong_name = wrong_common_name(exchange)
    if wrong_name is not None:
        return wrong_name
    if exchange.has_headers and not exchange.status:
        sentence = N_("The answer is not valid HTTP: it has no status (it begins with %(begin)s).")
        begin = f"“{exchange.status_line}”" if exchange.status_line else _("an empty line")
        return failure(exchange, Cause.INVALID_HTTP, sentence, begin=begin)
    if exchange.stopped:
        return None
    if exchange.code == 0:
        return _if_incomplete(exchange)
    if exchange.code == pycurl.E_OPERATION_TIMEDOUT:
        return _timeout(exchange)
    if exchange.code == pycurl.E_COULDNT_CONNECT:
        return _connect(exchange)
    if exchange.code in CERTIFICATE_CODES:
        return certificate_failure(exchange, trust, now)
    if exchange.code == pycurl.E_SSL_CONNECT_ERROR or is_late_alert(exchange):
        return handshake_failure(exchange)
    return _after_connecting(exchange)


def handshake(exchange: Exchange, trust: TrustStore, now: datetime) -> Failure | None:
    """The failure of a request that was a handshake alone."""
    own_fault = _own_fault(exchange) or wrong_common_name(exchange)
    if own_fault is not None or exchange.code == 0:
        return own_fault
    if exchange.code == pycurl.E_OPERATION_TIMEDOUT:
        return _timeout(exchange)
    if exchange.code in CERTIFICATE_CODES:
        return certificate_failure(exchange, trust, now)
    return handshake_failure(exchange)


def _own_fault(exchange: Exchange) -> Failure | None:
    """The failure of a request that the policy or a fault of ours prevented; None for any other."""
    if exchange.refused is not None and exchange.connect == 0 and exchange.fault is None:
        return Failure(Cause.BLOCKED_BY_POLICY, exchange.refused.sentence)
    if exchange.fault is None and exchange.code not in _OUR_CODES:
        return None
    fault = exchange.words or f"curl error {exchange.code}"
    if exchange.fault is not None:
        fault = type(exchange.fault).__name__
    return Failure(Cause.CHECK_ERROR, _("The check itself failed: %(fault)s.", fault=fault))


def anything_arrived(exchange: Exchange) -> bool:
    """Whether any byte arrived: headers, a certificate, a TLS alert, or bytes that are not HTTP."""
    if exchange.lines or exchange.certificates or exchange.status:
        return True
    if exchange.code in (pycurl.E_SSL_CONNECT_ERROR, pycurl.E_RECV_ERROR):
        return openssl_reason(exchange.words) not in (0, UNEXPECTED_EOF)
    return exchange.code in _GARBAGE_CODES


def is_untrusted(exchange: Exchange) -> bool:
    """Whether an answer, such as a redirect, came from a server that curl trusts but browsers do
    not.
    """
    return wrong_common_name(exchange) is not None


def _if_incomplete(exchange: Exchange) -> Failure | None:
    if not exchange.has_headers:
        sentence = N_("%(server)s closed the connection before the headers were complete.")
        return failure(exchange, Cause.EMPTY_RESPONSE, sentence)
    if not exchange.coding_whole:
        sentence = N_("The compressed body ends before its end, after %(count)s decoded bytes.")
        return failure(exchange, Cause.BODY_TRUNCATED, sentence)
    return None


def _timeout(exchange: Exchange) -> Failure:
    if exchange.connect == 0:
        cause = Cause.TIMEOUT_CONNECT
        sentence = N_(
            "No TCP connection to %(tried)s port %(port)s within the limit of %(limit)s s."
        )
    elif exchange.request.target.scheme == "https" and exchange.tls == 0:
        cause = Cause.TIMEOUT_TLS
        sentence = N_(
            "The TLS handshake%(with_address)s was not complete within the limit of %(limit)s s"
            " (connected after %(connected)s)."
        )
    elif not exchange.has_headers:
        cause = Cause.TIMEOUT_TTFB
        sentence = (
            N_(
                "The request was sent%(to_address)s, but the headers did not end within the limit"
                " of %(limit)s s (connected after %(connected)s)."
            )
            if exchange.lines
            else N_(
                "The request was sent%(to_address)s, but no answer came within the limit of"
                " %(limit)s s (connected after %(connected)s)."
            )
        )
    else:
        cause = Cause.TIMEOUT_BODY
        sentence = N_(
            "The body was not complete within the limit of %(limit)s s: %(count)s bytes had come"
            " (headers after %(headers)s)."
        )
    return failure(exchange, cause, sentence)


def _connect(exchange: Exchange) -> Failure:
    target = exchange.request.target
    address = _(
        "%(host)s port %(port)s", host=", ".join(exchange.request.addresses[:3]), port=target.port
    )
    if exchange.os_errno in RESET and target.scheme == "https":
        sentence = N_("The connection was reset by %(address)s before the TLS handshake.")
        return failure(exchange, Cause.TLS_HANDSHAKE, sentence, address=address)
    return connect_failure(exchange.os_errno, address, exchange.total, exchange.words)


def _after_connecting(exchange: Exchange) -> Failure | None:
    """Faults from the request to the end of the body."""
    reset = exchange.os_errno in RESET or "reset by peer" in exchange.words
    closed = openssl_reason(exchange.words) == UNEXPECTED_EOF
    if exchange.has_headers and closed and not exchange.delimited:
        # Closed without TLS close_notify, as by many old servers; browsers show the page.
        return _if_incomplete(exchange)
    cause = Cause.INVALID_HTTP
    if exchange.has_headers and (reset or closed or exchange.code == pycurl.E_PARTIAL_FILE):
        cause = Cause.BODY_TRUNCATED
        sentence = (
            N_(
                "The connection was reset in the middle of the body, after %(count)s bytes"
                " (%(error)s)."
            )
            if reset
            else N_(
                "The connection was closed in the middle of the body, after %(count)s bytes"
                " (%(error)s)."
            )
        )
    elif reset:
        cause = Cause.CONNECTION_RESET
        sentence = N_("%(server)s reset the connection before the headers were complete.")
    elif closed or (exchange.code == pycurl.E_GOT_NOTHING and exchange.status != 101):
        cause = Cause.EMPTY_RESPONSE
        sentence = N_("%(server)s closed the connection without an answer.")
    elif _TURNED_AWAY in exchange.words:
        sentence = N_("%(server)s takes HTTP/2 connections, but refused the request each time.")
    elif refusal := _H2_REFUSAL.search(exchange.words):
        sentence = N_("%(server)s refused the request over HTTP/2 with the error %(code)s.")
        return failure(exchange, cause, sentence, code=refusal[0])
    else:
        sentence = N_("The answer is not valid HTTP: %(error)s.")
    return failure(exchange, cause, sentence)


# --- Sentences, and the messages of curl and OpenSSL

_OPENSSL_ERROR = re.compile(r"error:([0-9A-Fa-f]{8})")


def failure(exchange: Exchange, cause: str, sentence: str, **values: Any) -> Failure:
    """A failure with its sentence, which may use the names in ``shared`` below and in
    ``values``.
    """
    target = exchange.request.target
    address = _("%(host)s port %(port)s", host=exchange.ip, port=target.port)
    shared = {
        "server": _("The server at %(address)s", address=address)
        if exchange.ip
        else _("The server"),
        "with_address": " " + _("with %(address)s", address=address) if exchange.ip else "",
        "to_address": " " + _("to %(address)s", address=address) if exchange.ip else "",
        "tried": ", ".join(exchange.request.addresses[:3]),
        "port": target.port,
        "limit": f"{exchange.request.limit:g}",
        "connected": _ms(exchange.connect),
        "headers": _ms(exchange.first_byte),
        "count": len(exchange.body),
        "error": tidy(exchange.words),
    }
    return Failure(cause, _(sentence, **shared | values))


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def openssl_reason(words: str) -> int:
    """The low 23 bits of OpenSSL's error code; 0 if the message has none."""
    match = _OPENSSL_ERROR.search(words)
    return int(match[1], 16) & 0x7FFFFF if match else 0


def tidy(words: str) -> str:
    """curl's and OpenSSL's message without its numbers."""
    words = re.sub(r"error:[0-9A-Fa-f]{8}:[^:]*::?", "", words)
    words = words.replace("TLS connect error: ", "").replace(
        "SSL certificate OpenSSL verify result: ", ""
    )
    words = re.sub(r" \(\d+\)$", "", words.strip())
    return words.rstrip(".") or _("no details")


# --- TLS: the handshake, or the certificate

_ALERT = 1000  # OpenSSL's reasons from here on are alerts that the server sent
# Reasons that mean: no common version.
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
# An HTTP answer, a wrong version number and the like.
_NOT_TLS_REASONS = frozenset({155, 156, 198, 252, 267})
UNEXPECTED_EOF = 294
_NO_SECURE_RENEGOTIATION = 338

# The cause codes of OpenSSL's verify results, for a chain in which ``judge_chain`` finds no fault.
_VERIFY_FAULTS = {
    9: Cause.TLS_NOT_YET_VALID, 10: Cause.TLS_EXPIRED, 18: Cause.TLS_SELF_SIGNED,
    20: Cause.TLS_UNTRUSTED, 21: Cause.TLS_INCOMPLETE_CHAIN, 62: Cause.TLS_HOSTNAME,
    64: Cause.TLS_HOSTNAME,
}  # fmt: skip

CERTIFICATE_CODES = frozenset({pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_ISSUER_ERROR})


def wrong_common_name(exchange: Exchange) -> Failure | None:
    """The failure of a certificate without a fitting alternative name. curl then accepts the common
    name; browsers do not (decision 10).
    """
    is_verified = exchange.request.verify_tls and exchange.code not in CERTIFICATE_CODES
    if not is_verified or not exchange.certificates:
        return None
    leaf = read_certificate(exchange.certificates[0])
    host = exchange.request.target.ascii_host
    return None if leaf is None or fits_host(leaf, host) else wrong_host(leaf, host)


def certificate_failure(exchange: Exchange, trust: TrustStore, now: datetime) -> Failure:
    chain = [read for pem in exchange.certificates if (read := read_certificate(pem))]
    fault = judge_chain(chain, exchange.request.target.ascii_host, trust, now)
    if fault is not None:
        return fault
    cause = _VERIFY_FAULTS.get(exchange.verify_result, Cause.TLS_UNTRUSTED)
    return failure(exchange, cause, N_("The certificate cannot be verified: %(error)s."))


def is_late_alert(exchange: Exchange) -> bool:
    """Whether a TLS alert came after our side of the handshake, as from a TLS 1.3 server that wants
    a client certificate.
    """
    return (
        not exchange.has_headers
        and not exchange.lines
        and exchange.code == pycurl.E_RECV_ERROR
        and (openssl_reason(exchange.words) >= _ALERT)
    )


def handshake_failure(exchange: Exchange) -> Failure:
    why = openssl_reason(exchange.words)
    cause = Cause.TLS_PROTOCOL if why in _PROTOCOL_REASONS else Cause.TLS_HANDSHAKE
    if why in _PROTOCOL_REASONS:
        sentence = (
            N_("%(server)s does not support TLS 1.2 or 1.3: %(error)s.")
            if exchange.request.verify_tls
            else N_("%(server)s does not support TLS 1.0 to 1.3: %(error)s.")
        )
    elif why == _NO_SECURE_RENEGOTIATION and exchange.request.verify_tls:
        sentence = N_(
            "%(server)s does not support secure renegotiation (RFC 5746), so the connection is"
            " not safe. It can be checked only without verifying the certificate."
        )
    elif why in _NOT_TLS_REASONS:
        sentence = N_(
            "The TLS handshake%(with_address)s failed: what answers there is not TLS (%(error)s)."
        )
    elif why == UNEXPECTED_EOF:
        sentence = N_("The connection was closed during the TLS handshake%(with_address)s.")
    elif exchange.os_errno in RESET:
        sentence = N_("The connection was reset during the TLS handshake%(with_address)s.")
    else:
        sentence = N_("The TLS handshake%(with_address)s failed: %(error)s.")
    return failure(exchange, cause, sentence)
