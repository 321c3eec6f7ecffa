"""The parts of every kind's outcomes: failures, verdicts, texts, and evidence."""

from __future__ import annotations

import errno
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from cachetools import TTLCache

from app.checks.redact import Redactor
from app.i18n import N_, _
from app.records import TEXT_CONDITIONS, AlertCondition, Cause, CheckSpec, Outcome, Result, Verdict

UNREACHABLE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN})
RESET = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED})
_UNKNOWN_CAUSES = frozenset({Cause.BLOCKED_BY_POLICY, Cause.NETWORK_DOWN, Cause.CHECK_ERROR})

# A failure is compared with the evidence of a good check. Evidence of each good check would double
# the cost of a check, so a good check has it when its answer changed, and at least this often.
GOOD_EVIDENCE_SECONDS = 600.0
_MAX_CACHED = 50_000
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a check is not ``up``. ``code``: a cause code of decision 10."""

    code: str
    sentence: str


def verdict_of(
    failure: Failure | None, spec: CheckSpec, response_ms: int | None
) -> tuple[Verdict, Failure | None]:
    """The verdict and its failure. An answer without a failure that took too long is ``degraded``,
    and has the failure ``slow_response``.
    """
    if failure is not None:
        return Verdict.UNKNOWN if failure.code in _UNKNOWN_CAUSES else Verdict.DOWN, failure
    if spec.slow_after is None or response_ms is None or response_ms <= spec.slow_after:
        return Verdict.UP, None
    sentence = N_("The answer took %(time)s ms; above %(limit)s ms is slow.")
    sentence = _(sentence, time=response_ms, limit=spec.slow_after)
    return Verdict.DEGRADED, Failure(Cause.SLOW_RESPONSE, sentence)


def whole_ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def connect_failure(number: int, address: str, seconds: float, words: str) -> Failure:
    """Why no TCP connection to ``address`` was made, by the system's error ``number``. ``words``:
    the error as text, for a number that has no sentence here. ``seconds``: how long it was tried.
    """
    cause = Cause.HOST_UNREACHABLE
    if number == errno.ECONNREFUSED:
        cause = Cause.CONNECTION_REFUSED
        sentence = N_("The connection was refused by %(address)s: nothing listens there.")
    elif number == errno.ETIMEDOUT:
        cause = Cause.TIMEOUT_CONNECT
        sentence = N_("No TCP connection to %(address)s: the network gave up after %(time)s ms.")
    elif number in RESET:
        cause = Cause.CONNECTION_RESET
        sentence = N_("The connection was reset by %(address)s as soon as it was made.")
    elif number == errno.ENETUNREACH:
        sentence = N_("The host cannot be reached at %(address)s: no route to the network.")
    elif number in UNREACHABLE:
        sentence = N_("The host cannot be reached at %(address)s: no route to the host.")
    else:
        sentence = N_("The host cannot be reached at %(address)s: %(error)s.")
    return Failure(cause, _(sentence, address=address, time=f"{seconds * 1000:.0f}", error=words))


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


def strip_controls(text: str) -> str:
    """Text without control characters: a NUL breaks databases, an escape breaks terminals."""
    return _CONTROL.sub("\ufffd", text)


class GoodEvidence:
    """Caches, for each monitor, the answer of the good check that had evidence last."""

    def __init__(self) -> None:
        self._answers: TTLCache[int, tuple[object, ...]] = TTLCache(
            _MAX_CACHED, GOOD_EVIDENCE_SECONDS, time.monotonic
        )

    def register(self, monitor_id: int | None, answer: tuple[object, ...]) -> bool:
        """Return whether a good check with this answer needs evidence: the answer differs from the
        cached one, or that is too old. The new answer is cached then. A check without a monitor
        always needs evidence.
        """
        if monitor_id is None:
            return True
        if self._answers.get(monitor_id) == answer:
            return False
        self._answers[monitor_id] = answer
        return True


def judge_text(condition: str, lookup: str | None, text: str, cut: bool) -> Cause | None:
    """The cause code if the text condition makes the check fail, else None. A text that is missing
    in a body that was ``cut`` is no failure: the rest of the body may have it.
    """
    if condition not in TEXT_CONDITIONS or not lookup:
        return None
    contained = lookup in text
    if condition == AlertCondition.URL_TEXT:
        return Cause.TEXT_FOUND if contained else None
    return None if contained or cut else Cause.TEXT_MISSING


def excerpt(text: str, lookup: str, redactor: Redactor, margin: int = 60) -> str | None:
    """``lookup`` in ``text`` with ``margin`` characters on each side, on one line and with secrets
    masked; None if ``text`` does not contain it.
    """
    index = text.find(lookup)
    if index < 0:
        return None
    start, end = redactor.widened(text, max(0, index - margin), index + len(lookup) + margin)
    piece = " ".join(redactor.text(text[start:end]).split())
    return ("…" if start else "") + piece + ("…" if end < len(text) else "")
