"""A monitor is slow by the median of the last minutes, for any results (decision 19)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from app.judge.slow import MIN_CHECKS, SlowRules, SlowWindows, spans
from app.judge.verdict import Effect, PastResult, State
from app.records import LocationRule, Verdict

LIMIT, WINDOW = 1000, 300_000
RULES = SlowRules(LIMIT, WINDOW, LocationRule.MAJORITY)
BEGIN = round(datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp() * 1000)
GOOD = (Verdict.UP, Verdict.DEGRADED)
RESULT = st.tuples(
    st.integers(10, 120),  # seconds since the one before
    st.sampled_from([Verdict.UP, Verdict.UP, Verdict.UP, Verdict.DOWN, Verdict.UNKNOWN]),
    st.sampled_from([100, 900, 1000, 1001, 3000, 60_000]),
    st.sampled_from([False, False, False, True]),
)


def checks_of(results):
    at, checks = BEGIN, []
    for seconds, verdict, took, maintenance in results:
        at += seconds * 1000
        checks.append(PastResult(at, verdict, maintenance, took, covers_ms=60_000, place=1))
    return checks


def is_slow(checks):
    """The median as the decision defines it; None if there are too few checks."""
    good = [check for check in checks if check.verdict in GOOD and not check.maintenance]
    times = [check.response_time for check in good if check.at_ms > good[-1].at_ms - WINDOW]
    return median(times) > LIMIT if len(times) >= MIN_CHECKS else None


@given(st.lists(RESULT, max_size=60))
def test_it_opens_when_the_median_is_above_and_ends_when_it_is_not(results):
    checks = checks_of(results)
    state, ended_at = State(), None
    windows = SlowWindows(RULES)
    for number, check in enumerate(checks, 1):
        windows.add(check)
        if check.verdict not in GOOD or check.maintenance:
            continue
        after = windows.judge_newest(state, ended_at)
        slow = is_slow(checks[:number])
        if state.slow_since is None and ended_at is None:
            expected = slow is True and check.response_time > LIMIT
            assert (after.effect is Effect.OPEN) == expected
        if after.effect is Effect.OPEN:
            assert slow is True
            assert after.state.slow_since == after.moment
        elif after.effect is Effect.END:
            assert slow is False
            assert state.slow_since < after.moment
            assert after.state.slow_since is None
            ended_at = after.moment
        elif state.slow_since is not None and slow is False:
            assert after.recheck, "the next check confirms the end"
        state = after.state


@given(st.lists(RESULT, max_size=60))
def test_a_fast_check_of_a_monitor_without_an_incident_changes_nothing(results):
    """So the recorder's fast path need not read the minutes before."""
    windows = SlowWindows(RULES)
    for check in checks_of(results):
        windows.add(check)
        if RULES.counts(check) and check.response_time <= LIMIT:
            assert windows.judge_newest(State(), None).effect is Effect.NONE


@given(st.lists(RESULT, max_size=60), st.integers(0, 60))
def test_what_is_read_again_after_a_restart_leads_to_the_same(results, cut):
    """The recorder reads as far back as ``reach`` says, not all."""
    checks = checks_of(results)[: cut + 1]
    whole, part = SlowWindows(RULES), SlowWindows(RULES)
    for check in checks:
        whole.add(check)
        if check.at_ms >= checks[-1].at_ms - RULES.reach / timedelta(milliseconds=1):
            part.add(check)
    before = State()
    assert whole.judge_newest(before, None) == part.judge_newest(before, None)


def test_a_target_that_is_slow_every_other_time_alerts_once():
    results = [(60, Verdict.UP, 3000 if n % 2 else 100, False) for n in range(200)]
    assert len(spans(RULES, checks_of(results))) == 1
