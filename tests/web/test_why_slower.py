"""A monitor's page says why it is slower than it was."""

from datetime import UTC, datetime, timedelta

import pytest

from app.records import Result, Timings, Verdict
from app.stores.local.results import LocalResults
from tests.factories import keep_results, make_heartbeat, make_monitor, now
from tests.support.store import access_of, store_of

RELEASE = timedelta(hours=6)


@pytest.fixture
def shop(app):
    """Checked each ten minutes for nine days; since a release, its first byte takes longer."""
    fields = {"interval": 600, "url": "https://shop.example.com/"}
    made = make_monitor(app, created_at=now() - timedelta(days=9), **fields)
    store_of(app).markers.create({"name": "Release 2.1", "time": now() - RELEASE})
    results = []
    for number in range(1, 9 * 144):
        ago = timedelta(minutes=10 * number)
        more = 38 if ago < RELEASE else 0
        timings = Timings(5, 10, 20, 55 + more, 10)
        at = now() - ago
        results.append(
            Result(at, Verdict.UP, monitor_id=made.id, response_time=100 + more, timings=timings)
        )
    keep_results(app, results)
    return f"/monitors/{made.id}"


def test_a_sentence_says_what_changed_since_a_release(viewer, shop):
    viewer.open(shop)
    viewer.shows("38% slower since Release 2.1: first byte. Median 138 ms, after 100 ms")
    assert "slower since" not in viewer.open(f"{shop}/days/{now() - timedelta(days=3):%F}").text


def test_every_chart_has_phases_and_an_earlier_time_by_a_link(viewer, shop):
    yesterday = f"{shop}/days/{now() - timedelta(days=1):%F}"
    for path in (f"{shop}?range=24h", f"{shop}?range=3h", f"{yesterday}?"):
        page = viewer.open(path).page.text
        assert "DNS lookup 5 ms, connect 10 ms, TLS 20 ms, first byte" in page, path
        assert 'class="line earlier"' not in page
        for name, word in (("before", "The period before"), ("week", "The same day last week")):
            assert f"compare={name}" in page, path
            compared = viewer.open(f"{path}&compare={name}").page.text
            assert 'class="line earlier"' in compared, path
            assert f"{word}: 1" in compared, "its figures are in words too"
        assert 'class="area ttfb"' in viewer.open(f"{path}&phases=1").page.text, path
    assert "compare=week" not in viewer.open(f"{shop}?range=30d").page.text
    assert viewer.open(f"{shop}?compare=year").status == 422


def test_the_same_day_last_week_is_the_same_by_the_clock(app, viewer, monkeypatch):
    """Clocks went back between the two, on 25 October 2026."""
    access_of(app).people.update(1, {"time_zone": "Europe/Berlin"})
    made = make_monitor(app, created_at=datetime(2026, 10, 1, tzinfo=UTC))
    spans, between = [], LocalResults.statistics_between

    def noted(self, id, *span):
        spans.append(span)
        return between(self, id, *span)

    monkeypatch.setattr(LocalResults, "statistics_between", noted)
    span = "from=2026-10-27T08:00:00Z&to=2026-10-27T20:00:00Z"
    assert viewer.open(f"/monitors/{made.id}?{span}&compare=week").status == 200
    start, end = spans[-1]
    assert (start.day, start.hour, end - start) == (20, 7, timedelta(hours=12))
    viewer.shows("The same day last week: no response times.")


def test_a_new_monitor_opens_on_three_hours_unless_it_is_checked_rarely(app, viewer):
    hours = timedelta(hours=1)
    for age, interval, expected in (
        (5, 60, "3 hours"),
        (7, 60, "24 hours"),
        (1, 86400, "24 hours"),
    ):
        made = make_monitor(app, created_at=now() - age * hours, interval=interval)
        page = viewer.open(f"/monitors/{made.id}").page.text
        assert f'aria-current="true">{expected}</a>' in page
    job = make_heartbeat(app)
    page = viewer.open(f"/monitors/{job.id}").page.text
    assert ">Phases</a>" not in page, "the run of a job has none"
