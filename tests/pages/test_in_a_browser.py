"""A status page as people see it: with keys, without a script, in both themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from flask import Flask
from playwright.sync_api import expect

from app.access.tokens import Purpose, subscription_token
from tests.factories import make_incident, now
from tests.pages.made import make_day, make_page, make_post, make_shown, make_window
from tests.support.axe import violations
from tests.support.browser import opened
from tests.support.loopback import serving
from tests.support.pages import Pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.settings(smtp_url="smtp://127.0.0.1:9")]

WIDTHS = (375, 768, 1440)


def fits(page: Page, width: int) -> None:
    """So wide, in both themes: axe finds nothing, and nothing sticks out."""
    page.set_viewport_size({"width": width, "height": 900})
    if width == WIDTHS[0]:  # colours are the same at any width
        page.emulate_media(color_scheme="dark")
        assert violations(page) == [], width
    page.emulate_media(color_scheme="light")
    assert violations(page, colours=True) == [], width
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture
def site(app: Flask) -> Iterator[str]:
    """The address of a page that has everything."""
    shop, mail = make_shown(app, "Shop"), make_shown(app, "Mail", "down")
    slow, old = make_shown(app, "Search", "degraded"), make_shown(app, "Old", paused=True)
    for ago in range(1, 40):
        make_day(app, shop, now() - timedelta(days=ago), down_s=780 if ago == 5 else 0)
        make_day(app, mail, now() - timedelta(days=ago), maintenance_s=7200 if ago == 3 else 0)
    make_incident(app, mail, started_at=now() - timedelta(hours=1))
    page = make_page(
        app,
        [shop, mail, slow, old],
        groups={"Inner parts": [slow, old]},
        description="How we are doing. https://example.com/help",
    )
    make_post(app, page, "Mails leave late", monitors=[mail])
    make_window(app, "Upgrade", now() + timedelta(days=1), now() + timedelta(days=2), [shop])
    make_page(app, slug="locked", password="let me in, please")
    with serving(app) as url:
        yield url


def test_axe_finds_nothing(app: Flask, site: str, chromium: Browser):
    paths = ["/example", "/example/history", "/example/subscribe", "/example/widget", "/locked", ""]
    for purpose in Purpose:
        with app.app_context():
            token = subscription_token(purpose, 1, 1, "d" * 32, now())
        paths.append(f"/example/{purpose}/{token}")
    with opened(chromium) as page:
        for path in paths:
            page.goto(f"{site}/status{path}")
            for summary in page.locator("summary").all():
                summary.click()
            for width in WIDTHS:
                fits(page, width)
        assert not page.context.cookies()


def test_arrow_keys_lead_through_the_days_and_enter_opens_one(site: str, chromium: Browser):
    with opened(chromium) as page:
        page.goto(f"{site}/status/example")
        days = page.get_by_role("link", name="Shop, Last 90 days")
        days.focus()
        page.keyboard.press("Tab")  # the days of a monitor are one stop
        label = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert label.startswith("Mail, Last 90 days")
        days.focus()
        for _ in range(6):
            page.keyboard.press("ArrowLeft")
        day = now() - timedelta(days=5)
        tip = page.locator(".tip:visible")
        assert "13 min down" in tip.inner_text()
        assert f"{day.day} {day:%b}" in tip.inner_text()
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/status/example/history?month={day:%Y-%m}#day-{day:%Y-%m-%d}")
        expect(page.locator(":target")).to_be_visible()


def test_times_are_in_the_zone_of_the_reader_and_nothing_is_asked_of_others(
    site: str, chromium: Browser
):
    asked: list[str] = []
    with opened(chromium, timezone_id="Asia/Tokyo") as page:
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{site}/status/example")
        assert "Times are in Asia/Tokyo" in page.locator("footer").inner_text()
        assert "GMT+9" in page.locator(".post time").first.inner_text()
    assert asked
    assert not [url for url in asked if not url.startswith(site)]


def test_without_a_script_all_of_it_is_there(site: str, chromium: Browser):
    with opened(chromium, java_script_enabled=False) as page:
        page.goto(f"{site}/status/example")
        assert "UTC" in page.locator(".post time").first.inner_text()
        page.get_by_role("link", name="Shop, Last 90 days").click()
        expect(page.get_by_role("heading", name="Day by day")).to_be_visible()


PHONE = {"viewport": {"width": WIDTHS[0], "height": 900}}


def test_somebody_subscribes_with_the_keyboard_and_reads_what_was_wrong(
    app: Flask, site: str, chromium: Browser
):
    with opened(chromium, **PHONE) as page:
        page.goto(f"{site}/status/example")
        page.get_by_role("link", name="Subscribe").first.press("Enter")
        page.get_by_label("Email", exact=True).press("Tab")
        page.keyboard.type("nobody")
        page.keyboard.press("Enter")
        field = page.get_by_label("Email address or webhook URL")
        assert "address" in page.get_by_role("alert").inner_text()
        assert field.input_value() == "nobody"
        fits(page, WIDTHS[0])
        field.fill("ada@example.com")
        field.press("Enter")
        assert "We have sent a message" in page.get_by_role("status").inner_text()
        fits(page, WIDTHS[0])
        confirm = Pages(app).messages()[-1].facts["token"]
        page.goto(f"{site}/status/example/confirm/{confirm}")
        page.get_by_role("button", name="Confirm").press("Enter")
        page.get_by_role("heading", name="You are subscribed").wait_for()
        assert not page.context.cookies()
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[0]
    assert len(Pages(app).subscribers()) == 1


def test_a_password_opens_the_page(site: str, chromium: Browser):
    with opened(chromium, **PHONE) as page:
        page.goto(f"{site}/status/locked")
        page.get_by_label("Password").fill("wrong")
        page.keyboard.press("Enter")
        assert "wrong" in page.get_by_role("alert").inner_text()
        fits(page, WIDTHS[0])
        page.get_by_label("Password").fill("let me in, please")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Last 90 days").wait_for()
        fits(page, WIDTHS[0])


LOOKS = ({"media": "print"}, {"contrast": "more"}, {"forced_colors": "active"})


def test_in_print_and_in_high_contrast_bars_and_states_are_seen_and_all_pages_are_read(
    site: str, chromium: Browser
):
    for look in LOOKS:
        with opened(chromium) as page:
            page.emulate_media(**look)
            page.goto(f"{site}/status/example")
            script = """() => [...document.querySelectorAll('.days path')].map(
                path => getComputedStyle(path).stroke)"""
            strokes = page.evaluate(script)
            assert len(set(strokes)) >= 3, "good, partly down and nothing are told apart"
            expect(page.get_by_text("Operational").first).to_be_visible()
            button = page.get_by_role("link", name="Subscribe").first
            expect(button).to_be_visible(visible="media" not in look)
            for name in ("example", "example/subscribe", "example/widget", "locked"):
                if "media" not in look:
                    page.goto(f"{site}/status/{name}")
                    for theme in ("dark", "light") if name == "example" else ("dark",):
                        page.emulate_media(color_scheme=theme, **look)
                        assert violations(page) == [], (look, name, theme)


def test_the_widget_brings_itself_up_to_date_and_keeps_the_focus(
    app: Flask, later: Callable[[float], None], chromium: Browser
):
    shop = make_shown(app, "Shop")
    page_id = make_page(app, [shop])
    with serving(app) as url, opened(chromium) as page:
        page.clock.install()
        page.goto(f"{url}/status/example/widget")
        link = page.get_by_role("link", name="All systems operational")
        link.focus()
        make_post(app, page_id, "The shop is away", monitors=[shop])
        later(10)
        page.clock.run_for(60_000)
        page.get_by_role("link", name="Some systems have problems").wait_for()
        assert page.evaluate("document.activeElement.className") == "widget"


def test_forty_monitors_are_at_most_four_screens_of_a_phone_and_one_line_each(
    app: Flask, chromium: Browser
):
    monitors = [make_shown(app, f"Service {number} of the shop") for number in range(40)]
    make_incident(app, monitors[7])
    make_page(app, monitors)
    with (
        serving(app) as url,
        opened(chromium, viewport={"width": 390, "height": 844}, java_script_enabled=False) as page,
    ):
        page.goto(f"{url}/status/example")
        assert page.evaluate("document.documentElement.scrollHeight") <= 4 * 844
        heights = page.locator(".row").evaluate_all("rows => rows.map(row => row.offsetHeight)")
        assert max(heights) < 32
        expect(page.locator(".whole").get_by_text("Service 7 of the shop")).to_be_in_viewport()


def test_an_open_page_shows_what_is_new_each_minute_and_says_as_of_when(
    app: Flask, later: Callable[[float], None], chromium: Browser
):
    shop, mail = make_shown(app, "Shop"), make_shown(app, "Mail")
    page_id = make_page(app, [shop, mail], groups={"Office": [mail]})
    with serving(app) as url, opened(chromium, timezone_id="Asia/Tokyo") as page:
        page.clock.install()
        page.goto(f"{url}/status/example")
        footer = page.locator("footer .zone")
        assert "As of" in footer.inner_text()
        make_post(app, page_id, "The shop is away")
        later(10)
        page.get_by_text("Office").click()
        page.get_by_role("link", name="Shop").first.focus()
        page.clock.run_for(60_000)
        assert not page.get_by_text("The shop is away").count(), "somebody reads it by keyboard"
        page.evaluate("document.activeElement.blur()")
        page.clock.run_for(60_000)
        page.get_by_text("The shop is away").wait_for()
        expect(page.get_by_text("Mail"), "what was unfolded stays so").to_be_visible()
        days = page.locator("a.days").first
        days.focus()
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".tip").first, "what came later has its script too").to_be_visible()
