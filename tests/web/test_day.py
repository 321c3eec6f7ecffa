"""The page of a day begins with its chart and what changed; the checks are folded below."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from app.records import Result, Timings, Verdict
from tests.factories import keep_results, make_incident, make_monitor, now

DAY = datetime.combine((now() - timedelta(days=3)).date(), datetime.min.time(), UTC)
BAD = range(300, 320)  # minutes of the day


@pytest.fixture
def monitor(app):
    """Checked every minute for a day, with one outage."""
    made = make_monitor(app, created_at=DAY)
    results = [
        Result(
            monitor_id=made.id, checked_at=DAY + timedelta(minutes=minute),
            verdict=Verdict.DOWN if minute in BAD else Verdict.UP,
            cause_code="connection_refused" if minute in BAD else None,
            cause="Nobody was there" if minute in BAD else None,
            response_time=None if minute in BAD else 50, timings=Timings(10, 10, 10, 10, 10),
        )
        for minute in range(1440)
    ]  # fmt: skip
    keep_results(app, results)
    make_incident(
        app, made, started_at=DAY + timedelta(minutes=300), ended_at=DAY + timedelta(minutes=320)
    )
    return made


def test_a_day_shows_its_chart_and_its_changes_before_its_checks(viewer, monitor):
    page = viewer.open(f"/monitors/{monitor.id}/days/{DAY:%Y-%m-%d}").page.text
    places = [
        page.index(mark)
        for mark in ("<figure", '<h2 class="mb-3">Incidents<', ">Changes<", ">All checks ")
    ]
    assert places == sorted(places)
    changes = page[places[2] : places[3]]
    assert changes.count("<tr data-key") == 3  # the first, the outage, the recovery
    assert changes.count("Nobody was there") == 1
    assert '<span class="sum">1,440</span>' in page
    assert page[places[3] :].count("<tr data-key") == 25
    assert '<details class="fold" id="checks">' in page
    page = viewer.open(f"/monitors/{monitor.id}/days/{DAY:%Y-%m-%d}?page=2").page.text
    assert '<details class="fold" open id="checks">' in page
    assert "26–50 of" in page
    future = now() + timedelta(days=2)
    assert viewer.open(f"/monitors/{monitor.id}/days/{future:%Y-%m-%d}").status == 200


def test_a_day_has_one_95th_percentile(app, viewer):
    """Its tile and its chart said 79 ms and 78 ms."""
    made = make_monitor(app, created_at=DAY)
    results = [
        Result(
            monitor_id=made.id, checked_at=DAY + timedelta(minutes=minute), verdict=Verdict.UP,
            response_time=78 if minute % 10 == 0 else 149 if minute % 50 == 1 else 4,
        )
        for minute in range(600)
    ]  # fmt: skip
    keep_results(app, results)
    page = viewer.open(f"/monitors/{made.id}/days/{DAY:%Y-%m-%d}").text
    (tile,) = re.findall(r"p95 (\d+ ms) ", page)
    (sentence,) = re.findall(r"on average, p95 (\d+ ms),", page)
    assert tile == sentence


def test_a_day_without_checks_or_a_change_says_so(app, viewer):
    made = make_monitor(app, created_at=DAY)
    viewer.open(f"/monitors/{made.id}/days/{DAY:%Y-%m-%d}")
    viewer.shows("No checks on this day.", "No incidents on this day.")
    results = [
        Result(monitor_id=made.id, checked_at=DAY + timedelta(hours=hour), verdict=Verdict.UP)
        for hour in range(24)
    ]
    keep_results(app, results)
    assert "None: Up all day" in viewer.open(f"/monitors/{made.id}/days/{DAY:%Y-%m-%d}").text
