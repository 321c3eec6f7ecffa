"""What went wrong in one request, by what happened on the wire (decisions.md 10)."""

from __future__ import annotations

from datetime import datetime

import pycurl

from app.checks.certificate import TrustStore
from app.checks.http.exchange import Seen
from app.checks.http.telling import ms, openssl_reason, server, tidy, to_place, with_place
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


def failure_on_wire(seen: Seen, trust: TrustStore, now: datetime) -> Failure | None:
    """What went wrong in one request; None if a whole answer arrived, whatever its status."""
    early = _our_own(seen)
    if early is not None:
        return early
    if seen.overflow or seen.code == _TOO_LARGE:
        return Failure(
            Cause.HEADERS_TOO_LARGE,
            _(
                "The response headers are larger than %(most)s KiB in all.",
                most=HEADERS_CAP_BYTES // 1024,
            ),
        )
    if seen.undecodable is not None:
        return Failure(
            Cause.INVALID_HTTP,
            _("The body cannot be decoded: %(why)s.", why=seen.undecodable),
        )
    named = wrong_common_name(seen)
    if named is not None:
        return named
    if seen.complete and not seen.status:
        return Failure(
            Cause.INVALID_HTTP,
            _(
                "The answer is not valid HTTP: it has no status (it begins with %(begin)s).",
                begin=f"“{seen.status_line}”" if seen.status_line else _("an empty line"),
            ),
        )
    if seen.stopped:
        return None
    if seen.code == 0:
        return _whole(seen)
    if seen.code == pycurl.E_OPERATION_TIMEDOUT:
        return _timeout(seen)
    if seen.code == pycurl.E_COULDNT_CONNECT:
        return _connect(seen)
    if seen.code in CERTIFICATE_CODES:
        return certificate_failure(seen, trust, now)
    if seen.code == pycurl.E_SSL_CONNECT_ERROR or is_late_alert(seen):
        return handshake_failure(seen)
    return _exchange(seen)


def _our_own(seen: Seen) -> Failure | None:
    if seen.fault is not None:
        return Failure(
            Cause.CHECK_ERROR,
            _("The check itself failed: %(fault)s.", fault=type(seen.fault).__name__),
        )
    if seen.vetoed is not None and seen.connect == 0:
        return Failure(Cause.BLOCKED_BY_POLICY, seen.vetoed.sentence)
    if seen.code in _OUR_CODES:
        return Failure(
            Cause.CHECK_ERROR,
            _("The check itself failed: %(fault)s.", fault=seen.words or f"curl error {seen.code}"),
        )
    return None


def anything_arrived(seen: Seen) -> bool:
    """Whether any byte arrived: headers, a certificate, a TLS alert, or other than HTTP."""
    if seen.lines or seen.certificates or seen.status:
        return True
    if seen.code in (pycurl.E_SSL_CONNECT_ERROR, pycurl.E_RECV_ERROR):
        return openssl_reason(seen.words) not in (0, UNEXPECTED_EOF)
    return seen.code in _GARBAGE_CODES


def is_untrusted(seen: Seen) -> bool:
    """Whether an answer, such as a redirect, came from a server that curl trusts but we do not."""
    return wrong_common_name(seen) is not None


def _whole(seen: Seen) -> Failure | None:
    if not seen.complete:
        return Failure(
            Cause.EMPTY_RESPONSE,
            _(
                "%(server)s closed the connection before the headers were complete.",
                server=server(seen),
            ),
        )
    if not seen.coding_whole:
        return Failure(
            Cause.BODY_TRUNCATED,
            _(
                "The compressed body ends before its end, after %(count)s decoded bytes.",
                count=len(seen.body),
            ),
        )
    return None


def _timeout(seen: Seen) -> Failure:
    limit = f"{seen.request.limit:g}"
    if seen.connect == 0:
        tried = ", ".join(seen.request.addresses[:3])
        return Failure(
            Cause.TIMEOUT_CONNECT,
            _(
                "No TCP connection to %(tried)s port %(port)s within the limit of %(limit)s s.",
                tried=tried,
                port=seen.request.target.port,
                limit=limit,
            ),
        )
    connected = ms(seen.connect)
    if seen.request.target.scheme == "https" and seen.tls == 0:
        return Failure(
            Cause.TIMEOUT_TLS,
            _(
                "The TLS handshake%(with_place)s was not complete within the limit of %(limit)s s"
                " (connected after %(connected)s).",
                with_place=with_place(seen),
                limit=limit,
                connected=connected,
            ),
        )
    if not seen.complete:
        sentence = (
            N_(
                "The request was sent%(to_place)s, but the headers did not end within the limit of"
                " %(limit)s s (connected after %(connected)s)."
            )
            if seen.lines
            else N_(
                "The request was sent%(to_place)s, but no answer came within the limit of"
                " %(limit)s s (connected after %(connected)s)."
            )
        )
        return Failure(
            Cause.TIMEOUT_TTFB,
            _(sentence, to_place=to_place(seen), limit=limit, connected=connected),
        )
    return Failure(
        Cause.TIMEOUT_BODY,
        _(
            "The body was not complete within the limit of %(limit)s s: %(count)s bytes had come"
            " (headers after %(headers)s).",
            count=len(seen.body),
            limit=limit,
            headers=ms(seen.first_byte),
        ),
    )


def _connect(seen: Seen) -> Failure:
    place = _(
        "%(host)s port %(port)s",
        host=", ".join(seen.request.addresses[:3]),
        port=seen.request.target.port,
    )
    if seen.os_errno in RESET and seen.request.target.scheme == "https":
        return Failure(
            Cause.TLS_HANDSHAKE,
            _("The connection was reset by %(place)s before the TLS handshake.", place=place),
        )
    return connect_failure(seen.os_errno, place, seen.total) or Failure(
        Cause.HOST_UNREACHABLE,
        _("The host cannot be reached at %(place)s: %(error)s.", place=place, error=seen.words),
    )


def _exchange(seen: Seen) -> Failure | None:
    """Faults from the request to the end of the body."""
    reset = seen.os_errno in RESET or "reset by peer" in seen.words
    closed = openssl_reason(seen.words) == UNEXPECTED_EOF
    if seen.complete and closed and not seen.delimited:
        return _whole(
            seen
        )  # closed without TLS close_notify, as by many old servers; browsers show the page
    if seen.complete and (reset or closed or seen.code == pycurl.E_PARTIAL_FILE):
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
        return Failure(
            Cause.BODY_TRUNCATED, _(sentence, count=len(seen.body), error=tidy(seen.words))
        )
    if reset:
        return Failure(
            Cause.CONNECTION_RESET,
            _(
                "%(server)s reset the connection before the headers were complete.",
                server=server(seen),
            ),
        )
    if closed or (seen.code == pycurl.E_GOT_NOTHING and seen.status != 101):
        return Failure(
            Cause.EMPTY_RESPONSE,
            _("%(server)s closed the connection without an answer.", server=server(seen)),
        )
    if _TURNED_AWAY in seen.words:
        return Failure(
            Cause.INVALID_HTTP,
            _(
                "%(server)s takes HTTP/2 connections, but refused the request each time.",
                server=server(seen),
            ),
        )
    return Failure(
        Cause.INVALID_HTTP,
        _("The answer is not valid HTTP: %(error)s.", error=tidy(seen.words)),
    )
