"""Pages on screens, paper, with fonts and forced colours, in a real browser."""

from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Locator, expect

from app.records import Notice, Result, Verdict
from tests.factories import keep_results, make_incident, make_monitor, now
from tests.support.browser import opened
from tests.support.store import access_of, store_of
from tests.web.conftest import DESKTOP, PHONE
from tests.web.gallery import unfold

pytestmark = pytest.mark.browser

LONG = "W" * 200
# The elements that stick out of the page, or of a card, which would hide them.
TOO_WIDE = """Math.max(...[document.documentElement, ...document.querySelectorAll(".card")].map(
  (box) => box.scrollWidth - box.clientWidth))"""
# How much of the focused control a bar covers that sticks to an edge, and which control it is.
COVERED = """() => {
  const said = document.activeElement.outerHTML.slice(0, 120);
  // The latter lies above the bar.
  if (document.activeElement.matches("body, .skip")) return [0, said];
  const at = document.activeElement.getBoundingClientRect();
  const bars = document.querySelectorAll(".side, .form-foot.stick, .bulk:not([hidden])");
  const covered = Math.max(0, ...[...bars].map((bar) => {
    if (bar.contains(document.activeElement)) return 0;
    if (getComputedStyle(bar).position !== "sticky") return 0;
    const box = bar.getBoundingClientRect();
    const across = Math.min(at.right, box.right) - Math.max(at.left, box.left);
    return across > 0 ? Math.min(at.bottom, box.bottom) - Math.max(at.top, box.top) : 0;
  }));
  return [covered, said];
}"""

# The links and buttons of rows, and breadcrumbs, that are lower than a thumb needs.
TOO_LOW = """[...document.querySelectorAll(
  "main .btn, main summary, .tabs a, .crumbs a, .list a, .name-link, a.tag"
)].filter((target) => target.checkVisibility() && target.getBoundingClientRect().height < 32)
  .map((target) => target.outerHTML.slice(0, 120))"""


@pytest.fixture(params=["wide", pytest.param("narrow", marks=pytest.mark.more)])
def chromium(request: pytest.FixtureRequest) -> Browser:
    """The browser has a wide font; `make test-more` also has a narrow one."""
    name = {"wide": "chromium", "narrow": "narrow_chromium"}[request.param]
    browser: Browser = request.getfixturevalue(name)
    return browser


