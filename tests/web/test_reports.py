"""The monthly availability report: correct figures, on the page, on paper and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask

from app.db import rollups, writing
from app.db.journal import keep, known_numbers, row_of
from app.records import Location, Result, Verdict
from app.stats.report import ALL, figures
from app.stats.tally import Sums
from app.stores import current_store
from app.web.shown.cells import plain
from tests.factories import make_incident, make_monitor, now

OCTOBER = datetime(2026, 10, 1, tzinfo=UTC)
NOVEMBER = datetime(2026, 11, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
COVER = 3600 + 30 + 60  # interval, time limit and lateness: how long one result stands


def october(monitor_id: int) -> Iterator[Result]:
    """A check each hour; down for two on the 5th, maintenance for two on the 20th, and six missing
    on the 25th.
    """
    moment = OCTOBER - HOUR
    while moment < NOVEMBER + HOUR:
        fields: dict[str, Any] = {"status_code": 200, "response_time": 100}
        verdict = Verdict.UP
        if moment.date() == datetime(2026, 10, 5).date() and moment.hour in (10, 11):  # noqa: DTZ001
            verdict, fields = Verdict.DOWN, {"cause_code": "timeout:ttfb", "cause": "No answer"}
        if (moment.month, moment.day) == (10, 20) and moment.hour in (3, 4):
            fields["maintenance"] = True
        if (moment.month, moment.day) == (10, 30):
            fields["response_time"] = 500
        if (moment.month, moment.day) != (10, 25) or moment.hour >= 6:
            yield Result(moment, verdict, monitor_id=monitor_id, **fields)
        moment += HOUR


def past(app: Flask, name: str = "Shop", **fields: Any) -> int:
    row = make_monitor(app, name=name, interval=3600, timeout=30, created_at=OCTOBER, **fields)
    results = list(october(row.id))
    with app.app_context(), writing():
        known_numbers(results)
        keep([row_of(result, Location.DEFAULT) for result in results])
    at = OCTOBER + timedelta(days=4, hours=10)
    make_incident(app, row, started_at=at, ended_at=at + 2 * HOUR)
    return row.id


GAP = 6 * 3600 - (COVER - 3600)
EXPECTED = {
    "downtime": 7200,
    "maintenance": 7200,
    "gaps": GAP,
    "unknown": 0,
    "watched": 744 * 3600 - 7200 - GAP,
    "incidents": 1,
    "mttr": 7200,
    "longest": 7200,
    "avg": round((710 * 100 + 24 * 500) / 734),
    "checks": 738,
}


@pytest.mark.parametrize("rolled", [True, False], ids=["from the rollups", "from the results"])
def test_a_month_is_counted_to_the_second(app, rolled):
    shop = past(app)
    with app.app_context():
        if rolled:
            rollups.roll(now())
        answer = current_store().results.report([shop, 77], OCTOBER, NOVEMBER)
    assert set(answer) == {ALL, shop}
    found = answer[shop]
    assert {name: found[name] for name in EXPECTED} == EXPECTED
    assert found["uptime"] == round(100 - 100 * 7200 / EXPECTED["watched"], 4)
    assert answer[ALL] == found


@pytest.mark.sqlite
def test_the_month_in_progress_ends_now(app):
    row = make_monitor(app)
    with app.app_context():
        this = now().replace(day=1, hour=0, minute=0, second=0)
        results = current_store().results
        found = results.report([row.id], this, this + timedelta(days=40))[row.id]
        ahead = results.report([row.id], now() + timedelta(days=9), now() + 240 * HOUR)
    so_far = (now() - this).total_seconds()
    assert abs(found["gaps"] - so_far) < 60
    assert found["uptime"] is None
    assert ahead[row.id]["gaps"] == 0


def test_of_several_monitors_the_whole_is_their_sum_and_incidents_are_cut_at_the_month():
    day = 86_400_000
    one, other = Sums(up=90, down=10), Sums(up=50, down=50, maintenance=5)
    incidents = {
        1: [(-day, day, None), (2 * day, None, None)],
        2: [(day, 2 * day, "false_alarm"), (day, 2 * day, "maintenance")],
    }
    answer = figures(0, 3 * day, {1: [(0, one)], 2: [(0, other)]}, incidents)
    assert answer[1]["incidents"] == 2
    assert answer[1]["longest"] == 86_400  # of two days, one lies in the month
    assert answer[1]["mttr"] == 2 * 86_400  # the open one has no length yet
    assert answer[2]["incidents"] == 0
    assert answer[2]["longest"] is None
    assert answer[ALL]["uptime"] == 70
    assert answer[ALL]["incidents"] == 2


@pytest.mark.sqlite
def test_the_page_tells_figures_and_how_they_are_counted(app, viewer):
    shop, blog = past(app), past(app, name="Blog")
    viewer.open("/reports?month=2026-10")
    assert viewer.status == 200
    for words in ("Availability, October 2026", "2 monitors", "Shop", "Blog", "All together"):
        assert words in viewer.text, words
    for words in ("2 h", "99.728%", "How this is counted", "Maintenance counts neither", "Gaps"):
        assert words in viewer.text, words
    viewer.open(f"/reports?month=2026-10&monitors={blog}")
    assert "1 monitor." in viewer.text
    assert "All together" not in viewer.text
    assert f'href="/reports?month=2026-09&amp;monitors={blog}"' in viewer.page.text
    assert f'href="/monitors/{shop}"' not in viewer.page.text


@pytest.mark.sqlite
def test_the_file_holds_the_same_for_a_spreadsheet(app, viewer):
    shop, evil = past(app), past(app, name='=HYPERLINK("http://evil.test")')
    link = f"/reports/csv?month=2026-10&monitors={shop}&monitors={evil}"
    assert link.replace("&", "&amp;") in viewer.open(link.replace("/csv", "")).page.text
    viewer.open(link)
    assert viewer.page.mimetype == "text/csv"
    assert "availability-2026-10.csv" in viewer.page.headers["Content-Disposition"]
    lines = {row["monitor"]: row for row in csv.DictReader(io.StringIO(viewer.page.text))}
    assert lines["Shop"]["uptime_percent"] == "99.7283"
    assert lines["Shop"]["downtime_seconds"] == "7200"
    assert lines["Shop"]["gap_seconds"] == str(GAP)
    assert lines["All together"]["downtime_seconds"] == "14400"
    assert """'=HYPERLINK("http://evil.test")""" in lines


@pytest.mark.sqlite
def test_without_a_month_it_is_the_last_one_that_has_something_to_say(app, viewer):
    assert "No monitors" in viewer.open("/reports").text
    make_monitor(app)
    this = f"{now():%B %Y}"
    assert f"Availability, {this}" in viewer.open("/reports").text
    assert "so far" in viewer.text
    assert "has not begun" in viewer.open("/reports?month=2190-01").text


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "query", ["month=2026", "month=2026-13", "monitors=x", f"monitors={9**40}"]
)
def test_a_misspelt_address_is_told(viewer, query):
    assert viewer.open(f"/reports?{query}").status == 422


def test_no_name_becomes_a_formula():
    assert [plain(text) for text in ("=1+1", "@x", "-2", "Shop")] == ["'=1+1", "'@x", "'-2", "Shop"]
