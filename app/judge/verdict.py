"""The judge: what the results of a monitor's places mean for it. Pure; the recorder writes it, and
``replay`` folds it over stored results.

1. Each place votes with its newest result, unless that is too old (``heard``); ``unknown`` is no
   vote. The monitor's rule makes one verdict of the votes (``decide``). A failure that too few
   places see is ``degraded`` once it has lasted through all confirmations, and nothing before.
2. Of several places that repeat a check at once, one counts for all (``counts``).
3. The state machine runs over the verdicts that count (``advance``).

The states of a monitor (``Stands``):

    CLEAR        nothing is wrong, or nothing is known yet
    CONFIRMING   a check failed; it is repeated before anybody is alerted
    OPEN         an incident is open
    RECOVERING   an incident is open and a check was good; it is repeated before the incident ends
    BY_HAND      a person reported an incident; checks neither end it nor open another beside it

What a result does in each (``n`` is the monitor's ``confirmations``):

    ============  ==========================  ==============================  ========
    stands        failing                     good                            unknown
    ============  ==========================  ==============================  ========
    CLEAR         n = 0: open, else CONFIRM   --                              --
    CONFIRMING    the n-th repeat: open       CLEAR (one good check cancels)  --
    OPEN          --                          RECOVERING                      --
    RECOVERING    OPEN                        end at the first good check     --
    BY_HAND       --                          --                              --
    ============  ==========================  ==============================  ========

``unknown`` neither confirms nor cancels nor ends anything. It also does not bring the next check
forward: a target that policy forbids would otherwise be checked every few seconds for ever.

Maintenance: checks continue, but no incident opens and no alert is sent.

- A failure that is being confirmed when maintenance begins is dropped. Failing checks in
  maintenance start nothing. So an outage that lasts past the end is confirmed again, and its
  incident starts with the first failing check after the end: a service that comes back a few
  seconds late after a planned stop alerts nobody.
- An incident that was open before stays open. Its recovery is followed, but ends it only with the
  first good check after the maintenance (``ended_at`` is then still the first good check of the
  recovery): people who were alerted to the outage hear of its end, but not during maintenance.

Closing an incident by hand resets to CLEAR: if checks still fail, they are confirmed again and a
new incident opens. Pausing resets to CLEAR too; a check on request while paused changes nothing.

A result older than the newest one judged (a slow check overtaken by "check now") changes nothing.
If it is older by more than a check can last, the clock was set back, and the result counts:
otherwise no failure would be noticed until the clock catches up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from app.records import LocationRule, Verdict

# Checks of several places that begin within this time belong to the same slot.
TOGETHER = timedelta(seconds=2)
MOST_FAILURES = 1_000  # counted in a row; more make no difference
_GOOD = (Verdict.UP, Verdict.DEGRADED)
OVERTAKEN_AT_MOST = timedelta(seconds=120)  # twice the longest time limit of a check


MOMENT_S = 1  # what a result covers that says nothing of the time after it


class Check(NamedTuple):
    """The part of a result that counts. ``phases``: milliseconds, in the order of ``PHASES``.

    ``covers``: how long it counts at most, in ms; 0: not at all, None: by the monitor's present
    interval. ``place``: where it was made.
    """

    at: int
    verdict: Verdict
    maintenance: bool = False
    response_time: int | None = None
    phases: tuple[int | None, ...] = ()
    covers: int | None = None
    place: int = 0


class Stands(StrEnum):
    CLEAR = "clear"
    CONFIRMING = "confirming"
    OPEN = "open"
    RECOVERING = "recovering"
    BY_HAND = "by_hand"


class Step(StrEnum):
    """What the recorder has to do besides storing the new state."""

    NONE = "none"
    SUSPECT = "suspect"  # keep the check's evidence: it failed and is being confirmed
    CANCEL = "cancel"  # drop the evidence that was kept
    OPEN = "open"  # open an incident that started at ``Transition.moment``
    END = "end"  # end the open incident at ``Transition.moment``


@dataclass(frozen=True, slots=True)
class State:
    """What is remembered between checks. Times are aware.

    ``failures``: failing checks in a row while confirming. ``started_at``: of the open incident.
    """

    checked_at: datetime | None = None
    verdict: Verdict | None = None
    status_since: datetime | None = None
    failing_since: datetime | None = None
    failures: int = 0
    recovering_since: datetime | None = None
    started_at: datetime | None = None
    by_hand: bool = False

    @property
    def stands(self) -> Stands:
        if self.started_at is not None:
            if self.by_hand:
                return Stands.BY_HAND
            return Stands.RECOVERING if self.recovering_since else Stands.OPEN
        return Stands.CONFIRMING if self.failing_since else Stands.CLEAR


@dataclass(frozen=True, slots=True)
class Observation:
    """A verdict (of all locations together) and when the check that led to it began.

    ``since``: when the failure or the recovery began that is seen, where that was before ``at`` and
    is known only now: an agent brought its check after a newer one of another place was judged.
    None: at ``at``.
    """

    at: datetime
    verdict: Verdict
    maintenance: bool = False
    since: datetime | None = None

    @property
    def began(self) -> datetime:
        return self.since or self.at


@dataclass(frozen=True, slots=True)
class Transition:
    """``recheck``: the next check comes after CONFIRM_SECONDS, not at its next slot. ``overtaken``:
    a newer check was judged before, so this one changed nothing.
    """

    state: State
    step: Step = Step.NONE
    recheck: bool = False
    moment: datetime | None = None
    overtaken: bool = False


def advance(state: State, seen: Observation, confirmations: int) -> Transition:
    """The transition from ``state`` that an observation leads to."""
    if state.checked_at and timedelta(0) < state.checked_at - seen.at <= OVERTAKEN_AT_MOST:
        return Transition(state, overtaken=True)
    changed = state.verdict != seen.verdict
    state = replace(
        state,
        checked_at=seen.at,
        verdict=seen.verdict,
        status_since=seen.began if changed else state.status_since,
    )
    if seen.verdict is Verdict.UNKNOWN:
        return _in_maintenance(state) if seen.maintenance else Transition(state)
    if seen.verdict is Verdict.DOWN:
        return _failing(state, seen, confirmations)
    return _good(state, seen)


def backdated(state: State, seen: Observation) -> State:
    """The state, if what is being confirmed in it began as early as ``seen`` shows."""
    since = seen.since
    if since is None or seen.verdict is Verdict.UNKNOWN:
        return state
    confirmed = Stands.CONFIRMING if seen.verdict is Verdict.DOWN else Stands.RECOVERING
    known = state.failing_since or state.recovering_since
    if state.stands is not confirmed or known is None or known <= since:
        return state
    status_since = since if state.status_since == known else state.status_since
    if confirmed is Stands.CONFIRMING:
        return replace(state, failing_since=since, status_since=status_since)
    return replace(state, recovering_since=since, status_since=status_since)


def rejudged(state: State, verdict: Verdict, at: datetime, *, maintenance: bool) -> Transition:
    """The transition when a monitor's rule or places changed at ``at``, and by what its places saw
    last it is ``verdict`` now.

    No check was made, so nothing opens: a failure, or that nothing is known, is for the next checks
    to say, which come soon (``recheck``). A failure that is no longer one ends at once.
    """
    if verdict is Verdict.DOWN and state.stands in (Stands.OPEN, Stands.RECOVERING):
        return Transition(replace(_turned(state, verdict, at), recovering_since=None))
    if verdict in (Verdict.DOWN, Verdict.UNKNOWN):
        known = state.verdict not in (None, verdict)
        return Transition(state, recheck=known and not maintenance)
    was_open = state.stands is Stands.OPEN
    state = _turned(state, verdict, at)
    if state.stands is Stands.CONFIRMING:
        return Transition(cleared(state), Step.CANCEL)
    if was_open and maintenance:
        return Transition(replace(state, recovering_since=at))
    if was_open:
        return Transition(cleared(state), Step.END, moment=at)
    return Transition(state)


def _turned(state: State, verdict: Verdict, at: datetime) -> State:
    if state.verdict is verdict:
        return state
    return replace(state, verdict=verdict, status_since=at)


def cleared(state: State) -> State:
    """The state after an incident was closed by hand, or the monitor was paused or resumed."""
    return replace(
        state,
        failing_since=None,
        failures=0,
        recovering_since=None,
        started_at=None,
        by_hand=False,
    )


def _in_maintenance(state: State) -> Transition:
    """A check in maintenance that was not good: drop a failure that was being confirmed."""
    if state.stands is Stands.CONFIRMING:
        return Transition(cleared(state), Step.CANCEL)
    return Transition(state)


def _failing(state: State, seen: Observation, confirmations: int) -> Transition:
    if state.stands is Stands.RECOVERING:
        state = replace(state, recovering_since=None)
    if state.stands in (Stands.OPEN, Stands.BY_HAND):
        return Transition(state)
    if seen.maintenance:
        return _in_maintenance(state)
    since = state.failing_since or seen.began
    failures = state.failures + 1
    if failures > confirmations:
        # It may have failed in a maintenance before, which does not count.
        down_since = max(state.status_since or since, since)
        opened = replace(cleared(state), started_at=since, status_since=down_since)
        return Transition(opened, Step.OPEN, moment=since)
    confirming = replace(state, failing_since=since, failures=failures)
    return Transition(confirming, Step.SUSPECT, recheck=True)


def _good(state: State, seen: Observation) -> Transition:
    if state.stands is Stands.CONFIRMING:
        return Transition(cleared(state), Step.CANCEL)
    if state.stands is Stands.OPEN:
        recovering = replace(state, recovering_since=seen.began)
        return Transition(recovering, recheck=not seen.maintenance)
    since, started = state.recovering_since, state.started_at
    if since and started and not seen.maintenance:
        # After the clock was set back, an incident must not end before it began.
        return Transition(cleared(state), Step.END, moment=max(since, started))
    return Transition(state)


# --- Votes


@dataclass(frozen=True, slots=True)
class Vote:
    """The newest result of one location. ``lasting``: it failed in this check and in all of its
    confirmations. ``failures``: failing checks in a row.
    """

    location: int
    at: datetime
    verdict: Verdict
    lasting: bool = False
    failures: int = 0


def heard(
    votes: Iterable[Vote], now: datetime, stale_after: timedelta, *, maintenance: bool
) -> Sequence[Vote]:
    """The votes that count. ``maintenance``: the monitor is in one; what failed there is no vote
    after it.

    ``stale_after``: a location whose newest result is older has no vote, so that one that was
    switched off while it saw a failure does not keep an incident open for ever. The same goes for
    a result as far in the future, from a clock that was ahead.
    """
    return [
        vote
        for vote in votes
        if vote.verdict is not Verdict.UNKNOWN
        and abs(now - vote.at) <= stale_after
        and (maintenance or not failed_in_maintenance(vote))
    ]


def failed_in_maintenance(vote: Vote) -> bool:
    """Whether the newest check of a location failed in maintenance: it is not among its
    ``failures``.
    """
    return vote.verdict is Verdict.DOWN and not vote.failures


def failures_after(failures: int, verdict: Verdict, *, maintenance: bool) -> int:
    """Failing checks in a row in a place that had so many, with one more. What fails in maintenance
    confirms nothing after it.
    """
    if maintenance or verdict in _GOOD:
        return 0
    return min(failures + 1, MOST_FAILURES) if verdict is Verdict.DOWN else failures


def repeated(votes: Iterable[Vote], since: datetime) -> Sequence[Vote]:
    """The votes without failures that were not repeated in a check from ``since`` on; they count as
    good. A location that failed once confirms no failure that another one still sees.
    """
    return [
        vote
        if vote.verdict is not Verdict.DOWN or (vote.at >= since and vote.failures > 1)
        else replace(vote, verdict=Verdict.UP)
        for vote in votes
    ]


def old_failures_alone(votes: Iterable[Vote], since: datetime) -> bool:
    """Whether the votes are ``degraded`` by failures from before ``since`` alone."""
    degrading = [vote for vote in votes if vote.lasting or vote.verdict is Verdict.DEGRADED]
    return all(vote.verdict is Verdict.DOWN and vote.at < since for vote in degrading)


def decide(
    votes: Sequence[Vote], rule: str, awaited: int = 0, *, incident: bool = False
) -> Verdict:
    """The verdict of all locations together, from the votes that count; ``unknown`` of none.

    ``awaited``: how many more locations are about to vote for the first time. They count as voters:
    of a new monitor, the location that is first would otherwise be the majority. Where an
    ``incident`` is open they count as failing: their silence must not end it.
    """
    if not votes:
        return Verdict.UNKNOWN
    down = [vote for vote in votes if vote.verdict is Verdict.DOWN]
    failing = len(down) + (awaited if incident else 0)
    if failing and failing >= _needed(rule, len(votes) + awaited):
        return Verdict.DOWN
    slow = any(vote.verdict is Verdict.DEGRADED for vote in votes)
    return Verdict.DEGRADED if slow or any(vote.lasting for vote in down) else Verdict.UP


def since_each(checks: Iterable[Check], *, maintenance: bool) -> dict[int, datetime]:
    """Since when each location fails, or is good, by these checks of all (in order).
    ``maintenance``: the monitor is in one; what failed there counts for nothing after it.
    """
    found: dict[int, tuple[bool, int]] = {}
    for check in checks:
        fails = check.verdict is Verdict.DOWN
        if check.verdict is Verdict.UNKNOWN or (fails and check.maintenance and not maintenance):
            continue
        if check.place not in found or found[check.place][0] is not fails:
            found[check.place] = fails, check.at
    return {place: datetime.fromtimestamp(at / 1000, UTC) for place, (_fails, at) in found.items()}


def decided_since(
    votes: Sequence[Vote],
    since: Mapping[int, datetime],
    rule: str,
    awaited: int = 0,
    *,
    down: bool,
) -> datetime:
    """Since when the votes are ``down`` together, as they are now, or are it no more. ``since``:
    since when each location fails or is good (``since_each``). An incident is open where they are
    not ``down``, so those that are ``awaited`` count as failing (``decide``).
    """
    voters = len(votes) + awaited
    needed = _needed(rule, voters)
    times = sorted(
        since.get(vote.location, vote.at)
        for vote in votes
        if (vote.verdict is Verdict.DOWN) is down
    )
    # The failing one that made enough of them, or the good one that left too few.
    return times[needed - 1 if down else voters - needed]


def _needed(rule: str, voters: int) -> int:
    needed = {LocationRule.ANY: 1, LocationRule.MAJORITY: voters // 2 + 1, LocationRule.ALL: voters}
    return needed[LocationRule(rule)]


# --- Which checks count


def counts(
    state: State,
    seen: Verdict,
    votes: Sequence[Vote],
    verdict: Verdict,
    rule: str,
    awaited: int,
    *,
    repeats: bool,
    since: datetime | None,
    maintenance: bool,
) -> bool:
    """Whether the state machine counts a check of one of several places, which has ``seen`` this;
    ``verdict`` is that of all ``votes``. ``repeats``: it repeats the check that was counted last,
    after whose time, ``since``, a failure must be seen again by enough places to be confirmed.
    In ``maintenance`` none is: what is being confirmed is dropped.
    """
    if not _tells(seen, verdict, state.stands, repeats=repeats):
        return False
    if since is None or maintenance or not confirms(state.stands, verdict):
        return True
    return decide(repeated(votes, since), rule, awaited) is Verdict.DOWN


def _tells(seen: Verdict, vote: Verdict, stands: Stands, *, repeats: bool) -> bool:
    """Whether the vote of all places is new to the state machine, after one has ``seen`` this.

    When several places repeat a check at once, they confirm once together, with the first of them
    that ``repeats`` it. A result without a vote changes nothing. A good check confirms no failure
    that another place saw: only one that fails again does.
    """
    if seen is Verdict.UNKNOWN and vote is not Verdict.UNKNOWN:
        return False
    down = vote is Verdict.DOWN
    if down and seen in _GOOD and stands in (Stands.CLEAR, Stands.CONFIRMING):
        return False
    return repeats or down is not (stands is Stands.CONFIRMING)


def repeats(
    state: State, previous: datetime | None, judged_at: datetime | None, failures: int
) -> bool:
    """Whether a place repeats the check that was counted last, which began at ``judged_at``: where
    something is being confirmed, it has checked since, or with it. ``previous`` is when its check
    before this one began, ``failures`` how many failing checks in a row it has now.

    A place that failed more often than was counted repeats it too: the failure that was counted may
    be its own, which an agent brought after later checks of others.

    Places check at the same times, and the first failure is recorded within milliseconds: the
    checks that other places begin just after it repeat nothing. Counted as repeats, they would
    confirm a failure that lasted for a moment.
    """
    if state.stands not in (Stands.CONFIRMING, Stands.RECOVERING) or judged_at is None:
        return True
    if state.stands is Stands.CONFIRMING and failures > state.failures:
        return True
    return previous is not None and previous >= judged_at - TOGETHER


def confirms(stands: Stands, vote: Verdict) -> bool:
    """Whether such a vote would confirm a failure. Only ``repeated`` votes do."""
    return stands is Stands.CONFIRMING and vote is Verdict.DOWN
