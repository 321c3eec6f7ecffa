"""What outcomes of every kind share: failures, verdicts, and when good evidence is made."""

from __future__ import annotations

import errno
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from cachetools import TTLCache

from app.i18n import N_, _
from app.records import Cause, CheckSpec, Outcome, Result, Verdict

UNREACHABLE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN})
RESET = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED})
_UNKNOWN_CAUSES = frozenset({Cause.BLOCKED_BY_POLICY, Cause.NETWORK_DOWN, Cause.CHECK_ERROR})

# Evidence of good checks is there to compare a failure with. Storing it each time would double the
# cost of a check, so it is stored when something about the answer changed, and at least this often.
GOOD_EVIDENCE_SECONDS = 600.0
_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a check is not good: ``code`` is from decisions.md 10."""

    code: str
    sentence: str


def verdict_of(
    failure: Failure | None, spec: CheckSpec, response_ms: int | None
) -> tuple[Verdict, Failure | None]:
    """The verdict, and the failure; a good answer that was too slow has one too."""
    if failure is not None:
        return Verdict.UNKNOWN if failure.code in _UNKNOWN_CAUSES else Verdict.DOWN, failure
    if spec.slow_after is None or response_ms is None or response_ms <= spec.slow_after:
        return Verdict.UP, None
    return Verdict.DEGRADED, Failure(
        Cause.SLOW_RESPONSE,
        _(
            "The answer took %(time)s ms, longer than the %(limit)s ms set as slow.",
            time=response_ms,
            limit=spec.slow_after,
        ),
    )


def connect_failure(number: int, place: str, seconds: float) -> Failure | None:
    """Why no TCP connection to ``place`` was made, by the system's error number; None for a number
    that says nothing. ``seconds``: how long it was tried.
    """
    if number == errno.ECONNREFUSED:
        return Failure(
            Cause.CONNECTION_REFUSED,
            _("The connection was refused by %(place)s: nothing listens there.", place=place),
        )
    if number == errno.ETIMEDOUT:
        return Failure(
            Cause.TIMEOUT_CONNECT,
            _(
                "No TCP connection to %(place)s: the network gave up after %(seconds)s ms.",
                place=place,
                seconds=f"{seconds * 1000:.0f}",
            ),
        )
    if number in RESET:
        return Failure(
            Cause.CONNECTION_RESET,
            _("The connection was reset by %(place)s as soon as it was made.", place=place),
        )
    if number in UNREACHABLE:
        sentence = (
            N_("The host cannot be reached at %(place)s: no route to the network.")
            if number == errno.ENETUNREACH
            else N_("The host cannot be reached at %(place)s: no route to the host.")
        )
        return Failure(Cause.HOST_UNREACHABLE, _(sentence, place=place))
    return None


def check_error(spec: CheckSpec, location: str, sentence: str) -> Outcome:
    """The outcome of a check that failed by a fault of our own."""
    result = Result(
        checked_at=datetime.now(UTC),
        verdict=Verdict.UNKNOWN,
        monitor_id=spec.monitor_id,
        cause_code=Cause.CHECK_ERROR,
        cause=sentence,
        location=location,
    )
    return Outcome(result)


class GoodEvidence:
    """Remembers when each monitor's last good evidence was made, and of which answer."""

    def __init__(self) -> None:
        self._made: TTLCache[int, tuple[object, ...]] = TTLCache(
            _REMEMBERED, GOOD_EVIDENCE_SECONDS, time.monotonic
        )

    def wanted(self, monitor_id: int | None, face: tuple[object, ...]) -> bool:
        """Whether to make evidence of a good check. ``face``: what to compare of the answer."""
        if monitor_id is None:
            return True
        if self._made.get(monitor_id) == face:
            return False
        self._made[monitor_id] = face
        return True
