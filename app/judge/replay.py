"""The judgement of late results, which the recorder carries out.

Each result is judged when it is recorded (``verdict.judge_result``). A result that arrives
after newer ones is one of these:

- Out of order: newer results of other places were judged, but it is the newest of its place and has
  a vote (an agent brings it seconds later). If it may change the later judgements
  (``is_out_of_order``), the results since then are judged again in their order (``in_order``): the
  state, and the start of a failure or of a recovery, are as if it had arrived in time. Incidents
  stay as people know them: an open one keeps its start, and an ended one is not changed. No
  incident opens for an outage that has ended by now.
- Late: it has no vote any more (it is older than ``verdict.vote_valid_for``, or from before a pause
  or a change of rule, places or check), or a newer one of its place was judged. An agent that was
  cut off brings the results of hours. ``app/engine/recorder/late.py`` stores them, sums their hours
  again, and removes the time that they watched from the gaps of incidents. They change no state,
  end no incident and alert nobody. Then ``app/engine/recorder/found_late.py`` judges the stored
  results around them in their order, by ``Replay``: outages outside the stored incidents are stored
  as incidents that have ended.
- Dropped: what is checked had been changed before the agent, which did not know of it, made the
  check, or the agent cannot have made it at its time (``app/stores/local/agent_results.py``, which
  sorts the results of agents), or it is stored already.

A checker's result that comes after a newer one of its place is stored, and changes nothing, unless
it shows that the clock was set back (``verdict.MAX_OUTDATED``).

Time without results: an incident goes on, with a gap, and a failure that is being confirmed is
dropped. An outage that only late results show ends when the last of them stops counting
(``Rules.longest_gap`` is None).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from operator import attrgetter

from app.judge.verdict import (
    MIN_COVER_S,
    NO_PARENTS,
    Decision,
    Effect,
    NewResult,
    Parents,
    PastResult,
    Rules,
    Situation,
    Stage,
    State,
    after_gap,
    cleared,
    has_outage,
    judge_result,
)
from app.records import GOOD_VERDICTS, Verdict
from app.rules.time import from_ms

TimeSpan = tuple[datetime, datetime]
MIN_COVER = timedelta(seconds=MIN_COVER_S)
FAR_FUTURE = datetime.max.replace(tzinfo=UTC)
BehindSpan = tuple[int, TimeSpan]  # the id of a parent, and a time behind it
ParentsAt = Callable[[datetime], Parents]  # the parents of a monitor at a time


def parents_by_outages(spans: Sequence[BehindSpan], otherwise: Parents) -> ParentsAt:
    """The parents of a monitor by time: within one of the ``spans``, the outages of its parents,
    that parent fails. ``otherwise``: the parents at all other times.
    """

    def parents_at(at: datetime) -> Parents:
        for id, (start, end) in spans:
            if start <= at < end:
                return Parents(id)
        return otherwise

    return parents_at


@dataclass(frozen=True, slots=True)
class BlockedSpan:
    """The time of a stored incident, or of a ``pause`` of the monitor: no outage is found in it.
    Results from before a pause have no vote after it. ``ended_at`` is None while the incident is
    open.
    """

    started_at: datetime
    ended_at: datetime | None
    by_hand: bool
    pause: bool = False


class Replay:
    """Judges stored results in their order. ``outages``: the outages that they show and that have
    ended, without the time of the ``blocked`` spans (in order). ``behind``: the times in which the
    monitor was unreachable because of a parent, as far as they have ended.

    ``covers``: how long a result counts if its ``covers_ms`` is None. ``since``: earlier results
    only vote. ``state``: the monitor's state at ``since``. ``covered_until``: when the results
    before ``since`` stop counting.
    """

    def __init__(
        self,
        rules: Rules,
        covers: timedelta,
        since: datetime,
        state: State,
        blocked: Sequence[BlockedSpan] = (),
        covered_until: datetime | None = None,
        parents_at: ParentsAt = lambda _at: NO_PARENTS,
    ) -> None:
        self._rules, self._covers, self._parents_at = rules, covers, parents_at
        self._blocked_spans = list(blocked)
        self._since = since
        self._blocked_until = since  # the end of the newest blocked span that has started
        self._last: datetime | None = None  # the start of the last check
        self._covered_until = covered_until
        self.situation = Situation(state)
        # The time of the first decision of which the state was kept
        self.first: datetime | None = None
        self.decision: Decision | None = None  # the last of these
        self.outages: list[TimeSpan] = []
        self.behind: list[BehindSpan] = []
        self.behind_since = since  # if the state is BEHIND

    def judge(self, results: Iterable[PastResult]) -> None:
        """Judge these results, which are in order and later than all earlier ones."""
        for result in results:
            covers = self._covers
            if result.covers_ms is not None:
                covers = timedelta(milliseconds=result.covers_ms)
            # Results with less cover do not count: they were made while paused, on request in a
            # place that does not check the monitor, or just before a pause or the loss of the
            # place.
            if covers > MIN_COVER:
                at = from_ms(result.at_ms)
                place, parents = result.place, self._parents_at(at)
                self._judge(
                    NewResult(place, at, result.verdict, result.maintenance, parents=parents),
                    covers,
                )

    @property
    def is_clear(self) -> bool:
        return self.situation.state.stage is Stage.CLEAR

    @property
    def unrecovered_since(self) -> datetime | None:
        """The start of an outage that goes on, if no recovery has begun."""
        state = self.situation.state
        return state.down_since if state.stage is Stage.OPEN else None

    def finish(self) -> None:
        """End what goes on when the last result stops counting."""
        if self._covered_until is not None:
            self._start_blocked_spans(self._covered_until)
            self._end(self._covered_until)

    def _judge(self, result: NewResult, covers: timedelta) -> None:
        self._start_blocked_spans(result.at)
        self._pass_time(result.at)
        self._last = result.at
        self._covered_until = max(self._covered_until or result.at, result.at + covers)
        situation = self.situation
        decision = judge_result(self._rules, situation, result)
        if result.at < self._since or result.at < self._blocked_until:
            self.situation = Situation(situation.state, decision.situation.votes)  # it only votes
            return
        self._note_behind(situation.state, decision.situation.state, decision.at)
        self.situation = decision.situation
        self.first, self.decision = self.first or decision.at, decision
        if decision.effect is Effect.END and situation.state.down_since and decision.moment:
            self._add_outage(situation.state.down_since, decision.moment)

    def _pass_time(self, until: datetime) -> None:
        """Apply the effect of a gap in the results that ends at ``until``."""
        gap = self._rules.longest_gap
        if gap is None:
            if self._covered_until is not None and self._covered_until < until:
                self._end(self._covered_until)
        elif self._last is not None and until - self._last > gap:
            self._set_state(after_gap(self.situation.state))

    def _start_blocked_spans(self, until: datetime) -> None:
        """At the start of each blocked span before ``until``, end the outage that goes on: the
        stored incident covers it from then on.
        """
        while self._blocked_spans and self._blocked_spans[0].started_at <= until:
            span = self._blocked_spans.pop(0)
            if self._covered_until is not None and self._covered_until < span.started_at:
                self._end(self._covered_until)
            state = self.situation.state
            if state.failing_since and not span.by_hand:
                # The checks that opened the incident confirm the failures before them.
                self._set_state(replace(state, down_since=state.failing_since))
            self._end(span.started_at, recovered=False)
            self._blocked_until = max(self._blocked_until, span.ended_at or FAR_FUTURE)
            if span.pause:
                self.situation = Situation(self.situation.state)
                resumed_at = span.ended_at or FAR_FUTURE
                since = dict.fromkeys(self._rules.places_since, resumed_at)
                self._rules = replace(self._rules, places_since=since)

    def _end(self, at: datetime, *, recovered: bool = True) -> None:
        """Return to CLEAR at a time. ``recovered``: an outage ends with its unconfirmed recovery,
        if one has begun.
        """
        state = self.situation.state
        if state.down_since:
            since = state.recovering_since if recovered else None
            self._add_outage(state.down_since, since or at)
        self._note_behind(state, cleared(state), at)
        self._set_state(cleared(state))

    def _note_behind(self, previous: State, new_state: State, at: datetime) -> None:
        """Note the times at which the monitor begins and ceases to be behind a parent."""
        if previous.behind == new_state.behind:
            return
        since = previous.failing_since or new_state.failing_since or at
        if previous.behind is not None and self.behind_since < since:
            self.behind.append((previous.behind, (self.behind_since, since)))
        self.behind_since = since

    def _set_state(self, state: State) -> None:
        self.situation = Situation(state, self.situation.votes)

    def _add_outage(self, start: datetime, end: datetime) -> None:
        if start < end:
            self.outages.append((start, end))


def margin(rules: Rules, covers: timedelta) -> timedelta:
    """The time before and after a result in which the monitor's verdict may depend on it: its vote
    counts for some time, and several checks confirm a failure.
    """
    return rules.vote_valid_for + (rules.confirmations + 1) * covers


# --- Results that are out of order


def is_out_of_order(situation: Situation, result: NewResult, decision: Decision) -> bool:
    """Whether newer results of other places were judged, and this one may change the state that
    they led to.

    Usually its verdict is the previous one of its place, and nothing has changed since. Then the
    result is out of order only if its ``decision``, made as if it were the newest, changes the
    state.
    """
    others = (vote.at for place, vote in situation.votes.items() if place != result.place)
    if result.at >= max(others, default=result.at) or result.verdict is Verdict.UNKNOWN:
        return False
    state, good = situation.state, result.verdict in GOOD_VERDICTS
    if state.stage in (Stage.CONFIRMING, Stage.RECOVERING):
        return True
    if state.status_since is not None and state.status_since > result.at:
        return True
    if state.stage is Stage.OPEN and good:
        return True  # it may confirm a recovery that had begun and was given up
    previous = situation.votes.get(result.place)
    if previous is None or previous.verdict is Verdict.UNKNOWN:
        return True
    if (previous.verdict in GOOD_VERDICTS) != good:
        return True
    return _progress(decision.situation.state) != _progress(state)


def in_order(
    rules: Rules,
    covers: timedelta,
    situation: Situation,
    result: NewResult,
    as_newest: Decision,
    stored: Iterable[PastResult],
    since: datetime,
    parents_at: ParentsAt = lambda _at: NO_PARENTS,
) -> Decision:
    """The decision on a result that ``is_out_of_order``. ``as_newest``: the decision on it as if it
    were the newest. ``stored``: the stored results (in order), with this one, that have a vote at
    ``since`` or later. Earlier results do not matter, or belong to another incident or rule.
    """
    state = situation.state
    if state.failing_since is not None and state.failing_since < since:
        return as_newest
    replay = Replay(rules, covers, since, _state_at(since, state), parents_at=parents_at)
    replay.judge(_not_before(since, stored, result))
    if replay.decision is None:
        return as_newest
    new_state = replay.situation.state
    if new_state.status_since == replay.first and new_state.verdict is state.verdict:
        # The verdict changed before ``since``.
        new_state = replace(new_state, status_since=state.status_since)
    if state.down_since and new_state.down_since:
        new_state = replace(new_state, down_since=state.down_since)
    elif new_state.stage is Stage.RECOVERING:
        new_state = cleared(new_state)  # nobody is alerted to an outage that is over
    effect, moment = _difference(state, new_state, replay.outages)
    changed = _progress(state) != _progress(new_state)
    is_confirming = new_state.stage is Stage.CONFIRMING
    confirms = is_confirming or new_state.stage is Stage.RECOVERING
    return replace(
        replay.decision,
        situation=Situation(new_state, as_newest.situation.votes),
        effect=effect,
        moment=moment,
        counted=changed or replay.decision.unconfirmed,
        shown=True,
        recheck=changed and confirms and not result.maintenance,
        awaits_repeat=not changed and is_confirming and new_state.verdict is Verdict.DOWN,
    )


def _state_at(since: datetime, state: State) -> State:
    """The state at an earlier time, as far as it can be told from the present state."""
    is_unchanged = state.status_since is not None and state.status_since <= since
    recovering = state.recovering_since
    return State(
        verdict=state.verdict if is_unchanged else None,
        status_since=state.status_since if is_unchanged else None,
        recovering_since=recovering if recovering and recovering < since else None,
        down_since=state.down_since,
        by_hand=state.by_hand,
        slow_since=state.slow_since,
    )


def _not_before(
    since: datetime, stored: Iterable[PastResult], result: NewResult
) -> Iterator[PastResult]:
    """The stored results; ``result`` is moved to ``since`` if its check was made earlier."""
    key = result.place, round(result.at.timestamp() * 1000)
    first_ms = ceil(since.timestamp() * 1000)
    for other in stored:
        is_result = (other.place, other.at_ms) == key
        yield other._replace(at_ms=max(other.at_ms, first_ms)) if is_result else other


def _difference(
    state: State, new_state: State, outages: Sequence[TimeSpan]
) -> tuple[Effect, datetime | None]:
    """The effect of a change from a state to a new one, and its moment."""
    if has_outage(new_state) and not has_outage(state):
        return Effect.OPEN, new_state.down_since
    if has_outage(state) and not has_outage(new_state):
        return Effect.END, outages[0][1] if outages else state.down_since
    if new_state.stage is Stage.CONFIRMING and _progress(new_state) != _progress(state):
        return Effect.CONFIRM, None
    if state.stage is Stage.CONFIRMING and new_state.stage is Stage.CLEAR:
        return Effect.CANCEL, None
    return Effect.NONE, None


_progress = attrgetter("failing_since", "failures", "recovering_since", "down_since", "behind")
