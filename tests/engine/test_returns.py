"""In what portions outcomes are recorded."""

from __future__ import annotations

import time

import pytest

from app.engine import recorder
from app.engine.carriers import RemoteNetwork
from app.engine.recorder import Steady
from app.engine.returns import LEAST_AT_ONCE, MOST_AT_ONCE, Returns, _size_of_next
from app.engine.schedule import Claim
from tests.factories import make_outcome


@pytest.mark.parametrize(
    ("size", "seconds", "following"),
    [
        (MOST_AT_ONCE, 0.5, MOST_AT_ONCE),
        (MOST_AT_ONCE, 1.0, MOST_AT_ONCE // 2),
        (MOST_AT_ONCE, 60.0, LEAST_AT_ONCE),
        (LEAST_AT_ONCE, 0.1, 5 * LEAST_AT_ONCE),
        (1, 0.0, MOST_AT_ONCE),
    ],
)
def test_a_transaction_that_took_long_is_followed_by_a_smaller_one(size, seconds, following):
    assert _size_of_next(size, seconds) == following


@pytest.mark.sqlite
def test_nothing_is_waited_for_while_results_are_not_recorded(settings):
    returns = Returns(RemoteNetwork(), settings.location, lambda *_told: None)
    returns.came_back(Claim(1), make_outcome("down"))
    returns.collect(0.0)
    began = time.monotonic()
    returns.collect(60.0)
    assert time.monotonic() - began < 30
    assert returns.waiting
    returns.came_back(Claim(2), make_outcome("unknown", cause_code="blocked_by_policy"))
    returns.collect(0.0, recording=False)
    assert returns.made == 1, "the second was not made"


@pytest.mark.sqlite
def test_good_checks_that_cannot_be_recorded_are_no_sign_of_life(settings, monkeypatch):
    """/readyz would be green while no result is stored."""

    def fail(*_args, **_more):
        raise ZeroDivisionError("of ours")

    returns = Returns(RemoteNetwork(), settings.location, lambda *_told: None)
    monkeypatch.setattr(
        Steady, "take", lambda steady, *one: steady._waiting.append(one) or "stands"
    )
    monkeypatch.setattr(Steady, "write", fail)
    monkeypatch.setattr(Steady, "save", lambda _steady, *, all: None)
    monkeypatch.setattr(recorder, "record_claimed", fail)
    returns.came_back(Claim(1), make_outcome("up"))
    returns.collect(0.0)
    returns.record()
    assert not returns.waiting, "it was dropped"
    assert returns.last_check_at is None
