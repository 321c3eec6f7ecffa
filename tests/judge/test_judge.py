"""Every transition of the state machine (decision 4), and what runs of results lead to."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.judge.verdict import Effect, NewResult, Stage, State, advance, cleared
from app.records import Verdict

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
MARKS = {"u": Verdict.UP, "s": Verdict.DEGRADED, "d": Verdict.DOWN, "?": Verdict.UNKNOWN}
CONFIRMATIONS = 2

CLEAR = State()
CONFIRMING = State(failing_since=START, failures=1)
LAST = State(failing_since=START, failures=CONFIRMATIONS)
OPEN = State(down_since=START)
RECOVERING = State(down_since=START, recovering_since=START + timedelta(seconds=30))
BY_HAND = State(down_since=START, by_hand=True)


@pytest.mark.parametrize(
    ("before", "mark", "stage", "step", "recheck"),
    [
        (CLEAR, "u", Stage.CLEAR, Effect.NONE, False),
        (CLEAR, "s", Stage.CLEAR, Effect.NONE, False),
        (CLEAR, "d", Stage.CONFIRMING, Effect.CONFIRM, True),
        (CLEAR, "?", Stage.CLEAR, Effect.NONE, False),
        (CONFIRMING, "u", Stage.CLEAR, Effect.CANCEL, False),
        (CONFIRMING, "s", Stage.CLEAR, Effect.CANCEL, False),
        (CONFIRMING, "d", Stage.CONFIRMING, Effect.CONFIRM, True),
        (CONFIRMING, "?", Stage.CONFIRMING, Effect.NONE, False),
        (LAST, "u", Stage.CLEAR, Effect.CANCEL, False),
        (LAST, "s", Stage.CLEAR, Effect.CANCEL, False),
        (LAST, "d", Stage.OPEN, Effect.OPEN, False),
        (LAST, "?", Stage.CONFIRMING, Effect.NONE, False),
        (OPEN, "u", Stage.RECOVERING, Effect.NONE, True),
        (OPEN, "s", Stage.RECOVERING, Effect.NONE, True),
        (OPEN, "d", Stage.OPEN, Effect.NONE, False),
        (OPEN, "?", Stage.OPEN, Effect.NONE, False),
        (RECOVERING, "u", Stage.CLEAR, Effect.END, False),
        (RECOVERING, "s", Stage.CLEAR, Effect.END, False),
        (RECOVERING, "d", Stage.OPEN, Effect.NONE, False),
        (RECOVERING, "?", Stage.RECOVERING, Effect.NONE, False),
        (BY_HAND, "u", Stage.BY_HAND, Effect.NONE, False),
        (BY_HAND, "s", Stage.BY_HAND, Effect.NONE, False),
        (BY_HAND, "d", Stage.BY_HAND, Effect.NONE, False),
        (BY_HAND, "?", Stage.BY_HAND, Effect.NONE, False),
        # in maintenance
        (CLEAR, "um", Stage.CLEAR, Effect.NONE, False),
        (CLEAR, "dm", Stage.CLEAR, Effect.NONE, False),
        (CLEAR, "?m", Stage.CLEAR, Effect.NONE, False),
        (CONFIRMING, "um", Stage.CLEAR, Effect.CANCEL, False),
        (CONFIRMING, "dm", Stage.CLEAR, Effect.CANCEL, False),
        (CONFIRMING, "?m", Stage.CLEAR, Effect.CANCEL, False),
        (LAST, "dm", Stage.CLEAR, Effect.CANCEL, False),
        (OPEN, "um", Stage.RECOVERING, Effect.NONE, False),
        (OPEN, "dm", Stage.OPEN, Effect.NONE, False),
        (OPEN, "?m", Stage.OPEN, Effect.NONE, False),
        (RECOVERING, "um", Stage.RECOVERING, Effect.NONE, False),
        (RECOVERING, "dm", Stage.OPEN, Effect.NONE, False),
        (RECOVERING, "?m", Stage.RECOVERING, Effect.NONE, False),
        (BY_HAND, "um", Stage.BY_HAND, Effect.NONE, False),
        (BY_HAND, "dm", Stage.BY_HAND, Effect.NONE, False),
        (BY_HAND, "?m", Stage.BY_HAND, Effect.NONE, False),
        # conclusive, as the reports of a heartbeat
        (CLEAR, "dc", Stage.OPEN, Effect.OPEN, False),
        (CONFIRMING, "dc", Stage.OPEN, Effect.OPEN, False),
        (CLEAR, "dcm", Stage.CLEAR, Effect.NONE, False),
        (OPEN, "uc", Stage.CLEAR, Effect.END, False),
        (OPEN, "ucm", Stage.RECOVERING, Effect.NONE, False),
        (RECOVERING, "ucm", Stage.RECOVERING, Effect.NONE, False),
    ],
)
def test_what_a_result_does_in_each_state(before, mark, stage, step, recheck):
    at, verdict = START + timedelta(seconds=60), MARKS[mark[0]]
    observation = NewResult(0, at, verdict, "m" in mark, conclusive="c" in mark)
    after = advance(before, observation, CONFIRMATIONS)
    assert (after.state.stage, after.effect, after.recheck) == (stage, step, recheck)
    assert after.state.checked_at == observation.at
    assert after.state.verdict == observation.verdict


def run(script, confirmations=2, state=CLEAR, seconds=10):
    """Check after check, ``seconds`` apart; the moments of incidents as offsets in checks."""
    story = []
    for place, mark in enumerate(script.split()):
        at = START + place * timedelta(seconds=seconds)
        after = advance(state, NewResult(0, at, MARKS[mark[0]], mark.endswith("m")), confirmations)
        state = after.state
        if after.effect in (Effect.OPEN, Effect.END):
            offset = (after.moment - START) / timedelta(seconds=seconds)
            story.append((after.effect.value, place, offset))
    return story, state


@pytest.mark.parametrize(
    ("confirmations", "script", "story"),
    [
        # (what, after which check, from which check on)
        (0, "u d d", [("open", 1, 1)]),
        (1, "u d d", [("open", 2, 1)]),
        (2, "u d d d", [("open", 3, 1)]),
        (5, "d d d d d d", [("open", 5, 0)]),
        (5, "d d d d d u", []),
        # one good recheck cancels, and the count starts again
        (2, "d d u d d u d d", []),
        (2, "d d u d d d", [("open", 5, 3)]),
        # unknown neither confirms nor cancels
        (2, "d ? d ? ? d", [("open", 5, 0)]),
        (0, "? ? ? ?", []),
        # recovery: confirmed by one recheck, ends with the first good one
        (0, "d d u u", [("open", 0, 0), ("end", 3, 2)]),
        (0, "d u d u u", [("open", 0, 0), ("end", 4, 3)]),
        (0, "d u ? ? u", [("open", 0, 0), ("end", 4, 1)]),
        (0, "d u ? d u u", [("open", 0, 0), ("end", 5, 4)]),
        (0, "d s u d", [("open", 0, 0), ("end", 2, 1), ("open", 3, 3)]),
        # maintenance: nothing opens in it
        (0, "dm dm dm um", []),
        (2, "d d dm dm dm u", []),
        # it lasts past the end: confirmed afresh, and it starts after the maintenance
        (0, "dm dm d", [("open", 2, 2)]),
        (2, "d dm dm d d d", [("open", 5, 3)]),
        # an incident from before: it ends after the maintenance, at the first good check
        (0, "d dm um um u", [("open", 0, 0), ("end", 4, 2)]),
        (0, "d um dm um um u", [("open", 0, 0), ("end", 5, 3)]),
        (0, "d um um d u u", [("open", 0, 0), ("end", 5, 4)]),
    ],
)
def test_how_runs_of_results_become_incidents(confirmations, script, story):
    assert run(script, confirmations)[0] == story


def test_closing_by_hand_lets_a_new_incident_open_if_checks_still_fail():
    _, state = run("d d d")
    assert state.stage is Stage.OPEN
    story, _ = run("d d d", state=replace(cleared(state), checked_at=None))
    assert story == [("open", 2, 0)]


def test_a_slow_check_that_comes_late_changes_nothing():
    _, state = run("u u u")
    late = NewResult(0, START + timedelta(seconds=5), Verdict.DOWN)
    assert advance(state, late, 0).state == state


def test_results_count_after_the_clock_was_set_back():
    _, state = run("u u u")
    after = advance(state, NewResult(0, START - timedelta(hours=1), Verdict.DOWN), 0)
    assert after.effect is Effect.OPEN


def test_status_since_is_when_the_verdict_changed():
    _, state = run("u u d d")
    assert state.status_since == START + timedelta(seconds=20)
