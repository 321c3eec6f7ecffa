"""Parts of sentences about a request: the server's name, and messages of curl and OpenSSL."""

from __future__ import annotations

import re

from app.checks.http.exchange import Seen
from app.i18n import _

_OPENSSL_ERROR = re.compile(r"error:([0-9A-Fa-f]{8})")


def with_place(seen: Seen) -> str:
    return " " + _("with %(place)s", place=place(seen)) if seen.ip else ""


def to_place(seen: Seen) -> str:
    return " " + _("to %(place)s", place=place(seen)) if seen.ip else ""


def server(seen: Seen) -> str:
    return _("The server at %(place)s", place=place(seen)) if seen.ip else _("The server")


def place(seen: Seen) -> str:
    return _("%(host)s port %(port)s", host=seen.ip, port=seen.request.target.port)


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def openssl_reason(words: str) -> int:
    """The low 23 bits of OpenSSL's error code; 0 if the message has none."""
    found = _OPENSSL_ERROR.search(words)
    return int(found[1], 16) & 0x7FFFFF if found else 0


def tidy(words: str) -> str:
    """curl's and OpenSSL's message without its numbers."""
    words = re.sub(r"error:[0-9A-Fa-f]{8}:[^:]*::?", "", words)
    words = words.replace("TLS connect error: ", "").replace(
        "SSL certificate OpenSSL verify result: ", ""
    )
    words = re.sub(r" \(\d+\)$", "", words.strip())
    return words.rstrip(".") or _("no details")
