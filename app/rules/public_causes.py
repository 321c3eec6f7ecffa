"""What the public reads of why a monitor was down: no address, no name, no internal text. Pure."""

from __future__ import annotations

from app.records import Cause

UNREACHABLE = "It could not be reached."
SLOW = "It did not answer in time."
SECURE = "No secure connection to it could be made."
WRONG = "It answered with an error."
CONTENT = "Its answer did not have the expected content."
OTHER = "It did not work as expected."

_FAMILIES = (
    ("timeout:", SLOW),
    ("dns_timeout", SLOW),
    ("dns_", "Its name could not be resolved."),
    ("tls_", SECURE),
    ("text_", CONTENT),
    ("redirect", WRONG),
)
_CODES: dict[str, str] = {
    Cause.CONNECTION_REFUSED: UNREACHABLE,
    Cause.CONNECTION_RESET: UNREACHABLE,
    Cause.HOST_UNREACHABLE: UNREACHABLE,
    Cause.HTTP_STATUS: WRONG,
    Cause.EMPTY_RESPONSE: WRONG,
    Cause.INVALID_HTTP: WRONG,
    Cause.HEADERS_TOO_LARGE: WRONG,
    Cause.BODY_TRUNCATED: WRONG,
    Cause.TOO_MANY_REDIRECTS: WRONG,
    Cause.SLOW_RESPONSE: "It answered slowly.",
}


def public_cause(code: str | None) -> str:
    """A sentence for a cause code; the same one for all that it does not know and for None."""
    for prefix, sentence in _FAMILIES:
        if code and code.startswith(prefix):
            return sentence
    return _CODES.get((code or "").partition(":")[0], OTHER)
