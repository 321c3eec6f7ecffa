"""The widget for frames on other sites, and the script that makes the frame."""

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pytest_httpserver import HTTPServer

from app import i18n
from app.pages import badges
from app.pages.addresses import PageContext
from app.paths import STATIC, TEMPLATES
from app.records import PageState
from app.rules.page_state import PAGE
from tests.pages.a_page import LINK, NASTY, NOW, TEXT, with_text
from tests.pages.a_page import page as a_page

TEMPLATE = Environment(
    loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined
)
i18n.install(TEMPLATE)
SHEETS = ("css/tokens.css", "css/pages/widget.css")
SCRIPT = (STATIC / badges.WIDGET_SCRIPT).read_bytes()


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def make(of, **more):
    look = {"up": "", "front": "", "static": lambda name: f"../../static/{name}?v=1"}
    return badges.widget(of, PageContext(TEMPLATE, **look, **more))


def read(data):
    reader = Reader()
    reader.feed(data.decode())
    return reader


def test_it_says_the_state_in_words_and_leads_to_the_page():
    for state in PageState:
        shown = read(make(a_page(state=state)))
        assert PAGE[state].word in shown.text
        [link] = [attributes for tag, attributes in shown.tags if tag == "a"]
        assert (link["href"], link["target"], link["rel"]) == (LINK, "_blank", "noopener"), state


def test_it_has_one_script_and_no_style_of_its_own():
    reader = read(make(a_page()))
    assert not {"style", "iframe", "form"} & {tag for tag, _ in reader.tags}
    [script] = [attributes for tag, attributes in reader.tags if tag == "script"]
    assert script["src"].startswith("../../static/js/widget.js")
    for _, attributes in reader.tags:
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
    assert all((STATIC / name).is_file() for name in SHEETS)


def test_it_says_that_it_may_be_old_while_the_database_is_away():
    assert "as last known" not in read(make(a_page())).text
    assert "as last known" in read(make(a_page(), stale=True)).text
    assert make(a_page()) == make(a_page(made_at=NOW.replace(year=2027))), "whenever it was read"


@given(text=TEXT)
@example(text=NASTY)
def test_no_text_becomes_markup(text):
    assert [tag for tag, _ in read(make(with_text(text))).tags] == TAGS


TAGS = [tag for tag, _ in read(make(a_page())).tags]


def test_the_script_is_small_and_the_same_for_every_page():
    assert badges.widget_script(a_page(), None) == SCRIPT
    assert len(SCRIPT) < 2_000


POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; frame-ancestors *"


@pytest.fixture
def site_server():
    """Threaded: Chromium opens connections ahead, and one that says nothing would hold the rest."""
    with HTTPServer(threaded=True) as server:
        yield server


@pytest.mark.browser
@pytest.mark.parametrize("floating", [False, True])
def test_the_script_shows_the_widget_on_another_site(site_server, page, floating):
    """The other site is another host name, which the browser knows as another origin."""
    sheets = b"".join((STATIC / name).read_bytes() for name in SHEETS)
    serve(site_server, "/status/acme/widget.js", SCRIPT, "text/javascript")
    serve(site_server, "/status/acme/widget", make(a_page()), "text/html")
    serve(site_server, "/static/css/tokens.css", sheets, "text/css")
    serve(site_server, "/static/css/pages/widget.css", b"", "text/css")
    serve(site_server, "/static/js/widget.js", b"", "text/javascript")
    script = f"http://127.0.0.1:{site_server.port}/status/acme/widget.js"
    float_ = "data-float" if floating else ""
    site = (
        '<!doctype html><title>Site</title><link rel="icon" href="data:,">'
        f'<p>Before</p><script src="{script}" {float_}></script><p>After</p>'
    )
    site_server.expect_request("/site").respond_with_data(site, content_type="text/html")
    page.goto(f"http://localhost:{site_server.port}/site")
    frame = page.frame_locator("iframe[title='Service status']")
    frame.get_by_text(PAGE[PageState.DEGRADED].word).wait_for()
    place = page.locator("iframe").evaluate("one => getComputedStyle(one).position")
    assert place == ("fixed" if floating else "static")
    before = page.locator("iframe").evaluate("one => one.previousElementSibling.tagName")
    assert before == "SCRIPT"  # where the tag stands
    height = frame.locator("body").evaluate("one => [one.scrollHeight, innerHeight]")
    assert height[0] <= height[1]  # nothing is cut


def serve(site_server, path, body, content_type):
    site_server.expect_request(path).respond_with_data(
        body, content_type=content_type, headers={"Content-Security-Policy": POLICY}
    )
