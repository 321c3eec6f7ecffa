"""What was wrong with TLS in one request: the handshake, or the certificate."""

from __future__ import annotations

from datetime import datetime

import pycurl

from app.checks.certificate import TrustStore, fits_host, judge_chain, read_certificate, wrong_host
from app.checks.http.exchange import Exchange
from app.checks.http.telling import failure, openssl_reason
from app.checks.outcome import RESET, Failure
from app.i18n import N_
from app.records import Cause

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
_NOT_TLS_REASONS = frozenset(
    {155, 156, 198, 252, 267}
)  # an HTTP answer, a wrong version number and the like
UNEXPECTED_EOF = 294
_NO_SECURE_RENEGOTIATION = 338

# OpenSSL's verify results, for a chain in which we find no fault ourselves.
_VERIFY_FAULTS = {
    9: Cause.TLS_NOT_YET_VALID,
    10: Cause.TLS_EXPIRED,
    18: Cause.TLS_SELF_SIGNED,
    20: Cause.TLS_UNTRUSTED,
    21: Cause.TLS_INCOMPLETE_CHAIN,
    62: Cause.TLS_HOSTNAME,
    64: Cause.TLS_HOSTNAME,
}

CERTIFICATE_CODES = frozenset({pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_ISSUER_ERROR})


def wrong_common_name(exchange: Exchange) -> Failure | None:
    """curl accepts a common name if there is no alternative name; browsers do not (decision
    10).
    """
    if (
        not exchange.request.verify_tls
        or not exchange.certificates
        or exchange.code in CERTIFICATE_CODES
    ):
        return None
    leaf = read_certificate(exchange.certificates[0])
    host = exchange.request.target.ascii_host
    return None if leaf is None or fits_host(leaf, host) else wrong_host(leaf, host)


def certificate_failure(exchange: Exchange, trust: TrustStore, now: datetime) -> Failure:
    chain = [
        certificate
        for pem in exchange.certificates
        if (certificate := read_certificate(pem)) is not None
    ]
    fault = judge_chain(chain, exchange.request.target.ascii_host, trust, now)
    if fault is not None:
        return fault
    cause = _VERIFY_FAULTS.get(exchange.verify_result, Cause.TLS_UNTRUSTED)
    return failure(exchange, cause, N_("The certificate cannot be verified: %(error)s."))


def is_late_alert(exchange: Exchange) -> bool:
    """In TLS 1.3 a server that wants a client certificate says so after our side of the handshake
    is done.
    """
    return (
        not exchange.complete
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
