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
from app.records import (
    TEXT_CONDITIONS,
    AlertCondition,
    Cause,
    CheckSpec,
    Outcome,
    Result,
    Verdict,
)

UNREACHABLE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN})
RESET = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED})
_UNKNOWN_CAUSES = frozenset({Cause.BLOCKED_BY_POLICY, Cause.NETWORK_DOWN, Cause.CHECK_ERROR})

# Evidence of good checks is there to compare a failure with. Storing it each time would double the
# cost of a check, so it is stored when something about the answer changed, and at least this often.
GOOD_EVIDENCE_SECONDS = 600.0
_MAX_CACHED = 50_000
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a check is not good: ``code`` is from decision 10."""

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
    sentence = N_("The answer took %(time)s ms; above %(limit)s ms is slow.")
    sentence = _(sentence, time=response_ms, limit=spec.slow_after)
    return Verdict.DEGRADED, Failure(Cause.SLOW_RESPONSE, sentence)


def milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def connect_failure(number: int, address: str, seconds: float, words: str) -> Failure:
    """Why no TCP connection to ``address`` was made, by the system's error ``number``. ``words``:
    the text of any other error. ``seconds``: how long it was tried.
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


def clean(text: str) -> str:
    """Text without control characters: a NUL breaks databases, an escape breaks terminals."""
    return _CONTROL.sub("\ufffd", text)


class GoodEvidence:
    """Caches for each monitor of which answer its last evidence of a good check is."""

    def __init__(self) -> None:
        self._answers: TTLCache[int, tuple[object, ...]] = TTLCache(
            _MAX_CACHED, GOOD_EVIDENCE_SECONDS, time.monotonic
        )

    def is_due(self, monitor_id: int | None, answer: tuple[object, ...]) -> bool:
        """Whether to make evidence of a good check. ``answer``: the parts of it to compare."""
        if monitor_id is None:
            return True
        if self._answers.get(monitor_id) == answer:
            return False
        self._answers[monitor_id] = answer
        return True


def judge_text(condition: str, lookup: str | None, text: str, cut: bool) -> Cause | None:
    """The cause by a text condition, or None. A missing text in a cut body is not a fault."""
    if condition not in TEXT_CONDITIONS or not lookup:
        return None
    contained = lookup in text
    if condition == AlertCondition.URL_TEXT:
        return Cause.TEXT_FOUND if contained else None
    return None if contained or cut else Cause.TEXT_MISSING


def excerpt(text: str, lookup: str, redactor: Redactor, around: int = 60) -> str | None:
    """The text ``lookup`` with ``around`` characters on each side, on one line; None if it is not
    there.
    """
    index = text.find(lookup)
    if index < 0:
        return None
    start, end = redactor.widened(text, max(0, index - around), index + len(lookup) + around)
    piece = " ".join(redactor.text(text[start:end]).split())
    return ("…" if start else "") + piece + ("…" if end < len(text) else "")
