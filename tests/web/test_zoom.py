"""A chosen time of a monitor's chart is in the address, without a script too."""

from datetime import timedelta

import pytest

from app.records import Result, Timings, Verdict
from app.rules.time import iso
from tests.factories import keep_results, make_monitor, now
from tests.support.store import access_of


@pytest.fixture
def monitor(app):
    made = make_monitor(app, created_at=now() - timedelta(days=2), slow_after=300)
    result = Result(
        monitor_id=made.id, checked_at=now() - timedelta(hours=30), verdict=Verdict.UP,
        response_time=120, timings=Timings(10, 20, 30, 40, 20),
    )  # fmt: skip
    keep_results(app, [result])
    return made


def test_a_chosen_time_is_shown_with_its_surroundings(viewer, monitor):
    start, end = now() - timedelta(hours=31), now() - timedelta(hours=29)
    page = viewer.open(f"/monitors/{monitor.id}?from={iso(start)}&to={iso(end)}")
    assert "Response time: 120 ms on average" in page.page.text
    assert 'class="dot average"' in page.page.text
    assert "Slow after 300 ms" in page.page.text
    for name in ("Earlier", "Later", "Zoom out"):
        assert f">{name}</a>" in page.page.text
    # The form has it in the person's time zone, for changing it by hand.
    assert f'value="{iso(start)[:-1]}"' in page.page.text
    typed = f"from={start:%Y-%m-%dT%H:%M}&to={end:%Y-%m-%dT%H:%M}"
    page = viewer.open(f"/monitors/{monitor.id}?{typed}")
    assert "Response time: 120 ms on average" in page.page.text
    page = viewer.open(f"/monitors/{monitor.id}/checks").page.text
    assert "<summary>Phases" in page
    assert "First byte" in page


REFUSED = (
    "from=2026-11-01T00:00:00Z",
    "from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z",
    "from=2024-11-02T00:00:00Z&to=2026-11-01T00:00:00Z",
    "from=yesterday&to=today",
    "from=2999-11-01T00:00:00Z&to=2999-11-02T00:00:00Z",
    # A day before the first, and one after the last, which some zones need, do not exist.
    "from=0001-01-01T00:00:00Z&to=0001-01-02T00:00:00Z",
    "from=0001-02-01T00:00:00Z&to=0002-01-01T00:00:00Z",
    "from=9999-12-30T00:00:00Z&to=9999-12-31T23:59:59Z",
)


def test_a_time_that_cannot_be_shown_is_refused_in_every_zone(app, viewer, monitor):
    for zone in ("America/New_York", "Asia/Tokyo"):
        access_of(app).people.update(1, {"time_zone": zone})
        for query in REFUSED:
            assert viewer.open(f"/monitors/{monitor.id}?{query}").status == 422, (zone, query)
