"""Security events: a line each in the log of the server, for people and for programs such as
fail2ban (docs/people.md has the events), and for most of them one in the audit log:

    security event=login.failed who=account:5f1e9c0d8a7b6c4d address=192.0.2.7

A line holds no password and nothing that was typed: an unknown email address is hashed, because
people also type passwords into that field. The hash is keyed: nobody who reads the log alone can
try words until one fits.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
import time
from collections.abc import Callable
from enum import StrEnum

from cachetools import TTLCache
from flask import current_app

from app.access import actors, audit, failures
from app.access.tokens import keyed_hash
from app.db import best_effort, is_writing, writing
from app.records import Action, ActorKind, ObjectKind, Person, Thing

log = logging.getLogger(__name__)

# Lines of one event in a minute, of accounts that exist and of others: nobody fills the disk by
# failing. The audit log has bounds of its own (``failures``).
MAX_A_MINUTE = 100
DIGITS = 16
REPEATED_AFTER_SECONDS = 3600.0
MAX_PLACES = 1_000


class SecurityEvent(StrEnum):
    LOGIN_OK = "login.ok"
    LOGIN_FAILED = "login.failed"
    LOGIN_THROTTLED = "login.throttled"
    LOGIN_NEW_DEVICE = "login.new-device"
    LOGOUT = "logout"
    SESSIONS_ENDED = "sessions.ended"
    PASSWORD_CHANGED = "password.changed"  # noqa: S105 - an event
    PASSWORD_WRONG = "password.wrong"  # noqa: S105 - an event
    PASSWORD_THROTTLED = "password.throttled"  # noqa: S105 - an event
    SECOND_FACTOR_ASKED = "second-factor.asked"
    SECOND_FACTOR_CHANGED = "second-factor.changed"
    SECOND_FACTOR_WRONG = "second-factor.wrong"
    SECOND_FACTOR_THROTTLED = "second-factor.throttled"
    KEY_WRONG = "key.wrong"
    ACCESS_REFUSED = "access.refused"


_ACTIONS = {
    SecurityEvent.LOGIN_OK: Action.LOGGED_IN,
    SecurityEvent.LOGIN_FAILED: Action.LOGIN_FAILED,
    SecurityEvent.PASSWORD_WRONG: Action.LOGIN_FAILED,
    SecurityEvent.SECOND_FACTOR_WRONG: Action.LOGIN_FAILED,
    SecurityEvent.LOGOUT: Action.LOGGED_OUT,
    SecurityEvent.SESSIONS_ENDED: Action.SESSION_ENDED,
}


class EventBound:
    """At most ``most`` of each event in a minute. The rest is counted, and logged afterwards. An
    event is any word.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._minute = -1
        self._counted: dict[str, int] = {}

    def take(self, event: str) -> tuple[bool, dict[str, int]]:
        """Whether ``event`` is within the bound; how many of each the minute before left out."""
        with self._lock:
            left_out: dict[str, int] = {}
            minute, most = int(self._clock() // 60), self._most
            if minute != self._minute:
                left_out = {key: n - most for key, n in self._counted.items() if n > most}
                self._minute, self._counted = minute, {}
            self._counted[event] = self._counted.get(event, 0) + 1
            return self._counted[event] <= self._most, left_out


BOUND = "wakeful.security_log"  # the application's
ENDED_TOKENS = "wakeful.ended_tokens"  # places whose agent came with one lately
_guard = threading.Lock()


def log_event(
    event: SecurityEvent,
    person: Person | None = None,
    *,
    typed: str = "",
    address: str | None = None,
) -> None:
    """``event`` happened to ``person``, or to the account whose email address is ``typed``.
    ``address``: the client's, if not that of the request. If the event changes something, call this
    inside its ``writing()``, so that the audit line is stored with the change or not at all. A
    failure whose line cannot be written raises the database's error.
    """
    actor = actors.actor()
    address = address or (actor.address if actor else None)
    if person is None:
        who = f"account:{account_of(typed)}"
        account = Thing(ObjectKind.PERSON, None, who)
    else:
        who = f"person:{person.id}"
        account = Thing(ObjectKind.PERSON, person.id, person.email)
    _write(event, who, _ip_address(address))
    if _ACTIONS.get(event) == Action.LOGIN_FAILED:
        # Not as a best effort, which is left out for a while after another one failed: each guess
        # was counted in the database a moment ago, so this write waits no longer than that one.
        failures.record(event, account, audit.clock())
    elif event in _ACTIONS:
        with writing() as session:
            audit.note(session, _ACTIONS[event], account)
    if not is_writing():
        log_left_out()


def log_refusal(event: SecurityEvent, address: str | None) -> None:
    """A request was refused to whoever acts now. In the log alone: a line of the audit log for each
    would let a stranger with a wrong key write without end.
    """
    actor = actors.actor()
    if actor is not None and actor.kind == ActorKind.AGENT and actor.id is None:
        _log_ended_token(actor.name, event, address)
        return
    who = "nobody" if actor is None or actor.id is None else f"{actor.kind}:{actor.id}"
    _write(event, who, _ip_address(address))


def _log_ended_token(place: str, event: SecurityEvent, address: str | None) -> None:
    """An agent came with a token of this place that has ended. It tries every 15 s until somebody
    gives it the new one, so it is logged once in ``REPEATED_AFTER_SECONDS``.
    """
    lately: TTLCache[str, bool] = current_app.extensions.setdefault(
        ENDED_TOKENS, TTLCache(MAX_PLACES, REPEATED_AFTER_SECONDS, timer=lambda: time.monotonic())
    )
    with _guard:  # a TTLCache is not safe between threads
        if place in lately:
            return
        lately[place] = True
    _write(event, f"place:{place}", _ip_address(address))


def log_left_out() -> None:
    """Make lines of the failures that the audit log has only counted. The engine's housekeeping
    calls it too.
    """
    best_effort("The count of failures", lambda: failures.write_left_out(audit.clock()))


def _write(event: SecurityEvent, who: str, address: str) -> None:
    bound: EventBound = current_app.extensions.setdefault(BOUND, EventBound(MAX_A_MINUTE))
    # Counted apart, so that a flood of unknown names does not hide lines about accounts.
    is_within, left_out = bound.take(f"{event} who={who.partition(':')[0]}")
    for name, number in left_out.items():
        log.warning("security event=%s left-out=%s", name, number)
    if is_within:
        log.info("security event=%s who=%s address=%s", event, who, address)


def account_of(email: str) -> str:
    """A keyed hash in place of what somebody typed as an email address."""
    folded = email.strip().casefold().encode("utf-8", "surrogatepass").hex()
    return keyed_hash("account", folded)[:DIGITS]


def _ip_address(address: str | None) -> str:
    """An IP address and nothing else: behind a proxy, it is what somebody wrote into a header."""
    try:
        return str(ipaddress.ip_address(address or "")).partition("%")[0]
    except ValueError:
        return "unknown"
