"""The monthly availability report: correct figures, on the page, on paper and as CSV."""

import csv
import io
import re
import sys
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask

from app.db import rollups
from app.records import PageQuery, Pair, Result, Verdict
from app.rules.figures import report_subject
from app.stats.report import ALL, figures
from app.stats.tally import Sums
from app.stores import current_store
from app.web.frame.tags import SUGGESTED
from app.web.shown import report
from app.web.shown.report import plain
from tests.factories import keep_results, make_incident, make_monitor, now
from tests.support.store import store_of

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
    keep_results(app, list(october(row.id)))
    at = OCTOBER + timedelta(days=4, hours=10)
    make_incident(app, row, started_at=at, ended_at=at + 2 * HOUR)
    return row.id


def unpacked(file: bytes) -> bytes:
    """The streams of a PDF file; the title is in one of them."""
    streams = re.findall(rb"stream\n(.*?)\nendstream", file, re.DOTALL)
    return b"".join(
        zlib.decompressobj().decompress(stream) for stream in streams if stream[:1] == b"x"
    )


GAP = 6 * 3600 - (COVER - 3600)
EXPECTED = {
    "downtime": 7200, "maintenance": 7200, "gaps": GAP, "unknown": 0, "incidents": 1, "mttr": 7200,
    "watched": 744 * 3600 - 7200 - GAP, "longest": 7200, "checks": 738,
    "avg": round((710 * 100 + 24 * 500) / 734),
}  # fmt: skip


@pytest.mark.parametrize("rolled", [True, False], ids=["from the rollups", "from the results"])
def test_a_month_is_counted_to_the_second(app, rolled):
    shop = past(app)
    with app.app_context():
        if rolled:
            rollups.roll(now())
        answer = current_store().results.report([shop, 77], OCTOBER, NOVEMBER)
    assert set(answer) == {ALL, shop}
    figures_of_shop = answer[shop]
    assert {name: figures_of_shop[name] for name in EXPECTED} == EXPECTED
    assert figures_of_shop["uptime"] == round(100 - 100 * 7200 / EXPECTED["watched"], 4)
    assert answer[ALL] == figures_of_shop


def test_the_month_in_progress_ends_now(app):
    row = make_monitor(app)
    with app.app_context():
        month = now().replace(day=1, hour=0, minute=0, second=0)
        results = current_store().results
        report = results.report([row.id], month, month + timedelta(days=40))[row.id]
        ahead = results.report([row.id], now() + timedelta(days=9), now() + 240 * HOUR)
    so_far = (now() - month).total_seconds()
    assert abs(report["gaps"] - so_far) < 60
    assert report["uptime"] is None
    assert ahead[row.id]["gaps"] == 0


def test_of_several_monitors_the_whole_is_their_sum_and_incidents_are_cut_at_the_month():
    day = 86_400_000
    first, second = Sums(up=90, down=10), Sums(up=50, down=50, maintenance=5)
    incidents = {
        1: [(-day, day, None), (2 * day, None, None)],
        2: [(day, 2 * day, "false_alarm"), (day, 2 * day, "maintenance")],
    }
    answer = figures(0, 3 * day, {1: [(0, first)], 2: [(0, second)]}, incidents)
    assert answer[1]["incidents"] == 2
    assert answer[1]["longest"] == 86_400  # of two days, one lies in the month
    assert answer[1]["mttr"] == 2 * 86_400  # the open one has no length yet
    assert answer[2]["incidents"] == 0
    assert answer[2]["longest"] is None
    assert answer[ALL]["uptime"] == 70
    assert answer[ALL]["incidents"] == 2


def test_the_page_tells_figures_and_how_they_are_counted(app, viewer):
    shop, blog = past(app), past(app, name="Blog")
    assert viewer.open("/reports?month=2026-10").status == 200
    viewer.shows("Availability of all 2 monitors, October 2026", "Shop", "Blog")
    viewer.shows("2 h", "99.72%", "How is this counted?", "Maintenance counts neither", "Gaps")
    viewer.open(f"/reports?month=2026-10&monitors={blog}")
    assert "Availability of Blog, October 2026" in viewer.text
    assert viewer.text.count("99.72%") == 1, "a total is said once"
    assert f'href="/reports?month=2026-09&amp;monitors={blog}"' in viewer.page.text
    assert f'href="/monitors/{shop}"' not in viewer.page.text


def test_the_month_before_stands_beside_the_month(app, viewer):
    past(app)
    past(app, name="Blog")
    page = viewer.open("/reports?month=2026-11")
    page.shows("October 2026 99.72%", "Oct 99.72%", "Oct 2 h", "Oct 113 ms")
    assert "August 2026 <span" not in viewer.open("/reports?month=2026-09").page.text, "no checks"


