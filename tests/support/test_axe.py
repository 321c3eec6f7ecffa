"""The looks that leave something out still find what is wrong."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.support.axe import violations

pytestmark = pytest.mark.browser

# Only a wide screen shows the paragraph, and only in the dark it cannot be read.
PAGE = """<!doctype html><html lang="en"><title>A page</title><style>
@media (max-width: 600px) { p { display: none } }
@media (prefers-color-scheme: dark) { body { background: #000; color: #fff } p { color: #222 } }
</style><main><h1>A page</h1><p>Some words</p></main>"""


def test_what_a_narrow_screen_had_no_room_for_is_looked_at_on_a_wide_one(page: Page) -> None:
    page.set_content(PAGE)
    assert violations(page) == []
    page.set_viewport_size({"width": 375, "height": 900})
    page.emulate_media(color_scheme="dark")
    assert violations(page) == []
    page.set_viewport_size({"width": 1440, "height": 900})
    assert violations(page, colours=True) == ["color-contrast: <p>Some words</p>"]


def test_a_look_for_colours_alone_finds_them_everywhere(page: Page) -> None:
    page.set_content(PAGE)
    assert violations(page, colours=True) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, colours=True) == ["color-contrast: <p>Some words</p>"]


ALIKE = """<!doctype html><html lang="en"><title>A page</title><style>
body { background: #fff } .badge { background: #444; color: #fff }
</style><main><h1>A page</h1><p class="badge">One</p>MORE</main>"""


def test_a_look_that_was_judged_is_judged_on_another_background(page: Page) -> None:
    page.set_content(ALIKE.replace("MORE", ""))
    assert violations(page) == []
    light = '<p class="badge" style="background: #ccc">Two</p>'
    page.set_content(ALIKE.replace("MORE", light))
    for _ in range(2):
        assert violations(page) == [f"color-contrast: {light}"]


def test_a_text_is_judged_where_something_else_lies_behind_it(page: Page) -> None:
    page.set_content(ALIKE.replace("MORE", "<p>Two</p>"))
    assert violations(page) == []
    behind = '<div style="position: absolute; z-index: -1; inset: 0; background: #222"></div>'
    page.set_content(ALIKE.replace("MORE", f"<p>Two</p>{behind}"))
    assert "color-contrast: <p>Two</p>" in violations(page)


def test_a_disabled_field_does_not_answer_for_one_that_is_not(page: Page) -> None:
    fields = '<label for="{0}">Label</label><input id="{0}" style="{1}" value="Some words" {2}>'
    faint = "color: #ddd; background: #fff"
    disabled = fields.format("one", faint, "disabled")
    page.set_content(ALIKE.replace("MORE", disabled))
    assert violations(page) == []
    page.set_content(ALIKE.replace("MORE", disabled + fields.format("two", faint, "")))
    assert [fault[:32] for fault in violations(page)] == ['color-contrast: <input id="two" ']


def test_a_link_that_looks_like_the_text_around_it_is_found(page: Page) -> None:
    link = '<a href="/" style="color: #333; text-decoration: none">this link</a>'
    page.set_content(ALIKE.replace("MORE", f'<p style="color: #000">Go to {link} now.</p>'))
    assert violations(page) == [f"link-in-text-block: {link}"]


HIDING = """<!doctype html><html lang="en"><title>A page</title><style>
@media (max-width: 600px) { HIDDEN }
</style><main><h1>A page</h1>MORE</main>"""


@pytest.mark.parametrize(
    ("hidden", "more", "found"),
    [
        ("b { display: none }", "<button><b>Save</b></button>", "button-name"),
        ("b { display: none }", '<a href="/"><i><b>Home</b></i></a>', "link-name"),
        ("h1 { display: none }", "<p>Some words</p>", "page-has-heading-one"),
        (
            "div { width: 100px; height: 50px; overflow: auto }",
            f"<div><p style='width: 500px'>{'Words ' * 90}</p></div>",
            "scrollable-region-focusable",
        ),
    ],
)
def test_what_is_wrong_on_a_narrow_screen_alone_is_found(
    page: Page, hidden: str, more: str, found: str
) -> None:
    page.set_content(HIDING.replace("HIDDEN", hidden).replace("MORE", more))
    assert violations(page) == []
    page.set_viewport_size({"width": 375, "height": 900})
    assert [fault.partition(":")[0] for fault in violations(page)] == [found]
