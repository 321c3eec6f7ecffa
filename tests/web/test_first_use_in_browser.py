"""The form of a first monitor as its scripts show it while somebody types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.factories import make_monitor
from tests.web.conftest import DESKTOP

if TYPE_CHECKING:
    from flask import Flask
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, DESKTOP]

Visit = Callable[[str], "Page"]


def test_the_name_follows_the_url_as_the_server_would_name_it_until_somebody_types_one(
    visit: Visit,
) -> None:
    page = visit("/monitors/new")
    url, name = page.get_by_label("URL"), page.locator("#name")
    for typed, shown in (
        ("shop.example", "shop.example"),
        ("shop.example:8443/path/?key=x#top", "shop.example:8443/path"),
        ("https://", ""),
        ("tcp://münchen.example:25", "münchen.example:25"),
    ):
        url.fill(typed)
        expect(name).to_have_value(shown)
    name.fill("Shop")
    url.fill("other.example")
    expect(name).to_have_value("Shop")


def test_the_suggested_days_are_for_https_and_what_is_chosen_stays(visit: Visit) -> None:
    page = visit("/monitors/new")
    summary = page.locator("summary", has_text="Certificate and domain")
    days = page.locator("#ssl_alert_days")
    for url, value in (("shop.example", "14"), ("http://shop.example", ""), ("https://x", "14")):
        page.get_by_label("URL").fill(url)
        expect(days).to_have_value(value)
    expect(summary).to_contain_text("Certificate: 14 days before, Domain: Off")
    summary.click()
    days.select_option("30")
    expect(summary).to_contain_text("Certificate: 30 days before, Domain: Off")
    page.get_by_label("URL").fill("http://shop.example")
    expect(days).to_have_value("30")
    page.get_by_label("URL").fill("tcp://shop.example:25")
    expect(summary).to_have_text("Certificate and domain Domain: Off")


def test_folded_sections_say_what_is_typed_into_them(visit: Visit) -> None:
    page = visit("/monitors/new")
    when = page.locator("summary", has_text="When to alert")
    first = "The URL is unavailable, within 30 s, 2 rechecks"
    expect(when).to_contain_text(first)
    when.click()
    page.get_by_label("Rechecks before an incident").fill("1")
    page.get_by_label("Slow after, in milliseconds").fill("900")
    expect(when).to_contain_text("within 30 s, slow after 900 ms, 1 recheck")
    page.get_by_label("Alert when").select_option("url_text")
    page.get_by_label("Text to find").fill("Sold out")
    expect(when).to_contain_text("The response contains the text, “Sold out”, within 30 s")
    request = page.locator("summary", has_text="Request")
    request.click()
    page.get_by_label("Follow redirects").uncheck()
    page.get_by_label("Bypass caches").check()
    expect(request).to_contain_text("GET, expects 200-399, no redirects, bypasses caches")
    channel = page.get_by_label("Alerts, row 1: Channel")
    channel.select_option("email")
    warning = page.get_by_text("This channel cannot alert anybody yet. No mail server is set up.")
    expect(warning).to_be_visible()
    page.get_by_role("button", name="Add a channel").click()
    expect(warning).to_have_count(1)
    expect(page.get_by_label("Alerts, row 1: Email address")).to_be_visible()
    channel.select_option("slack")
    expect(warning).to_have_count(0)
    expect(page.get_by_label("Alerts, row 1: Webhook URL")).to_be_visible()
    expect(page.get_by_label("Alerts, row 2: Address or key")).to_be_visible()


def test_how_often_it_would_have_alerted_is_said_where_somebody_asks(
    app: Flask, visit: Visit
) -> None:
    page = visit(f"/monitors/{make_monitor(app).id}/edit")
    sentence, when = page.locator("[data-slow-alerts]"), page.locator("summary", has_text="When to")
    when.click()
    page.get_by_label("Slow after, in milliseconds").fill("900")
    page.get_by_label("Slow alert after, in minutes").fill("5")
    expect(sentence).to_have_text("")
    page.get_by_role("button", name="How often in the last 30 days?").click()
    expect(sentence).to_contain_text("this would")
    expect(page.get_by_label("Slow after, in milliseconds")).to_have_value("900")
    page.get_by_label("Slow after, in milliseconds").fill("800")
    expect(sentence).to_have_text("")
