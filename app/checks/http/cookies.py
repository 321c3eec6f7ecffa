"""The cookies of one chain of redirects, by RFC 6265, sections 5.1 to 5.4.

http.cookiejar is not used: it reads dates and domains by older rules, and wants the requests of
urllib. curl's own engine gives each handle its cookies, and a chain has several handles.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from app.rules.suffixes import is_public_suffix
from app.rules.url import Target

Key = tuple[str, str, str]  # name, domain, path

_SPACE = " \t"
# The characters between the parts of a date: all but digits, letters, colons and non-ASCII ones.
_DELIMITERS = str.maketrans(dict.fromkeys("\t !\"#$%&'()*+,-./;<=>?@[\\]^_`{|}~", " "))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MAX_AGE = 18  # digits: int() refuses thousands of them


@dataclass(frozen=True, slots=True)
class Cookie:
    """``host_only``: it is sent to ``domain`` alone, not to hosts below it. ``expires`` is a Unix
    time.
    """

    name: str
    value: str
    domain: str
    path: str
    host_only: bool
    secure: bool
    expires: float

    def goes_to(self, target: Target) -> bool:
        host, path = host_of(target), path_of(target)
        if self.secure and target.scheme != "https":
            return False
        if host != self.domain and (self.host_only or not _is_below(host, target, self.domain)):
            return False
        folder = self.path if self.path.endswith("/") else self.path + "/"
        return path == self.path or path.startswith(folder)


class Jar:
    """The cookies of one chain. ``clock`` gives Unix time."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._cookies: dict[Key, Cookie] = {}  # in the order of their creation

    def __bool__(self) -> bool:
        return bool(self._cookies)

    def store(self, target: Target, set_cookies: Iterable[str]) -> set[Key]:
        """Store the cookies that an answer of ``target`` sets. Returns the keys of the cookies that
        were set or deleted.
        """
        changed = set()
        for text in set_cookies:
            cookie = read_cookie(text, target, self._clock())
            if cookie is None:
                continue
            key = (cookie.name, cookie.domain, cookie.path)
            changed.add(key)
            self._cookies[key] = cookie  # in the place of an earlier one, which it replaces
            if cookie.expires <= self._clock():
                del self._cookies[key]
        return changed

    def matching(self, target: Target) -> list[Cookie]:
        """The cookies for a request to ``target``, the longest paths first, then the oldest."""
        now = self._clock()
        cookies = [c for c in self._cookies.values() if c.expires > now and c.goes_to(target)]
        return sorted(cookies, key=lambda cookie: -len(cookie.path))


def host_of(target: Target) -> str:
    return target.ascii_host.rstrip(".")


def path_of(target: Target) -> str:
    return target.request_target.partition("?")[0]


def _is_below(host: str, target: Target, domain: str) -> bool:
    return target.address is None and host.endswith(f".{domain}")


def read_cookie(text: str, target: Target, now: float) -> Cookie | None:
    """The cookie of a Set-Cookie header; None for a header to ignore.

    A header with control characters is ignored, as in RFC 6265bis: a line break would end our own
    header.
    """
    if any((mark < " " and mark != "\t") or mark == "\x7f" for mark in text):
        return None
    pair, *attributes = text.split(";")
    name, equals, value = (part.strip(_SPACE) for part in pair.partition("="))
    if not equals or not name:
        return None
    domain, path, secure = "", "", False
    expires = age_ends = None
    for attribute in attributes:
        word, _, setting = (part.strip(_SPACE) for part in attribute.partition("="))
        match word.lower():
            case "expires":
                moment = read_date(setting)
                expires = expires if moment is None else moment.timestamp()
            case "max-age":
                end = _end_of_age(setting, now)
                age_ends = age_ends if end is None else end
            case "domain" if setting:
                domain = setting.removeprefix(".").lower()
            case "path":
                path = setting
            case "secure":
                secure = True
    host = host_of(target)
    if domain and is_public_suffix(domain):
        if domain != host:
            return None
        domain = ""
    if domain and domain != host and not _is_below(host, target, domain):
        return None
    end = expires if age_ends is None else age_ends
    return Cookie(
        name,
        value,
        domain or host,
        path if path.startswith("/") else path_of(target).rpartition("/")[0] or "/",
        host_only=not domain,
        secure=secure,
        expires=float("inf") if end is None else end,
    )


def _end_of_age(setting: str, now: float) -> float | None:
    digits = setting.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        return None
    seconds = int(digits.lstrip("0")[:_MAX_AGE] or "0")
    return float("-inf") if setting.startswith("-") or not seconds else now + seconds


def read_date(text: str) -> datetime | None:
    """A date by RFC 6265, section 5.1.1: its parts in any order and between any marks."""
    clock: tuple[int, int, int] | None = None
    day = month = year = None
    for token in text.translate(_DELIMITERS).split(" "):
        digits = _leading_digits(token)
        if clock is None and (clock := _clock_of(token)) is not None:
            continue
        if day is None and 1 <= len(digits) <= 2:
            day = int(digits)
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and 2 <= len(digits) <= 4:
            year = int(digits)
    if clock is None or day is None or month is None or year is None:
        return None
    if year < 100:
        year += 1900 if year >= 70 else 2000
    try:
        return datetime(year, month, day, *clock, tzinfo=UTC) if year >= 1601 else None
    except ValueError:
        return None


def _clock_of(token: str) -> tuple[int, int, int] | None:
    """The time of day with which a token begins, such as ``7:05:09``; None if it has none, or if a
    digit follows.
    """
    parts = token.split(":", 2)
    if len(parts) < 3:
        return None
    parts[2] = _leading_digits(parts[2])
    if not all(1 <= len(part) <= 2 and _leading_digits(part) == part for part in parts):
        return None
    hours, minutes, seconds = map(int, parts)
    return hours, minutes, seconds


def _leading_digits(token: str) -> str:
    """The digits with which a token begins, up to five: no part of a date has so many."""
    digits = ""
    for character in token[:5]:
        if character not in "0123456789":
            break
        digits += character
    return digits
