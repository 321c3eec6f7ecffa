"""The report on paper and its form, in a real browser."""

import pytest
from playwright.sync_api import expect

from tests.factories import make_incident, make_monitor
from tests.web.conftest import DESKTOP

pytestmark = pytest.mark.browser

A4_WIDTH = 680  # px of 96 to the inch, without the margins of 15 mm
CUT = """[...document.querySelectorAll(".card.flush, td, th")].filter(
  (box) => box.scrollWidth > box.clientWidth + 1 || box.getBoundingClientRect().right > innerWidth
).map((box) => box.textContent.trim().slice(0, 40))"""


@DESKTOP
def test_no_column_is_cut_on_a4(app, visit):
    monitor = make_monitor(app, name="A name that is rather long and needs a second line")
    make_monitor(app, name="other.shop.example.com/with/a/path/that/has/no/space")
    make_incident(app, monitor)
    page = visit("/reports")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": A4_WIDTH, "height": 1000})
    expect(page.locator("table.report tbody td").first).to_be_visible()
    assert page.evaluate(CUT) == []


@DESKTOP
def test_opening_the_monitor_list_does_not_move_the_report(app, visit):
    for number in range(30):
        make_monitor(app, name=f"Monitor {number}")
    page = visit("/reports")
    boxes = [page.get_by_label("Month"), page.get_by_role("button", name="Show", exact=True)]
    before = [box.bounding_box() for box in boxes]
    page.locator(".picker summary").click()
    assert [box.bounding_box() for box in boxes] == before
