"""Mask a monitor's secrets wherever they appear in the evidence of a check.

Secrets are Set-Cookie values, headers that carry tokens, and every copy of the monitor's own
password, secret headers and request body, also in base64, percent-encoded, JSON or HTML spelling.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote, quote_plus

from app.records import MASK, SECRET_NAME, CheckSpec, Pair

# Request headers whose values are not secret: masking each "text/html" would make evidence useless.
_OPEN_HEADERS = frozenset({
    "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection",
    "content-language", "content-type", "date", "dnt", "expect", "from", "host", "if-match",
    "if-modified-since", "if-none-match", "origin", "pragma", "priority", "range", "referer", "te",
    "upgrade", "user-agent", "via", "x-requested-with",
})  # fmt: skip
_MIN_SECRET = 4  # characters; masking each "a" of a page would leave nothing to read
# The user and password in any URL, whoever they belong to. Up to the last @, because a password may
# contain one.
_USER_INFO = re.compile(r"""(?<=//)[^/?#\s"'<>]{1,2048}@""")
_MAX_BODY_SECRETS = 200


class Redactor:
    """Masks one monitor's secrets wherever they appear."""

    def __init__(self, spec: CheckSpec) -> None:
        self._secrets = _all_spellings(spec.request_headers, spec.auth, spec.request_body)

    def text(self, text: str, *, cut: bool = False) -> str:
        """The text with its secrets masked. ``cut``: the text is cut off, so the beginning of a
        secret at its end is masked too.
        """
        # Not by one pattern: one for twenty long headers takes a second to compile.
        spans = [span for secret in self._secrets for span in _spans(text, secret, cut)]
        pieces, end = [], 0
        for first, last in sorted(spans):
            if first >= end:  # secrets that overlap get one mask
                pieces += [text[end:first], MASK]
            end = max(end, last)
        return _USER_INFO.sub(f"{MASK}@", "".join([*pieces, text[end:]]))

    def widened(self, text: str, first: int, last: int) -> tuple[int, int]:
        """The piece of ``text`` from ``first`` to ``last``, widened so that its edges cut no secret
        in half: half a secret would not be masked.
        """
        start, end = first, last
        for secret in self._secrets:
            start_at = max(0, first - len(secret))
            for begin, stop in _spans(text[start_at : last + len(secret)], secret, False):
                if start_at + begin < first < start_at + stop:
                    start = min(start, start_at + begin)
                if start_at + begin < last < start_at + stop:
                    end = max(end, start_at + stop)
        return start, end

    def header(self, name: str, value: str) -> str:
        lowered = name.lower()
        if lowered == "set-cookie":
            cookie, semicolon, attributes = value.partition(";")
            return f"{cookie.partition('=')[0]}={MASK}{semicolon}{self.text(attributes)}"
        if SECRET_NAME.search(lowered) and lowered != "www-authenticate":
            return MASK
        return self.text(value)


def _spans(text: str, secret: str, cut: bool) -> Iterable[tuple[int, int]]:
    """The positions of ``secret`` in ``text``; with ``cut``, also a beginning of it at the end of
    the text.
    """
    first = text.find(secret)
    while first >= 0:
        yield first, first + len(secret)
        first = text.find(secret, first + len(secret))
    if cut:
        beginning = secret[:_MIN_SECRET]
        first = text.find(beginning, max(0, len(text) - len(secret)))
        while first >= 0 and not secret.startswith(text[first:]):
            first = text.find(beginning, first + 1)
        if first >= 0:
            yield first, len(text)


@lru_cache(maxsize=256)
def _all_spellings(
    headers: tuple[Pair, ...], auth: tuple[str, str] | None, body: str | None
) -> tuple[str, ...]:
    """Every spelling of every secret, the longest first: it may contain a shorter one."""
    spellings = {spelling for secret in _secrets(headers, auth) for spelling in _spellings(secret)}
    spellings.update(_body_secrets(body or ""))
    return tuple(
        sorted(
            (spelling for spelling in spellings if len(spelling) >= _MIN_SECRET),
            key=len,
            reverse=True,
        )
    )


def _secrets(headers: tuple[Pair, ...], auth: tuple[str, str] | None) -> Iterable[str]:
    for pair in headers:
        if pair.key.lower() not in _OPEN_HEADERS:
            yield pair.value
            yield from pair.value.split()[1:]  # the token after "Bearer"
            if pair.key.lower() == "cookie":
                yield from (cookie.partition("=")[2].strip() for cookie in pair.value.split(";"))
    if auth is not None:
        user, password = auth
        yield password
        yield _base64(f"{user}:{password}")


def _body_secrets(body: str) -> Iterable[str]:
    """The request body as a whole, and the values of a form or of JSON in it."""
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
