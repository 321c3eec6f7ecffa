"""How percentages and durations are written."""

from __future__ import annotations

import pytest

from app.rules.figures import in_one_unit, milliseconds, percent

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("value", "seconds", "expected"),
    [
        (93.3333, 15 * MINUTE, "93%"),
        (99.9306, 1 * DAY, "99.93%"),
        (99.9306, 7 * DAY, "99.93%"),
        (99.9977, 365 * DAY, "99.99%"),  # on one page as the figures beside it
        (99.9977, None, "99.99%"),
        (99.9999, 20 * MINUTE, "99%"),  # not 100: something was down
        (99.95, 1 * DAY, "99.95%"),
        (90.0, 20 * MINUTE, "90%"),
        (90.0, 1 * DAY, "90%"),
        (0.0, 20 * MINUTE, "0%"),
        (100.0, 5, "100%"),
        (None, 5, "–"),
    ],
)
def test_percentages_have_one_precision_but_of_minutes(value, seconds, expected) -> None:
    assert percent(value, seconds) == expected


@pytest.mark.parametrize(
    ("ms", "short", "exact"),
    [
        (0, "0 ms", "0 ms"),
        (999, "999 ms", "999 ms"),
        (1_512, "1.51 s", "1,512 ms"),
        (60_000, "60 s", "60,000 ms"),
        (1_200_000, "20 min", "20 min"),
        (7_325_000, "2 h 2 min", "2 h 2 min"),
        (2**31, "24 d 20 h", "24 d 20 h"),
    ],
)
def test_a_duration_is_written_in_its_unit(ms, short, exact) -> None:
    assert (milliseconds(ms), milliseconds(ms, exact=True)) == (short, exact)


def test_durations_of_one_sentence_have_one_unit() -> None:
    assert in_one_unit(240, 999) == ["240 ms", "999 ms"]
    assert in_one_unit(0, 240, 2_930) == ["0 s", "0.24 s", "2.93 s"]
