"""The answer of ``statistics``: ranges, buckets and figures."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from app.stats import RANGES
from app.stats.report import figures
from app.stats.series import (
    BUCKETS,
    ChartSpan,
    day_state,
    iso,
    mttr,
    span_of,
    span_of_range,
    start_of,
    statistics_of,
)
from app.stats.tally import BEHIND, DAY_MS, HOUR_MS, Sums

NOW = int(datetime(2026, 11, 21, 8, 20, 30, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize("range_", RANGES)
def test_the_buckets_of_a_range_cover_it_without_a_gap(range_):
    answer = statistics_of(span_of_range(range_, NOW), [], [])
    start, length = start_of(range_, NOW), RANGES[range_].total_seconds() * 1000
    assert length - HOUR_MS < NOW - start <= length
    assert (answer["from"], answer["to"]) == (iso(start), "2026-11-21T08:20:30Z")
    buckets = answer["buckets"]
    assert 60 <= len(buckets) <= 370
    assert buckets[0]["start"] <= answer["from"] < buckets[0]["end"]
    assert buckets[-1]["start"] < answer["to"] <= buckets[-1]["end"]
    assert all(bucket["end"] == next_["start"] for bucket, next_ in pairwise(buckets))
    assert answer["bucket_seconds"] * 1000 == BUCKETS[range_]


def test_pieces_fall_into_their_buckets_and_add_up():
    start = start_of("30d", NOW)
    good = Sums(checks=60, up=HOUR_MS, response_count=60, response_sum=6000, response_max=150)
    good.histogram, good.phases = {80: 60}, [60, 120, 180, 600, 6]
    bad = Sums(checks=60, up=HOUR_MS - 90_000, down=90_000)
    incidents = [
        (start, start + 60_000, None),
        (start, start + 120_000, None),
        (start, start + 999_000, "false_alarm"),
        (start, None, None),
    ]
    pieces = [(start, good), (start + HOUR_MS, bad), (start + 10 * DAY_MS, good)]
    answer = statistics_of(span_of_range("30d", NOW), pieces, incidents)
    assert answer["checks"] == 180
    assert answer["downtime"] == 90
    assert answer["uptime"] == round(100 * (3 * 3600 - 90) / (3 * 3600), 4)
    assert (answer["incidents"], answer["mttr"]) == (3, 90)
    assert answer["response_time"] == {"avg": 100, "p50": 100, "p95": 100, "p99": 100, "max": 150}
    full = [bucket for bucket in answer["buckets"] if bucket["checks"]]
    assert sum(bucket["checks"] for bucket in full) == 180
    assert full[-1]["timings"] == {"dns": 1, "connect": 2, "tls": 3, "ttfb": 10, "download": 0}
    assert sum(bucket["down"] for bucket in full) == 90
    empty = next(bucket for bucket in answer["buckets"] if not bucket["checks"])
    assert (empty["uptime"], empty["response_time"], empty["timings"]["dns"]) == (None, None, None)


def test_the_mean_time_to_recovery_counts_only_ended_incidents():
    assert mttr([], 8000) is None
    assert mttr([(0, None, None)], 8000) is None
    assert mttr([(0, 1000, None), (5000, 8000, None), (9000, None, None)], 8000) == 2
    assert mttr([(0, 1000, None), (5000, 8000, None)], 7999) == 1, "it ended after that time"


def test_statistics_of_a_time_and_a_report_of_it_have_the_same_figures():
    """People compare them: the page of a day shows both."""
    start, end = NOW - DAY_MS, NOW
    hours = range(start, end, HOUR_MS)
    pieces = []
    for number, begin in enumerate(hours):
        sums = Sums(checks=60, up=HOUR_MS - number * 1100, down=number * 1100)
        sums.add_responses([3 + number, 50, 70 + number], [])
        pieces.append((begin, sums))
    incidents = [
        (start, start + 3500, None),
        (start + HOUR_MS, end + HOUR_MS, None),  # its end is in neither
        (start, start + 9000, "false_alarm"),
    ]
    shown = statistics_of(ChartSpan(start, end, HOUR_MS), pieces, incidents)
    report = figures(start, end, {1: pieces}, {1: incidents})[1]
    names = (
        "uptime",
        "downtime",
        "watched",
        "unknown",
        "maintenance",
        "checks",
        "incidents",
        "mttr",
    )
    assert {name: shown[name] for name in names} == {name: report[name] for name in names}
    times = shown["response_time"]
    assert (times["avg"], times["p95"]) == (report["avg"], report["p95"])


def test_the_longest_incident_counts_within_the_time_of_a_report_only():
    start, end = NOW - DAY_MS, NOW
    for begin, stop, longest in (
        (start - HOUR_MS, end + HOUR_MS, DAY_MS),
        (start - HOUR_MS, start + 9000, 9000),
        (end - 9000, end + HOUR_MS, 9000),
        (end - 9000, None, 9000),
    ):
        report = figures(start, end, {1: []}, {1: [(begin, stop, None)]})[1]
        assert report["longest"] == longest // 1000, (begin, stop)


def test_the_state_of_a_day_is_the_first_of_down_up_maintenance_unknown():
    day = dict.fromkeys(("up", "down", "unknown", "maintenance"), 0)
    assert day_state(day) == "none"
    assert day_state(day | {"unknown": 1}) == "unknown"
    assert day_state(day | {"maintenance": 1, "unknown": 1}) == "maintenance"
    assert day_state(day | {"up": 1, "maintenance": 1}) == "up"
    assert day_state(day | {"up": 84600, "down": 1800}) == "brief"
    assert day_state(day | {"up": 84599, "down": 1801}) == "down"


@pytest.mark.parametrize(
    ("hours", "minutes"), [(0.1, 1), (3, 1), (9, 3), (24, 15), (48, 15), (72, 60), (24 * 366, 1440)]
)
def test_a_chosen_time_has_buckets_that_hold_it_and_are_not_too_many(hours, minutes):
    start, end = NOW - int(hours * HOUR_MS) - DAY_MS, NOW - DAY_MS
    span = span_of(start, end, NOW)
    assert span.width == minutes * 60_000
    assert span.start <= start < span.start + span.width
    assert span.end - span.width < end <= span.end
    answer = statistics_of(span, [], [])
    assert (answer["from"], answer["to"]) == (iso(span.start), iso(span.end))
    assert 1 <= len(answer["buckets"]) <= 370


def test_a_chosen_time_that_is_not_over_ends_now():
    assert span_of(NOW - HOUR_MS, NOW + DAY_MS, NOW).end == NOW
    answer = statistics_of(span_of(NOW - HOUR_MS, NOW + DAY_MS, NOW), [], [])
    assert answer["buckets"][-1]["start"] < answer["to"] <= answer["buckets"][-1]["end"]


def test_unreachable_time_is_no_incident_of_a_report():
    incidents = {1: [(0, HOUR_MS, None), (2 * HOUR_MS, 3 * HOUR_MS, BEHIND)]}
    report = figures(0, 4 * HOUR_MS, {1: []}, incidents)[1]
    assert (report["incidents"], report["longest"], report["mttr"]) == (1, 3600, 3600)
