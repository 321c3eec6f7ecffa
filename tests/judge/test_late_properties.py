"""Live, in whatever order results arrive, is the fold over the sorted results, for any history."""

from __future__ import annotations

from bisect import insort
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from app.judge.fold import Fold, in_turn, is_late, margin
from app.judge.verdict import (
    Check,
    PlaceCheck,
    Rules,
    Situation,
    State,
    Step,
    after_gap,
    is_overtaken,
    step,
)
from app.records import LocationRule, Verdict

BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)
SLOT, COVERS, STALE = (timedelta(seconds=seconds) for seconds in (60, 150, 150))
PLACES = (1, 2, 3)
VERDICTS = st.one_of(st.sampled_from((Verdict.DOWN, Verdict.UP)), st.sampled_from(Verdict))
# In each slot: who checks, how many ms after its begin, and after how many its result arrives.
CHECK = st.tuples(VERDICTS, st.integers(0, 12_500), st.integers(0, 90_000))
HISTORY = st.lists(
    st.dictionaries(st.sampled_from(PLACES), CHECK, min_size=1, max_size=3), max_size=15
)
WINDOW = st.one_of(st.none(), st.tuples(st.integers(0, 10), st.integers(1, 5)))


def ms(moment):
    return round(moment.timestamp() * 1000)


def at(check):
    return datetime.fromtimestamp(check.at / 1000, UTC)


def results(history, window):
    """Each result with the time at which it arrives. Those of a place arrive in their order."""
    checks, last = [], {}
    for number, slot in enumerate(history):
        quiet = window is not None and window[0] <= number < sum(window)
        for place, (verdict, after, late) in slot.items():
            time = ms(BEGIN + number * SLOT) + 4 * after + place
            arrival = last[place] = max(last.get(place, 0) + 1, time + late)
            checks.append((arrival, Check(time, verdict, quiet, place=place)))
    return sorted(checks)


class Live:
    """What the recorder does with each result."""

    def __init__(self, rules):
        self.rules, self.situation = rules, Situation()
        self.stored, self.incidents, self.newest = [], [], None

    def record(self, result):
        check = PlaceCheck(result.place, at(result), result.verdict, result.maintenance)
        before = self.situation
        if self.newest is not None and check.at - self.newest > self.rules.longest_gap:
            before = Situation(after_gap(before.state), before.votes)
        self.newest = max(self.newest or check.at, check.at)
        since = max(self.since, check.at - margin(self.rules, COVERS))
        insort(self.stored, result)
        assert not is_overtaken(before, check)
        decision = step(self.rules, before, check)
        if is_late(before, check, decision):
            decision = in_turn(self.rules, COVERS, before, check, decision, self.stored, since)
        started, self.situation = before.state.started_at, decision.after
        if decision.step is Step.END:
            self.incidents.append((started, decision.moment))

    @property
    def since(self):
        """What is open since, or when the last incident ended."""
        if self.situation.state.started_at:
            return self.situation.state.started_at
        return max((end for _start, end in self.incidents), default=BEGIN)

    def folded(self):
        """The same by all stored results in their order."""
        state = State(started_at=self.situation.state.started_at)
        fold = Fold(self.rules, COVERS, self.since, state)
        fold.see(self.stored)
        return fold.situation


def rules_of(rule, confirmations, gap=timedelta(days=1)):
    begun = dict.fromkeys(PLACES, BEGIN - timedelta(days=1))
    return Rules(rule, confirmations, STALE, begun, gap)


def judged(situation):
    state = situation.state
    return state.stands, state.failing_since, state.failures, state.recovering_since


MANY = settings(max_examples=500, deadline=None)


@MANY
@given(HISTORY, WINDOW, st.sampled_from(LocationRule), st.integers(0, 3))
def test_live_in_any_order_of_arrival_is_the_fold_over_the_sorted_results(
    history, window, rule, confirmations
):
    live = Live(rules_of(rule, confirmations))
    for _arrival, result in results(history, window):
        if at(result) < live.since:
            return  # of before an incident that people know: it counts from its end on
        live.record(result)
        assert judged(live.situation) == judged(live.folded())


@MANY
@given(HISTORY, WINDOW, st.sampled_from(LocationRule), st.integers(0, 3))
def test_results_in_their_order_lead_to_the_outages_of_the_fold(
    history, window, rule, confirmations
):
    live = Live(rules_of(rule, confirmations, gap=timedelta(seconds=170)))
    for result in sorted(result for _arrival, result in results(history, window)):
        live.record(result)
    fold = Fold(live.rules, COVERS, BEGIN, State())
    fold.see(sorted(result for _arrival, result in results(history, window)))
    assert fold.situation == live.situation
    assert fold.outages == [(start, end) for start, end in live.incidents if start < end]
