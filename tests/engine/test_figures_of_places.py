"""Figures of a monitor that several places check follow what all of them see together, whatever
order their results come in (decision 14).
"""

from dataclasses import replace

import pytest

from app.config import Settings
from app.db import journal, rollups, writing
from app.engine import recorder
from app.stores.local import LocalStore
from tests.factories import make_outcome
from tests.support.recorders import HOUR, NAMES, ROLLED, Figures, at


@pytest.fixture
def places(core, settings: Settings):
    with core.app_context():
        yield Figures(core, LocalStore(settings))


@pytest.mark.parametrize(("rule", "down"), [("any", 4), ("majority", 0)])
def test_a_failure_of_one_place_is_down_time_if_the_rule_says_so(places, rule, down):
    places.start(confirmations=0, location_rule=rule)
    places.each_minute(0, 2)
    places.each_minute(2, 6, sydney="down", oslo="unknown")
    places.each_minute(6, 8)
    live = places.seconds(8 * 60)
    assert live["down"] == pytest.approx(60 * down, abs=2)
    assert live["up"] + live["down"] == pytest.approx(480, abs=2)
    assert live["unknown"] <= 1
    rollups.roll(at(ROLLED))
    assert places.seconds(ROLLED)["down"] == live["down"]


def test_a_failure_that_nobody_else_contradicts_is_not_degraded_time(places):
    """``unknown`` has no vote, so the failure is the verdict of all, and an incident's time."""
    places.start(confirmations=2)
    places.each_minute(0, 2)
    places.each_minute(2, 8, sydney="down", oslo="unknown", berlin="unknown")
    places.each_minute(8, 10)
    assert places.degraded(10 * 60) == pytest.approx(0, abs=1)
    assert places.seconds(10 * 60)["down"] == pytest.approx(360, abs=125), "votes count on a while"


def test_a_failure_may_have_been_confirmed_long_before_the_hours_that_are_read(places):
    """Five checks of ten minutes: sums and unsummed hours say the same of it."""
    places.start(confirmations=5, interval=600)
    for minute in range(0, 180, 10):
        for number, name in enumerate(NAMES):
            failing = name == "sydney" and minute >= 20
            places.see(name, "down" if failing else "up", 60 * minute + number)
    until = 3 * HOUR - 60
    whole = places.degraded(until)
    assert whole == pytest.approx(until - 70 * 60, abs=5)
    for hour in (1, 2):
        rollups.roll(at(hour * HOUR + 15 * 60))
        assert places.degraded(until) == pytest.approx(whole, abs=2), hour
        statistics = places.store.results.statistics(places.id, "24h")
        assert statistics["downtime"] == 0


def test_late_results_of_a_place_give_the_monitor_what_it_saw(places):
    """This holds in hours that are summed already, too."""
    places.start()
    for minute in range(20):
        places.see("oslo", "unknown", 60 * minute)
    rollups.roll(at(ROLLED))
    assert places.seconds(ROLLED)["unknown"] == pytest.approx(1200 + 90, abs=1)
    outcomes = [make_outcome("up", at(60 * minute + 20)) for minute in range(20)]
    late = [
        replace(outcome.result, monitor_id=places.id, location="berlin") for outcome in outcomes
    ]
    assert recorder.record_late(late, at(HOUR), location="berlin") == 20
    seconds = places.seconds(ROLLED)
    assert seconds["up"] == pytest.approx(1140 + 150, abs=1)
    assert seconds["unknown"] == pytest.approx(20, abs=1), "before the first late result"


def test_a_pause_ends_what_the_last_check_of_each_place_stands_for(places):
    places.start(interval=3600)
    for number, name in enumerate(NAMES):
        places.see(name, "up", 60 * number)
    with writing() as session:
        recorder.pause(session, places.id, at(600))
    assert places.seconds(2 * HOUR)["up"] == pytest.approx(600, abs=1)


def test_a_check_on_request_in_a_place_that_is_not_the_monitors_is_in_no_figure(places):
    places.places = {"oslo": journal.place_id("oslo")}
    places.id = places.monitor(places=places.places.values(), interval=3600)
    places.see("oslo", "up", 0)
    places.check(places.id, "degraded", 600)
    assert places.shown.verdict == "up", "a place that is not the monitor's has no vote"
    places.see("oslo", "up", 1200)
    assert places.degraded(3000) == 0
    places.see("oslo", "unknown", 3000)
    places.check(places.id, "up", 3100)
    places.see("oslo", "unknown", 3300)
    live = places.seconds(3600)
    assert live["up"] == pytest.approx(3000, abs=1)
    assert live["unknown"] == pytest.approx(600, abs=1), "what the place itself can tell"
    rollups.roll(at(ROLLED))
    assert places.seconds(ROLLED)["up"] == live["up"]


def test_a_check_on_request_where_the_monitor_is_watched_counts_until_the_next(places):
    places.id = places.monitor(interval=3600)
    for verdict, seconds in (("up", 0), ("degraded", 600), ("up", 1200)):
        places.check(places.id, verdict, seconds)
    assert places.degraded(3000) == pytest.approx(600, abs=1)
    assert places.seconds(3000)["up"] == pytest.approx(3000, abs=1)


@pytest.mark.both_databases
def test_removing_a_place_ends_what_its_last_check_stands_for(places):
    places.start(interval=3600)
    for name, verdict in (("berlin", "up"), ("oslo", "degraded"), ("sydney", "unknown")):
        places.see(name, verdict, 0)
    with writing() as session:
        recorder.set_places(session, places.id, [places.places["berlin"]], at(600))
    assert places.degraded(1800) == pytest.approx(600, abs=1)
    assert places.seconds(1800)["up"] == pytest.approx(1800, abs=1), "berlin's counts on"
    with writing() as session:
        recorder.set_places(session, places.id, [places.places["sydney"]], at(2400))
    assert sum(places.seconds(3000).values()) == pytest.approx(2400, abs=1), "nobody checked since"