@PHONE
def test_a_name_without_a_space_fits_every_page_down_to_a_small_phone(app, visit):
    monitor = make_monitor(app, name=LONG, tags=f"\n{'t' * 60}\n", state={"verdict": "down"})
    make_incident(app, monitor)
    for name in ("Payments", "A" * 40):  # with the same cause: on one card, with the names
        make_incident(app, make_monitor(app, name=name, state={"verdict": "down"}))
    hour = timedelta(hours=1)
    make_monitor(
        app, maintenance_start_at=now() - hour, maintenance_end_at=now() + hour,
        state={"verdict": "up", "response_time": 12345},
    )  # fmt: skip
    at = now() - timedelta(days=2)
    keep_results(app, [Result(at, Verdict.UP, monitor_id=monitor.id, response_time=12345)])
    fields = {"name": LONG, "start_at": now(), "end_at": now() + hour}
    store_of(app).windows.create(fields | {"monitors": (monitor.id,)})
    paths = ("/", "/monitors", "/monitors/1", "/monitors/1/edit", "/monitors/1/checks", "/wall",
             "/incidents", "/incidents/1", "/incidents/1/edit", "/incidents/new", "/maintenance",
             "/maintenance/1", "/reports", "/deliveries")  # fmt: skip
    faults = []
    for path in paths:
        page = visit(path)
        for width in (320, 375, 768, 1200, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            if (over := page.evaluate(TOO_WIDE)) > 0:
                faults.append(f"{path} sticks out {over} px at {width}")
    assert not faults
    page.goto("/monitors")
    expect(page.locator("td a.tag")).to_have_attribute("title", "t" * 60)


@PHONE
def test_links_and_buttons_of_rows_are_high_enough_for_a_thumb(app, visit):
    for number in range(30):
        monitor = make_monitor(
            app, name=f"Shop {number}", tags="\nweb\n", state={"verdict": "down"}
        )
        if number < 3:
            make_incident(app, monitor)
    at = now() - timedelta(minutes=10)
    keep_results(app, [Result(at, Verdict.UP, monitor_id=1, response_time=123)])
    hour = timedelta(hours=1)
    store_of(app).windows.create({"name": "Backup", "start_at": now(), "end_at": now() + hour})
    low = {}
    for path in ("/", "/monitors", "/monitors/1", "/monitors/1/edit", "/monitors/1/checks",
                 "/incidents", "/incidents/1/edit", "/maintenance", "/reports", "/deliveries",
                 "/settings/locations", "/contacts"):  # fmt: skip
        page = visit(path)
        page.set_viewport_size({"width": 390, "height": 800})
        low[path] = page.evaluate(TOO_LOW)
    assert not any(low.values()), low


def test_the_keyboard_never_goes_behind_a_bar(app, visit):
    for number in range(12):
        make_monitor(app, name=f"Shop {number}")
    page = visit("/monitors?sort_by=name&sort=asc")
    page.get_by_label("Select Shop 0").check()
    for path in (None, "/monitors/1/edit"):
        if path:
            page = visit(path)
            unfold(page)
        for key in ("Tab", "Shift+Tab"):
            for _ in range(40):
                page.keyboard.press(key)
                covered, element = page.evaluate(COVERED)
                assert covered <= 0, f"{key}: {element}"


def size(part: Locator) -> tuple[float, float]:
    box = part.bounding_box()
    assert box is not None
    return box["width"], box["height"]


@DESKTOP
def test_figures_keep_their_colours_where_colours_are_forced(app, visit):
    make_monitor(app, state={"verdict": "up"})
    page = visit("/monitors/1")
    page.emulate_media(forced_colors="active")
    look = "(part, name) => getComputedStyle(part)[name]"
    shown = {name: page.locator(name).first.evaluate(look, "backgroundColor")
             for name in (".days a", ".legend .key")}  # fmt: skip
    ground = page.locator("body").evaluate(look, "backgroundColor")
    assert ground not in shown.values()
    for part in (".tabs", ".nav-list"):
        side = "borderLeftWidth"
        here = page.locator(f"{part} a[aria-current]").first.evaluate(look, side)
        other = page.locator(f"{part} a:not([aria-current])").first.evaluate(look, side)
        assert here != other, part


@PHONE
def test_paper_shows_tables_as_tables_and_no_buttons(app, visit):
    make_incident(app, make_monitor(app, state={"verdict": "up"}))
    access_of(app).settings.set(Notice.DEMO, "1")
    page = visit("/monitors/1")
    axis, drawing = (page.locator(part).bounding_box() for part in (".near", ".chart-scroll"))
    assert (axis["x"], axis["y"]) == (drawing["x"], drawing["y"]), "left of what is newest"
    assert axis["height"] == pytest.approx(drawing["height"], abs=1)
    expect(page.get_by_text("This is a demonstration.")).to_be_visible()
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 680, "height": 1000})
    row = page.locator(".list.stack tbody tr").first
    assert row.evaluate("(row) => getComputedStyle(row).display") == "table-row"
    expect(page.get_by_text("This is a demonstration.")).to_be_hidden()
    expect(page.locator(".tabs").first).to_be_hidden()
    expect(page.locator(".chart .near").first).to_be_hidden()


@PHONE
def test_what_a_thumb_presses_is_large_enough(app, visit):
    make_monitor(app)
    start = store_of(app).now()
    fields = {"name": "Works", "start_at": start, "end_at": start + timedelta(hours=1)}
    store_of(app).windows.create(fields)
    small = []
    for path, parts in (
        ("/monitors", ".tick:not([hidden])"),
        ("/monitors/1/edit", "summary, .check input"),
        ("/maintenance/new", ".check input"),
        ("/maintenance", ".calendar li a"),
        ("/wall", ".screen-foot a"),
    ):
        page = visit(path)
        pressed = page.locator(parts).filter(visible=True)
        assert pressed.count(), path
        small += [f"{path} {box}" for box in map(size, pressed.all()) if min(box) < 24]
    assert not small
    page = visit("/monitors")
    page.get_by_label("Select Shop").check()
    bar = size(page.locator("[data-bulk-bar]"))
    assert bar[1] < 80, "it leaves most of the screen to the list"
    page.get_by_role("button", name="Menu").click()
    expect(page.get_by_role("link", name="Incidents")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("link", name="Incidents")).to_be_hidden()


def test_only_the_one_font_is_shown_whatever_the_machine_has(
    chromium: Browser, request: pytest.FixtureRequest
) -> None:
    """Otherwise the tests above would measure with the fonts of this machine."""
    with opened(chromium) as page:
        page.set_content(
            '<p style="font-family: Inter, system-ui, Roboto">A</p><p style="font-family: Arial">A'
            '<p style="font-family: serif">A</p><p>A</p>'
        )
        tools = page.context.new_cdp_session(page)
        for method in ("DOM.enable", "CSS.enable"):
            tools.send(method)
        root = tools.send("DOM.getDocument", {"depth": -1})["root"]["nodeId"]
        nodes = tools.send("DOM.querySelectorAll", {"nodeId": root, "selector": "p"})["nodeIds"]
        fonts = [
            font["familyName"]
            for node in nodes
            for font in tools.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
        ]
    family = {"wide": "DejaVu Sans", "narrow": "Liberation Sans"}
    assert fonts == [family[request.node.callspec.params["chromium"]]] * 4
