"""How many checks a process made in the last minute."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

from app.engine import checker as checkers
from app.engine.carriers import ProberReport, RemoteNetwork
from app.engine.checker import Checker
from app.engine.checking import CheckLoop, PlannedLoop
from app.engine.plan import Plan
from app.engine.schedule import Claim
from app.records import PageQuery
from app.stores import current_store
from tests.factories import make_outcome, now


def rates(made: dict[int, int]) -> list[int]:
    """The checks a minute by the number of checks that were made by each time (s)."""
    checks, counted = PlannedLoop(None, Plan(timedelta()), now), []
    for seconds, checks.made in made.items():
        counted.append(checks.per_minute(seconds))
    return counted


def test_the_rate_is_that_of_the_last_minute():
    made = {0: 0, 30: 15, 60: 30, 90: 75, 150: 75}
    assert rates(made) == [0, 15, 30, 60, 0]


def test_the_first_checks_after_a_start_are_not_extrapolated():
    """All monitors that were never checked are checked at once; the next check is in a minute."""
    assert rates({0: 0, 12: 3, 25: 3, 59: 3}) == [0, 3, 3, 3]


def test_a_window_that_is_longer_than_a_minute_counts_in_part():
    """While the database was away, nobody asked."""
    assert rates({0: 0, 300: 50}) == [0, 10]


def test_a_check_that_was_not_made_does_not_count():
    checks = CheckLoop(None)
    checks.put_outcome(Claim(1), make_outcome())
    checks.put_outcome(Claim(2), make_outcome("unknown", cause_code="blocked_by_policy"))
    assert len(checks.collect(0.0)) == 2
    assert checks.made == 1


def test_a_good_outcome_that_nobody_waits_for_ends_no_short_wait():
    checks = CheckLoop(None)
    woken = {}
    for what, outcome, awaited, wait in (
        ("good", make_outcome(), False, 0.0),
        ("good, in a long wait", make_outcome(), False, 60.0),
        ("good, for somebody", make_outcome(), True, 0.0),
        ("bad", make_outcome("down"), False, 0.0),
    ):
        checks._waits_until = time.monotonic() + wait
        checks.put_outcome(Claim(1), outcome, awaited=awaited)
        woken[what] = checks._woken.is_set()
        assert len(checks.collect(0.0)) == 1
    assert woken == {
        "good": False, "good, in a long wait": True, "good, for somebody": True, "bad": True,
    }  # fmt: skip


def test_a_check_over_a_queue_counts_once_for_its_place(app, settings, monkeypatch):
    """Its checker counts it. A prober that works for several checkers is reported by each of them,
    under one name.
    """
    monkeypatch.setattr(checkers, "LOOK_SECONDS", 0.0)
    settings, ahead = replace(settings, location="eu"), timedelta(milliseconds=250)
    reports = [ProberReport("prober:host:1", "1.0", ahead, 1)]
    with app.app_context():
        for made in (1, 2):  # by each of two checkers
            network = RemoteNetwork()
            network.reports = lambda: reports
            checker = Checker(app, settings, remote=network)
            start = checker._reported_at
            checker._look_at_shards(start)
            checker.checks.made += made
            checker._look_at_shards(start + 12)
        (place,) = [place for place in _places() if place.name == "eu"]
    assert place.checks_per_minute == 3
    assert (place.version, place.clock_offset_ms) == ("1.0", 250), "its probers', not a checker's"


def _places():
    return current_store().locations.list(PageQuery()).items
