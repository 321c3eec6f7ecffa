"""Forms in a real browser: what scripts add, and that all of it is there without them."""

from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from playwright.sync_api import Browser, Page, expect

from app.web.frame import progress
from tests.factories import make_monitor
from tests.support.browser import opened
from tests.support.store import store_of
from tests.web.conftest import DESKTOP, PHONE, let_in

pytestmark = pytest.mark.browser


@PHONE
def test_rows_come_and_go_in_place_and_their_fold_counts_them(visit):
    page = visit("/monitors/new")
    summary = page.locator("summary", has_text="Who to alert")
    all_of_them = page.get_by_role("button", name="Send test alert to all")
    add = page.get_by_role("button", name="Add a channel")
    remove = page.get_by_role("button", name="Alerts: remove row 1")
    first = page.get_by_label("Alerts, row 1: Email address")
    first_of_any = page.get_by_label("Alerts, row 1: Address or key")
    expect(summary).to_contain_text("Nobody yet")
    expect(all_of_them).to_be_hidden()
    page.get_by_label("URL", exact=True).fill("http://127.0.0.1:9/")
    page.get_by_label("Alerts, row 1: Channel").select_option("email")
    first.fill("ops@example.com")
    expect(summary).to_contain_text("1 channel")
    add.click()
    second = page.get_by_label("Alerts, row 2: Channel")
    expect(second).to_be_focused()
    expect(second).to_have_value("")
    expect(all_of_them).to_be_visible()
    second.select_option("email")
    page.get_by_label("Alerts, row 2: Email address").fill("dev@example.com")
    expect(summary).to_contain_text("2 channels")
    remove.click()
    expect(first).to_have_value("dev@example.com")
    remove.click()
    expect(first_of_any).to_have_value("")
    expect(summary).to_contain_text("Nobody yet")
    add.click()
    second.select_option("email")
    page.get_by_label("Alerts, row 2: Email address").fill("on-call@example.com")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("saved.")).to_be_visible()
    expect(page.get_by_text("Email: on-call@example.com")).to_be_visible()


@PHONE
def test_the_outcome_of_a_test_stands_in_place_and_nothing_typed_is_lost(visit, httpserver):
    httpserver.expect_request("/").respond_with_data("All is well here")
    page = visit("/monitors/new")
    page.get_by_label("URL", exact=True).fill(httpserver.url_for("/"))
    page.locator("summary", has_text="When to alert").click()
    page.get_by_label("Alert when").select_option("url_no_text")
    page.get_by_label("Text to find").fill("well")
    page.locator("summary", has_text="Request").click()
    page.get_by_label("Password").fill("kept")
    page.get_by_role("button", name="Check now", exact=True).click()
    expect(page.get_by_text("HTTP 200")).to_be_visible()
    expect(page.get_by_text("All is well here")).to_be_visible()
    expect(page.get_by_label("Password")).to_have_value("kept")
    assert page.url.endswith("/monitors/new")
    page.get_by_label("URL", exact=True).fill("nonsense")
    page.get_by_role("button", name="Check now", exact=True).click()
    expect(page.get_by_text("Please correct these fields, then check again:")).to_be_visible()


@DESKTOP
def test_a_tcp_url_shows_the_fields_of_its_kind_alone(visit):
    page = visit("/monitors/new")
    request = page.locator("summary", has_text="Request")
    url = page.get_by_label("URL", exact=True)
    expect(request).to_be_visible()
    url.fill("tcp://127.0.0.1:9")
    expect(page.get_by_label("Name (optional)", exact=True)).to_have_value("127.0.0.1:9")
    expect(request).to_be_hidden()
    page.locator("summary", has_text="Certificate and domain").click()
    expect(page.get_by_label("Warn before the domain expires")).to_be_visible()
    expect(page.get_by_label("Warn before the certificate expires")).to_be_hidden()
    expect(page.get_by_label("Verify the certificate")).to_be_hidden()
    url.fill("https://127.0.0.1:9/")
    expect(request).to_be_visible()
    request.click()
    page.get_by_label("Method").select_option("POST")
    url.fill("tcp://127.0.0.1:9")
    expect(request).to_be_hidden()
    # What is at fault is in sight again, by a test in place as by the save.
    page.get_by_role("button", name="Check now", exact=True).click()
    expect(page.get_by_text("Please correct these fields, then check again:")).to_be_visible()
    expect(page.get_by_label("Method")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#request_method-fault")).to_contain_text("kind tcp")
    page.get_by_label("Method").select_option("GET")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("saved.")).to_be_visible()
    expect(page.get_by_text("over TCP, every 1 min")).to_be_visible()


