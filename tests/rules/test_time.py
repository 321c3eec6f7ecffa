"""One format of moments, and one way to count days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.rules.time import days_left, expiry, iso, next_change

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


def test_a_stamp_is_in_utc_and_in_whole_seconds():
    there = NOON.replace(microsecond=999_999).astimezone(ZoneInfo("Asia/Tokyo"))
    assert iso(there) == "2026-11-21T12:00:00Z"
    assert iso(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("expires", "days"),
    [
        (NOON + timedelta(hours=1), 0), (MIDNIGHT - SECOND, 0), (MIDNIGHT, 1),
        (NOON + 7 * DAY, 7), (NOON - timedelta(hours=1), 0), (NOON - DAY, -1),
    ],
)  # fmt: skip
def test_days_left_are_calendar_days_and_0_is_the_day_itself(expires, days):
    assert days_left(expires, NOON) == days


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue", "UTC"])
def test_days_are_utc_days_in_every_zone(zone):
    there = ZoneInfo(zone)
    assert days_left(MIDNIGHT.astimezone(there), (MIDNIGHT - SECOND).astimezone(there)) == 1
    assert days_left(MIDNIGHT.astimezone(there), MIDNIGHT.astimezone(there)) == 0


@pytest.mark.parametrize(
    ("expires", "text"),
    [
        (MIDNIGHT + 14 * DAY, "expires in 15 days"), (MIDNIGHT + DAY, "expires in 2 days"),
        (MIDNIGHT + DAY - SECOND, "expires tomorrow"), (MIDNIGHT, "expires tomorrow"),
        (MIDNIGHT - SECOND, "expires today"), (NOON + SECOND, "expires today"),
        (NOON, "expired today"), (NOON - timedelta(hours=12), "expired today"),
        (NOON - timedelta(hours=12) - SECOND, "expired yesterday"),
        (NOON - 2 * DAY, "expired 2 days ago"),
    ],
)  # fmt: skip
def test_an_expiry_in_words(expires, text):
    assert expiry(expires, NOON) == text


@pytest.mark.parametrize(
    ("zone", "after", "expected"),
    [
        ("Europe/Berlin", datetime(2026, 3, 20, tzinfo=UTC), datetime(2026, 3, 29, 1, tzinfo=UTC)),
        (
            "Europe/Berlin",
            datetime(2026, 10, 20, tzinfo=UTC),
            datetime(2026, 10, 25, 1, tzinfo=UTC),
        ),
        ("Europe/Berlin", datetime(2026, 6, 1, tzinfo=UTC), None),
        ("Asia/Tokyo", datetime(2026, 3, 20, tzinfo=UTC), None),
    ],
)
def test_the_next_change_of_the_clocks_is_found_to_the_minute(zone, after, expected):
    assert next_change(ZoneInfo(zone), after, timedelta(days=30)) == expected
