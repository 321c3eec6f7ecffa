"""What went wrong in one request, by what happened on the wire (decision 10)."""

from __future__ import annotations

from datetime import datetime

import pycurl

from app.checks.certificate import TrustStore
from app.checks.http.exchange import Exchange
from app.checks.http.telling import failure, openssl_reason
from app.checks.http.tls_failures import (
    CERTIFICATE_CODES,
    UNEXPECTED_EOF,
    certificate_failure,
    handshake_failure,
    is_late_alert,
    wrong_common_name,
)
from app.checks.outcome import RESET, Failure, connect_failure
from app.i18n import N_, _
from app.records import HEADERS_CAP_BYTES, Cause

_WEIRD_SERVER_REPLY = 8  # pycurl has it only under the name of an FTP error
_TOO_LARGE = 100  # pycurl does not have it
# curl's message when an HTTP/2 server refuses the stream (GOAWAY, REFUSED_STREAM), on each of the
# new connections that curl tries too.
_TURNED_AWAY = "tried 5 times before giving up"

# The server sent bytes, but not HTTP.
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


def failure_on_wire(exchange: Exchange, trust: TrustStore, now: datetime) -> Failure | None:
    """What went wrong in one request; None if a whole answer arrived, whatever its status."""
    early = _our_own(exchange)
    if early is not None:
        return early
    if exchange.overflow or exchange.code == _TOO_LARGE:
        sentence = N_("The response headers are larger than %(most)s KiB in all.")
        return failure(exchange, Cause.HEADERS_TOO_LARGE, sentence, most=HEADERS_CAP_BYTES // 1024)
    if exchange.undecodable is not None:
        sentence = N_("The body cannot be decoded: %(why)s.")
        return failure(exchange, Cause.INVALID_HTTP, sentence, why=exchange.undecodable)
    named = wrong_common_name(exchange)
    if named is not None:
        return named
    if exchange.complete and not exchange.status:
        sentence = N_("The answer is not valid HTTP: it has no status (it begins with %(begin)s).")
        begin = f"“{exchange.status_line}”" if exchange.status_line else _("an empty line")
        return failure(exchange, Cause.INVALID_HTTP, sentence, begin=begin)
    if exchange.stopped:
        return None
    if exchange.code == 0:
        return _whole(exchange)
    if exchange.code == pycurl.E_OPERATION_TIMEDOUT:
        return _timeout(exchange)
    if exchange.code == pycurl.E_COULDNT_CONNECT:
        return _connect(exchange)
    if exchange.code in CERTIFICATE_CODES:
        return certificate_failure(exchange, trust, now)
    if exchange.code == pycurl.E_SSL_CONNECT_ERROR or is_late_alert(exchange):
        return handshake_failure(exchange)
    return _exchange(exchange)


def _our_own(exchange: Exchange) -> Failure | None:
    if exchange.vetoed is not None and exchange.connect == 0 and exchange.fault is None:
        return Failure(Cause.BLOCKED_BY_POLICY, exchange.vetoed.sentence)
    if exchange.fault is None and exchange.code not in _OUR_CODES:
        return None
    fault = (
        type(exchange.fault).__name__
        if exchange.fault
        else exchange.words or f"curl error {exchange.code}"
    )
    return Failure(Cause.CHECK_ERROR, _("The check itself failed: %(fault)s.", fault=fault))


def anything_arrived(exchange: Exchange) -> bool:
    """Whether any byte arrived: headers, a certificate, a TLS alert, or other than HTTP."""
    if exchange.lines or exchange.certificates or exchange.status:
        return True
    if exchange.code in (pycurl.E_SSL_CONNECT_ERROR, pycurl.E_RECV_ERROR):
        return openssl_reason(exchange.words) not in (0, UNEXPECTED_EOF)
    return exchange.code in _GARBAGE_CODES


def is_untrusted(exchange: Exchange) -> bool:
    """Whether an answer, such as a redirect, came from a server that curl trusts but we do not."""
    return wrong_common_name(exchange) is not None


def _whole(exchange: Exchange) -> Failure | None:
    if not exchange.complete:
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
    elif not exchange.complete:
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


def _exchange(exchange: Exchange) -> Failure | None:
    """Faults from the request to the end of the body."""
    reset = exchange.os_errno in RESET or "reset by peer" in exchange.words
    closed = openssl_reason(exchange.words) == UNEXPECTED_EOF
    if exchange.complete and closed and not exchange.delimited:
        # Closed without TLS close_notify, as by many old servers; browsers show the page.
        return _whole(exchange)
    cause = Cause.INVALID_HTTP
    if exchange.complete and (reset or closed or exchange.code == pycurl.E_PARTIAL_FILE):
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
    else:
        sentence = N_("The answer is not valid HTTP: %(error)s.")
    return failure(exchange, cause, sentence)
