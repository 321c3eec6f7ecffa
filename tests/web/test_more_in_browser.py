"""Deliveries, maintenance, reports, the wall and many monitors in a real browser: each page at each
width, light and dark, and what their scripts do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from flask import Flask

from app.db import writing
from app.db.tables import DeliveryRow
from app.stores import current_store
from tests.factories import PASSWORD, make_incident, make_monitor, make_person, now
from tests.support.loopback import serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.sqlite, pytest.mark.browser]

SIZES = (375, 768, 1440)
PAGES = (
    "/deliveries",
    "/deliveries/1",
    "/maintenance",
    "/maintenance/1",
    "/maintenance/1/edit",
    "/maintenance/1/delete",
    "/reports",
    "/wall",
    "/monitors/import",
)


@pytest.fixture
def visit(app: Flask, page: Page) -> Iterator[Callable[[str], Page]]:
    """Opens a path of the dashboard, logged in as an editor."""
    person = make_person(app, "editor")
    with serving(app) as url:
        page.goto(f"{url}/login")
        page.fill("#email", person.email)
        page.fill("#password", PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{url}/")

        def visit(path: str) -> Page:
            answer = page.goto(url + path)
            assert answer is not None
            assert answer.status == 200, path
            return page

        yield visit


def scene(app: Flask) -> None:
    shop = make_monitor(
        app,
        name="Shop",
        state={"verdict": "down", "cause": "It refused."},
        alerts=[["webhook", "https://a.example/b"]],
    )
    make_monitor(
        app, name="A name that goes on and on, longer than any column of any page likes it to be"
    )
    incident = make_incident(app, shop)
    with app.app_context():
        start = now() + timedelta(hours=1)
        end = start + timedelta(hours=30)
        common: dict[str, Any] = {"start_at": start, "end_at": end}
        current_store().create_window({"name": "Works", "monitors": (shop.id,), **common})
        current_store().create_window({"name": "Again", "repeat": "weekly", **common})
        with writing() as session:
            session.add(
                DeliveryRow(
                    message_id="m", event="incident.opened", monitor_id=shop.id,
                    incident_id=incident.id, channel="webhook", value="https://a.example/b",
                    lane="l", facts={}, status="failed", reason="410 Gone", created_at=now(),
                    attempts=[{"at": now().isoformat(), "ok": False, "answer": "410 Gone " * 40}],
                )
            )  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_every_width_and_has_nothing_for_axe(app, visit, scheme):
    from axe_playwright_python.sync_playwright import Axe

    scene(app)
    axe = Axe()
    for path in PAGES:
        page = visit(path)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for width in SIZES:
            page.set_viewport_size({"width": width, "height": 900})
            over = page.evaluate(
                "document.documentElement.scrollWidth -"
                " Math.ceil(document.documentElement.getBoundingClientRect().width)"
            )
            assert over <= 0, f"{path} is {over} px too wide at {width}"
            found = axe.run(page).response["violations"]
            told = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]
            assert not told, f"{path} at {width}, {scheme}: {told}"


def test_the_window_form_shows_what_belongs_to_the_choice(app, visit):
    shop = make_monitor(app, name="Shop")
    page = visit("/maintenance/new")
    cron, until = page.get_by_label("Cron line"), page.get_by_label("Repeat until")
    box = page.get_by_label("Shop")
    assert not cron.is_visible()
    assert not until.is_visible()
    assert not box.is_visible()
    page.get_by_label("Name").fill("Works")
    page.get_by_label("Repeat", exact=True).select_option("cron")
    cron.fill("0 3 * * 1")
    page.get_by_label("Only these").check()
    box.check()
    assert until.is_visible()
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("Nothing is saved yet.").wait_for()
    assert cron.input_value() == "0 3 * * 1"
    assert box.is_checked()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Works is saved.").wait_for()
    assert page.get_by_text("At 03:00 on Monday (UTC)").is_visible()
    with app.app_context():
        assert current_store().window(1).monitors == (shop.id,)


def test_the_wall_takes_in_what_changed_without_a_reload(app, visit):
    make_monitor(app, name="Alpha", state={"verdict": "up"})
    page = visit("/wall")
    page.evaluate("document.body.dataset.sameDocument = 'yes'")
    assert page.get_by_role("heading", name="All 1 up").is_visible()
    make_monitor(app, name="Beta", state={"verdict": "down", "cause": "It refused."})
    page.evaluate("document.dispatchEvent(new CustomEvent('wakeful:refresh'))")
    page.get_by_role("heading", name="1 down").wait_for()
    assert page.get_by_text("It refused.").is_visible()
    assert page.evaluate("document.body.dataset.sameDocument") == "yes"


def test_the_wall_says_when_what_it_shows_is_old(app, visit):
    make_monitor(app, name="Alpha", state={"verdict": "up"})
    page = visit("/wall")
    note = page.get_by_text("No answer from the server.")
    assert not note.is_visible()
    page.evaluate("document.querySelector('[data-live]').setAttribute('data-stale', '')")
    assert note.is_visible()


def test_a_report_prints_without_the_dashboard_around_it(app, visit):
    make_monitor(app, name="Shop")
    page = visit("/reports")
    page.evaluate("window.print = () => { document.title = 'printing' }")
    page.get_by_role("button", name="Print").click()
    assert page.title() == "printing"
    page.emulate_media(media="print")
    assert not page.get_by_role("navigation").first.is_visible()
    assert not page.get_by_role("button", name="Print").is_visible()
    assert page.get_by_role("rowheader", name="Shop").is_visible()
    assert page.get_by_text("How this is counted").is_visible()


def test_the_days_of_a_month_are_a_table_that_is_read_out(app, visit):
    with app.app_context():
        start = datetime.fromisoformat("2027-03-10T22:00:00+00:00")
        end = start + timedelta(hours=4)
        fields: dict[str, Any] = {"name": "Works", "start_at": start, "end_at": end}
        current_store().create_window(fields)
    page = visit("/maintenance?month=2027-03")
    table = page.get_by_role("table", name="Maintenance in March 2027")
    assert table.get_by_role("columnheader").count() == 7
    assert table.get_by_role("cell").filter(has_text="22:00 Works").count() == 1
    page.get_by_role("link", name="April 2027").click()
    page.get_by_text("Nothing is planned in April 2027.").wait_for()
