"""Stored results that are judged in parts show what they show together, for any history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.judge.replay import BlockedSpan, Replay
from app.judge.verdict import PastResult, Rules, State
from app.records import LocationRule, Verdict

BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)
SLOT, COVERS = timedelta(seconds=60), timedelta(seconds=150)
VERDICTS = st.one_of(st.just(Verdict.DOWN), st.sampled_from(Verdict))
CONFIRMATIONS = st.integers(0, 5)
# The checks of three places, in each slot: who checks, and how many milliseconds after its begin.
PLACES = (1, 2, 3)
HISTORY = st.lists(
    st.dictionaries(
        st.sampled_from(PLACES), st.tuples(VERDICTS, st.integers(0, 50_000)), max_size=3
    ),
    max_size=40,
)
INCIDENTS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 5), st.booleans()), max_size=2)


def ms(moment):
    return round(moment.timestamp() * 1000)


def rules(confirmations, places=(1,), rule=LocationRule.MAJORITY):
    return Rules(rule, confirmations, COVERS, dict.fromkeys(places, BEGIN - timedelta(days=1)))


def stored(history):
    return sorted(
        PastResult(ms(BEGIN + number * SLOT) + more, verdict, place=place)
        for number, slot in enumerate(history)
        for place, (verdict, more) in slot.items()
    )


def span_of(incident):
    first, slots, by_hand = incident
    return BlockedSpan(BEGIN + first * SLOT, BEGIN + (first + slots) * SLOT, by_hand)


@given(
    HISTORY, CONFIRMATIONS, st.sampled_from(LocationRule), st.integers(0, 120), INCIDENTS
)  # fmt: skip
def test_results_in_two_parts_show_what_they_show_together(
    history, confirmations, rule, cut, incidents
):
    """And outages follow each other, each outside of the incidents that opened in time."""
    checks = stored(history)
    spans = sorted(map(span_of, incidents), key=lambda span: span.started_at)
    whole, parts = (
        Replay(rules(confirmations, PLACES, rule), COVERS, BEGIN, State(), spans)
        for _number in range(2)
    )
    whole.judge(checks)
    parts.judge(checks[:cut])
    parts.judge(checks[cut:])
    whole.finish()
    parts.finish()
    outages = whole.outages
    assert outages == parts.outages
    times = [time for outage in outages for time in outage]
    assert times == sorted(times)
    for start, end in outages:
        assert not [span for span in spans if span.started_at < end and span.ended_at > start]
