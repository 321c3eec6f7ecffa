"""Sentences about a request that failed, and what curl and OpenSSL say of it."""

from __future__ import annotations

import re
from typing import Any

from app.checks.http.exchange import Exchange
from app.checks.outcome import Failure
from app.i18n import _

_OPENSSL_ERROR = re.compile(r"error:([0-9A-Fa-f]{8})")


def failure(exchange: Exchange, cause: str, sentence: str, **values: Any) -> Failure:
    """A failure with its sentence, which may name any of the values below, and ``values``."""
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
