"""A figure that is younger than its range says since when it is."""

from datetime import timedelta

from app.records import Result, Verdict
from tests.factories import keep_results, make_incident, make_monitor, now


def checked(app, days):
    made = make_monitor(app, created_at=now() - timedelta(days=days), interval=60)
    results = [
        Result(monitor_id=made.id, checked_at=now() - timedelta(minutes=minute),
               verdict=Verdict.UP, response_time=50)
        for minute in range(1, 16)
    ]  # fmt: skip
    keep_results(app, results)
    return made


def test_a_young_monitor_says_since_when_its_figures_are(app, viewer):
    monitor = checked(app, days=10)
    since = f"since {monitor.created_at.day} {monitor.created_at:%b}"
    text = viewer.open(f"/monitors/{monitor.id}").text
    assert text.count(since) == 3  # 30 days, 90 days, a year; not 24 hours and 7 days
    assert since in viewer.open("/monitors").text


def test_a_figure_of_an_older_monitor_shows_no_since(app, viewer):
    monitor = checked(app, days=500)
    assert "since " not in viewer.open("/monitors").text
    assert viewer.open(f"/monitors/{monitor.id}").text.count("since ") == 0


def test_after_minutes_a_percentage_has_no_decimals(app, viewer):
    monitor = checked(app, days=0.01)
    at = now() - timedelta(minutes=9)
    make_incident(app, monitor, started_at=at, ended_at=at + timedelta(minutes=1))
    text = viewer.open(f"/monitors/{monitor.id}").text
    figure = text[text.index("Uptime, 24 hours") :].split("%")[0].split()[-1]
    assert figure.isdigit(), figure
    assert int(figure) < 100