def test_a_report_is_of_a_tag_and_says_what_happened_and_who_made_it(app, viewer):
    past(app, tags="\nshop\nprod\n")
    past(app, name="Till", tags="\nshop\n")
    blog = past(app, name="Blog", tags="\nprod\n")
    viewer.open("/reports?month=2026-10&tag=shop")
    assert "Availability of 2 monitors tagged shop, October 2026" in viewer.text
    assert f'href="/monitors/{blog}"' not in viewer.page.text
    assert "Created by viewer@wakeful.test on " in viewer.text
    happened = viewer.text[viewer.text.index("Started, UTC") :]
    assert happened.count("5 Oct 10:00") == 2
    assert happened.count("The server refused the connection") == 2
    assert viewer.page.text.count('<svg class="strip"') == 2
    assert "tag=shop" in viewer.page.text[viewer.page.text.index("/reports/csv") :][:80]
    assert "No monitor has the tag nothing" in viewer.open("/reports?tag=nothing").text


def test_figures_that_begin_within_the_month_say_since_when(app, viewer):
    row = make_monitor(app, name="Young", interval=3600, created_at=OCTOBER)
    late = OCTOBER + 11 * 24 * HOUR
    keep_results(app, [result for result in october(row.id) if result.checked_at >= late])
    assert "Since 12 Oct" in viewer.open("/reports?month=2026-10").text


def test_the_pdf_has_what_the_page_has(app, viewer):
    past(app, name="Shop & <Sons>")
    page = viewer.open("/reports?month=2026-10&format=pdf").page
    assert (page.status_code, page.mimetype) == (200, "application/pdf")
    assert "availability-2026-10.pdf" in page.headers["Content-Disposition"]
    assert page.data.startswith(b"%PDF")
    assert b"Availability of Shop & <Sons>, October 2026" in unpacked(page.data)
    assert viewer.open("/reports?format=doc").status == 422


def test_without_the_library_there_is_no_link_and_a_sentence(app, viewer, monkeypatch):
    past(app)
    monkeypatch.setattr(report, "find_spec", lambda name: None)
    assert "format=pdf" not in viewer.open("/reports?month=2026-10").page.text
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    assert "install WeasyPrint" in viewer.open("/reports?month=2026-10&format=pdf").text


@pytest.mark.parametrize(
    ("names", "tag", "chosen", "expected"),
    [
        (["Shop"], None, False, "Shop"),
        (["Shop"], "prod", False, "1 monitor tagged prod"),
        (["a", "b"], None, False, "all 2 monitors"),
        (["a", "b"], None, True, "2 monitors"),
        (["a", "b"], "prod", True, "2 monitors tagged prod"),
    ],
)
def test_a_report_is_titled_by_what_it_is_of(names, tag, chosen, expected):
    assert report_subject(names, tag, chosen=chosen) == expected


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
    assert lines["Total"]["downtime_seconds"] == "14400"
    assert """'=HYPERLINK("http://evil.test")""" in lines


def test_without_a_month_it_is_the_last_one_that_has_something_to_say(app, viewer):
    assert "No monitors" in viewer.open("/reports").text
    make_monitor(app)
    month = f"{now():%B %Y}"
    assert f"Availability of Shop, {month}" in viewer.open("/reports").text
    assert "Month to date" in viewer.text
    assert "has not begun" in viewer.open("/reports?month=2190-01").text


def test_a_misspelt_address_is_named_once(viewer):
    for query in ("month=2026-13", "monitors=x", f"monitors={9**40}"):
        assert viewer.open(f"/reports?{query}").status == 422, query
    assert viewer.open("/reports?month=abc").text.count("Enter a month such as 2026-11.") == 1


def test_no_name_becomes_a_formula():
    assert [plain(text) for text in ("=1+1", "@x", "-2", "Shop")] == ["'=1+1", "'@x", "'-2", "Shop"]


def test_an_editor_orders_a_monthly_report_and_stops_it(app, editor, viewer):
    past(app, tags="\nshop\n")
    assert "Add a contact" in editor.open("/reports").text
    mail = (Pair("email", "boss@shop.example"),)
    store_of(app).contacts.create({"name": "Boss", "channels": mail})
    chat = (Pair("slack", "https://hooks.slack.com/services/T0/B0/x1"),)
    store_of(app).contacts.create({"name": "Chat", "channels": chat})
    editor.open("/reports?tag=shop").press("Send monthly", contact="Boss")
    editor.shows("Boss gets this report by email", "Boss : monitors tagged shop")
    assert "Boss : monitors tagged shop" in viewer.open("/reports").text
    assert "Send monthly" not in viewer.text
    for number in range(SUGGESTED):  # so many that no field suggests "shop"
        for _ in range(2):
            make_monitor(app, tags=f"\nother{number}\n")
    editor.open("/reports").shows("Boss : monitors tagged shop (1 monitor)")
    editor.press("Stop").shows("no longer gets this monthly report")
    assert not store_of(app).report_mails.list(PageQuery()).items
    assert editor.open("/reports").press("Send monthly", contact="Chat").status == 422
    assert "has no email address" in editor.text
