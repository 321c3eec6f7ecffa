"""How many checks a minute a place makes."""

from app.engine.rate import Rate


def test_the_rate_is_that_of_the_last_minute():
    rate = Rate()
    assert rate.per_minute(0, 0) is None
    assert rate.per_minute(4, 100) is None, "too early to tell"
    assert rate.per_minute(30, 15) == 30
    assert rate.per_minute(60, 30) == 30
    assert rate.per_minute(90, 75) == 60
    assert rate.per_minute(150, 75) == 0
