"""The judgement of late results, which the recorder carries out.

Each result is judged when it is recorded (``verdict.step``). For a result that arrives after newer
ones, there are three cases:

- Out of order: newer results of other places were judged, but it is the newest of its place and has
  a vote (an agent brings it seconds later). If it may change later judgements
  (``is_out_of_order``), the results of some time are judged again in their order (``in_order``):
  the state, and the start of a failure or of a recovery, are as if it had arrived in time.
  Incidents that people were alerted to stay: an open one keeps its start, and an ended one is not
  changed. No incident opens for an outage that is over by now.
- Late: it has no vote any more (it is older than ``verdict.vote_lasts``, or from before a pause or
  a change of rule, places or check), or a newer one of its place was judged. An agent that was cut
  off brings the results of hours. ``app/engine/recorder/late.py`` stores them, sums their time
  again, and corrects the gaps of incidents in which nothing was watched. They change no state, end
  no incident and alert nobody. Then ``app/engine/recorder/found_late.py`` judges the stored results
  around them in their order, by ``Replay``: outages outside the stored incidents are stored as
  incidents that have ended.
- Dropped: an agent made it by fields of the monitor that had been changed, or cannot have made it
  at its time, or it is stored already (``app/stores/local/agent_results.py``, which sorts what
  agents bring).

A checker's own result that comes after a newer one of its place is stored, and changes nothing,
unless it shows that the clock was set back (``verdict.MAX_OUTDATED``).

Time without results: an incident goes on, with a gap, and a failure that is being confirmed is
dropped. An outage that only late results show ends where the last of them stops counting
(``Rules.longest_gap``).
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
    NewResult,
    Parents,
    PastResult,
    Rules,
    Situation,
    Stage,
    State,
    Step,
    after_gap,
    cleared,
    has_outage,
    step,
)
from app.records import GOOD_VERDICTS, Verdict
from app.rules.time import from_ms

TimeSpan = tuple[datetime, datetime]
MIN_COVER = timedelta(seconds=MIN_COVER_S)
FAR_FUTURE = datetime.max.replace(tzinfo=UTC)
BehindSpan = tuple[int, TimeSpan]  # a parent, and the time behind it
ParentsAt = Callable[[datetime], Parents]  # what a monitor was reached through, by the time


def hidden_within(spans: Sequence[BehindSpan], otherwise: Parents) -> ParentsAt:
    """The parents of a monitor by the outages of each (its id, and the time): within one, it
    fails. ``otherwise``: at all other times.
    """

    def parents_at(at: datetime) -> Parents:
        for id, (start, end) in spans:
            if start <= at < end:
                return Parents(id)
        return otherwise

    return parents_at


@dataclass(frozen=True, slots=True)
class BlockedSpan:
    """A time in which no outage is found: of a stored incident, or of a ``pause`` of the monitor.
    Results from before a pause have no vote after it. ``ended_at`` is None while the incident is
    open.
    """

    started_at: datetime
    ended_at: datetime | None
    by_hand: bool
    pause: bool = False


class Replay:
    """Judge stored results in their order; ``outages`` are the ended ones that they show, without
    the time of ``incidents`` (in order).

    ``covers``: how long a result counts if it has no ``covers_ms`` of its own. ``since``: results
    before it only vote. ``state``: the monitor's at ``since``. ``covered_until``: when the results
    before ``since`` stop counting. ``parents_at``: what the monitor was reached through.
    """

    def __init__(
        self,
        rules: Rules,
        covers: timedelta,
        since: datetime,
        state: State,
        incidents: Sequence[BlockedSpan] = (),
        covered_until: datetime | None = None,
        parents_at: ParentsAt = lambda _at: NO_PARENTS,
    ) -> None:
        self._rules, self._covers, self._parents_at = rules, covers, parents_at
        self._incidents = list(incidents)
        self._since = since
        self._incident_until = since  # the end of the newest incident that has started
        self._last: datetime | None = None  # the start of the last check
        self._covered_until = covered_until
        self.situation = Situation(state)
        self.first: datetime | None = None  # the start of the first check that did not only vote
        self.decision: Decision | None = None  # the last one
        self.outages: list[TimeSpan] = []
        self._behind: list[BehindSpan] = []
        self.behind_since = since  # of a state that is behind another one

    def judge(self, checks: Iterable[PastResult]) -> None:
        """Judge these results, which are in order and later than those before."""
        for result in checks:
            covers = self._covers
            if result.covers_ms is not None:
                covers = timedelta(milliseconds=result.covers_ms)
            # Others count for their moment alone: made while paused, on request in a place that
            # does not watch, without places, or just before a pause or the loss of the place.
            if covers > MIN_COVER:
                at = from_ms(result.at_ms)
                check = NewResult(
                    result.place,
                    at,
                    result.verdict,
                    result.maintenance,
                    parents=self._parents_at(at),
                )
                self._judge(check, covers)

    @property
    def is_clear(self) -> bool:
        return self.situation.state.stage is Stage.CLEAR

    @property
    def down_since(self) -> datetime | None:
        """Since when an outage lasts that shows no sign of a recovery yet."""
        state = self.situation.state
        return state.started_at if state.stage is Stage.OPEN else None

    def all_outages(self) -> Sequence[TimeSpan]:
        """All outages; one that has not ended lasts until the last result stops counting."""
        if self._covered_until is not None:
            self._start_incidents(self._covered_until)
            self._end(self._covered_until)
        return self.outages

    def all_behind(self) -> Sequence[BehindSpan]:
        """The times in which it was unreachable because of a parent."""
        self.all_outages()
        return self._behind

    def _judge(self, check: NewResult, covers: timedelta) -> None:
        self._start_incidents(check.at)
        self._pass_time(check.at)
        self._last = check.at
        self._covered_until = max(self._covered_until or check.at, check.at + covers)
        situation = self.situation
        decision = step(self._rules, situation, check)
        if check.at < self._since or check.at < self._incident_until:
            self.situation = Situation(situation.state, decision.after.votes)  # it only votes
            return
        self._leave(situation.state, decision.after.state, decision.at)
        self.situation = decision.after
        self.first, self.decision = self.first or decision.at, decision
        if decision.step is Step.END and situation.state.started_at and decision.moment:
            self._add(situation.state.started_at, decision.moment)

    def _pass_time(self, until: datetime) -> None:
        """Apply the effect of a gap in the results that ends at ``until``."""
        gap = self._rules.longest_gap
        if gap is None:
            if self._covered_until is not None and self._covered_until < until:
                self._end(self._covered_until)
        elif self._last is not None and until - self._last > gap:
            self._set(after_gap(self.situation.state))

    def _start_incidents(self, until: datetime) -> None:
        """At the start of each stored incident before ``until``, end the outage that goes on: the
        incident has the rest of it.
        """
        while self._incidents and self._incidents[0].started_at <= until:
            incident = self._incidents.pop(0)
            if self._covered_until is not None and self._covered_until < incident.started_at:
                self._end(self._covered_until)
            state = self.situation.state
            if state.failing_since and not incident.by_hand:
                # The checks that opened the incident confirm the failures before them.
                self._set(replace(state, started_at=state.failing_since))
            self._end(incident.started_at, recovered=False)
            self._incident_until = max(self._incident_until, incident.ended_at or FAR_FUTURE)
            if incident.pause:
                self.situation = Situation(self.situation.state)
                since = dict.fromkeys(self._rules.places_since, incident.ended_at or FAR_FUTURE)
                self._rules = replace(self._rules, places_since=since)

    def _end(self, at: datetime, *, recovered: bool = True) -> None:
        """``recovered``: a recovery that has begun counts without being confirmed."""
        state = self.situation.state
        if state.started_at:
            since = state.recovering_since if recovered else None
            self._add(state.started_at, since or at)
        self._leave(state, cleared(state), at)
        self._set(cleared(state))

    def _leave(self, previous: State, after: State, at: datetime) -> None:
        """Note since when it is behind another one, and for how long it was."""
        if previous.behind == after.behind:
            return
        since = previous.failing_since or after.failing_since or at
        if previous.behind is not None and self.behind_since < since:
            self._behind.append((previous.behind, (self.behind_since, since)))
        self.behind_since = since

    def _set(self, state: State) -> None:
        self.situation = Situation(state, self.situation.votes)

    def _add(self, start: datetime, end: datetime) -> None:
        if start < end:
            self.outages.append((start, end))


def margin(rules: Rules, covers: timedelta) -> timedelta:
    """For how long before and after a result the monitor's verdict may depend on it: its vote
    counts for some time, and it takes several checks to confirm a failure.
    """
    return rules.stale_after + (rules.confirmations + 1) * covers


# --- Results that are out of order


def is_out_of_order(situation: Situation, check: NewResult, decision: Decision) -> bool:
    """Whether newer results of other places were judged, and this one may change what they led to.

    Mostly its verdict is the previous one of its place, and nothing has changed since: then it does
    only if the ``decision`` on it as the newest of all changes the state.
    """
    others = (vote.at for place, vote in situation.votes.items() if place != check.place)
    if check.at >= max(others, default=check.at) or check.verdict is Verdict.UNKNOWN:
        return False
    state, good = situation.state, check.verdict in GOOD_VERDICTS
    if state.stage in (Stage.CONFIRMING, Stage.RECOVERING):
        return True
    if state.status_since is not None and state.status_since > check.at:
        return True
    if state.stage is Stage.OPEN and good:
        return True  # it may confirm a recovery that had begun and was given up
    previous = situation.votes.get(check.place)
    if previous is None or previous.verdict is Verdict.UNKNOWN:
        return True
    if (previous.verdict in GOOD_VERDICTS) != good:
        return True
    return _progress(decision.after.state) != _progress(state)


def in_order(
    rules: Rules,
    covers: timedelta,
    situation: Situation,
    check: NewResult,
    as_newest: Decision,
    checks: Iterable[PastResult],
    since: datetime,
    parents_at: ParentsAt = lambda _at: NO_PARENTS,
) -> Decision:
    """The decision on a result that ``is_out_of_order``. ``as_newest``: the decision on it as the
    newest of all. ``checks`` are the stored results (in order), this one among them, that have a
    vote at ``since`` or later. Results from before ``since`` do not matter, or are of another
    incident or another rule. ``parents_at``: what the monitor was reached through.
    """
    state = situation.state
    if state.failing_since is not None and state.failing_since < since:
        return as_newest
    replay = Replay(rules, covers, since, _state_at(since, state), parents_at=parents_at)
    replay.judge(_not_before(since, checks, check))
    if replay.decision is None:
        return as_newest
    new = replay.situation.state
    if new.status_since == replay.first and new.verdict is state.verdict:
        new = replace(new, status_since=state.status_since)  # it changed before ``since``
    if state.started_at and new.started_at:
        new = replace(new, started_at=state.started_at)
    elif new.stage is Stage.RECOVERING:
        new = cleared(new)  # nobody is alerted to an outage that is over
    next_step, moment = _difference(state, new, replay.outages)
    changed = _progress(state) != _progress(new)
    confirms = new.stage in (Stage.CONFIRMING, Stage.RECOVERING)
    return replace(
        replay.decision,
        after=Situation(new, as_newest.after.votes),
        step=next_step,
        moment=moment,
        counted=changed or replay.decision.unconfirmed,
        shown=True,
        recheck=changed and confirms and not check.maintenance,
        waits=not changed and new.stage is Stage.CONFIRMING and new.verdict is Verdict.DOWN,
    )


def _state_at(since: datetime, state: State) -> State:
    """The state at an earlier time, as far as the present state shows it."""
    is_unchanged = state.status_since is not None and state.status_since <= since
    recovering = state.recovering_since
    return State(
        verdict=state.verdict if is_unchanged else None,
        status_since=state.status_since if is_unchanged else None,
        recovering_since=recovering if recovering and recovering < since else None,
        started_at=state.started_at,
        by_hand=state.by_hand,
        slow_since=state.slow_since,
    )


def _not_before(
    since: datetime, checks: Iterable[PastResult], check: NewResult
) -> Iterator[PastResult]:
    """The checks, where the one of ``check`` is moved to ``since`` if it was made before."""
    key = check.place, round(check.at.timestamp() * 1000)
    first_ms = ceil(since.timestamp() * 1000)
    for result in checks:
        is_check = (result.place, result.at_ms) == key
        yield result._replace(at_ms=max(result.at_ms, first_ms)) if is_check else result


def _difference(
    state: State, new: State, outages: Sequence[TimeSpan]
) -> tuple[Step, datetime | None]:
    """The step from a state to a new one, and its moment."""
    if has_outage(new) and not has_outage(state):
        return Step.OPEN, new.started_at
    if has_outage(state) and not has_outage(new):
        return Step.END, outages[0][1] if outages else state.started_at
    if new.stage is Stage.CONFIRMING and _progress(new) != _progress(state):
        return Step.CONFIRM, None
    if state.stage is Stage.CONFIRMING and new.stage is Stage.CLEAR:
        return Step.CANCEL, None
    return Step.NONE, None


_progress = attrgetter("failing_since", "failures", "recovering_since", "started_at", "behind")
