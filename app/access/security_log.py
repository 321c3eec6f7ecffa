"""Security events in the log of the server, one line each, for people and for programs such as
fail2ban (docs/people.md has the events):

    security event=login.failed who=account:5f1e9c0d8a7b6c4d address=192.0.2.7

A line holds no password and nothing that was typed: an unknown email address is hashed, because
people also type passwords into that field.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import threading
import time
from collections.abc import Callable
from enum import StrEnum

log = logging.getLogger(__name__)

A_MINUTE = 100  # lines of one event in a minute: nobody fills the disk by failing
DIGITS = 16


class Event(StrEnum):
    LOGIN_OK = "login.ok"
    LOGIN_FAILED = "login.failed"
    LOGIN_THROTTLED = "login.throttled"
    LOGIN_NEW_DEVICE = "login.new-device"
    LOGOUT = "logout"
    SESSIONS_ENDED = "sessions.ended"
    PASSWORD_CHANGED = "password.changed"  # noqa: S105 - an event
    PASSWORD_WRONG = "password.wrong"  # noqa: S105 - an event
    PASSWORD_THROTTLED = "password.throttled"  # noqa: S105 - an event


class Bound:
    """At most ``A_MINUTE`` of each event in a minute. The rest is counted, and told afterwards."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._minute = -1
        self._seen: dict[Event, int] = {}

    def take(self, event: Event) -> tuple[bool, dict[Event, int]]:
        """Whether ``event`` may be logged, and what the minute before left out."""
        with self._lock:
            left_out: dict[Event, int] = {}
            minute = int(self._clock() // 60)
            if minute != self._minute:
                left_out = {one: n - A_MINUTE for one, n in self._seen.items() if n > A_MINUTE}
                self._minute, self._seen = minute, {}
            self._seen[event] = self._seen.get(event, 0) + 1
            return self._seen[event] <= A_MINUTE, left_out


_bound = Bound()


def tell(
    event: Event, *, person: int | None = None, typed: str = "", address: str | None = None
) -> None:
    """Log that ``event`` happened to ``person``, or to the account whose email address is
    ``typed``.
    """
    logged, left_out = _bound.take(event)
    for one, number in left_out.items():
        log.warning("security event=%s left-out=%s", one, number)
    if logged:
        who = f"account:{account_of(typed)}" if person is None else f"person:{person}"
        log.info("security event=%s who=%s address=%s", event, who, _plain(address))


def account_of(email: str) -> str:
    """A hash in place of what somebody typed as an email address."""
    folded = email.strip().casefold().encode("utf-8", "surrogatepass")
    return hashlib.sha256(folded).hexdigest()[:DIGITS]


def _plain(address: str | None) -> str:
    """An IP address and nothing else: behind a proxy, it is what somebody wrote into a header."""
    try:
        return str(ipaddress.ip_address(address or "")).partition("%")[0]
    except ValueError:
        return "unknown"
