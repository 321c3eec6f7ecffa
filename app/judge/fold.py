"""How does a late result count? All answers are here; others carry them out.

A result is judged when it is recorded (``verdict.step``). One that comes after newer ones is
judged, out of turn, late, or dropped:

- Out of turn: newer results of other places were judged, but it is the newest of its own place and
  has a vote (an agent brings it seconds later). If it may change what was judged after it
  (``is_out_of_turn``), the results of some time are judged in their order (``in_turn``): the state,
  and the begin of a failure or of a recovery, are as if it had come in time. What people were
  alerted to stays: an open incident began when it began, and one that has ended stays as it is. No
  incident opens for what is over by now.
- Late: it has no vote any more (it is older than ``verdict.vote_lasts``, or from before a pause or
  a change of rule, places or check), or a newer one of its place was judged. An agent that was cut
  off brings the results of hours. ``app/engine/recorder/late.py`` stores them, sums their time
  again, and corrects the gaps of incidents in which nothing was watched. They change no state, end
  no incident and alert nobody. Then ``app/engine/recorder/found_late.py`` judges the stored results
  around them in their order, by ``Fold``: outages beside the known incidents are stored as
  incidents that have ended.
- Dropped: an agent made it without knowing that what is checked was changed, or cannot have made it
  at its time, or it is stored already (``app/stores/local/agent_results.py``, which sorts what
  agents bring).

A checker's own result that a newer one of its place overtook is stored, and changes nothing.

Time without results: an incident goes on, with a gap, and a failure that is being confirmed is
dropped. An outage that only late results show ends where no result covers: nothing later is known
of it (``Rules.longest_gap``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil

from app.judge.verdict import (
    MOMENT_S,
    Check,
    Decision,
    PlaceCheck,
    Rules,
    Situation,
    Stands,
    State,
    Step,
    after_gap,
    cleared,
    is_open,
    step,
)
from app.records import Verdict

Span = tuple[datetime, datetime]
MOMENT = timedelta(seconds=MOMENT_S)
EVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class IncidentSpan:
    """``ended_at`` is None while it is open. ``pause``: it is a pause of the monitor, and what its
    places saw before has no vote after it.
    """

    started_at: datetime
    ended_at: datetime | None
    by_hand: bool
    pause: bool = False


class Fold:
    """``outages`` are those that have ended, without the time of ``incidents`` (in order).

    ``covers``: how long a result counts that does not say so itself. ``since``: results before it
    only vote. ``state``: the monitor's then. ``reach``: until when results before it cover.
    """

    def __init__(
        self,
        rules: Rules,
        covers: timedelta,
        since: datetime,
        state: State,
        incidents: Sequence[IncidentSpan] = (),
        reach: datetime | None = None,
    ) -> None:
        self._rules, self._covers = rules, covers
        self._incidents = list(incidents)
        self._since = since
        self._incident_until = since  # the end of the last incident that was met
        self._last: datetime | None = None  # when the last check began
        self._reach = reach
        self.situation = Situation(state)
        self.first: datetime | None = None  # when the first check began that did not only vote
        self.decision: Decision | None = None  # the last one
        self.outages: list[Span] = []

    def see(self, checks: Iterable[Check]) -> None:
        """Judge these results, which are in order and later than those before."""
        for result in checks:
            covers = self._covers
            if result.covers is not None:
                covers = timedelta(milliseconds=result.covers)
            if covers > MOMENT:  # not while paused, nor on request in a place that does not watch
                at = datetime.fromtimestamp(result.at / 1000, UTC)
                check = PlaceCheck(result.place, at, result.verdict, result.maintenance)
                self._judge(check, covers)

    @property
    def is_clear(self) -> bool:
        return self.situation.state.stands is Stands.CLEAR

    @property
    def down_since(self) -> datetime | None:
        """Since when an outage lasts that shows no sign of a recovery yet."""
        state = self.situation.state
        return state.started_at if state.stands is Stands.OPEN else None

    def ended(self) -> Sequence[Span]:
        """All outages; one that has not ended lasts until the last result stops counting."""
        if self._reach is not None:
            self._meet_incidents(self._reach)
            self._end(self._reach)
        return self.outages

    def _judge(self, check: PlaceCheck, covers: timedelta) -> None:
        self._meet_incidents(check.at)
        self._pass_time(check.at)
        self._last, self._reach = check.at, max(self._reach or check.at, check.at + covers)
        before = self.situation
        decision = step(self._rules, before, check)
        if check.at < self._since or check.at < self._incident_until:
            self.situation = Situation(before.state, decision.after.votes)  # it only votes
            return
        self.situation = decision.after
        self.first, self.decision = self.first or decision.at, decision
        if decision.step is Step.END and before.state.started_at and decision.moment:
            self._add(before.state.started_at, decision.moment)

    def _pass_time(self, until: datetime) -> None:
        """What it leads to that there were no results for some time until then."""
        gap = self._rules.longest_gap
        if gap is None:
            if self._reach is not None and self._reach < until:
                self._end(self._reach)
        elif self._last is not None and until - self._last > gap:
            self._set(after_gap(self.situation.state))

    def _meet_incidents(self, until: datetime) -> None:
        """End what an incident takes over that began before ``until``."""
        while self._incidents and self._incidents[0].started_at <= until:
            incident = self._incidents.pop(0)
            if self._reach is not None and self._reach < incident.started_at:
                self._end(self._reach)
            state = self.situation.state
            if state.failing_since and not incident.by_hand:
                # The checks that opened the incident confirm the failures before it.
                self._set(replace(state, started_at=state.failing_since))
            self._end(incident.started_at, recovered=False)
            self._incident_until = max(self._incident_until, incident.ended_at or EVER)
            if incident.pause:
                self.situation = Situation(self.situation.state)
                begun = dict.fromkeys(self._rules.places_since, incident.ended_at or EVER)
                self._rules = replace(self._rules, places_since=begun)

    def _end(self, at: datetime, *, recovered: bool = True) -> None:
        """``recovered``: a recovery that has begun counts without being confirmed."""
        state = self.situation.state
        if state.started_at:
            since = state.recovering_since if recovered else None
            self._add(state.started_at, since or at)
        self._set(cleared(state))

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


# --- Results that are out of turn


def is_out_of_turn(before: Situation, check: PlaceCheck, decision: Decision) -> bool:
    """Whether newer results of other places were judged, and this one may change what they led to.
    Mostly it says what its place said before, and nothing has changed since: then it does only if
    it changes the state by the ``decision`` on it as the newest of all.
    """
    others = (vote.at for place, vote in before.votes.items() if place != check.place)
    if check.at >= max(others, default=check.at) or check.verdict is Verdict.UNKNOWN:
        return False
    state, good = before.state, _is_good(check.verdict)
    if state.stands in (Stands.CONFIRMING, Stands.RECOVERING):
        return True
    if state.status_since is not None and state.status_since > check.at:
        return True
    if state.stands is Stands.OPEN and good:
        return True  # a recovery that it confirms may have begun, and been given up
    previous = before.votes.get(check.place)
    if previous is None or _is_good(previous.verdict) != good:
        return True
    return _progress(decision.after.state) != _progress(state)


def _is_good(verdict: Verdict) -> bool | None:
    return None if verdict is Verdict.UNKNOWN else verdict is not Verdict.DOWN


def in_turn(
    rules: Rules,
    covers: timedelta,
    before: Situation,
    check: PlaceCheck,
    as_newest: Decision,
    checks: Iterable[Check],
    since: datetime,
) -> Decision:
    """What a result leads to that ``is_out_of_turn``. ``as_newest``: what it would as the newest of
    all. ``checks`` are the stored results (in order), this one among them, that have a vote at
    ``since`` or later. Before ``since``, there was another incident or another rule, or nothing
    that matters.
    """
    state = before.state
    if state.failing_since is not None and state.failing_since < since:
        return as_newest
    fold = Fold(rules, covers, since, _state_at(since, state))
    fold.see(_not_before(since, checks, check))
    if fold.decision is None:
        return as_newest
    new = fold.situation.state
    if new.status_since == fold.first and new.verdict is state.verdict:
        new = replace(new, status_since=state.status_since)  # it changed before, nobody knows when
    if state.started_at and new.started_at:
        new = replace(new, started_at=state.started_at)
    elif new.stands is Stands.RECOVERING:
        new = cleared(new)  # nobody is alerted to an outage that is known to be over
    done, moment = _difference(state, new, fold.outages)
    changed = _progress(state) != _progress(new)
    confirms = new.stands in (Stands.CONFIRMING, Stands.RECOVERING)
    return replace(
        fold.decision,
        after=Situation(new, as_newest.after.votes),
        step=done,
        moment=moment,
        counted=changed or fold.decision.unconfirmed,
        shown=True,
        recheck=changed and confirms and not check.maintenance,
        waits=not changed and new.stands is Stands.CONFIRMING and new.verdict is Verdict.DOWN,
    )


def _state_at(since: datetime, state: State) -> State:
    """The state at an earlier time, as far as the present one tells."""
    was_so = state.status_since is not None and state.status_since <= since
    recovering = state.recovering_since
    return State(
        verdict=state.verdict if was_so else None,
        status_since=state.status_since if was_so else None,
        recovering_since=recovering if recovering and recovering < since else None,
        started_at=state.started_at,
        by_hand=state.by_hand,
    )


def _not_before(since: datetime, checks: Iterable[Check], check: PlaceCheck) -> Iterator[Check]:
    """The checks; that of ``check`` counts from ``since`` on, though it was made before."""
    own = check.place, round(check.at.timestamp() * 1000)
    first = ceil(since.timestamp() * 1000)
    for result in checks:
        is_own = (result.place, result.at) == own
        yield result._replace(at=max(result.at, first)) if is_own else result


def _difference(state: State, new: State, outages: Sequence[Span]) -> tuple[Step, datetime | None]:
    """The step from a state to a new one, and its moment."""
    if is_open(new) and not is_open(state):
        return Step.OPEN, new.started_at
    if is_open(state) and not is_open(new):
        return Step.END, outages[0][1] if outages else state.started_at
    if new.stands is Stands.CONFIRMING and _progress(new) != _progress(state):
        return Step.CONFIRM, None
    if state.stands is Stands.CONFIRMING and new.stands is Stands.CLEAR:
        return Step.CANCEL, None
    return Step.NONE, None


def _progress(state: State) -> tuple[object, ...]:
    return state.failing_since, state.failures, state.recovering_since, state.started_at
