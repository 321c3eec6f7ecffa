"""When is a monitor down? ``judge_result`` judges each result of one of its places.

The verdict of a single check (``up``, ``down``, ``degraded``: slow, or ``unknown``) is made in
``app/checks/``, that of a heartbeat in ``heartbeat.py``. Here:

1. Each place votes with its newest result, unless that result is ``unknown`` or too old
   (``valid_votes``, ``vote_valid_for``). Its location rule makes one verdict of the votes
   (``verdict_of_votes``): ``down`` if enough places see a failure; else ``degraded`` if a vote is
   ``degraded``, or if too few places see a failure that has lasted through all confirmations; else
   ``up``. Without a vote it is ``unknown``.
2. If several places repeat a check at the same time, one counts for all (``_is_counted``).
3. The state machine runs over the verdicts that count (``advance``).

``replay.py`` judges the results that arrive after newer ones of other places. When a monitor's
rules or places change, its votes are judged again (``judge_votes``). A monitor becomes unknown
without a result if no result counts any more, or if all its places are silent
(``app/engine/silence.py``, ``show_unknown`` in ``app/engine/recorder/monitors.py``).

The stages of a monitor (``Stage``). Pages show CONFIRMING as "failing", and BEHIND as
"unreachable":

    CLEAR        no outage: nothing fails, it is slow or unknown, or no check has been made yet
    CONFIRMING   a check failed; it is repeated before an incident opens
    OPEN         an incident is open
    RECOVERING   an incident is open and a check was good; it is repeated before the incident ends
    BY_HAND      a person reported an incident; checks neither end it nor open another beside it
    BEHIND       it fails, and so does a parent, a monitor that it is reached through (depends_on)

The next stage, by the verdict. Failing is ``down``, good is ``up`` or ``degraded``; ``n`` is the
monitor's ``confirmations``:

    ============  =============================  ==============================  ========
    stage         failing                        good                            unknown
    ============  =============================  ==============================  ========
    CLEAR         n = 0: OPEN, else CONFIRMING   --                              --
    CONFIRMING    the n-th repeat: OPEN          CLEAR (one good check cancels)  --
    OPEN          --                             RECOVERING                      --
    RECOVERING    OPEN                           CLEAR (the incident ends)       --
    BY_HAND       --                             --                              --
    BEHIND        as CLEAR                       CLEAR                           CLEAR
    ============  =============================  ==============================  ========

The second good check ends an incident; its ``ended_at`` is the time of the first. The results of a
heartbeat are conclusive: its first failure opens an incident, whatever ``n`` is, and its first
success ends it. ``unknown`` neither confirms, cancels nor ends anything but BEHIND, except in
maintenance (below). It also does not bring the next check forward: otherwise a target that the
policy forbids would be checked every few seconds for ever.

A monitor with parents (``Parents``) becomes BEHIND instead of CONFIRMING or OPEN while a parent is
down, or the failure or recovery of a parent is not confirmed. If the monitor fails before its
parents, it stays CONFIRMING until they have been checked (``Parents.awaited``), also if ``n`` is 0.
When the parents are good again, the confirmation of its failure starts again, and its incident
starts after the end of theirs.

Maintenance: checks continue, but no incident opens and no alert is sent.

- A failure that is being confirmed is dropped at the first check in maintenance. Failing
  checks in maintenance start nothing. Therefore an outage that outlasts the maintenance is
  confirmed again, and its incident starts with the first failing check after the end: a service
  that comes back a few seconds late after a planned stop alerts nobody.
- An incident that was open before stays open. If it recovers in maintenance, it ends with the first
  good check after the maintenance, and its ``ended_at`` is the first good check of the recovery:
  people who were alerted to the outage are notified of its end, but not during maintenance.

Closing an incident by hand leads to CLEAR: if checks still fail, they are confirmed again and a
new incident opens. Pausing leads to CLEAR too; a check on request while paused changes nothing.

A result that is older than the newest judged one of its place is outdated and changes nothing. A
checker brings one if a slow check ends after a "check now"; ``replay`` says how those of agents
count. If it is older by more than ``MAX_OUTDATED``, the clock was set back, and the result counts:
otherwise no failure would be noticed until the clock catches up.

All times are the start times of checks. When a result was recorded makes no difference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from app.records import GOOD_VERDICTS, LocationRule, Verdict
from app.rules.clocks import believable

# Checks of several places that start within this time belong to the same round.
SAME_ROUND = timedelta(seconds=2)
MAX_COUNTED_FAILURES = 1_000  # in a row; more make no difference
MAX_OUTDATED = timedelta(seconds=120)  # twice the longest time limit of a check
MIN_COVER_S = 1  # the cover of a result that counts only at the time of its check


def vote_valid_for(monitor: Any) -> timedelta:
    """How long a result counts as the vote of its place: two intervals and the time limit.
    ``monitor`` is a row, with its exact ``interval`` in seconds.
    """
    return timedelta(seconds=2 * monitor.interval + monitor.timeout)


class PastResult(NamedTuple):
    """The fields of a stored result that figures and replays need. Times are milliseconds;
    ``phases`` are in the order of ``PHASES``.

    ``covers_ms``: how long it counts at most. 0: not at all; None: as the monitor's present
    interval says. ``place``: the id of the place that made the check.
    """

    at_ms: int
    verdict: Verdict
    maintenance: bool = False
    response_time: int | None = None
    phases: tuple[int | None, ...] = ()
    covers_ms: int | None = None
    place: int = 0


class Stage(StrEnum):
    """A monitor's stage on the way into an incident or out of it: the table above."""

    CLEAR = "clear"
    CONFIRMING = "confirming"
    OPEN = "open"
    RECOVERING = "recovering"
    BY_HAND = "by_hand"
    BEHIND = "behind"


