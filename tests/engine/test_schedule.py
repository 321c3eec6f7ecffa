"""Checks are spread over time, do not drift, and catch up without a burst."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.schedule import Bucket, next_check, offset_of, pace
from app.records import INTERVALS

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


@pytest.mark.parametrize("interval", INTERVALS)
def test_a_thousand_monitors_are_not_checked_in_the_same_second(interval):
    offsets = [offset_of(id, interval) for id in range(1, 1001)]
    assert all(0 <= p < interval for p in offsets)
    busiest = Counter(int(p) for p in offsets).most_common(1)[0][1]
    # A thousand over sixty seconds are 17 a second on average.
    assert busiest <= 40


@given(
    st.integers(1, 2**63 - 1),
    st.sampled_from(INTERVALS),
    st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - hypothesis adds the zone
)
def test_the_next_check_is_within_one_interval_and_always_on_the_grid(id, interval, now):
    first = next_check(id, interval, now)
    assert timedelta(0) < first - now <= timedelta(seconds=interval)
    second = next_check(id, interval, first)
    assert second - first == timedelta(seconds=interval)
    # However late the check was, the one after it is where it would have been: no drift.
    late = next_check(id, interval, first + timedelta(seconds=interval * 0.9))
    assert late == second


@pytest.mark.parametrize(
    ("steady", "paced"), [(0, 20), (1, 20), (10, 20), (16.7, 33.4), (167, 334)]
)
def test_catching_up_takes_twice_the_usual_pace(steady, paced):
    assert pace(steady) == pytest.approx(paced)


def test_a_backlog_starts_at_the_pace_and_an_idle_bucket_saves_no_burst():
    bucket = Bucket(pace=100, now=0)
    started = Counter()
    for tick in range(0, 500, 5):
        now = tick / 100
        free = bucket.available(now)
        bucket.spend(free)
        started[int(now)] += free
    assert all(95 <= count <= 126 for count in started.values())
    assert bucket.available(1000) == 25


def test_checks_that_are_late_because_a_turn_took_long_start_together():
    bucket = Bucket(pace=100, now=0)
    bucket.spend(bucket.available(0))
    assert bucket.available(1, overdue=1) == 100
    bucket.spend(100)
    assert bucket.available(1.1, overdue=1) == 10
    assert bucket.available(3600, overdue=3600) == 200, "not those of an hour"
