"""What a check saw, as JSON: for the incident's page, and the last good answer beside it.

    {"url", "request": {"method", "hops"}, "status_line", "headers": [[name, value]],
     "body", "body_bytes" (read, decoded), "body_cut" (this is only its beginning),
     "resolved": [addresses], "refused": [addresses], "ip", "http_version",
     "tls": [{"subject", "issuer", "not_before", "not_after", "sha256", "names"}],
     "timings": {"dns", "connect", "tls", "ttfb", "download"},
     "redirects": [{"status_line" (that sent us on), "url" (where to), "ip"}],
     "curl": {"code", "words"}}

Secrets never get in: Set-Cookie values, headers that carry tokens, and every echo of the monitor's
own password, secret headers and request body, also in base64, percent-encoded, JSON or HTML
spelling.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

from app.checks.certificate import read_certificate
from app.checks.story import Hop, Story
from app.checks.text import charset
from app.records import EVIDENCE_BODY_BYTES, MASK, CheckSpec, Pair, Timings

_SECRET_NAME = re.compile(
    r"auth|cookie|token|secret|passw|session|signature|credential|api-?key|access-?key", re.I
)
# Own headers whose values are no secrets: masking "text/html" wherever it stands would hide the
# evidence itself.
_OPEN_HEADERS = frozenset(
    [
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "connection",
        "content-language",
        "content-type",
        "date",
        "dnt",
        "expect",
        "from",
        "host",
        "if-match",
        "if-modified-since",
        "if-none-match",
        "origin",
        "pragma",
        "priority",
        "range",
        "referer",
        "te",
        "upgrade",
        "user-agent",
        "via",
        "x-requested-with",
    ]
)
_SHORTEST_SECRET = 4  # characters; masking each "a" of a page would leave nothing to read
_LONGEST_LOOK = (
    2 * EVIDENCE_BODY_BYTES
)  # bytes read, so that a secret across the 4 KiB edge is masked too
# The user and password of a URL: whose it is, the target alone knows.
_USER_INFO = re.compile(r"""(?<=//)[^/?#@\s"'<>]{1,500}@""")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_MAX_HEADER_LINES = 100
_MAX_BODY_SECRETS = 200
_MAX_HEADER_VALUE = 2048


class Redactor:
    """Masks one monitor's secrets wherever they turn up."""

    def __init__(self, spec: CheckSpec) -> None:
        self._hidden = _hidden(spec.request_headers, spec.auth, spec.request_body)

    def text(self, text: str, *, cut: bool = False) -> str:
        """``cut``: the text goes on, so what begins a secret at its end is masked too."""
        # One by one, not by a pattern: of twenty long headers that takes a second to build.
        spans = [span for secret in self._hidden for span in _spans(text, secret, cut)]
        shown, end = [], 0
        for first, last in sorted(spans):
            if first >= end:  # one within another, or across its end, needs no mask of its own
                shown += [text[end:first], MASK]
            end = max(end, last)
        return _USER_INFO.sub(f"{MASK}@", "".join([*shown, text[end:]]))

    def whole(self, text: str, first: int, last: int) -> tuple[int, int]:
        """A piece of ``text``, widened where a secret lies across one of its edges: of a half one
        nothing would be masked.
        """
        start, end = first, last
        for secret in self._hidden:
            left = max(0, first - len(secret))
            for begin, stop in _spans(text[left : last + len(secret)], secret, False):
                if left + begin < first < left + stop:
                    start = min(start, left + begin)
                if left + begin < last < left + stop:
                    end = max(end, left + stop)
        return start, end

    def header(self, name: str, value: str) -> str:
        lowered = name.lower()
        if lowered == "set-cookie":
            cookie, semicolon, attributes = value.partition(";")
            return f"{cookie.partition('=')[0]}={MASK}{semicolon}{self.text(attributes)}"
        if _SECRET_NAME.search(lowered) and lowered != "www-authenticate":
            return MASK
        return self.text(value)


def _spans(text: str, secret: str, cut: bool) -> Iterable[tuple[int, int]]:
    """Where ``secret`` stands in ``text``, and with ``cut`` where it begins and the text ends."""
    first = text.find(secret)
    while first >= 0:
        yield first, first + len(secret)
        first = text.find(secret, first + len(secret))
    if cut:
        beginning = secret[:_SHORTEST_SECRET]
        first = text.find(beginning, max(0, len(text) - len(secret)))
        while first >= 0 and not secret.startswith(text[first:]):
            first = text.find(beginning, first + 1)
        if first >= 0:
            yield first, len(text)


@lru_cache(maxsize=256)
def _hidden(
    headers: tuple[Pair, ...], auth: tuple[str, str] | None, body: str | None
) -> tuple[str, ...]:
    """Every spelling of every secret, the longest first: a short one may be part of it."""
    found = {spelling for secret in _secrets(headers, auth) for spelling in _spellings(secret)}
    found.update(_body_secrets(body or ""))
    return tuple(
        sorted((one for one in found if len(one) >= _SHORTEST_SECRET), key=len, reverse=True)
    )


def _secrets(headers: tuple[Pair, ...], auth: tuple[str, str] | None) -> Iterable[str]:
    for pair in headers:
        if pair.key.lower() not in _OPEN_HEADERS:
            yield pair.value
            yield from pair.value.split()[1:]  # the token behind "Bearer"
            if pair.key.lower() == "cookie":
                yield from (cookie.partition("=")[2].strip() for cookie in pair.value.split(";"))
    if auth is not None:
        user, password = auth
        yield password
        yield _base64(f"{user}:{password}")


def _body_secrets(body: str) -> Iterable[str]:
    """The request body as a whole, and what stands in it: values of a form or of JSON."""
    yield from _spellings(body)
    yield from re.findall(r"""[^\s&=,:;{}\[\]"']{8,}""", body)[:_MAX_BODY_SECRETS]


def _spellings(secret: str) -> Iterable[str]:
    yield secret
    yield quote(secret, safe="", errors="replace")
    yield quote_plus(secret, errors="replace")
    yield html.escape(secret)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield secret.encode("utf-8", "replace").decode("latin-1")  # as header bytes are read
    yield _base64(secret)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode()


def make_evidence(story: Story, timings: Timings) -> dict[str, Any]:
    """The evidence of a check, ready for ``json.dumps``."""
    redactor = Redactor(story.spec)
    evidence: dict[str, Any] = {
        "url": redactor.text(story.spec.url),
        "request": {"method": str(story.spec.request_method), "hops": len(story.hops)},
        "timings": {
            "dns": timings.dns,
            "connect": timings.connect,
            "tls": timings.tls,
            "ttfb": timings.ttfb,
            "download": timings.download,
        },
        "redirects": [
            _redirect(before, hop, redactor)
            for before, hop in zip(story.hops, story.hops[1:], strict=False)
        ],
    }
    if story.last is not None:
        evidence.update(_last(story.last, redactor))
    return evidence


def _redirect(before: Hop, hop: Hop, redactor: Redactor) -> dict[str, Any]:
    """One step: the status line that sent us on, where to, and who answered there."""
    return {
        "status_line": _clean(redactor.text(before.seen.status_line)) if before.seen else None,
        "url": redactor.text(hop.target.url),
        "ip": hop.seen.ip if hop.seen else None,
    }


def _last(hop: Hop, redactor: Redactor) -> dict[str, Any]:
    found: dict[str, Any] = {
        "resolved": list(hop.resolved),
        "refused": [
            {"address": str(one.address), "network": str(one.network)} for one in hop.refusals
        ],
    }
    seen = hop.seen
    if seen is None:
        return found
    found.update(
        status_line=_clean(redactor.text(seen.status_line)) or None,
        headers=[
            [_clean(name), _clean(redactor.header(name, value))[:_MAX_HEADER_VALUE]]
            for name, value in seen.headers[:_MAX_HEADER_LINES]
        ],
        body=_body(seen.body, seen.header("content-type"), redactor),
        body_bytes=len(seen.body),
        body_cut=seen.cut or len(seen.body) > EVIDENCE_BODY_BYTES,
        ip=seen.ip,
        http_version=seen.http_version,
        tls=[_certificate(pem) for pem in seen.certificates],
        curl={"code": seen.code, "words": redactor.text(seen.words)}
        if seen.code and not seen.redirect
        else None,
    )
    return found


def _body(body: bytes, content_type: str | None, redactor: Redactor) -> str:
    """The first 4 KiB as text, without control characters (a NUL breaks databases, an escape breaks
    terminals).
    """
    name, mark = charset(body, content_type)
    text = body[mark:_LONGEST_LOOK].decode(name, errors="replace")
    if len(body) > _LONGEST_LOOK:
        # Masks are short: after many of them the edge of the look is within the 4 KiB.
        text = redactor.text(text.rstrip("\ufffd"), cut=True)  # half a character hides a beginning
    else:
        text = redactor.text(text)
    kept = text.encode("utf-8", "replace")[:EVIDENCE_BODY_BYTES].decode("utf-8", "ignore")
    return _clean(kept) if len(body) > EVIDENCE_BODY_BYTES else _clean(text)


def _clean(text: str) -> str:
    return _CONTROL.sub("\ufffd", text)


def _certificate(pem: str) -> dict[str, Any]:
    one = read_certificate(pem)
    if one is None:
        return {"subject": None, "unreadable": True}
    return {
        "subject": _clean(one.subject),
        "issuer": _clean(one.issuer),
        "not_before": f"{one.not_before:%Y-%m-%dT%H:%M:%SZ}",
        "not_after": f"{one.not_after:%Y-%m-%dT%H:%M:%SZ}",
        "sha256": one.fingerprint,
        "names": [_clean(name) for name in (*one.names, *one.addresses)][:100],
    }
