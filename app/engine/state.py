"""The state machine: what a check's result means for a monitor. Pure; the recorder writes it.

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

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from app.records import Verdict

OVERTAKEN_AT_MOST = timedelta(seconds=120)  # twice the longest time limit of a check


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
