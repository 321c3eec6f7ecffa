"""Is a monitor slow for so long that people are alerted? (decision 19)

``SlowWindows`` takes the results of a monitor in their order. Each place votes by the median
response time of its good checks outside of maintenance in the last minutes (``SlowRules``), if
there are ``MIN_CHECKS``: it votes slow if the median is above the limit. Its location rule decides
over these votes as it does over failures.

    ============  ===================================  =============================
    incident      the places are slow                  they are not
    ============  ===================================  =============================
    none          opens, at a check that is slow too   --
    degraded      --                                   ends at the second such check
    ============  ===================================  =============================

An incident starts with the check from which on slow checks outnumber the others by the most, and
ends at the first of the two checks. After the end of an incident, a whole window and ``MIN_CHECKS``
must pass before the next one opens. Otherwise a monitor whose median lies at its limit would alert
with each check, and a monitor that is slow after an outage would alert 10 s after the message of
its end.

A fast check opens nothing, so the recorder's fast path (``steady``) need not read earlier checks.
Failures are not judged here: ``verdict.advance`` turns a degraded incident into one that is down,
which then ends as any other does.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import NamedTuple

from app.i18n import N_, _
from app.judge.verdict import (
    SAME_ROUND,
    Effect,
    PastResult,
    State,
    Transition,
    Vote,
    verdict_of_votes,
)
from app.records import GOOD_VERDICTS, PHASES, Verdict
from app.rules.figures import in_one_unit
from app.rules.time import from_ms, to_ms

MIN_CHECKS = 3  # with fewer, a place has no vote
# A phase is the cause if it grew by at least this part of the whole response time.
MIN_GROWTH = 0.2
_SAME_ROUND_MS = SAME_ROUND // timedelta(milliseconds=1)
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SlowRules:
    """``limit``: the response time in ms above which a check is slow. ``window``: for how long a
    check counts, in ms. ``since``: earlier results are of another target. ``places``: the ids of
    those that check the monitor; empty for a heartbeat.
    """

    limit: int
    window: int
    location_rule: str
    since: datetime = _LONG_AGO
    places: Collection[int] = ()

    @property
    def reach(self) -> timedelta:
        """For how long before a check results are needed to judge it."""
        return timedelta(milliseconds=2 * self.window)

    def is_slow(self, response_time: int | None) -> bool:
        return (response_time or 0) > self.limit

    def counts(self, check: PastResult) -> bool:
        return (
            check.response_time is not None
            and check.verdict in GOOD_VERDICTS
            and not check.maintenance
            and check.covers_ms != 0
            and (not self.places or check.place in self.places)
            and check.at_ms >= to_ms(self.since)
        )


class _Window:
    """The last checks of a place, and their response times in ascending order."""

    __slots__ = ("checks", "times")

    def __init__(self) -> None:
        self.checks: deque[PastResult] = deque()
        self.times: list[int] = []

    def add(self, check: PastResult) -> None:
        self.checks.append(check)
        insort(self.times, check.response_time or 0)

    def drop_until(self, at_ms: int) -> None:
        while self.checks and self.checks[0].at_ms <= at_ms:
            dropped = self.checks.popleft()
            del self.times[bisect_left(self.times, dropped.response_time or 0)]

    def is_slow(self, limit: int) -> bool | None:
        """None: there are too few checks."""
        return None if len(self.times) < MIN_CHECKS else median(self.times) > limit


class SlowWindows:
    """Takes results in their order, and judges the newest of them (``judge_newest``)."""

    def __init__(self, rules: SlowRules) -> None:
        self._rules = rules
        self._windows: dict[int, _Window] = {}
        self._newest: PastResult | None = None  # the newest one that counts
        self._verdict = Verdict.UNKNOWN  # DOWN: slow; UNKNOWN: too few checks
        self._fast_since: int | None = None  # the time (ms) since which the places are not slow

    def add(self, check: PastResult) -> None:
        if not self._rules.counts(check):
            return
        self._newest = check
        self._windows.setdefault(check.place, _Window()).add(check)
        for window in self._windows.values():
            window.drop_until(check.at_ms - self._rules.window)
        self._verdict = verdict_of_votes([*self._votes(check.at_ms)], self._rules.location_rule)
        if self._verdict is Verdict.DOWN:
            self._fast_since = None
        elif self._verdict is Verdict.UP and self._fast_since is None:
            self._fast_since = check.at_ms

    def judge_newest(
        self, state: State, ended_at: datetime | None, *, conclusive: bool = False
    ) -> Transition:
        """``ended_at``: the end of the last incident. ``conclusive``: one check is enough to end
        the incident; otherwise a ``recheck`` does.
        """
        newest, fast_since = self._newest, self._fast_since
        if newest is None or self._verdict is Verdict.UNKNOWN:
            return Transition(state)
        if state.slow_since is None:
            return self._opened(state, newest, ended_at or _LONG_AGO)
        if self._verdict is Verdict.DOWN or fast_since is None:
            return Transition(state)
        if not conclusive and newest.at_ms - fast_since < _SAME_ROUND_MS:
            return Transition(state, recheck=True)
        # If the limit was changed, earlier checks may have been fast all the time.
        since = from_ms(fast_since)
        moment = since if since > state.slow_since else from_ms(newest.at_ms)
        return Transition(replace(state, slow_since=None), Effect.END, moment=moment)

    def slow_checks(self) -> Sequence[PastResult]:
        """The checks in the windows of the places that are slow, in order."""
        return sorted(
            check
            for window in self._windows.values()
            if window.is_slow(self._rules.limit)
            for check in window.checks
        )

    def voters(self) -> int:
        """How many places have enough checks."""
        limit = self._rules.limit
        return sum(window.is_slow(limit) is not None for window in self._windows.values())

    def _votes(self, at_ms: int) -> Iterator[Vote]:
        for place, window in self._windows.items():
            is_slow = window.is_slow(self._rules.limit)
            if is_slow is not None:
                yield Vote(place, from_ms(at_ms), Verdict.DOWN if is_slow else Verdict.UP)

    def _opened(self, state: State, newest: PastResult, ended_at: datetime) -> Transition:
        if self._verdict is not Verdict.DOWN or not self._rules.is_slow(newest.response_time):
            return Transition(state)
        ended_ms = to_ms(ended_at)
        is_same_target = ended_at >= self._rules.since
        if is_same_target and newest.at_ms - ended_ms < self._rules.window:
            return Transition(state)  # the last incident ended less than a window ago
        since = [check for check in self.slow_checks() if check.at_ms >= ended_ms]
        places = {check.place for check in self.slow_checks()}
        if any(sum(check.place == place for check in since) < MIN_CHECKS for place in places):
            return Transition(state)
        start = from_ms(self._start_ms(since))
        return Transition(replace(state, slow_since=start), Effect.OPEN, moment=start)

    def _start_ms(self, checks: Sequence[PastResult]) -> int:
        """The time of the check from which on slow ones outnumber the others by the most."""
        largest_lead = lead = 0
        start_ms = checks[-1].at_ms
        for check in reversed(checks):
            lead += 1 if self._rules.is_slow(check.response_time) else -1
            if lead >= largest_lead:
                largest_lead, start_ms = lead, check.at_ms
        return start_ms


def spans(rules: SlowRules, checks: Iterable[PastResult]) -> list[tuple[datetime, datetime | None]]:
    """The incidents that these results would have opened, with their ends."""
    windows, incidents = SlowWindows(rules), list[tuple[datetime, datetime | None]]()
    state, ended_at = State(), None
    for check in checks:
        windows.add(check)
        if state.slow_since is None and not rules.is_slow(check.response_time):
            continue  # a fast check opens nothing
        transition = windows.judge_newest(state, ended_at)
        if transition.effect is Effect.OPEN and transition.moment:
            incidents.append((transition.moment, None))
        elif transition.effect is Effect.END and state.slow_since:
            ended_at = transition.moment
            incidents[-1] = (state.slow_since, ended_at)
        state = transition.state
    return incidents


# --- The cause

# A sentence for each phase that may take longer than before. The answer of a ping or of a name
# server has no first byte (``_ANSWER``).
_PARTS = {
    "dns": N_("The DNS lookup takes %(now)s, %(before)s."),
    "connect": N_("Connecting takes %(now)s, %(before)s."),
    "tls": N_("The TLS handshake takes %(now)s, %(before)s."),
    "ttfb": N_("The first byte takes %(now)s, %(before)s."),
    "download": N_("The body takes %(now)s, %(before)s."),
}
_ANSWER = N_("The answer takes %(now)s, %(before)s.")
_RUN = N_("A run takes %(now)s, %(before)s.")
_TOTAL = N_("%(total)s in all; above %(limit)s is slow.")
_ALONE = N_("The answer takes %(now)s; above %(limit)s is slow.")
_IN_WEEK, _EARLIER = N_("up from %(time)s in the week before"), N_("up from %(time)s")


class Usual(NamedTuple):
    """The usual times before the slow checks, in ms; ``response_time`` is the sum of the phases.
    ``in_week``: those of the week before, not only of the last checks before.
    """

    response_time: int | None
    phases: Mapping[str, int | None]
    in_week: bool = True


def cause_of(checks: Sequence[PastResult], usual: Usual | None, limit: int) -> str:
    """Why these checks are slow: the phase that grew, and by how much."""
    total = round(median(check.response_time or 0 for check in checks))
    whole, highest = in_one_unit(total, limit)
    if usual is None or usual.response_time is None:
        return _(_ALONE, now=whole, limit=highest)
    name, now, before = _grown(checks, total, usual)
    if now - before < MIN_GROWTH * total:
        # The sentence compares nothing: failures may have hidden that it was fast.
        return _(_ALONE, now=whole, limit=highest)
    whole, highest, part, earlier = in_one_unit(total, limit, now, before)
    when = _(_IN_WEEK if usual.in_week else _EARLIER, time=earlier)
    sentence = _(name, now=part, before=when)
    if now == total:
        return sentence
    return f"{sentence} " + _(_TOTAL, total=whole, limit=highest)


def _grown(checks: Sequence[PastResult], total: int, usual: Usual) -> tuple[str, int, int]:
    """The sentence for the phase that grew most, and its times now and before."""
    spent = map(_median, zip(*(check.phases for check in checks), strict=True))
    by_phase = zip(PHASES, spent, strict=True)
    measured = {phase: ms for phase, ms in by_phase if ms is not None}
    if not measured:
        return _RUN, total, usual.response_time or 0
    phase = max(measured, key=lambda name: measured[name] - (usual.phases.get(name) or 0))
    is_answer = phase == "ttfb" and "connect" not in measured
    sentence = _ANSWER if is_answer else _PARTS[phase]
    return sentence, measured[phase], usual.phases.get(phase) or 0


def _median(times: Sequence[int | None]) -> int | None:
    measured = [time for time in times if time is not None]
    return round(median(measured)) if measured else None
