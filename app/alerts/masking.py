"""Taking secrets out of what a service answered, before it is kept or logged.

Services quote what they were sent: a Telegram error names the bot's path, a proxy the whole URL.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, unquote, urlsplit

from app.records import MASK

MAX_ANSWER = 300
_SHORTEST_SECRET = 6  # a shorter piece, such as "api", would blank out ordinary words


def secrets_in_url(url: str) -> list[str]:
    """What is secret in a webhook URL: the parts of its path and query, the user and the password.

    The host is not: an error without it helps nobody.
    """
    parts = urlsplit(url)
    found = [
        url,
        parts.path,
        parts.query,
        parts.fragment,
        parts.username or "",
        parts.password or "",
    ]
    found += parts.path.split("/")
    found += [pair.partition("=")[2] for pair in parts.query.split("&")]
    return found


def clean(text: str, secrets: Iterable[str], limit: int = MAX_ANSWER) -> str:
    """``text`` on one line, without the secrets in any of their spellings, cut to ``limit``."""
    line = "".join(c if c.isprintable() else " " for c in text)
    spellings = {spelling for secret in secrets for spelling in _spellings(secret)}
    for spelling in sorted(spellings, key=len, reverse=True):
        line = line.replace(spelling, MASK)
    line = " ".join(line.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _spellings(secret: str) -> Iterable[str]:
    plain = unquote(secret)
    for spelling in (secret, plain, quote(plain, safe=""), quote(plain)):
        if len(spelling.strip("/")) >= _SHORTEST_SECRET:
            yield spelling