class Effect(StrEnum):
    """What the recorder does, besides storing the new state."""

    NONE = "none"
    CONFIRM = "confirm"  # store the check's evidence: it failed and is being confirmed
    CANCEL = "cancel"  # drop the stored evidence
    # open an incident that started at ``Transition.moment``, or make the degraded one down
    OPEN = "open"
    END = "end"  # end the open incident at ``Transition.moment``


@dataclass(frozen=True, slots=True)
class State:
    """The state of a monitor between checks. Times are aware.

    ``failures``: failing checks in a row while confirming. ``down_since``: the start of the open
    incident; if it was degraded first, when it became down. ``by_hand``: a person reported it.
    ``slow_since``: the start of the open incident while it is degraded (``app/judge/slow.py``);
    ``down_since`` is None then, and failures are confirmed as without an incident. ``behind``: the
    id of the failing parent, while the monitor is unreachable because of it.
    """

    checked_at: datetime | None = None
    verdict: Verdict | None = None
    status_since: datetime | None = None
    failing_since: datetime | None = None
    failures: int = 0
    recovering_since: datetime | None = None
    down_since: datetime | None = None
    by_hand: bool = False
    slow_since: datetime | None = None
    behind: int | None = None

    @property
    def stage(self) -> Stage:
        if self.down_since is not None:
            if self.by_hand:
                return Stage.BY_HAND
            return Stage.RECOVERING if self.recovering_since else Stage.OPEN
        if self.behind is not None:
            return Stage.BEHIND
        return Stage.CONFIRMING if self.failing_since else Stage.CLEAR


@dataclass(frozen=True, slots=True)
class Parents:
    """The parents of a monitor, direct and indirect, at the time of a check. ``failing``: the id of
    a parent for which ``is_failing`` holds. ``awaited``: a parent has not been checked since the
    monitor began to fail. ``good_since``: when the last outage of the parents ended.
    """

    failing: int | None = None
    awaited: bool = False
    good_since: datetime | None = None


NO_PARENTS = Parents()


ALL_PLACES = 0  # in place of an id: the verdict of all places together


@dataclass(frozen=True, slots=True)
class NewResult:
    """The parts of a result that the judge needs. ``at``: the start of the check. ``conclusive``
    (no repeat confirms it) and ``since`` (when its failure began, if that was before the check) are
    those of the ``Outcome``.
    """

    place: int
    at: datetime
    verdict: Verdict
    maintenance: bool = False
    conclusive: bool = False
    since: datetime | None = None
    parents: Parents = NO_PARENTS


