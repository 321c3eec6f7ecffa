"""When to warn that a certificate expires, by its whole life."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.records import AUTO
from app.rules.time import warning_days, warns

ISSUED = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("life", "days"),
    [
        (timedelta(days=398), 132),
        (timedelta(days=90), 30),
        (timedelta(days=47), 15),
        (timedelta(days=11), 3),
        (timedelta(days=10), 5),
        (timedelta(hours=160), 3),
        (timedelta(days=6), 3),
        (timedelta(days=1), 0),
    ],
)
def test_auto_is_a_third_of_the_life_and_half_of_a_short_one(life: timedelta, days: int) -> None:
    last_second = ISSUED + life - timedelta(seconds=1)  # as certificates write the end
    assert warning_days(AUTO, ISSUED, last_second) == days


def test_a_number_of_days_does_not_depend_on_the_life() -> None:
    assert warning_days(14, None, None) == 14
    assert warning_days(0, ISSUED, ISSUED + timedelta(days=90)) == 0
    assert warning_days(None, ISSUED, ISSUED + timedelta(days=90)) is None


def test_auto_says_nothing_while_the_life_is_not_known() -> None:
    assert warning_days(AUTO, None, ISSUED) is None
    assert not warns(AUTO, None, ISSUED, ISSUED)


def test_the_warning_begins_on_the_day() -> None:
    expires = ISSUED + timedelta(days=47)
    day = expires - timedelta(days=15)
    assert warns(AUTO, ISSUED, expires, day)
    assert not warns(AUTO, ISSUED, expires, day - timedelta(days=1))
