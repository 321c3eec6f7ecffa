"""Does our own network work? Told apart from targets that fail (decisions.md 9 and 10).

A check without a byte of an answer may be our fault. When many fail so at once, or the only ones
do, the canaries are asked; when all of them fail too, the results are ``unknown``. Results that
hang on the answer wait for it. Clockless: monotonic times come in as arguments.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from app.records import Cause, Outcome, Verdict

Finished = tuple[int, Outcome]  # monitor id, and what its check brought

# How far back a check says something about the network now. The slowest schedule has long gaps, so
# "the only ones" looks further than "many at once".
AT_ONCE_SECONDS = 15.0
ONLY_ONES_SECONDS = 75.0
MANY = 3
REMEMBERED = 5000

# How long an answer of the canaries holds.
WORKS_SECONDS = 2.0
DEAD_SECONDS = 5.0

SENTENCE = (
    "Our own network does not work: neither this address nor any of the hosts that tell us so "
    "could be reached."
)

# Causes that a dead network of our own can have. The rest of them took an answer to find.
_NETWORK_CAUSES = frozenset(
    {
        Cause.DNS_NXDOMAIN, Cause.DNS_SERVFAIL, Cause.DNS_REFUSED, Cause.DNS_TIMEOUT,
        Cause.DNS_NO_ADDRESS, Cause.CONNECTION_REFUSED, Cause.CONNECTION_RESET,
        Cause.HOST_UNREACHABLE, Cause.TIMEOUT_CONNECT, Cause.TLS_HANDSHAKE, Cause.TIMEOUT_TLS,
        Cause.EMPTY_RESPONSE, Cause.TIMEOUT_TTFB,
    }
)  # fmt: skip


def may_be_ours(outcome: Outcome) -> bool:
    """Whether this failure could be one of our own network."""
    result = outcome.result
    silent = result.verdict is Verdict.DOWN and not outcome.answered
    return silent and result.cause_code in _NETWORK_CAUSES


@dataclass(frozen=True, slots=True)
class _Seen:
    at: float
    monitor_id: int
    failed: bool


class Network:
    """Sorts finished checks into those to record and those that wait for the canaries.

    ``works`` asks the canaries and may take seconds; it runs on a thread of its own, and ``wake``
    is called when its answer is there. All methods are for the checker's thread.
    """

    def __init__(self, works: Callable[[], bool], wake: Callable[[], None]) -> None:
        self._works = works
        self._wake = wake
        self._seen: deque[_Seen] = deque(maxlen=REMEMBERED)
        self._waiting: list[Finished] = []
        self._asking = False
        self._answer: bool | None = None  # set by the asking thread
        self._answered_at = float("-inf")
        self.down = False

    @property
    def waiting(self) -> list[int]:
        """Monitors whose result waits for the canaries' answer."""
        return [monitor_id for monitor_id, _outcome in self._waiting]

    def sort(self, finished: list[Finished], now: float) -> list[Finished]:
        """Take what came back; what can be recorded now, in its final form."""
        for monitor_id, outcome in finished:
            if outcome.answered or may_be_ours(outcome):
                self._seen.append(_Seen(now, monitor_id, may_be_ours(outcome)))
        ready = [one for one in finished if not may_be_ours(one[1])]
        doubtful = [one for one in finished if may_be_ours(one[1])]
        if not doubtful:
            return ready
        fresh = now - self._answered_at < (DEAD_SECONDS if self.down else WORKS_SECONDS)
        if not self._asking and fresh:
            return ready + self._final(doubtful)
        if not self._asking and not self.down and not self._suspicious(now):
            return ready + doubtful
        self._waiting += doubtful
        self._ask()
        return ready

    def collect(self, now: float) -> list[Finished]:
        """What waited for the canaries, once they have answered."""
        if self._answer is None:
            if self.down and not self._asking and now - self._answered_at >= DEAD_SECONDS:
                self._ask()  # so that its return is noticed though nothing is due
            return []
        self.down, self._answer = not self._answer, None
        self._answered_at, self._asking = now, False
        waiting, self._waiting = self._waiting, []
        if not self.down:
            self._seen.clear()
        return self._final(waiting)

    def _final(self, doubtful: list[Finished]) -> list[Finished]:
        if not self.down:
            return doubtful
        return [(monitor_id, unknown(outcome)) for monitor_id, outcome in doubtful]

    def _suspicious(self, now: float) -> bool:
        """Many fail at once, or nothing but failures has been seen."""
        newest = {seen.monitor_id: seen for seen in self._seen if _since(seen, now)}
        if all(seen.failed for seen in newest.values()):
            return True
        lately = [seen.failed for seen in newest.values() if now - seen.at <= AT_ONCE_SECONDS]
        failed = sum(lately)
        return failed >= MANY and failed > len(lately) - failed

    def _ask(self) -> None:
        if self._asking:
            return
        self._asking = True
        threading.Thread(target=self._asked, name="canaries", daemon=True).start()

    def _asked(self) -> None:
        try:
            self._answer = self._works()
        except Exception:  # a fault of ours must neither hide outages nor stop the checks
            self._answer = True
        self._wake()


def unknown(outcome: Outcome) -> Outcome:
    """The same check, in which we could not tell because our own network failed."""
    result = replace(
        outcome.result,
        verdict=Verdict.UNKNOWN,
        cause_code=Cause.NETWORK_DOWN,
        cause=SENTENCE,
    )
    return replace(outcome, result=result)


def _since(seen: _Seen, now: float) -> bool:
    return now - seen.at <= ONLY_ONES_SECONDS