@dataclass(frozen=True, slots=True)
class Transition:
    """The next state, and what the recorder has to do. ``moment``: when the incident started or
    ended, by ``effect``. ``recheck``: the next check comes after CONFIRM_SECONDS, not at its
    scheduled time. ``outdated``: a newer check was judged before, and this one changed nothing.
    """

    state: State
    effect: Effect = Effect.NONE
    recheck: bool = False
    moment: datetime | None = None
    outdated: bool = False


def advance(state: State, result: NewResult, confirmations: int) -> Transition:
    """Apply a result to the state, by the table above. The verdict of ``result`` is that of all
    places together.
    """
    if state.checked_at and timedelta(0) < state.checked_at - result.at <= MAX_OUTDATED:
        return Transition(state, outdated=True)
    changed = state.verdict != result.verdict
    state = replace(
        state,
        checked_at=result.at,
        verdict=result.verdict,
        status_since=result.at if changed else state.status_since,
    )
    if result.verdict is Verdict.UNKNOWN:
        state = replace(state, behind=None)
        return _in_maintenance(state) if result.maintenance else Transition(state)
    if result.verdict is Verdict.DOWN:
        return _failing(state, result, confirmations)
    return _good(state, result)


def cleared(state: State) -> State:
    """The state in stage CLEAR: no failure, no recovery, no outage. The verdict and a degraded
    incident stay.
    """
    return State(state.checked_at, state.verdict, state.status_since, slow_since=state.slow_since)


def _in_maintenance(state: State) -> Transition:
    """After a check in maintenance that was not good. A failure that was being confirmed is
    dropped.
    """
    if state.stage in (Stage.CONFIRMING, Stage.BEHIND):
        return Transition(cleared(state), Effect.CANCEL)
    return Transition(state)


def _failing(state: State, result: NewResult, confirmations: int) -> Transition:
    if state.stage is Stage.RECOVERING:
        state = replace(state, recovering_since=None)
    if state.stage in (Stage.OPEN, Stage.BY_HAND):
        return Transition(state)
    if result.maintenance:
        return _in_maintenance(state)
    parents = result.parents
    if parents.failing is not None:
        return behind_parent(state, parents.failing)
    since = state.failing_since or result.since or result.at
    since = max(since, parents.good_since or since)
    failures = state.failures + 1
    if (failures > confirmations or result.conclusive) and not parents.awaited:
        # The monitor is down since ``since``, even if it also failed in a maintenance before.
        status_since = max(state.status_since or since, since)
        opened = replace(
            cleared(state), down_since=since, status_since=status_since, slow_since=None
        )
        return Transition(opened, Effect.OPEN, moment=since)
    failures = min(failures, MAX_COUNTED_FAILURES)
    confirming = replace(state, failing_since=since, failures=failures, behind=None)
    return Transition(confirming, Effect.CONFIRM, recheck=True)


def behind_parent(state: State, parent: int) -> Transition:
    """The transition of a failing monitor without an incident whose ``parent`` fails too."""
    effect = Effect.CANCEL if state.stage is Stage.CONFIRMING else Effect.NONE
    return Transition(replace(cleared(state), behind=parent), effect)


def _good(state: State, result: NewResult) -> Transition:
    if state.stage in (Stage.CONFIRMING, Stage.BEHIND):
        return Transition(cleared(state), Effect.CANCEL)
    if state.stage is Stage.OPEN:
        state = replace(state, recovering_since=result.at)
        if not result.conclusive:
            return Transition(state, recheck=not result.maintenance)
    recovering_since, down_since = state.recovering_since, state.down_since
    if recovering_since and down_since and not result.maintenance:
        # After the clock was set back, an incident must not end before it began.
        ended_at = max(recovering_since, down_since)
        return Transition(cleared(state), Effect.END, moment=ended_at)
    return Transition(state)


def after_gap(state: State) -> State:
    """The state after a time without checks. An incident goes on. A failure that is being
    confirmed is dropped: it must not open an incident that began before the gap.
    """
    return cleared(state) if state.stage is Stage.CONFIRMING else state


def has_outage(state: State) -> bool:
    """Whether checks have opened an incident, and the monitor is down. A degraded incident is no
    outage.
    """
    return state.stage in (Stage.OPEN, Stage.RECOVERING)


