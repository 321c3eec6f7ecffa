"""Scripts and the keyboard, in a real browser."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from playwright.sync_api import Page, expect

from app.engine import recorder
from tests.factories import PASSWORD, make_incident, make_monitor, make_outcome, now
from tests.support.store import access_of, store_of
from tests.web.conftest import DESKTOP, PHONE

pytestmark = pytest.mark.browser

REFRESH = "document.dispatchEvent(new CustomEvent('wakeful:refresh'))"
# The same, until the answer is woven in.
REFRESHED = f"""() => new Promise((done) => {{
  document.addEventListener("wakeful:fresh", () => done(), {{ once: true }});
  {REFRESH};
}})"""


def resolve(app: Flask, id: int) -> None:
    store = store_of(app)
    store.incidents.update(id, {"ended_at": store.now()})


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def narrow(page: Page) -> bool:
    size = page.viewport_size
    return size is not None and size["width"] < 768


def tab_to(page: Page, name: str) -> None:
    """Tab on until the focus is on what a screen reader would call ``name``."""
    for _ in range(80):
        page.keyboard.press("Tab")
        names = page.evaluate(
            """() => {
                const at = document.activeElement;
                const label = at.labels?.[0]?.innerText ?? "";
                return (at.getAttribute("aria-label") ?? "") + "|" + label + "|" + at.innerText;
            }"""
        )
        if name in [part.strip() for part in names.split("|")]:
            return
    raise AssertionError(f"the keyboard does not reach {name!r}")


@DESKTOP
def test_the_keyboard_alone_leads_from_set_up_to_a_resolved_incident(app, page):
    token = access_of(app).setup.token()
    page.goto(f"/setup/{token}")
    expect(page.get_by_label("Email")).to_be_focused()
    page.keyboard.type("ada@example.org")
    press(page, "Tab")
    page.keyboard.type(PASSWORD)
    press(page, "Tab")
    page.keyboard.type(PASSWORD)
    press(page, "Enter")
    page.wait_for_url("**/monitors/new")
    expect(page.get_by_label("URL", exact=True)).to_be_focused()
    page.keyboard.type("http://127.0.0.1:9/health")
    expect(page.get_by_label("Name (optional)", exact=True)).to_have_value("127.0.0.1:9/health")
    press(page, "Enter")
    page.wait_for_url(re.compile(r"/monitors/\d+$"))
    tab_to(page, "Report an incident")
    press(page, "Enter")
    page.wait_for_url("**/incidents/new?**")
    tab_to(page, "Report an incident")
    press(page, "Enter")
    page.wait_for_url(re.compile(r"/incidents/\d+$"))
    tab_to(page, "Acknowledge")
    press(page, "Enter")
    expect(page.get_by_text("Acknowledged by ada@example.org")).to_be_visible()
    tab_to(page, "Resolve")
    press(page, "Enter")
    expect(page.get_by_text("Resolved. If checks still fail")).to_be_visible()


@PHONE
def test_a_page_refreshes_in_place_and_keeps_scroll_ticks_and_typing(app, visit):
    for number in range(25):
        monitor = make_monitor(app, name=f"Shop {number}", state={"verdict": "up"})
    page = visit("/monitors?per_page=50")
    box = page.get_by_label("Select Shop 24")
    box.check()
    page.get_by_label("Search").fill("shop")
    page.get_by_label("Action").select_option("tag")
    page.get_by_label("Tag", exact=True).fill("unfinis")
    page.evaluate("scrollTo(0, 400)")
    make_monitor(app, name="New shop")
    store_of(app).monitors.update(monitor.id, {"pause": True})
    page.evaluate(REFRESHED)
    expect(page.get_by_role("link", name="New shop")).to_be_attached()
    expect(page.locator(f"tr[data-key='{monitor.id}']")).to_contain_text("Paused")
    expect(box).to_be_checked()
    expect(page.get_by_label("Search")).to_have_value("shop")
    expect(page.get_by_label("Tag", exact=True)).to_have_value("unfinis")
    expect(page.get_by_label("Tag", exact=True)).to_be_focused()
    expect(page.get_by_text("1 selected")).to_be_visible()
    assert page.evaluate("scrollY") >= 400  # more where the newcomer pushes what is read down


@DESKTOP
def test_a_search_filters_while_typing_and_loses_nothing_without_an_answer(app, visit):
    make_monitor(app, name="Shop service 1", tags="\nprod\n")
    make_monitor(app, name="Blog")
    page = visit("/monitors?sort_by=name&sort=asc")
    search, rows, count = (
        page.get_by_label("Search by"),
        page.locator("tbody tr"),
        page.get_by_role("status"),
    )
    search.focus()
    page.keyboard.type("shop 1")
    expect(rows).to_have_count(1)
    expect(count).to_have_text("1 monitor")
    expect(page).to_have_url(re.compile("search=shop.1&sort_by=name&sort=asc"))
    expect(search).to_be_focused()
    page.keyboard.type("zzz")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    search.fill("prod")
    expect(rows).to_have_count(1)
    page.get_by_label("Select Shop service 1").check()
    expect(page.get_by_text("1 selected")).to_be_visible()
    page.route("**/monitors?*", lambda route: route.fulfill(status=422))
    search.fill("blog")
    expect(page.locator("[data-live=list]")).to_have_attribute("data-stale", "")
    expect(rows).to_contain_text("Shop service 1")
    page.unroute("**/monitors?*")
    page.evaluate(REFRESHED)
    expect(rows).to_contain_text("Blog")
    expect(search).to_have_value("blog")


@DESKTOP
def test_ticks_and_choices_outlive_a_refresh_and_the_count_is_new(app, visit):
    for number in range(26):
        make_monitor(app, name=f"Shop {number}", state={"verdict": "up"})
    page = visit("/monitors?per_page=25")
    action, ticked = page.get_by_label("Action"), page.get_by_label("Select Shop 1", exact=True)
    ticked.check()
    action.select_option("interval")
    page.get_by_role("button", name="Apply").click()
    summary = page.get_by_role("alert")
    expect(summary).to_be_focused()
    expect(summary).to_contain_text("Nothing was changed.")
    page.get_by_label("All 26 that match").check()
    make_monitor(app, name="Newcomer")
    page.evaluate(REFRESHED)
    expect(page.get_by_label("All 27 that match")).to_be_checked()
    expect(ticked).to_be_checked()
    expect(action).to_have_value("interval")
    expect(page.get_by_label("Tag", exact=True)).to_be_hidden()
    summary.get_by_role("link", name="This field is required.").click()
    expect(page.get_by_label("Interval", exact=True)).to_be_focused()


@DESKTOP
def test_the_focus_stays_where_it_is_while_rows_above_it_go(app, visit):
    names = ("Old", "Mid", "New")
    incidents = [make_incident(app, make_monitor(app, name=name), cause=name) for name in names]
    page = visit("/")
    cards = page.locator("[data-key] .name-link")
    first, second = cards.nth(0).inner_text(), cards.nth(1).inner_text()
    button = page.get_by_role("button", name=f"Acknowledge {second}")
    button.focus()
    page.evaluate("addEventListener('focusout', () => { document.title = 'It left' })")
    resolve(app, incidents[names.index(first)].id)
    page.evaluate(REFRESHED)
    expect(page.get_by_role("button", name=f"Acknowledge {first}")).to_have_count(0)
    expect(button).to_be_focused()
    assert page.title() != "It left"


@PHONE
def test_the_focus_goes_to_the_same_row_or_to_the_heading_when_its_place_is_gone(app, visit):
    names = ("Alpha", "Beta")
    monitors = {name: make_monitor(app, name=name) for name in names}
    ids = {name: make_incident(app, row, cause=name).id for name, row in monitors.items()}
    page, store = visit("/"), store_of(app)
    page.get_by_role("button", name="Acknowledge Alpha").focus()
    store.incidents.update(ids["Alpha"], {"acknowledged_at": store.now()})
    page.evaluate(REFRESHED)
    expect(page.get_by_role("link", name="Alpha").first).to_be_focused()
    page.get_by_role("button", name="Acknowledge Beta").focus()
    resolve(app, ids["Beta"])
    page.evaluate(REFRESHED)
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    resolve(app, ids["Alpha"])
    page.evaluate(REFRESHED)
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    incident = make_incident(app, make_monitor(app))
    page = visit(f"/incidents/{incident.id}")
    button = page.get_by_role("button", name="Resolve")
    button.focus()
    store.incidents.update(incident.id, {"acknowledged_at": store.now()})
    page.evaluate(REFRESHED)
    expect(page.get_by_role("button", name="Acknowledge")).to_have_count(0)
    expect(button).to_be_focused()  # no button turns into another under the finger


@DESKTOP
def test_rows_in_a_new_order_are_woven_in_that_order(app, visit):
    names = ["Ash", "Beech", "Cedar", "Elm", "Fir"]
    ids = {name: make_monitor(app, name=name, state={"verdict": "up"}).id for name in names}
    page = visit("/monitors?sort_by=name&sort=asc")
    shown = page.locator(".monitors tbody .name")
    for renamed, order in (
        ({"Ash": "Yew"}, ["Beech", "Cedar", "Elm", "Fir", "Yew"]),
        ({"Fir": "Acacia", "Beech": "Zelkova"}, ["Acacia", "Cedar", "Elm", "Yew", "Zelkova"]),
    ):
        page.get_by_label("Select Elm").focus()
        for old, new in renamed.items():
            store_of(app).monitors.update(ids[old], {"name": new})
        ids |= {new: ids[old] for old, new in renamed.items()}
        page.evaluate(REFRESHED)
        expect(shown).to_have_text(order)
        expect(page.get_by_label("Select Elm")).to_be_focused()
    store_of(app).monitors.delete(ids["Cedar"])
    make_monitor(app, name="Birch", state={"verdict": "up"})
    page.evaluate(REFRESHED)
    expect(shown).to_have_text(["Acacia", "Birch", "Elm", "Yew", "Zelkova"])


@DESKTOP
def test_a_page_whose_session_has_ended_says_so_and_leads_back(app, visit):
    make_monitor(app, name="Alpha", state={"verdict": "up"})
    page = visit("/monitors")
    access_of(app).people.change_password(1, PASSWORD)
    page.evaluate(REFRESH)
    notice = page.get_by_role("status").filter(has_text="You are logged out")
    expect(notice).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate(REFRESH)
    expect(page.get_by_text("The server does not answer.").first).to_be_hidden()
    expect(notice).to_have_count(1)
    assert asked == []
    press(page, "Control+k")
    expect(page.get_by_role("dialog").get_by_text("You are logged out")).to_be_visible()
    expect(page.get_by_text("The server does not answer.").first).to_be_hidden()
    press(page, "Escape")
    notice.get_by_role("link", name="Log in").click()
    page.get_by_label("Email").fill("editor@wakeful.test")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/monitors")


@DESKTOP
def test_the_first_check_of_a_new_monitor_is_looked_for_at_once(app, page, visit):
    monitor = make_monitor(app, name="Shop")
    page.clock.install()
    page = visit(f"/monitors/{monitor.id}")
    expect(page.locator("[data-soon]")).to_have_text("Not checked yet.")
    with app.app_context():
        recorder.record([(monitor.id, make_outcome("up", now()))], now())
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    # Long before the parts refresh anyway, which they would do meanwhile on a busy machine.
    page.clock.pause_at(page.evaluate("Date.now() / 1000 + 2"))
    expect(page.locator("[data-soon]")).to_be_hidden()
    expect(page.locator(".now-bar")).to_contain_text("Up")
    page.clock.run_for(5_000)
    assert len(asked) == 1, "then it is left in peace"


@DESKTOP
def test_the_title_of_a_tab_in_the_background_tells_the_present(app, visit):
    monitor = make_monitor(app, name="Shop", state={"verdict": "up"})
    page = visit("/")
    expect(page).to_have_title("Everything is up · Wakeful")
    incident = make_incident(app, monitor)
    page.evaluate(REFRESHED)
    expect(page).to_have_title("1 incident open · Wakeful")
    page.goto(f"/incidents/{incident.id}")
    expect(page.get_by_text("Was it a real incident?")).to_be_hidden()
    store = store_of(app)
    store.incidents.update(incident.id, {"cause": "It burns", "ended_at": store.now()})
    page.evaluate(REFRESHED)
    expect(page).to_have_title("Shop: It burns · Wakeful")
    expect(page.get_by_text("Was it a real incident?")).to_be_visible()


@DESKTOP
def test_the_wall_takes_in_what_changed_and_says_when_what_it_shows_is_old(app, visit, site):
    make_monitor(app, name="Alpha", state={"verdict": "up"})
    page = visit("/wall")
    page.evaluate("document.body.dataset.sameDocument = 'yes'")
    expect(page.get_by_role("heading", name="Everything is up")).to_be_visible()
    make_monitor(app, name="Beta", state={"verdict": "down", "cause": "It refused."})
    page.evaluate(REFRESHED)
    expect(page.get_by_role("heading", name="1 failing, checking again")).to_be_visible()
    expect(page.get_by_text("It refused.")).to_be_visible()
    with page.expect_response(f"{site}/wall") as answer:
        page.evaluate(REFRESH)
    assert answer.value.status == 304, "nothing has changed since"
    assert page.evaluate("document.body.dataset.sameDocument") == "yes"
    note = page.get_by_text("The server does not answer.")
    expect(note).to_be_hidden()
    # Not by stopping the server: Chromium itself complains to the console about that.
    page.evaluate("() => { window.asked = fetch; window.fetch = () => Promise.reject() }")
    page.evaluate(REFRESH)
    expect(note).to_be_visible()
    page.evaluate("() => { window.fetch = window.asked }")
    page.evaluate(REFRESH)
    expect(note).to_be_hidden()


@DESKTOP
def test_ctrl_k_jumps_to_a_monitor_or_acts_on_one_and_slash_goes_to_the_search(app, visit):
    make_monitor(app, name="Shop")
    make_monitor(app, name="Warehouse")
    page = visit("/monitors")
    press(page, "Tab", "Enter")
    assert page.evaluate("document.activeElement.id") == "main", "the first tab skips to it"
    press(page, "/")
    expect(page.get_by_label("Search")).to_be_focused()
    press(page, "Control+k")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.keyboard.type("ware")
    expect(dialog.get_by_role("link", name="Warehouse http")).to_be_visible()
    expect(dialog.get_by_role("link", name="Shop")).to_have_count(0)
    press(page, "Enter")
    expect(page.get_by_role("heading", name="Warehouse")).to_be_visible()
    press(page, "Control+k")
    press(page, "Escape")
    expect(dialog).to_be_hidden()
    press(page, "Control+k")
    page.keyboard.type("pause shop")
    action = dialog.get_by_role("button", name="Pause Shop")
    expect(action).to_be_visible()
    expect(dialog.locator(".enter:visible")).to_have_count(1)
    expect(action.locator(".enter")).to_be_visible()
    press(page, "ArrowDown")
    expect(action).to_be_focused()
    expect(action.locator(".enter")).to_be_visible()
    press(page, "ArrowUp")
    press(page, "Enter")
    expect(page.get_by_text("Shop paused.")).to_be_visible()


@DESKTOP
def test_the_theme_follows_the_person_against_the_system(visit):
    ground = "getComputedStyle(document.body).backgroundColor"
    page = visit("/profile")
    grounds = {}
    for system in ("light", "dark"):
        page.emulate_media(color_scheme=system)
        grounds[system] = page.evaluate(ground)
    assert grounds["light"] != grounds["dark"]
    for choice, against in (("light", "dark"), ("dark", "light")):
        page.get_by_label("Colours").select_option(choice)
        with page.expect_navigation():
            page.get_by_role("button", name="Save").press("Enter")
        expect(page.get_by_text("Profile saved.")).to_be_visible()
        page.emulate_media(color_scheme=against)
        assert page.evaluate(ground) == grounds[choice]


@DESKTOP
def test_a_report_prints_without_the_dashboard_around_it(app, visit):
    make_monitor(app, name="Shop")
    page = visit("/reports")
    page.evaluate("window.print = () => { document.title = 'printing' }")
    page.get_by_role("button", name="Print").click()
    assert page.title() == "printing"
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation").first).to_be_hidden()
    expect(page.get_by_role("button", name="Print")).to_be_hidden()
    expect(page.get_by_role("heading", name="Availability of Shop")).to_be_visible()
    expect(page.get_by_text("How is this counted?")).to_be_visible()


def test_the_days_of_a_month_are_a_table_that_is_read_out(app, visit):
    start = datetime.fromisoformat("2027-03-10T22:00:00+00:00")
    end = start + timedelta(hours=4)
    fields: dict[str, Any] = {"name": "Works", "start_at": start, "end_at": end}
    store_of(app).windows.create(fields)
    page = visit("/maintenance?month=2027-03")
    table = page.get_by_role("table", name="Maintenance in March 2027")
    # On a phone it is a list of the days that have something.
    assert table.get_by_role("columnheader").count() == (0 if narrow(page) else 7)
    assert table.get_by_role("cell").filter(has_text="22:00 Works").count() == 1
    page.get_by_role("link", name="April 2027").click()
    expect(page.get_by_text("Nothing is planned in April 2027.")).to_be_visible()
