"""Live, in whatever order results arrive, is the replay of the sorted results, for any history."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.judge.replay import Replay
from app.judge.verdict import Effect, PastResult, Rules, Situation, Stage, State, judge_result
from app.records import LocationRule, Verdict
from app.stats.cover import DEGRADED, UNKNOWN, WATCHED, covered
from tests.support.live_judge import BEGIN, COVERS, Live, at, check_of

SLOT, STALE = timedelta(seconds=60), timedelta(seconds=150)
PLACES = (1, 2, 3)
AGES = BEGIN - timedelta(days=1)  # no place is awaited any more
VERDICTS = st.one_of(st.sampled_from((Verdict.DOWN, Verdict.UP)), st.sampled_from(Verdict))
# In each slot: who checks, how many ms after its begin, and after how many its result arrives.
CHECK = st.tuples(VERDICTS, st.integers(0, 12_500), st.integers(0, 90_000))
HISTORY = st.lists(
    st.dictionaries(st.sampled_from(PLACES), CHECK, min_size=1, max_size=3), max_size=15
)
SLOTS = st.fixed_dictionaries(dict.fromkeys(PLACES, CHECK))
# After how many results the rule is changed, and to what.
CHANGE = st.tuples(st.integers(0, 40), st.sampled_from(LocationRule), st.integers(0, 3))
WINDOW = st.one_of(st.none(), st.tuples(st.integers(0, 10), st.integers(1, 5)))


def ms(moment):
    return round(moment.timestamp() * 1000)


def results(history, window):
    """Each result with the time at which it arrives. The results of a place arrive in their
    order.
    """
    checks, last = [], {}
    for number, slot in enumerate(history):
        quiet = window is not None and window[0] <= number < sum(window)
        for place, (verdict, after, late) in slot.items():
            time = ms(BEGIN + number * SLOT) + 4 * after + place
            arrival = last[place] = max(last.get(place, 0) + 1, time + late)
            checks.append((arrival, PastResult(time, verdict, quiet, place=place)))
    return sorted(checks)


def rules_of(rule, confirmations, gap=timedelta(days=1)):
    return Rules(rule, confirmations, STALE, dict.fromkeys(PLACES, AGES), gap)


def judged(situation):
    state = situation.state
    return state.stage, state.failing_since, state.failures, state.recovering_since


KINDS = {Verdict.UP: WATCHED, Verdict.DEGRADED: DEGRADED, Verdict.UNKNOWN: UNKNOWN}


@given(HISTORY, WINDOW, st.sampled_from(LocationRule), st.integers(0, 3), CHANGE)
def test_live_in_any_order_of_arrival_is_the_fold_over_the_sorted_results(
    history, window, rule, confirmations, change
):
    live = Live(rules_of(rule, confirmations))
    for number, (_arrival, result) in enumerate(results(history, window)):
        if number and number == change[0]:
            live.change(location_rule=change[1], confirmations=change[2])
        newest = live.newest or at(result)
        if at(result) < live.since or (result.verdict is Verdict.UNKNOWN and at(result) < newest):
            return  # before an incident that people know, or without a vote: it does not count then
        live.record(result)
        if live.replayed().state.stage is Stage.RECOVERING and not live.situation.state.down_since:
            return  # no incident opens for what is over by now
        assert live.is_of_before or judged(live.situation) == judged(live.replayed())


@given(HISTORY, WINDOW, st.sampled_from(LocationRule), st.integers(0, 3))
def test_results_in_their_order_lead_to_the_outages_of_the_replay(
    history, window, rule, confirmations
):
    live = Live(rules_of(rule, confirmations, gap=timedelta(seconds=170)))
    for result in sorted(result for _arrival, result in results(history, window)):
        live.record(result)
    replay = Replay(live.rules, COVERS, BEGIN, State())
    replay.judge(sorted(result for _arrival, result in results(history, window)))
    assert replay.situation == live.situation
    assert replay.outages == [(start, end) for start, end in live.incidents if start < end]


@given(HISTORY, WINDOW, st.integers(0, 3))
def test_one_place_alone_is_judged_as_one_of_several_is(history, window, confirmations):
    """``step`` has a shorter way for it."""
    rules = rules_of(LocationRule.MAJORITY, confirmations)
    alone, several = (
        replace(rules, places_since={1: BEGIN}),
        replace(rules, places_since={1: BEGIN, 2: AGES}),
    )
    short = long = Situation()
    for _arrival, result in results([{1: slot[1]} for slot in history if 1 in slot], window):
        check = check_of(result)
        transition, other = judge_result(alone, short, check), judge_result(several, long, check)
        assert (transition.situation, transition.effect, transition.moment) == (
            other.situation,
            other.effect,
            other.moment,
        )
        assert (transition.counted, transition.shown, transition.recheck) == (
            other.counted,
            other.shown,
            other.recheck,
        )
        short, long = transition.situation, other.situation


@given(HISTORY, st.integers(0, 3))
def test_a_good_check_of_a_clear_monitor_changes_nothing(history, confirmations):
    """So the recorder's fast path (``steady``) only stores it."""
    rules = replace(rules_of(LocationRule.MAJORITY, confirmations), places_since={1: BEGIN})
    situation = Situation()
    for _arrival, result in results([{1: slot[1]} for slot in history if 1 in slot], None):
        check, before = check_of(result), situation.state
        decision = judge_result(rules, situation, check)
        is_up = before.verdict is check.verdict is Verdict.UP
        if is_up and before.stage is Stage.CLEAR and not situation.votes[1].failures:
            assert decision.situation.state == replace(before, checked_at=check.at)
            assert (decision.effect, decision.recheck) == (Effect.NONE, False)
        situation = decision.situation


@given(st.lists(SLOTS, max_size=15), st.sampled_from(LocationRule), st.integers(0, 3))
def test_figures_say_of_a_moment_what_the_fold_says(history, rule, confirmations):
    """But where it is down: of that, the incident tells."""
    rules, situation = rules_of(rule, confirmations), Situation()
    checks = sorted(result for _arrival, result in results(history, None))
    limit = round(COVERS.total_seconds() * 1000)
    covers = covered(checks, limit, (), confirmations)
    for result in checks:
        decision = judge_result(rules, situation, check_of(result))
        situation = decision.situation
        if decision.verdict is not Verdict.DOWN:
            (kind,) = {kind for kind, begin, end in covers if begin <= result.at_ms < end}
            assert kind == KINDS[decision.verdict]
