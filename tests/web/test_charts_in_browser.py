"""The response-time chart is read by mouse, finger and keyboard, and a part of it shown larger."""

import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from flask import Flask
from playwright.sync_api import Page, expect

from app.records import Result, Timings, Verdict
from tests.factories import keep_results, make_monitor, now
from tests.web.conftest import DESKTOP, let_in

pytestmark = pytest.mark.browser

STARTS = r"^[A-Z][a-z]{2} \d|^\d{2}:\d{2}: "  # a moment


@pytest.fixture
def path(app: Flask) -> str:
    """The page of a monitor that was checked every five minutes for a day."""
    monitor = make_monitor(app, created_at=now() - timedelta(days=1))
    results = [
        Result(
            monitor_id=monitor.id, checked_at=now() - timedelta(minutes=5 * place),
            verdict=Verdict.UP, response_time=100 + place,
            timings=Timings(10, 20, 30, 30 + place, 10),
        )
        for place in range(1, 288)
    ]  # fmt: skip
    keep_results(app, results)
    return f"/monitors/{monitor.id}"


def reading(page: Page) -> str:
    return page.locator(".reading [aria-live]").inner_text()


def span(page: Page) -> list[str]:
    query = parse_qs(urlsplit(page.url).query)
    return [query["from"][0], query["to"][0]]


@DESKTOP
def test_a_selection_by_keyboard_is_zoomed_and_the_back_button_leads_back(visit, path):
    page = visit(path)
    page.locator(".chart-scroll").focus()
    for key in ("End", *["ArrowLeft"] * 8, *["Shift+ArrowLeft"] * 7):
        page.keyboard.press(key)
    assert " to " in reading(page)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    start, end = span(page)
    assert start < end
    expect(page.get_by_role("navigation", name="Chosen time")).to_contain_text("Earlier")
    page.locator(".chart-scroll").focus()
    with page.expect_navigation():
        page.keyboard.press("-")
    wider = span(page)
    assert wider[0] < start
    assert end < wider[1]
    page.go_back()
    assert span(page) == [start, end]
    page.go_back()
    assert page.url.endswith(path)


@DESKTOP
def test_the_pointer_reads_and_a_dragged_part_is_shown_larger(visit, path):
    page = visit(path)
    drawing = page.locator(".chart-scroll svg")
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.5, y)
    assert re.match(STARTS, reading(page))
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, y, steps=4)
    expect(page.locator(".chosen")).to_have_attribute("visibility", "visible")
    with page.expect_navigation():
        page.mouse.up()
    start, end = span(page)
    assert start < end
    assert page.locator(".chart .line.average").count() >= 1


@DESKTOP
def test_arrow_keys_read_the_chart_from_one_tab_stop_and_a_refresh_keeps_the_reading(
    app, visit, path
):
    page = visit(path)
    chart = page.locator(".chart-scroll")
    assert page.locator("figure.chart [tabindex='0']").count() == 1
    chart.focus()
    page.keyboard.press("End")
    newest = reading(page)
    assert re.match(STARTS, newest)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert reading(page) != newest
    page.keyboard.press("Home")
    before = reading(page)
    page.evaluate(
        """() => new Promise((done) => {
          document.addEventListener("wakeful:fresh", () => done(), { once: true });
          document.dispatchEvent(new CustomEvent("wakeful:refresh"));
        })"""
    )
    expect(page.locator(".cross")).to_have_attribute("visibility", "visible")
    assert reading(page) == before
    page.keyboard.press("Escape")
    expect(page.locator(".cross")).to_have_attribute("visibility", "hidden")
    page = visit(f"/monitors/{make_monitor(app).id}")
    expect(page.locator("html.reads-charts")).to_have_count(1)
    expect(page.locator("figure.chart")).to_contain_text("No response times in this range.")
    expect(page.locator(".reading [aria-live]")).to_be_hidden()


def test_a_finger_reads_and_a_button_zooms(site, chromium, app, path):
    context = chromium.new_context(
        base_url=site, has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844}
    )
    page = context.new_page()
    let_in(page, app, site)
    page.goto(path)
    expect(page.get_by_text("Swipe right for earlier times")).to_be_visible()
    page.locator(".chart-scroll").scroll_into_view_if_needed()
    box = page.locator(".chart-scroll").bounding_box()
    assert box is not None
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator(".reading [aria-live]")).to_have_text(re.compile(STARTS))
    with page.expect_navigation():
        page.get_by_role("button", name="Zoom in here").tap()
    assert len(span(page)) == 2
    context.close()
