"""The time axis has ticks at round times in the person's zone."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.stats import RANGES
from app.stats.series import span_of_range, statistics_of
from app.web.shown import axis

NOW = datetime(2026, 11, 21, 14, 27, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("range_", "zone", "expected"),
    [
        ("3h", "UTC", ["11:30", "12:00", "12:30", "13:00", "13:30", "14:00"]),
        ("24h", "UTC", ["16:00", "20:00", "00:00", "04:00", "08:00", "12:00"]),
        ("24h", "Asia/Kolkata", ["20:00", "00:00", "04:00", "08:00", "12:00", "16:00"]),
        ("7d", "UTC", ["Sun 15", "Mon 16", "Tue 17", "Wed 18", "Thu 19", "Fri 20", "Sat 21"]),
        ("365d", "UTC", ["Jan", "Mar", "May", "Jul", "Sep", "Nov"]),
    ],
)
def test_marks_stand_at_round_moments(range_: str, zone: str, expected: list[str]) -> None:
    marks = axis.marks(NOW - RANGES[range_], NOW, ZoneInfo(zone))
    assert [text for _, text in marks] == expected


@pytest.mark.parametrize("range_", RANGES)
@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"]
)
def test_marks_are_in_order_within_the_range_and_not_too_many(range_: str, zone: str) -> None:
    for days in range(0, 366, 5):  # across the changes of the clocks
        last = NOW + timedelta(days=days)
        first = last - RANGES[range_]
        moments = [at for at, _ in axis.marks(first, last, ZoneInfo(zone))]
        assert 5 <= len(moments) <= 8
        assert moments == sorted(moments)
        assert all(first <= at <= last for at in moments)


def test_a_chart_of_days_has_no_mark_after_the_present() -> None:
    """The last bucket is today's and ends tomorrow, which was a label that was also cut."""
    now = datetime(2026, 11, 22, 16, tzinfo=UTC)  # a Sunday: the day after has a mark
    statistics = statistics_of(span_of_range("90d", int(now.timestamp() * 1000)), [], [])
    marks = axis.of_statistics(statistics, UTC)
    assert marks[-1][1] == "9 Nov"
