"""Security events: a line each in the log of the server, for people and for programs such as
fail2ban (docs/people.md has the events):

    security event=login.failed who=account:5f1e9c0d8a7b6c4d address=192.0.2.7

Logins, logouts, ended sessions, and wrong passwords and codes also have a line in the audit log
(``_ACTIONS``).

A line has nothing that was typed: an unknown email address is hashed, because people also type
passwords into that field. The hash is keyed, so that nobody who has only the log can find the
address by trying.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from enum import StrEnum

from cachetools import TTLCache
from flask import current_app

from app.access import actors, audit, counters
from app.access.tokens import keyed_hash
from app.db import best_effort, is_writing, writing
from app.records import Action, ActorKind, AuditedObject, ObjectKind, Person

log = logging.getLogger(__name__)

# Lines of one event in a minute, for accounts that exist and for others: nobody can fill the disk
# by failing. The audit log has other limits (``counters.record_failure``).
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


class EventLimit:
    """At most ``max_a_minute`` lines of each event. Events beyond that are counted, and the count
    is logged in a later minute.
    """

    def __init__(self, max_a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max = max_a_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._minute = -1
        self._counts: Counter[str] = Counter()

    def count(self, event: str) -> tuple[bool, dict[str, int]]:
        """Count ``event``. Returns whether it is within the limit, and, at the first event of a
        minute, how many of each event were left out before.
        """
        with self._lock:
            left_out: dict[str, int] = {}
            minute = int(self._clock() // 60)
            if minute != self._minute:
                counts = self._counts.items()
                left_out = {name: count - self._max for name, count in counts if count > self._max}
                self._minute, self._counts = minute, Counter()
            self._counts[event] += 1
            return self._counts[event] <= self._max, left_out


# Names of extensions of the application
LIMIT = "wakeful.security_log"
ENDED_TOKENS = "wakeful.ended_tokens"
_guard = threading.Lock()


def log_event(
    event: SecurityEvent,
    person: Person | None = None,
    *,
    typed: str = "",
    address: str | None = None,
) -> None:
    """Log an event of ``person``, or of the account whose email address is ``typed``. ``address``:
    the client's, if not that of the request. If the event is a change, call this inside its
    ``writing()``, so that the audit line is stored with the change or not at all. A failed login
    whose audit line cannot be written raises the database's error.
    """
    actor = actors.actor()
    address = address or (actor.address if actor else None)
    if person is None:
        who = f"account:{account_of(typed)}"
        account = AuditedObject(ObjectKind.PERSON, None, who)
    else:
        who = f"person:{person.id}"
        account = AuditedObject(ObjectKind.PERSON, person.id, person.email)
    _write(event, who, _ip_address(address))
    if _ACTIONS.get(event) == Action.LOGIN_FAILED:
        # Not with ``best_effort``, which skips writes for a while after one has failed. The guess
        # was counted in the database a moment ago, so this write can be expected to succeed too.
        counters.record_failure(event, account, audit.clock())
    elif event in _ACTIONS:
        with writing() as session:
            audit.note(session, _ACTIONS[event], account)
    if not is_writing():
        log_left_out()


def log_refusal(event: SecurityEvent, address: str | None) -> None:
    """Log that a request of the present actor was refused. The audit log has no line of it, because
    a stranger with a wrong key could fill it.
    """
    actor = actors.actor()
    if actor is not None and actor.kind == ActorKind.AGENT and actor.id is None:
        _log_ended_token(actor.name, event, address)
        return
    who = "nobody" if actor is None or actor.id is None else f"{actor.kind}:{actor.id}"
    _write(event, who, _ip_address(address))


def _log_ended_token(place: str, event: SecurityEvent, address: str | None) -> None:
    """Log a request of an agent with an ended token of this place. The agent repeats its request
    every 15 s until it has the new token, so one request in ``REPEATED_AFTER_SECONDS`` is logged.
    """
    logged: TTLCache[str, bool] = current_app.extensions.setdefault(
        ENDED_TOKENS, TTLCache(MAX_PLACES, REPEATED_AFTER_SECONDS, timer=lambda: time.monotonic())
    )
    with _guard:  # a TTLCache is not safe between threads
        if place in logged:
            return
        logged[place] = True
    _write(event, f"place:{place}", _ip_address(address))


def log_left_out() -> None:
    """Write the audit lines of failures that were only counted. The engine's housekeeping also
    calls this.
    """
    best_effort("The count of failures", lambda: counters.write_left_out(audit.clock()))


def _write(event: SecurityEvent, who: str, address: str) -> None:
    limit: EventLimit = current_app.extensions.setdefault(LIMIT, EventLimit(MAX_A_MINUTE))
    # The limit is for each event and kind of ``who``, so that a flood of unknown names does not
    # hide lines about accounts that exist.
    is_within, left_out = limit.count(f"{event} who={who.partition(':')[0]}")
    for name, number in left_out.items():
        log.warning("security event=%s left-out=%s", name, number)
    if is_within:
        log.info("security event=%s who=%s address=%s", event, who, address)


def account_of(email: str) -> str:
    """A keyed hash in place of what somebody typed as an email address."""
    folded = email.strip().casefold().encode("utf-8", "surrogatepass").hex()
    return keyed_hash("account", folded)[:DIGITS]


def _ip_address(address: str | None) -> str:
    """The address, or "unknown" for another text: a client of a proxy may write any text into the
    header with the address.
    """
    try:
        return str(ipaddress.ip_address(address or "")).partition("%")[0]
    except ValueError:
        return "unknown"
