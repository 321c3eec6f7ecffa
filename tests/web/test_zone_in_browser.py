"""The time zone of a new account is that of the browser, unless somebody chooses another."""

import pytest
from playwright.sync_api import expect

from app.db import db
from app.db.tables import PersonRow
from tests.factories import PASSWORD, make_person
from tests.support.browser import opened
from tests.support.store import access_of
from tests.web.conftest import log_in

pytestmark = pytest.mark.browser


@pytest.fixture
def page(site, chromium):
    # Chromium gives this zone its name of before 1993.
    with opened(chromium, base_url=site, timezone_id="Asia/Kolkata") as page:
        yield page


def zone_of(app):
    with app.app_context():
        return db.session.query(PersonRow).one().time_zone


def fill(page):
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password again").fill(PASSWORD)


def create(page):
    with page.expect_navigation():
        page.get_by_role("button", name="Create account").click()


def test_set_up_offers_the_browsers_zone(app, page):
    token = access_of(app).setup.token()
    page.goto(f"/setup/{token}")
    expect(page.get_by_label("Time zone")).to_have_value("Asia/Kolkata")
    page.get_by_label("Email").fill("ada@example.org")
    fill(page)
    create(page)
    assert zone_of(app) == "Asia/Kolkata"


def test_what_was_chosen_stays_when_the_page_comes_back_with_a_fault(app, page):
    with app.app_context():
        _, token = app.extensions["wakeful.access"].invitations.invite("eve@example.org", "viewer")
    page.goto(f"/invitation/{token}")
    zone = page.get_by_label("Time zone")
    expect(zone).to_have_value("Asia/Kolkata")
    zone.select_option("Europe/Oslo")
    create(page)
    expect(zone).to_have_value("Europe/Oslo")
    fill(page)
    create(page)
    assert zone_of(app) == "Europe/Oslo"


def test_the_first_login_takes_the_browsers_zone(app, page):
    ada = make_person(app, "editor", "ada@example.org")
    log_in(page, ada.email)
    assert zone_of(app) == "Asia/Kolkata"
