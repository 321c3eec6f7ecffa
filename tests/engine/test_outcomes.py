"""In what portions outcomes are recorded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.db import shards, writing
from app.engine import recorder
from app.engine.outcomes import MAX_BATCH, MIN_BATCH, OutcomeRecorder, _size_of_next
from app.engine.schedule import Claim
from tests.factories import make_monitor, make_outcome


@pytest.mark.parametrize(
    ("size", "seconds", "following"),
    [
        (MAX_BATCH, 0.5, MAX_BATCH),
        (MAX_BATCH, 1.0, MAX_BATCH // 2),
        (MAX_BATCH, 60.0, MIN_BATCH),
        (MIN_BATCH, 0.1, 5 * MIN_BATCH),
        (1, 0.0, MAX_BATCH),
    ],
)
def test_a_transaction_that_took_long_is_followed_by_a_smaller_one(size, seconds, following):
    assert _size_of_next(size, seconds) == following


@pytest.mark.parametrize("verdict", ["up", "down"])
def test_a_check_that_is_dropped_is_no_result_of_its_place(core, settings, verdict):
    """Otherwise a place whose checks are all dropped seems to be checked."""
    with core.app_context():
        monitor = make_monitor(core)
        with writing():
            shards.make(1)
        calls = []
        returns = OutcomeRecorder(settings.location, lambda *given: calls.append(given))

        def put_outcome(generation):
            returns.add([(Claim(monitor.id, generation=generation), make_outcome(verdict))])
            returns.flush()
            return calls.pop()[1]

        assert put_outcome(generation=5) is None, "it is dropped"
        assert returns.last_check_at is None
        assert put_outcome(generation=0) is not None
        assert returns.last_check_at is not None


def test_a_good_check_whose_monitor_was_changed_before_it_was_written_is_no_result(core, settings):
    with core.app_context():
        monitor = make_monitor(core)
        with writing():
            shards.make(1)
        calls = []
        returns = OutcomeRecorder(settings.location, lambda *given: calls.append(given))
        returns.add([(Claim(monitor.id), make_outcome())])
        returns.flush()
        came = returns.last_check_at
        assert came is not None
        claim = Claim(monitor.id, generation=calls.pop()[1].generation)
        returns.add([(claim, make_outcome(at=datetime.now(UTC) + timedelta(seconds=60)))])
        assert calls, "it is taken without being written"
        with writing() as session:
            recorder.pause(session, monitor.id, datetime.now(UTC))
        returns.flush()
        assert returns.last_check_at == came


def test_nothing_is_waited_for_while_results_are_not_recorded(settings):
    returns = OutcomeRecorder(settings.location, lambda *_change: None)
    assert returns.wait(60.0) > 0
    returns.add([(Claim(1), make_outcome("down"))])
    assert returns.wait(60.0) == 0