def is_failing(state: State) -> bool:
    """Whether the failures of children are explained by this monitor: it is down, or its failure or
    recovery is not confirmed. A monitor that is unknown explains none.
    """
    if state.verdict in (None, Verdict.UNKNOWN):
        return False
    return state.verdict is Verdict.DOWN or has_outage(state) or state.stage is Stage.CONFIRMING


def failing_parent(parents: Iterable[tuple[int, State]]) -> int | None:
    """The failing parent that the monitor is shown behind; None if no parent fails. ``parents``:
    ids and states. A parent that is BEHIND another comes last: it was not the first to fail.
    """
    failing = [(id, state) for id, state in parents if is_failing(state)]
    first = min(
        failing,
        key=lambda parent: (parent[1].stage is Stage.BEHIND, not has_outage(parent[1]), parent[0]),
        default=None,
    )
    return None if first is None else first[0]


# --- Votes


@dataclass(frozen=True, slots=True)
class Vote:
    """The newest result of one place. ``failures``: failing checks in a row there. ``persistent``:
    they are more than the monitor's confirmations.
    """

    place: int
    at: datetime
    verdict: Verdict
    persistent: bool = False
    failures: int = 0


def valid_votes(
    votes: Iterable[Vote], now: datetime, valid_for: timedelta, *, maintenance: bool
) -> Sequence[Vote]:
    """The votes that count. ``maintenance``: whether the monitor is in maintenance; a check that
    failed in maintenance is no vote after it.

    A place whose newest result is older than ``valid_for`` has no vote: otherwise a place that was
    switched off while it saw a failure would keep an incident open for ever. A result as far in the
    future, from a clock that was ahead, does not count either.
    """
    return [
        vote
        for vote in votes
        if vote.verdict is not Verdict.UNKNOWN
        and abs(now - vote.at) <= valid_for
        and (maintenance or not failed_in_maintenance(vote))
    ]


def failed_in_maintenance(vote: Vote) -> bool:
    """Whether the newest check of a place failed in maintenance. Such a failure is not counted in
    ``failures``.
    """
    return vote.verdict is Verdict.DOWN and not vote.failures


def failures_after(failures: int, verdict: Verdict, *, maintenance: bool) -> int:
    """The failing checks in a row after a check with this verdict; before it there were
    ``failures``. An unknown check leaves the number. A check in maintenance resets it: its failure
    must confirm nothing afterwards.
    """
    if maintenance or verdict in GOOD_VERDICTS:
        return 0
    return min(failures + 1, MAX_COUNTED_FAILURES) if verdict is Verdict.DOWN else failures


