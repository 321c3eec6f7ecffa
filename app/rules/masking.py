"""Remove secrets from the answer of a service before it is stored or logged: an error of Telegram
contains the bot's path, one of a proxy the whole URL. An exception is logged by its frames, because
its text and its values may be secrets.
"""

from __future__ import annotations

import json
import re
import traceback
from base64 import b64encode
from collections.abc import Iterable
from pathlib import PurePath
from urllib.parse import quote, unquote, urlsplit

from app.records import MASK
from app.rules.text import printable, shortened

MAX_ANSWER = 300
_MIN_SECRET = 6  # a shorter piece, such as "api", would blank out ordinary words


def secrets_in_url(url: str) -> list[str]:
    """The secrets in a webhook URL: the parts of its path and query, the user and the password. The
    host is not among them, because an error without it does not help.
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # such as an unclosed bracket: the URL cannot be split
        return [url]
    secrets = [url, parts.path, parts.query, parts.fragment, parts.username, parts.password]
    secrets += parts.path.split("/")
    secrets += [pair.partition("=")[2] for pair in parts.query.split("&")]
    return [secret or "" for secret in secrets]


def secrets_in_apprise(url: str) -> list[str]:
    """The secrets in an Apprise URL. A host without a dot may be one too:
    ``tgram://BOT_TOKEN/CHAT``, ``ntfy://TOPIC``.
    """
    secrets = secrets_in_url(url)
    authority = url.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2]
    host = authority.partition(":")[0]
    if "." in host or host == "localhost":
        return secrets
    return [*secrets, authority, *authority.split(":")]


def basic(user: str, password: str) -> str:
    """The credentials of a Basic Authorization header."""
    return b64encode(f"{user}:{password}".encode()).decode()


def clean(text: str, secrets: Iterable[str], limit: int = MAX_ANSWER) -> str:
    """``text`` on one line, without the secrets in any of their spellings, cut to ``limit``."""
    line = printable(text)
    for spelling in spellings(secrets, re.IGNORECASE):
        line = spelling.sub(MASK, line)
    line = " ".join(line.split())
    return shortened(line, limit)


def spellings(
    secrets: Iterable[str], flags: re.RegexFlag = re.NOFLAG, shortest: int = _MIN_SECRET
) -> list[re.Pattern[str]]:
    """Patterns of every spelling of the secrets, the longest first, because it may contain a
    shorter one. Spellings with fewer than ``shortest`` characters are left out: they would mask
    ordinary words.
    """
    texts = {spelling for secret in secrets for spelling in _spellings(secret)}
    long = [spelling for spelling in texts if len(spelling.strip("/")) >= shortest]
    longest_first = sorted(long, key=len, reverse=True)
    return [re.compile("".join(map(_letter, spelling)), flags) for spelling in longest_first]


def _spellings(secret: str) -> Iterable[str]:
    """The secret, unchanged and percent-decoded, and both as a traceback or JSON quotes them."""
    for plain in (secret, unquote(secret)):
        yield plain
        for quoted in (repr(plain), ascii(plain), json.dumps(plain)):
            yield quoted[1:-1]


def _letter(character: str) -> str:
    """A pattern of a character that may be percent-encoded: libraries encode different ones, such
    as the password ``a+b/c`` as ``a+b%2Fc``.
    """
    encoded = quote(character, safe="", errors="replace")
    if encoded == character:
        return re.escape(character)
    space = r"|\+" if character == " " else ""
    return f"(?:{re.escape(character)}|(?i:{encoded}){space})"


MAX_FRAMES = 8


def frames_of(fault: BaseException) -> str:
    """The type of an exception and its innermost frames, the innermost last."""
    frames = traceback.extract_tb(fault.__traceback__)[-MAX_FRAMES:]
    lines = [f"{_short(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames]
    return " > ".join([*lines, type(fault).__name__])


def raised_at(fault: BaseException) -> str:
    """The type of an exception and the line that raised it."""
    frame = traceback.extract_tb(fault.__traceback__)[-1]
    return f"{type(fault).__name__}, {PurePath(frame.filename).name}:{frame.lineno}"


def _short(name: str) -> str:
    return "/".join(PurePath(name).parts[-3:])
