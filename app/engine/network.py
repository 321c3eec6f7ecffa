"""Distinguish failures of this machine's network from failures of targets (decisions 9 and 10).

A check that got no byte of an answer may have failed because of our network. Such a failure is held
back for HOLD_SECONDS. If another target at least as far away answers in that time, our network
works, and the target has failed. Otherwise the canaries are asked; if all of them fail too, the
results are ``unknown``. ``now`` is monotonic, in seconds.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address

from app.engine.carriers import Finished
from app.engine.schedule import Claim
from app.i18n import N_, _
from app.net.networks import LOOPBACK, special
from app.records import CONFIRMATIONS, TIMEOUT_SECONDS, Cause, Outcome, Verdict

log = logging.getLogger(__name__)

# How long a failure waits for an answer from another target. Earlier answers do not count, because
# the network may have failed since.
HOLD_SECONDS = 2.0

# How long a failure of all canaries counts for new failures. An answer counts only for failures
# before it.
DEAD_SECONDS = 5.0

# After so many failures in a row while the canaries answered, the monitor's incident is open, and
# the canaries are not asked again at each check while the target is down.
MAX_ASKED_FAILURES = CONFIRMATIONS[1] + 1
# Checks that began in an outage of our network end within this time after it.
LAST_CHECKS_SECONDS = 1.5 * TIMEOUT_SECONDS[1]

SENTENCE = N_(
    "Wakeful's own network does not work: neither this address nor any canary could be reached."
)

# The causes that a failure of our own network can have
_NETWORK_CAUSES = frozenset(
    {
        Cause.DNS_NXDOMAIN, Cause.DNS_SERVFAIL, Cause.DNS_REFUSED, Cause.DNS_TIMEOUT,
        Cause.DNS_NO_ADDRESS, Cause.CONNECTION_REFUSED, Cause.CONNECTION_RESET,
        Cause.HOST_UNREACHABLE, Cause.TIMEOUT_CONNECT, Cause.TLS_HANDSHAKE, Cause.TIMEOUT_TLS,
        Cause.EMPTY_RESPONSE, Cause.TIMEOUT_TTFB, Cause.PING_TIMEOUT,
    }
)  # fmt: skip


def may_be_ours(outcome: Outcome) -> bool:
    """Whether this failure could be one of our own network."""
    result = outcome.result
    silent = result.verdict is Verdict.DOWN and not outcome.answered
    return silent and result.cause_code in _NETWORK_CAUSES


class OwnNetwork:
    """Divides finished checks into those to record and those that wait for an answer from another
    target or from the canaries.

    ``works`` asks the canaries (None: there are none) and may take seconds. It runs on a separate
    thread, which calls ``wake`` at its end. All methods are called on the thread of the loop.
    """

    def __init__(self, works: Callable[[], bool] | None, wake: Callable[[], None]) -> None:
        self._works = works
        self._wake = wake
        self._on_hold: list[tuple[float, Finished]] = []  # failures, with the time of each
        self._waiting: list[Finished] = []  # failures that wait for the canaries
        # Failures in a row of each monitor while the canaries answered
        self._failures: Counter[Claim] = Counter()
        self._asking = False
        self._answer: bool | None = None  # set by the asking thread
        self._answered_at = float("-inf")
        # When our network last recovered, by the wall clock and by the monotonic clock
        self._returned: tuple[datetime, float] | None = None
        self.down = False  # whether our network is down

    @property
    def waits(self) -> bool:
        """Whether ``collect`` may have something to do without another check."""
        return self.down or bool(self._on_hold or self._waiting)

    def sort(self, finished: list[Finished], now: float) -> list[Finished]:
        """Take finished checks; returns those that can be recorded now, in their final form."""
        ready: list[Finished] = []
        for check in finished:
            if may_be_ours(check[1]):
                ready += self._hold_back(check, now)
            else:
                ready += self._with_answer(check)
        return ready

    def collect(self, now: float) -> list[Finished]:
        """The checks that have waited long enough, or about which the canaries have decided."""
        ready = self._by_canaries(now) if self._answer is not None else []
        if self._asking:
            return ready
        waited = [check for since, check in self._on_hold if now - since >= HOLD_SECONDS]
        self._on_hold = [waiting for waiting in self._on_hold if now - waiting[0] < HOLD_SECONDS]
        if self._is_down(now):
            return ready + self._final(waited)
        self._waiting += waited
        if self._waiting or self.down:
            self._ask()  # while down even if no check waits, to notice that the network is back
        return ready

    def _hold_back(self, check: Finished, now: float) -> list[Finished]:
        claim, outcome = check
        if self._works is None:
            return [check]  # without canaries, no failure counts as ours
        if self._began_in_outage(outcome, now):
            return [(claim, unknown(outcome))]
        if self._is_down(now) and not self._asking:
            return self._final([check])
        if self.down:
            self._waiting.append(check)
            self._ask()
        elif self._failures[claim] >= MAX_ASKED_FAILURES:
            return [check]
        else:
            self._on_hold.append((now, check))
        return []

    def _with_answer(self, check: Finished) -> list[Finished]:
        """A check that is no failure of our network, after the failures of targets that its answer
        proves.
        """
        claim, outcome = check
        self._failures.pop(claim, None)
        # The first bytes of an answer that timed out may be a minute old.
        is_fresh = outcome.answered and not (outcome.result.cause_code or "").startswith("timeout:")
        unconfirmed = [*self._waiting, *(waiting for _since, waiting in self._on_hold)]
        # While our network is down, an answer may mean only that it is about to recover.
        if not unconfirmed or self.down or not is_fresh:
            return [check]
        reached = distance(outcome)
        targets_own = [other for other in unconfirmed if distance(other[1]) <= reached]
        self._waiting = [other for other in self._waiting if distance(other[1]) > reached]
        self._on_hold = [waiting for waiting in self._on_hold if distance(waiting[1][1]) > reached]
        return [*targets_own, check]

    def _by_canaries(self, now: float) -> list[Finished]:
        works, self._answer, self._asking = bool(self._answer), None, False
        waiting, self._waiting = self._waiting, []
        self._answered_at = now
        if works and self.down:
            self._returned = datetime.now(UTC), now
        self.down = not works
        ready: list[Finished] = []
        for check in waiting:
            is_ours = self._began_in_outage(check[1], now)
            ready += [(check[0], unknown(check[1]))] if is_ours else self._final([check])
        return ready

    def _began_in_outage(self, outcome: Outcome, now: float) -> bool:
        """Whether the check started before our network recovered: its failure shows nothing."""
        if self.down or self._returned is None:
            return False
        at, since = self._returned
        # The limit is needed if the clock was set back: all later checks would seem older.
        return now - since < LAST_CHECKS_SECONDS and outcome.result.checked_at < at

    def _is_down(self, now: float) -> bool:
        return self.down and now - self._answered_at < DEAD_SECONDS

    def _final(self, unconfirmed: list[Finished]) -> list[Finished]:
        if not self.down:
            self._failures.update(claim for claim, _outcome in unconfirmed)
            return unconfirmed
        return [(claim, unknown(outcome)) for claim, outcome in unconfirmed]

    def _ask(self) -> None:
        if self._asking:
            return
        self._asking = True
        threading.Thread(target=self._ask_canaries, name="canaries", daemon=True).start()

    def _ask_canaries(self) -> None:
        try:
            self._answer = self._works is None or self._works()
        except Exception:  # a fault of ours must neither hide outages nor stop the checks
            log.exception("The canaries cannot be asked; Wakeful's own network counts as working.")
            self._answer = True
        self._wake()


def distance(outcome: Outcome) -> int:
    """How far away the target is: 0 this machine, 1 a private network, 2 the internet.

    A server in our network answers even if our connection to the internet is down, so its answer
    shows nothing about targets there. A name that was not resolved counts as 2.
    """
    resolved = (outcome.evidence or {}).get("resolved") or [None]
    return _distance(outcome.result.ip or resolved[0])


@lru_cache(maxsize=10_000)
def _distance(address: str | None) -> int:
    row = special(ip_address(address)) if address else None
    if row is None:
        return 2
    return 0 if row.word == LOOPBACK else 1


def unknown(outcome: Outcome) -> Outcome:
    """The outcome as ``unknown``, because our own network failed."""
    result = replace(
        outcome.result, verdict=Verdict.UNKNOWN, cause_code=Cause.NETWORK_DOWN, cause=_(SENTENCE)
    )
    return replace(outcome, result=result)