@DESKTOP
def test_a_test_whose_answer_is_lost_goes_the_plain_way(visit, httpserver):
    httpserver.expect_request("/").respond_with_data("All is well here")
    page = visit("/monitors/new")
    page.get_by_label("URL", exact=True).fill(httpserver.url_for("/"))
    # Like a lost connection, which Chromium would report on the console.
    page.evaluate("() => { window.fetch = () => Promise.reject() }")
    with page.expect_navigation():
        page.get_by_role("button", name="Check now", exact=True).click()
    expect(page.get_by_text("HTTP 200")).to_be_visible()
    expect(page.get_by_label("URL", exact=True)).to_have_value(httpserver.url_for("/"))


@PHONE
def test_the_outcome_of_a_check_is_wholly_in_sight(visit, httpserver):
    httpserver.expect_request("/").respond_with_data("All is well here")
    page = visit("/monitors/new")
    page.get_by_label("URL", exact=True).fill(httpserver.url_for("/"))
    button, outcome = page.locator("[data-check]"), page.locator("[data-outcome]")
    button.click()
    expect(outcome).to_be_focused()
    # Scroll to where the bar covers the end of it.
    outcome.evaluate("(part) => scrollBy(0, part.getBoundingClientRect().bottom - innerHeight + 5)")
    button.press("Enter")
    expect(outcome).to_be_focused()
    box, bar = outcome.bounding_box(), page.locator(".form-foot.stick").bounding_box()
    assert box is not None
    assert bar is not None
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= bar["y"]


@DESKTOP
def test_the_summary_of_faults_takes_focus_and_leads_to_the_folded_field(visit):
    page = visit("/monitors/new")
    page.get_by_label("URL", exact=True).fill("http://127.0.0.1:9/")
    page.locator("summary", has_text="When to alert").click()
    page.get_by_label("Time limit in seconds").fill("99")
    page.get_by_role("button", name="Save").click()
    summary = page.get_by_role("alert")
    expect(summary).to_be_focused()
    summary.get_by_role("link").first.click()
    expect(page.get_by_label("Time limit in seconds")).to_be_focused()


@DESKTOP
def test_the_window_form_shows_what_belongs_to_the_choice(app, visit):
    shop = make_monitor(app, name="Shop")
    page = visit("/maintenance/new")
    cron, until = page.get_by_label("Cron expression"), page.get_by_label("Repeat until")
    box = page.get_by_label("Shop")
    expect(cron).to_be_hidden()
    expect(until).to_be_hidden()
    expect(box).to_be_hidden()
    page.get_by_label("Name", exact=True).fill("Works")
    page.get_by_label("Repeat", exact=True).select_option("cron")
    cron.fill("0 3 * * 1")
    page.get_by_label("Only these").check()
    box.check()
    expect(until).to_be_visible()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Nothing is saved yet.")).to_be_visible()
    assert cron.input_value() == "0 3 * * 1"
    expect(box).to_be_checked()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Works saved.")).to_be_visible()
    expect(page.get_by_text("At 03:00 on Monday (UTC)")).to_be_visible()
    assert store_of(app).windows.get(1).monitors == (shop.id,)


@PHONE
def test_the_ticked_monitors_are_acted_on(app, visit):
    for name in ("Alpha", "Beta", "Gamma"):
        make_monitor(app, name=name, state={"verdict": "up"})
    page = visit("/monitors?sort_by=name&sort=asc")
    action, apply = (page.get_by_label("Action"), page.get_by_role("button", name="Apply"))
    expect(action).to_be_hidden()
    page.get_by_label("Select Alpha").check()
    action.select_option("tag")
    expect(page.get_by_label("Interval", exact=True)).to_be_hidden()
    page.get_by_label("Tag", exact=True).fill("prod")
    apply.click()
    expect(page.get_by_text("1 monitor tagged.")).to_be_visible()
    assert page.url.endswith("/monitors?sort_by=name&sort=asc")
    page.get_by_label("Select all on this page").check()
    expect(page.get_by_text("3 selected")).to_be_visible()
    action.select_option("interval")
    page.get_by_label("Interval", exact=True).select_option("600")
    apply.click()
    expect(page.get_by_text("3 monitors changed.")).to_be_visible()