def verdict_of_votes(
    votes: Sequence[Vote], rule: str, awaited: int = 0, *, incident: bool = False
) -> Verdict:
    """The verdict of all places together, by the votes that count; ``unknown`` without votes.

    ``awaited``: how many more places are about to vote for the first time. They count as voters:
    otherwise the first place of a new monitor would be the majority. While an ``incident`` is open
    they count as failing: their silence must not end it.
    """
    if not votes:
        return Verdict.UNKNOWN
    down = [vote for vote in votes if vote.verdict is Verdict.DOWN]
    failing = len(down) + (awaited if incident else 0)
    voters = len(votes) + awaited
    needed = {LocationRule.ANY: 1, LocationRule.MAJORITY: voters // 2 + 1, LocationRule.ALL: voters}
    if failing and failing >= needed[LocationRule(rule)]:
        return Verdict.DOWN
    slow = any(vote.verdict is Verdict.DEGRADED for vote in votes)
    return Verdict.DEGRADED if slow or any(vote.persistent for vote in down) else Verdict.UP


# --- The judge


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules by which a monitor is judged. ``vote_valid_for``: how long a vote counts.
    ``places_since``: the ids of its places, and since when each checks it.

    ``longest_gap`` is for ``replay.py``, which judges stored results again. A longer time without
    checks drops a failure that is being confirmed; an outage goes on. None: both end as soon as no
    result covers the time.
    """

    location_rule: str
    confirmations: int
    vote_valid_for: timedelta
    places_since: Mapping[int, datetime]
    longest_gap: timedelta | None = None

    def vote(self, place: int, at: datetime, verdict: Verdict, failures: int) -> Vote:
        return Vote(place, at, verdict, failures > self.confirmations, failures)


@dataclass(frozen=True, slots=True)
class Situation:
    """A monitor's state, and the vote of each of its places (by its id), also one that does not
    count any more (``Decision.valid_votes``).
    """

    state: State = field(default_factory=State)
    votes: Mapping[int, Vote] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """The judgement of a result."""

    situation: Situation  # after the result
    verdict: Verdict  # of all votes that count
    at: datetime  # the time of the verdict
    valid_votes: Sequence[Vote] = ()  # those that count
    awaited: int = 0  # places that are about to vote for the first time
    effect: Effect = Effect.NONE
    moment: datetime | None = None  # when the incident started or ended, by ``effect``
    counted: bool = False  # the state machine has counted the result
    shown: bool = False  # the monitor shows this verdict and its cause now
    recheck: bool = False  # the next check comes after CONFIRM_SECONDS, not when scheduled
    unconfirmed: bool = False  # too few places see a failure, and it is still to be confirmed
    awaits_repeat: bool = False  # enough places see a failure; some have not repeated it yet


def without_future(situation: Situation, result: NewResult, now: datetime) -> Situation:
    """The situation without times ahead of ``now``, which are stored if the clock was set back. A
    vote with such a time gets the time of this check.
    """
    latest, state, votes = believable(now), situation.state, situation.votes
    if state.checked_at is not None and state.checked_at > latest:
        state = replace(state, checked_at=None)
    if any(vote.at > latest for vote in votes.values()):
        votes = {
            place: replace(vote, at=result.at) if vote.at > latest else vote
            for place, vote in votes.items()
        }
    return Situation(state, votes)


def is_outdated(situation: Situation, result: NewResult) -> bool:
    """Whether a result of the same place was judged that is newer by at most ``MAX_OUTDATED``."""
    newest = situation.votes.get(result.place)
    return newest is not None and timedelta(0) < newest.at - result.at <= MAX_OUTDATED


def judge_result(rules: Rules, situation: Situation, result: NewResult) -> Decision:
    """Judge a result as if it were the newest of all. ``replay.is_out_of_order`` says whether an
    older one must be judged by ``replay.in_order`` instead.
    """
    if is_outdated(situation, result):
        return Decision(situation, result.verdict, result.at)
    state, previous = situation.state, situation.votes.get(result.place)
    failures = failures_after(
        previous.failures if previous else 0, result.verdict, maintenance=result.maintenance
    )
    vote = rules.vote(result.place, result.at, result.verdict, failures)
    votes = {**situation.votes, result.place: vote}
    if len(votes) == 1 and rules.places_since.keys() <= votes.keys():
        # The only place: each of its results counts. The code below is slower, and leaves out the
        # vote of an unknown result.
        alone = Decision(Situation(state, votes), result.verdict, result.at, (vote,))
        return _counted(rules, state, alone, result)
    at, maintenance = _verdict_time(situation, result), result.maintenance
    decision = _voted(rules, Situation(state, votes), at, maintenance=maintenance)
    if _is_counted(rules, state, decision, result, previous):
        return _counted(rules, state, decision, result)
    return _uncounted(state, decision, result)


def judge_votes(
    rules: Rules, situation: Situation, now: datetime, *, maintenance: bool
) -> Decision:
    """Judge the votes again after the monitor's rules or places have changed ``now``.

    No incident opens without a check: the next checks decide, and are made soon (``recheck``). A
    good verdict outside of maintenance ends an incident at once, unless its recovery is being
    confirmed already.
    """
    state, decision = situation.state, _voted(rules, situation, now, maintenance=maintenance)
    verdict = decision.verdict
    if verdict in GOOD_VERDICTS or (verdict is Verdict.DOWN and has_outage(state)):
        if state.verdict is not verdict:
            state = replace(state, verdict=verdict, status_since=now)
        of_all_places = NewResult(ALL_PLACES, now, verdict, maintenance, conclusive=True)
        if verdict is Verdict.DOWN:
            transition = _failing(state, of_all_places, 0)
        elif state.stage is Stage.RECOVERING:
            transition = Transition(state)  # the next check confirms the recovery
        else:
            transition = _good(state, of_all_places)
    else:
        differs = state.verdict not in (None, verdict)
        transition = Transition(state, recheck=differs and not maintenance)
    return _after_transition(decision, transition, maintenance=maintenance)


def _voted(rules: Rules, situation: Situation, at: datetime, *, maintenance: bool) -> Decision:
    """The decision with the verdict of the votes at a time, before the state machine runs."""
    votes, is_down = situation.votes, has_outage(situation.state)
    voting = valid_votes(votes.values(), at, rules.vote_valid_for, maintenance=maintenance)
    awaited = _awaited(rules, votes, at, maintenance=maintenance)
    verdict = verdict_of_votes(voting, rules.location_rule, awaited, incident=is_down)
    return Decision(situation, verdict, at, voting, awaited)


def _verdict_time(situation: Situation, result: NewResult) -> datetime:
    """The time of a verdict: not before the previous one, unless the clock was set back. Places
    check at the same times, and the check that is recorded first may have started last.
    """
    times = [vote.at for vote in situation.votes.values()]
    if situation.state.checked_at is not None:
        times.append(situation.state.checked_at)
    newest = max(times, default=result.at)
    return max(newest, result.at) if newest - result.at <= MAX_OUTDATED else result.at


def _awaited(rules: Rules, votes: Mapping[int, Vote], at: datetime, *, maintenance: bool) -> int:
    """How many places are about to vote for the first time, or for the first time after a
    maintenance in which their check failed.
    """
    since = at - rules.vote_valid_for
    new = sum(start >= since for place, start in rules.places_since.items() if place not in votes)
    if maintenance:
        return new
    return new + sum(failed_in_maintenance(vote) and vote.at >= since for vote in votes.values())


def _counted(rules: Rules, state: State, decision: Decision, result: NewResult) -> Decision:
    """The decision on a result that the state machine counts."""
    of_all_places = replace(result, at=decision.at, verdict=decision.verdict)
    transition = advance(state, of_all_places, rules.confirmations)
    if transition.outdated:
        return decision
    new_state = transition.state
    is_provisional = state.stage is Stage.OPEN and _waits_for_others(new_state, decision, result)
    if is_provisional:
        new_state = replace(new_state, verdict=state.verdict, status_since=state.status_since)
        transition = replace(transition, state=new_state)
    decision = _after_transition(decision, transition, maintenance=result.maintenance)
    return replace(decision, shown=False) if is_provisional else decision


def _after_transition(decision: Decision, transition: Transition, *, maintenance: bool) -> Decision:
    """The decision with a transition of the state machine. It is unconfirmed if too few places see
    a failure, and one of them is still to confirm it.
    """
    is_unconfirmed = (
        decision.verdict is not Verdict.DOWN
        and not maintenance
        and any(
            vote.verdict is Verdict.DOWN and not vote.persistent for vote in decision.valid_votes
        )
    )
    return replace(
        decision, situation=Situation(transition.state, decision.situation.votes),
        effect=transition.effect, moment=transition.moment, counted=True, shown=True,
        recheck=transition.recheck, unconfirmed=is_unconfirmed,
    )  # fmt: skip


def _uncounted(state: State, decision: Decision, result: NewResult) -> Decision:
    """The decision on a result that the state machine does not count. The monitor may still show a
    new verdict: another place sees the failure now, or no longer sees it.
    """
    verdict = decision.verdict
    if verdict is not state.verdict:
        recovers = state.stage is Stage.RECOVERING and state.verdict is Verdict.DOWN
        previous_verdict = Verdict.UP if recovers else state.verdict
        if verdict not in GOOD_VERDICTS or previous_verdict not in GOOD_VERDICTS:
            return decision
        if recovers and _waits_for_others(state, decision, result):
            return decision
        state = replace(state, verdict=verdict, status_since=result.at)
    return replace(
        decision,
        situation=Situation(state, decision.situation.votes),
        shown=True,
        awaits_repeat=state.stage is Stage.CONFIRMING and verdict is Verdict.DOWN,
    )


def _waits_for_others(state: State, decision: Decision, result: NewResult) -> bool:
    """Whether a recovery has begun, and the monitor would be degraded only because the results of
    other places of this round are missing. All places check at the same time, but the result of an
    agent arrives seconds later. Until then the monitor stays down: otherwise it would be degraded
    for a moment although all places are good. The recheck that confirms the recovery ends the wait.
    """
    if state.stage is not Stage.RECOVERING or decision.verdict is not Verdict.DEGRADED:
        return False
    degrading = [
        vote for vote in decision.valid_votes if vote.persistent or vote.verdict is Verdict.DEGRADED
    ]
    begin = result.at - SAME_ROUND
    return all(vote.verdict is Verdict.DOWN and vote.at < begin for vote in degrading)


# --- Which checks count


def _is_counted(
    rules: Rules, state: State, decision: Decision, result: NewResult, previous: Vote | None
) -> bool:
    """Whether the state machine counts the check of one of several places.

    When several places repeat a check at the same time, the first repeat counts for all of them. A
    result without a vote does not count. A good check does not confirm a failure that another place
    saw: only a failing one does, and only when enough places have repeated the failure. In
    maintenance a failing check counts, because it drops the failure that is being confirmed.
    """
    down, stage = decision.verdict is Verdict.DOWN, state.stage
    confirming = stage is Stage.CONFIRMING
    if result.verdict is Verdict.UNKNOWN and decision.verdict is not Verdict.UNKNOWN:
        return False
    if down and result.verdict in GOOD_VERDICTS and (confirming or stage is Stage.CLEAR):
        return False
    goes_on = down is confirming  # the failure that is being confirmed, or the recovery
    if goes_on and not _repeats_counted(state, decision, result, previous):
        return False
    if state.checked_at is None or result.maintenance or not (down and confirming):
        return True
    repeated = _with_only_repeated_failures(decision.valid_votes, state.checked_at)
    return verdict_of_votes(repeated, rules.location_rule, decision.awaited) is Verdict.DOWN


def _repeats_counted(
    state: State, decision: Decision, result: NewResult, previous: Vote | None
) -> bool:
    """Whether the check of a place repeats the check that was counted last, if a failure or a
    recovery is being confirmed: the place's previous check was made in the same round or later.

    A place with more failures than were counted repeats it too: the counted failure may be its own,
    which an agent brought after later checks of other places.

    All places check at the same times, and the first failure is recorded within milliseconds. A
    check that another place begins just after it is no repeat: counted as one, it would confirm a
    failure that lasted for a moment.
    """
    if state.stage not in (Stage.CONFIRMING, Stage.RECOVERING) or state.checked_at is None:
        return True
    failures = decision.situation.votes[result.place].failures
    if state.stage is Stage.CONFIRMING and failures > state.failures:
        return True
    return previous is not None and previous.at >= state.checked_at - SAME_ROUND


def _with_only_repeated_failures(votes: Iterable[Vote], counted_at: datetime) -> Sequence[Vote]:
    """The votes, with ``up`` for each failure that its place has not repeated after the last
    counted check: a place that failed once must not confirm the failure of another.
    """
    return [
        vote
        if vote.verdict is not Verdict.DOWN or (vote.at > counted_at and vote.failures > 1)
        else replace(vote, verdict=Verdict.UP)
        for vote in votes
    ]


# --- Who saw an incident end


def silent_failures(
    rules: Rules, votes: Iterable[Vote], since: datetime | None, now: datetime
) -> Collection[int]:
    """The places whose newest result is a failure, not older than ``since``, that is too old for a
    vote.
    """
    return {
        vote.place
        for vote in votes
        if vote.verdict is Verdict.DOWN
        and (since is None or since <= vote.at)
        and vote.at < now - rules.vote_valid_for
    }


def ends_by_silence(rules: Rules, decision: Decision, silent: Collection[int]) -> bool:
    """Whether the monitor would still be down if the last failures of these ``silent`` places
    counted: then their silence ends the incident, and no check there saw it recover.
    """
    failing = [vote for place, vote in decision.situation.votes.items() if place in silent]
    votes = [*decision.valid_votes, *failing]
    verdict = verdict_of_votes(votes, rules.location_rule, decision.awaited, incident=True)
    return bool(silent) and verdict is Verdict.DOWN


def good_places(votes: Iterable[Vote], since: datetime | None) -> Collection[int]:
    """The places whose newest result is good, and not older than ``since``."""
    good = (vote for vote in votes if vote.verdict in GOOD_VERDICTS)
    return {vote.place for vote in good if since is None or since <= vote.at}
