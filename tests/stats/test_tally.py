"""Time that counts as up, down, unknown and maintenance, and its figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.judge.verdict import PastResult
from app.records import Classification, Verdict
from app.stats.cover import cover_limit_ms, overlap
from app.stats.tally import (
    HOUR_MS,
    RATIO,
    OutageTimes,
    Sums,
    bucket,
    merged,
    outage_times,
    percent,
    percentile,
    tally,
)

MINUTE = 60_000
LIMIT = cover_limit_ms(interval=60, timeout=30)  # 150 s
UP, DOWN, UNKNOWN, SLOW = Verdict.UP, Verdict.DOWN, Verdict.UNKNOWN, Verdict.DEGRADED


def checks(*verdicts, step=MINUTE, **fields):
    """A check for each minute; None for a minute without one."""
    return [
        PastResult(place * step, verdict, **fields)
        for place, verdict in enumerate(verdicts)
        if verdict is not None
    ]


def seconds(sums):
    return tuple(value // 1000 for value in (sums.up, sums.down, sums.unknown, sums.maintenance))  # type: ignore[return-value]


# Checks; incidents (start and end in minutes, classification); the end (minutes); expected seconds
# of up, down, unknown and maintenance.
TABLE = [
    ("all good", checks(UP, UP, UP), [], 3, (180, 0, 0, 0)),
    ("an incident", checks(UP, DOWN, DOWN, UP), [(1, 3, None)], 4, (120, 120, 0, 0)),
    ("open still", checks(UP, DOWN, DOWN), [(1, None, None)], 3, (60, 120, 0, 0)),
    ("a failure that a recheck cancelled", checks(UP, DOWN, UP), [], 3, (180, 0, 0, 0)),
    ("we could not tell", checks(UP, UNKNOWN, UP), [], 3, (120, 0, 60, 0)),
    ("unknown in an outage", checks(DOWN, UNKNOWN, DOWN, UP), [(0, 3, None)], 4, (60, 120, 60, 0)),
    ("silence is a gap", checks(UP, None, None, None, None, UP), [], 6, (210, 0, 0, 0)),
    (
        "an outage in silence",
        checks(UP, None, None, None, None, UP),
        [(3, 4, None)],
        6,
        (210, 0, 0, 0),
    ),
    ("the last one covers until now", checks(UP), [], 1, (60, 0, 0, 0)),
    ("but not for ever", checks(UP), [], 60, (150, 0, 0, 0)),
    ("maintenance", checks(UP, DOWN, maintenance=True), [(1, 2, None)], 2, (0, 0, 0, 120)),
    (
        "a false alarm",
        checks(UP, DOWN, UP),
        [(1, 2, Classification.FALSE_ALARM)],
        3,
        (180, 0, 0, 0),
    ),
    (
        "was maintenance",
        checks(UP, DOWN, UP),
        [(1, 2, Classification.MAINTENANCE)],
        3,
        (120, 0, 0, 60),
    ),
    (
        "excused in part",
        checks(DOWN, DOWN, DOWN),
        [(0, 3, None), (1, 2, Classification.MAINTENANCE)],
        3,
        (0, 120, 0, 60),
    ),
    (
        "two incidents at once count once",
        checks(DOWN, DOWN, UP),
        [(0, 2, None), (1, 2, None)],
        3,
        (60, 120, 0, 0),
    ),
    ("nothing", [], [(0, 1, None)], 5, None),
]


@pytest.mark.parametrize(
    ("results", "incidents", "until", "expected"),
    [row[1:] for row in TABLE],
    ids=[r[0] for r in TABLE],
)
def test_time_counts_by_checks_incidents_and_windows(results, incidents, until, expected):
    end = until * MINUTE
    spans = [
        (start * MINUTE, None if stop is None else stop * MINUTE, what)
        for start, stop, what in incidents
    ]
    tallied = tally(results, outage_times(spans, end), LIMIT, HOUR_MS, 0, end)
    assert [seconds(sums) for sums in tallied.values()] == ([] if expected is None else [expected])


# What two places see each minute, beginning at 0 s and at 20 s; expected seconds of up,
# unknown and degraded. A failure is confirmed once.
PLACES = [
    ("one cannot tell", (UP, UP, UP), (UNKNOWN, UNKNOWN, UNKNOWN), (180, 0, 0)),
    ("the other cannot", (UNKNOWN, UNKNOWN, UNKNOWN), (UP, UP, UP), (160, 20, 0)),
    ("neither can", (UNKNOWN, UNKNOWN, UNKNOWN), (UNKNOWN, UNKNOWN, UNKNOWN), (0, 180, 0)),
    ("one fails alone", (UP, UP, UP), (DOWN, DOWN, DOWN), (180, 0, 100)),
    ("its failure is not confirmed", (UP, UP, UP), (DOWN, UP, DOWN), (180, 0, 0)),
    ("what it cannot tell confirms nothing", (UP, UP, UP), (DOWN, UNKNOWN, DOWN), (180, 0, 40)),
    ("both fail", (DOWN, DOWN, DOWN), (DOWN, DOWN, DOWN), (180, 0, 0)),
    ("one is slow", (UP, UP, UP), (SLOW, UP, SLOW), (180, 0, 100)),
    ("one is silent", (UP, None, None), (UNKNOWN, UNKNOWN, UNKNOWN), (150, 30, 0)),
    ("a gap confirms nothing", (UP,) * 5, (DOWN, None, None, None, DOWN), (300, 0, 0)),
]


@pytest.mark.parametrize(("first", "other", "expected"), [row[1:] for row in PLACES])
def test_time_counts_by_what_all_places_see_together(first, other, expected):
    """Decision 14: ``unknown`` has no vote, whichever result came last."""
    results = [check._replace(place=1) for check in checks(*first)]
    results += [check._replace(place=2, at_ms=check.at_ms + 20_000) for check in checks(*other)]
    end = len(first) * MINUTE
    sums = tally(sorted(results), OutageTimes(), LIMIT, HOUR_MS, 0, end, confirmations=1)[0]
    figures = (sums.up, sums.unknown, sums.degraded)
    assert tuple(ms // 1000 for ms in figures) == expected


def test_only_good_answers_outside_of_maintenance_have_a_response_time():
    results = [
        PastResult(0, UP, response_time=100, phases=(1, 2, None, 90, 7)),
        PastResult(1, Verdict.DEGRADED, response_time=300, phases=(1, 2, 3, 290, 4)),
        PastResult(2, DOWN, response_time=9000),
        PastResult(3, UNKNOWN, response_time=9000),
        PastResult(4, UP, maintenance=True, response_time=9000),
    ]
    sums = tally(results, OutageTimes(), LIMIT, HOUR_MS, 0, 5)[0]
    assert (sums.checks, sums.response_count, sums.response_sum) == (5, 2, 400)
    assert (sums.response_max, sums.phases) == (300, [2, 4, 3, 380, 11])
    assert sum(sums.histogram.values()) == 2


def made(at, verdict, maintenance, place, covers=None):
    return PastResult(at, verdict, maintenance, place=place, covers_ms=covers)


CHECKS = st.lists(
    st.tuples(
        st.integers(0, 10 * HOUR_MS),
        st.sampled_from(list(Verdict)),
        st.booleans(),
        st.integers(1, 2),
    ),
    max_size=40,
    unique_by=lambda row: row[0],
).map(lambda rows: [made(*row) for row in sorted(rows)])
INCIDENTS = st.lists(
    st.tuples(
        st.integers(0, 10 * HOUR_MS),
        st.none() | st.integers(0, 10 * HOUR_MS),
        st.none() | st.sampled_from(list(Classification)),
    ),
    max_size=6,
)


@given(CHECKS, INCIDENTS, st.integers(1, 11 * HOUR_MS), st.integers(MINUTE, HOUR_MS))
def test_no_moment_counts_twice_and_hours_add_up_to_the_whole(results, incidents, end, limit):
    what = outage_times(incidents, end)
    hours = tally(results, what, limit, HOUR_MS, 0, end)
    total = Sums()
    for sums in hours.values():
        assert min(sums.up, sums.down, sums.unknown, sums.maintenance) >= 0
        assert sums.up + sums.down + sums.unknown + sums.maintenance <= HOUR_MS
        total.add(sums)
    whole = Sums()
    for sums in tally(results, what, limit, 24 * HOUR_MS, 0, end).values():
        whole.add(sums)
    assert total == whole
    # Summed in two parts, as rollups are, the result is the same.
    half = end // 2
    parts = Sums()
    for start, stop in ((0, half), (half, end)):
        for sums in tally(
            results, outage_times(incidents, end), limit, HOUR_MS, start, stop
        ).values():
            parts.add(sums)
    assert (parts.up, parts.down, parts.checks) == (total.up, total.down, total.checks)


# Few distinct times, so that checks often adjoin, coincide, leave gaps and cross periods.
STEPS = st.integers(0, 60)


@given(
    st.lists(
        st.tuples(
            STEPS,
            st.sampled_from(list(Verdict)),
            st.booleans(),
            st.integers(1, 3),
            st.none() | st.integers(0, 25),
        ),
        max_size=12,
        unique_by=lambda row: (row[0], row[3]),
    ),
    st.lists(
        st.tuples(STEPS, st.none() | STEPS, st.none() | st.sampled_from(list(Classification)))
    ),
    st.lists(st.tuples(STEPS, STEPS), max_size=3),
    st.integers(1, 25),
    st.integers(1, 20),
    STEPS,
    STEPS,
)
def test_sums_equal_a_count_of_each_moment(rows, incidents, windows, limit, period, start, end):
    results = sorted((made(*row) for row in rows), key=lambda check: (check.at_ms, check.place))
    expected: dict[int, dict[str, int]] = {}
    for at in range(start, end):
        counts = expected.setdefault(at - at % period, dict.fromkeys((*KINDS, "checks"), 0))
        counts["checks"] += sum(check.at_ms == at and check.covers_ms != 0 for check in results)
        kind = kind_at(at, results, incidents, windows, limit)
        if kind is not None:
            counts["up" if kind == "degraded" else kind] += 1
        if kind == "degraded":
            counts["degraded"] += 1
    tallied = tally(results, outage_times(incidents, end, windows), limit, period, start, end)
    assert {
        slot: {name: getattr(sums, name) for name in (*KINDS, "checks")}
        for slot, sums in tallied.items()
    } == {slot: counts for slot, counts in expected.items() if any(counts.values())}


KINDS = ("up", "down", "unknown", "maintenance", "degraded")


def kind_at(at, results, incidents, windows, limit):
    """The kind of this moment, computed without spans; None in a gap."""
    past = [check for check in results if check.at_ms <= at]
    of_places = {check.place: check for check in past}.values()
    voting = [
        check
        for check in of_places
        if at < check.at_ms + (limit if check.covers_ms is None else check.covers_ms)
    ]
    votes = {check.verdict for check in voting}
    if not votes:
        return None
    if any(begin <= at < stop for begin, stop in windows):
        return "maintenance"
    in_maintenance = any(begin <= past[-1].at_ms < stop for begin, stop in windows)
    if past[-1].maintenance and not in_maintenance:
        return "maintenance"
    if votes == {UNKNOWN}:
        return "unknown"
    now = [what for begin, stop, what in incidents if begin <= at and (stop is None or at < stop)]
    if Classification.MAINTENANCE in now:
        return "maintenance"
    if any(what != Classification.FALSE_ALARM for what in now):
        return "down"
    # Without confirmations, each failure that another place does not see lasts.
    lasts = any(check.verdict is Verdict.DOWN and not check.maintenance for check in voting)
    return "degraded" if Verdict.DEGRADED in votes or (lasts and Verdict.UP in votes) else "up"


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100))),
    st.integers(0, 100),
    st.integers(0, 100),
)
def test_overlap_equals_a_count_of_each_step(spans, begin, end):
    steps = sum(any(a <= at < b for a, b in spans) for at in range(begin, end))
    assert overlap(merged(spans), begin, end) == steps


@pytest.mark.parametrize(
    ("up", "down", "expected"),
    [
        (0, 0, None),
        (1, 0, 100.0),
        (0, 1, 0.0),
        (1, 1, 50.0),
        (10**9, 1, 99.9999),
        (1, 10**9, 0.0001),
    ],
)
def test_uptime_is_100_only_if_nothing_was_down(up, down, expected):
    assert percent(up, down) == expected


@given(
    st.lists(st.integers(0, 120_000), min_size=1, max_size=300),
    st.sampled_from([1, 50, 95, 99, 100]),
)
def test_percentiles_of_the_histogram_are_near_the_exact_ones(values, percent):
    sums = Sums()
    sums.add_responses(values, ())
    exact = sorted(values)[max(1, -(-len(values) * percent // 100)) - 1]  # the nearest rank
    near = percentile(sums, percent)
    assert near is not None
    assert abs(near - exact) <= exact * (RATIO - 1) + 1
    assert near <= max(values)


@pytest.mark.parametrize("values", [[102], [102] * 40, [102, 103, 104] * 20, [102, 25_000]])
def test_a_percentile_is_not_below_all_that_were_measured(values):
    sums = Sums()
    sums.add_responses(values, ())
    assert all(min(values) <= (percentile(sums, part) or 0) <= max(values) for part in (95, 99))


def test_histograms_add_up_and_an_empty_one_has_no_percentile():
    total = Sums()
    for histogram in ({1: 2, 5: 1}, {5: 3}, {}):
        total.add(Sums(histogram=histogram))
    assert total.histogram == {1: 2, 5: 4}
    assert percentile(Sums(), 95) is None
    assert [bucket(ms) for ms in (0, 1, 2)] == [0, 0, 14]