@DESKTOP
def test_lines_are_previewed_and_become_monitors(app, visit):
    page = visit("/monitors/import")
    page.get_by_label("Lines").fill("https://one.example.com\nShop, https://shop.example.com/ten")
    page.get_by_role("button", name="Preview").click()
    button = page.get_by_role("button", name="Create 2 monitors").first
    box = page.get_by_label("Create one.example.com (Line 1)")
    box.uncheck()
    expect(page.get_by_role("button", name="Create 1 monitor", exact=True).first).to_be_visible()
    page.get_by_label("Create Shop (Line 2)").uncheck()
    expect(page.get_by_role("button", name="Create 0 monitors").first).to_be_disabled()
    box.check()
    page.get_by_label("Create Shop (Line 2)").check()
    page.evaluate(
        """() => addEventListener("submit", (event) => {
          const busy = event.submitter.getAttribute("aria-busy");
          sessionStorage.told = `${sessionStorage.told ?? ""}${busy} ${event.defaultPrevented}, `;
        })"""
    )
    # The second press, before the answer has come, sends nothing.
    button.evaluate("(button) => { button.click(); button.click() }")
    expect(page.get_by_role("heading", name="2 monitors created")).to_be_visible()
    assert page.evaluate("sessionStorage.told") == "true false, true true, "


@DESKTOP
def test_long_work_shows_how_far_it_is_and_goes_on_by_itself(visit, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS", 0)  # one in each step
    page = visit("/monitors/import")
    page.get_by_label("Lines").fill("\n".join(f"https://{n}.example.com" for n in range(4)))
    page.get_by_role("button", name="Preview").click()
    sent: list[str] = []
    page.on("request", lambda asked: sent.append(asked.method))
    page.get_by_role("button", name="Create 4 monitors").first.click()
    expect(page.get_by_text("4 monitors created").first).to_be_visible()
    assert sent.count("POST") == 4


@pytest.fixture
def plain(app: Flask, site: str, chromium: Browser, screen: dict[str, Any]) -> Iterator[Page]:
    """A browser that runs no scripts, logged in as an editor."""
    with opened(chromium, base_url=site, **screen, java_script_enabled=False) as page:
        let_in(page, app, site)
        page.goto("/")
        yield page


@PHONE
def test_without_scripts_the_menu_of_a_phone_opens(plain):
    expect(plain.get_by_role("link", name="Incidents")).to_be_hidden()
    plain.get_by_role("button", name="Menu").click()
    plain.get_by_role("link", name="Incidents").click()
    expect(plain.get_by_role("heading", name="Incidents", exact=True)).to_be_visible()


@PHONE
def test_without_scripts_a_row_or_a_test_comes_back_where_its_button_was(plain, httpserver):
    httpserver.expect_request("/").respond_with_data("All is well here")
    plain.goto("/monitors/new")
    plain.get_by_label("URL", exact=True).fill(httpserver.url_for("/"))
    plain.locator("summary", has_text="Request").click()
    for button, target in (
        ("Add a header", "Headers, row 2: Value"),
        ("Headers: remove row 2", "Headers, row 1: Value"),
        ("Add a channel", "Alerts, row 2: Address or key"),
    ):
        plain.get_by_role("button", name=button).click()
        expect(plain.get_by_label(target)).to_be_in_viewport()
    plain.get_by_role("button", name="Check now", exact=True).click()
    expect(plain.get_by_text("HTTP 200")).to_be_in_viewport()
    plain.get_by_label("URL", exact=True).fill("nonsense")
    plain.get_by_role("button", name="Check now", exact=True).click()
    expect(plain.get_by_text("Please correct these fields, then check again:")).to_be_in_viewport()


@DESKTOP
def test_leaving_a_changed_form_asks_and_one_that_was_sent_or_only_searched_does_not(app, visit):
    make_monitor(app, name="Shop")
    page, asked = visit("/monitors/1/edit"), []

    def stay(dialog):
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    leave = page.get_by_role("link", name="Contacts", exact=True)
    page.fill("#name", "Store")
    leave.click(no_wait_after=True)
    page.wait_for_function("document.title.includes('Edit Shop')")
    assert page.input_value("#name") == "Store"
    page.fill("#name", "Shop")  # as it was
    page.get_by_text("Reached through", exact=True).first.click()
    page.fill("#find", "Router")
    leave.click()
    page.wait_for_url("**/contacts")
    assert asked == ["beforeunload"]
    page.goto(page.url.replace("/contacts", "/monitors?search=Sh"))
    page.fill("input[name=search]", "Sho")
    page.check("input[name=ids]")
    leave.click()
    page.wait_for_url("**/contacts")
    page.goto(page.url.replace("/contacts", "/monitors/1/edit"))
    page.fill("#name", "Store")
    page.get_by_role("button", name="Save", exact=True).last.click()
    page.wait_for_url("**/monitors/1")
    page.goto(f"{page.url}/edit")
    page.fill("#name", "")
    page.get_by_role("button", name="Save", exact=True).last.click()
    page.wait_for_selector(".error-summary")
    assert asked == ["beforeunload"]
    leave.click(no_wait_after=True)
    page.wait_for_function("document.querySelector('.error-summary')")
    assert asked == ["beforeunload"] * 2, "what came back with a fault is not saved"
