"""The editor of a status page in a real browser: what its script adds to the buttons."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from flask import Flask
from playwright.sync_api import FrameLocator, Locator, Page, expect

from app.records import PageQuery, StatusPage
from tests.factories import make_monitor
from tests.support.store import store_of
from tests.web.conftest import DESKTOP, PHONE

pytestmark = pytest.mark.browser

VIOLATIONS = "async () => (await axe.run()).violations.map(({ id }) => id)"


@pytest.fixture
def three(app: Flask) -> list[int]:
    return [make_monitor(app, name=name).id for name in ("Shop", "Blog", "Mail")]


def make_page(app: Flask, *monitors: int) -> None:
    store_of(app).status_pages.create({"name": "Our shop", "monitors": monitors})


def stored(app: Flask) -> StatusPage:
    return store_of(app).status_pages.list(PageQuery()).items[0]


def begin(visit: Callable[[str], Page]) -> Page:
    """The form of a new page, once it has taken the focus: the console tells who types sooner."""
    page = visit("/status-pages/new")
    page.locator("#name:focus").wait_for()
    return page


def preview(page: Page) -> FrameLocator:
    return page.frame_locator("[data-frame]")


def names(page: Page) -> Any:
    return preview(page).locator("li .row :is(h3, h4)")


@PHONE
def test_monitors_are_added_put_in_order_by_keyboard_and_previewed(app, visit, three):
    page = begin(visit)
    page.get_by_label("Name", exact=True).fill("Our shop")
    expect(preview(page).locator("h1")).to_have_text("Our shop")
    page.get_by_label("Find monitors").fill("o")
    page.get_by_label("Find monitors").press("Enter")
    expect(page.locator("#found")).to_be_focused()
    page.get_by_label(re.compile("^Shop")).check()
    page.get_by_label(re.compile("^Blog")).check()
    page.get_by_role("button", name="Add selected").click()
    expect(page.locator("#answer")).to_have_text("2 monitors added at the end.")
    expect(names(page)).to_have_text(["Blog", "Shop"])
    page.get_by_label("Heading of a new group").fill("Words")
    page.get_by_label("Heading of a new group").press("Enter")
    expect(page.get_by_label("Heading", exact=True)).to_have_value("Words")

    down = page.get_by_role("button", name="Blog: move down")
    down.focus()
    down.press("Enter")
    expect(page.locator("#answer")).to_have_text("Blog moved to position 2 of 3.")
    expect(down).to_be_focused()
    down.press("Enter")
    expect(names(page)).to_have_text(["Shop", "Blog"])
    expect(preview(page).locator(".list > summary h3")).to_have_text("Words")
    page.get_by_label("Blog", exact=True).fill("Stories")
    expect(names(page)).to_have_text(["Shop", "Stories"])
    page.evaluate(AXE_SCRIPT)
    assert page.evaluate(VIOLATIONS) == []

    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Our shop saved.")).to_be_visible()
    kept = stored(app)
    shop, blog, _ = three
    assert kept.monitors == (shop, blog)
    assert [(group.name, group.monitors) for group in kept.groups] == [("Words", (blog,))]
    assert [(name.key, name.value) for name in kept.names] == [(blog, "Stories")]


@DESKTOP
def test_a_line_that_is_held_at_the_edge_of_the_window_scrolls_the_page(app, visit):
    ids = [make_monitor(app, name=f"Shop {number:02}").id for number in range(25)]
    make_page(app, *ids)
    page = visit("/status-pages/1/edit")
    last = page.locator("[data-handle]").last
    last.scroll_into_view_if_needed()
    box = last.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 5, 5, steps=4)
    expect(page.locator("#answer")).to_have_text("Shop 24 moved to position 1 of 25.")
    page.mouse.up()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Our shop saved.")).to_be_visible()
    assert stored(app).monitors == (ids[-1], *ids[:-1])


def drag(page: Page, handle: Locator, *, to: Locator, above: int = 0) -> None:
    start, end = handle.bounding_box(), to.bounding_box()
    assert start is not None
    assert end is not None
    page.mouse.move(start["x"] + 5, start["y"] + 5)
    page.mouse.down()
    page.mouse.move(end["x"] + 5, end["y"] - above, steps=8)
    page.mouse.up()


@DESKTOP
def test_lines_and_headings_are_dragged_by_their_handles(app, visit, three):
    make_page(app, *three)
    page = visit("/status-pages/1/edit")
    handles = page.locator("[data-handle]")
    drag(page, handles.nth(2), to=handles.nth(0), above=20)
    expect(names(page)).to_have_text(["Mail", "Shop", "Blog"])
    page.get_by_role("button", name="Shop: remove").click()
    expect(page.get_by_role("button", name="Blog: remove")).to_be_focused()
    expect(names(page)).to_have_text(["Mail", "Blog"])
    page.get_by_label("Heading of a new group").fill("Ours")
    page.get_by_label("Heading of a new group").press("Enter")
    expect(handles).to_have_count(3)
    drag(page, handles.nth(2), to=handles.nth(1))
    expect(page.locator("#answer")).to_have_text("Ours moved to position 2 of 3.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Our shop saved.")).to_be_visible()
    _, blog, mail = three
    assert stored(app).monitors == (mail, blog), "the heading takes what it passes into its group"
    assert [(group.name, group.monitors) for group in stored(app).groups] == [("Ours", (blog,))]


@DESKTOP
def test_the_preview_follows_what_is_chosen_and_needs_no_bar_to_scroll(app, visit, three):
    make_page(app, *three)
    page = visit("/status-pages/1/edit")
    page.locator("summary", has_text="Appearance").click()
    page.get_by_label("Colours").select_option("dark")
    expect(preview(page).locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_label("Show response times").check()
    expect(preview(page).get_by_text("120 ms")).to_have_count(3)
    hidden = "({ scrollHeight, clientHeight }) => scrollHeight - clientHeight"
    assert preview(page).locator("html").evaluate(hidden) == 0
    expect(preview(page).locator("a[href]")).to_have_count(0)


@DESKTOP
def test_only_the_newest_preview_is_shown(app, visit, three):
    make_page(app, *three)
    page = visit("/status-pages/1/edit")
    # The first answer is held back until the second one has come.
    page.evaluate(
        """() => {
          const ask = window.fetch;
          let first = true;
          window.fetch = async (...asked) => {
            const answer = await ask(...asked);
            if (!first) { setTimeout(window.release, 0); return answer; }
            first = false;
            document.body.dataset.held = "";
            await new Promise((go) => { window.release = go; });
            setTimeout(() => { document.body.dataset.late = ""; }, 0);
            return answer;
          };
        }"""
    )
    name = page.get_by_label("Name", exact=True)
    name.fill("Older")
    expect(page.locator("body[data-held]")).to_be_attached()
    name.fill("Newer")
    expect(page.locator("body[data-late]")).to_be_attached()
    expect(preview(page).locator("h1")).to_have_text("Newer")


@DESKTOP
def test_what_the_server_does_not_take_goes_the_plain_way(app, visit, three):
    page = begin(visit)
    password = page.get_by_label("Password of the page")
    expect(password).to_be_hidden()
    page.get_by_label("Visible").select_option("password")
    expect(password).to_be_visible()
    page.get_by_label("Name", exact=True).fill("Kept")
    # The request fails like one whose connection was lost, which Chromium itself would report to
    # the console.
    page.evaluate("() => { window.fetch = () => Promise.reject() }")
    page.get_by_label("Find monitors").fill("blog")
    with page.expect_navigation():
        page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#found")).to_be_focused()
    expect(page.get_by_label(re.compile("^Blog"))).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Kept")
