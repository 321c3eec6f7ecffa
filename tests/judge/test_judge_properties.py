"""Invariants of the state machine for any sequence of results (decisions 4 and 10).

Hypothesis generates sequences of results, pauses between them, clocks that jump back, maintenance,
and people who report and close incidents. A recorder of two lines keeps the incidents, as the real
one would, and the invariants are checked after every event.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from app.judge.verdict import (
    MAX_OUTDATED,
    Effect,
    NewResult,
    Stage,
    State,
    Transition,
    advance,
    cleared,
)
from app.records import Verdict

BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)
GOOD = (Verdict.UP, Verdict.DEGRADED)

# Seconds since the event before: mostly forward, at times a late result, at times a
# clock that was set back by an hour.
STEPS = st.one_of(st.integers(0, 3600), st.integers(-120, -1), st.just(-3600))
# Down is drawn as often as the rest together: long runs of it are what opens incidents.
VERDICTS = st.one_of(st.just(Verdict.DOWN), st.sampled_from(Verdict))
RESULTS = st.builds(
    lambda step, verdict, maintenance: ("result", step, verdict, maintenance),
    STEPS,
    VERDICTS,
    st.sampled_from([False, False, False, True]),
)
HANDS = st.sampled_from([("close", 0, None, False), ("report", 0, None, False)])
EVENTS = st.lists(st.one_of(RESULTS, RESULTS, RESULTS, RESULTS, HANDS), max_size=60)
CONFIRMATIONS = st.integers(0, 5)


@dataclass
class Kept:
    """An incident as a recorder keeps it."""

    started_at: datetime
    by_hand: bool = False
    ended_at: datetime | None = None


@dataclass
class Watch:
    """One monitor's life: the machine's state, the incidents, and what really happened."""

    confirmations: int
    state: State = field(default_factory=State)
    now: datetime = BEGIN
    incidents: list[Kept] = field(default_factory=list)
    failing: list[datetime] = field(default_factory=list)  # failures in a row, not alerted yet
    good: list[datetime] = field(default_factory=list)  # the run of good checks in an incident

    @property
    def open(self):
        return next((kept for kept in self.incidents if kept.ended_at is None), None)

    def forget(self):
        self.failing, self.good = [], []

    def close_by_hand(self):
        if self.open:
            self.open.ended_at = max(self.now, self.open.started_at)
        self.state = cleared(self.state)
        self.forget()

    def report_by_hand(self):
        if self.open:
            return
        self.incidents.append(Kept(self.now, by_hand=True))
        self.state = replace(cleared(self.state), down_since=self.now, by_hand=True)
        self.forget()

    def result(self, step, verdict, maintenance):
        self.now += timedelta(seconds=step)
        before, result = self.state, NewResult(0, self.now, verdict, maintenance)
        transition = advance(before, result, self.confirmations)
        self.state = transition.state
        if before.checked_at and timedelta(0) < before.checked_at - result.at <= MAX_OUTDATED:
            assert transition == Transition(before, outdated=True), "a late result changes nothing"
            return
        self._remember(result)
        self._record(transition, result)
        if verdict is Verdict.UNKNOWN:
            self._gap(before, transition, maintenance)
        assert self.state.verdict is verdict
        assert self.state.checked_at == result.at

    def _remember(self, result):
        """The meaning of the result, computed without the state machine."""
        if result.verdict is Verdict.DOWN:
            self.good = []
            if not self.open:
                self.failing = [] if result.maintenance else [*self.failing, result.at]
        elif result.verdict in GOOD:
            self.failing = []
            if self.open and not self.open.by_hand:
                self.good.append(result.at)
        elif result.maintenance:
            self.failing = []

    def _record(self, transition, result):
        due = len(self.failing) > self.confirmations
        over = len(self.good) > 1 and result.verdict in GOOD and not result.maintenance
        assert (transition.effect is Effect.OPEN) == due, "an outage was lost, or made up"
        assert (transition.effect is Effect.END) == over, "a recovery was lost, or made up"
        if transition.effect is Effect.OPEN:
            assert self.open is None, "a second incident was opened beside the first"
            assert transition.moment == self.failing[0], "started_at is the first failing check"
            self.incidents.append(Kept(self.failing[0]))
            self.failing = []
        if transition.effect is Effect.END:
            assert self.open, "a recovery came before its outage"
            assert not self.open.by_hand, "checks do not end what a person reported"
            assert transition.moment == max(self.good[0], self.open.started_at)
            self.open.ended_at = transition.moment
            self.good = []

    def _gap(self, before, transition, maintenance):
        """An unknown result neither confirms, cancels nor ends anything."""
        assert transition.effect in (
            (Effect.NONE, Effect.CANCEL) if maintenance else (Effect.NONE,)
        )
        assert not transition.recheck
        if not maintenance:
            same = {"checked_at": None, "verdict": None, "status_since": None}
            assert replace(self.state, **same) == replace(before, **same)

    def promises(self):
        unfinished = [kept for kept in self.incidents if kept.ended_at is None]
        assert len(unfinished) <= 1
        started = unfinished[0].started_at if unfinished else None
        assert self.state.down_since == started, "state and incidents disagree"
        assert (self.state.stage in (Stage.OPEN, Stage.RECOVERING, Stage.BY_HAND)) == bool(
            unfinished
        )
        assert self.state.failures == len(self.failing) <= max(self.confirmations, 0)
        assert self.state.failing_since == (self.failing[0] if self.failing else None)
        for kept in self.incidents:
            assert kept.ended_at is None or kept.ended_at >= kept.started_at


def live(events, confirmations):
    watch = Watch(confirmations)
    for kind, step, verdict, maintenance in events:
        if kind == "close":
            watch.close_by_hand()
        elif kind == "report":
            watch.report_by_hand()
        else:
            watch.result(step, verdict, maintenance)
        watch.promises()
    return watch


# The clock is set back by an hour between an outage and its end: rare, and worth a sure place.
CLOCK_SET_BACK = [
    ("result", 0, Verdict.DOWN, False),
    ("result", -3600, Verdict.UP, False),
    ("result", 60, Verdict.UP, False),
]


@given(EVENTS, CONFIRMATIONS)
@example(CLOCK_SET_BACK, 0)
def test_the_invariants_hold_for_any_results(events, confirmations):
    live(events, confirmations)


@given(EVENTS, CONFIRMATIONS, st.lists(st.sampled_from([0, 1]), min_size=6, max_size=20))
def test_an_outage_is_always_noticed_and_always_ends(events, confirmations, gaps):
    watch = live(events, confirmations)
    watch.close_by_hand()
    watch.now += timedelta(days=1)
    for gap in gaps[: confirmations + 1]:  # one failing check more than there are rechecks
        watch.result(60, Verdict.DOWN, False)
        if gap:
            watch.result(60, Verdict.UNKNOWN, False)
    assert watch.open
    for gap in gaps[:2]:
        watch.result(60, Verdict.UP, False)
        if gap:
            watch.result(60, Verdict.UNKNOWN, False)
    assert watch.open is None
    watch.promises()
