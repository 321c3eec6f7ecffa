"""Percentages say no more than the time that they are of."""

from __future__ import annotations

import pytest

from app.rules.figures import percent

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("value", "seconds", "expected"),
    [
        (93.3333, 15 * MINUTE, "93%"),
        (99.9306, 1 * DAY, "99.9%"),
        (99.9306, 7 * DAY, "99.93%"),
        (99.9977, 30 * DAY, "99.997%"),
        (99.9977, None, "99.997%"),
        (99.9999, 20 * MINUTE, "99%"),  # not 100: something was down
        (99.95, 1 * DAY, "99.9%"),
        (90.0, 20 * MINUTE, "90%"),
        (90.0, 1 * DAY, "90%"),
        (0.0, 20 * MINUTE, "0%"),
        (100.0, 5, "100%"),
        (None, 5, "–"),
    ],
)
def test_a_percentage_has_the_decimals_of_its_time(value, seconds, expected) -> None:
    assert percent(value, seconds) == expected
