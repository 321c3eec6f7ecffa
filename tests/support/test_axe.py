"""The looks that leave something out still find what is wrong."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.support.axe import violations

pytestmark = [pytest.mark.browser, pytest.mark.more]

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
    ("hidden", "more", "rule"),
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
    page: Page, hidden: str, more: str, rule: str
) -> None:
    page.set_content(HIDING.replace("HIDDEN", hidden).replace("MORE", more))
    assert violations(page) == []
    page.set_viewport_size({"width": 375, "height": 900})
    assert [fault.partition(":")[0] for fault in violations(page)] == [rule]


def faults(page: Page) -> list[str]:
    return [fault.partition(":")[0] for fault in violations(page)]


# A rule by its name, with a part that keeps it and one of the same kind that does not.
PARTS = {
    "label": (
        '<label for="a">Name</label><input id="a">',
        '<label for="b">Name</label><input id="c">',
    ),
    "link-name": ('<ul><li><a href="/">Home</a></li></ul>', '<ul><li><a href="/"></a></li></ul>'),
    "list": ("<ul><li>One</li><li>Two</li></ul>", "<ul><li>One</li><p>Two</p></ul>"),
    "heading-order": ("<h2>One</h2><p>Words</p>", "<h4>One</h4><p>Words</p>"),
    "duplicate-id": ('<p id="x">A</p><p id="y">B</p>', '<p id="x">A</p><p id="x">B</p>'),
    "landmark-unique": (
        '<nav aria-label="One">A</nav><nav aria-label="Two">B</nav>',
        '<nav aria-label="One">A</nav><nav aria-label="One">B</nav>',
    ),
    "aria-roles": ('<p role="status">Saved</p>', '<p role="stattus">Saved</p>'),
    "image-alt": ('<img src="data:," alt="A picture">', '<img src="data:,">'),
    "select-name": ('<select aria-label="A"><option>One</select>', "<select><option>One</select>"),
    "td-headers-attr": (
        "<table><tr><th>A<tr><td>1</table>",
        '<table><tr><th id="c">A<tr><td headers="d">1</table>',
    ),
}


def test_a_part_that_was_good_elsewhere_is_found_where_it_is_not(page: Page) -> None:
    for rule, (good, bad) in PARTS.items():
        page.set_content(ALIKE.replace("MORE", good))
        assert violations(page) == [], rule
        page.set_content(ALIKE.replace("MORE", bad))
        for _ in range(2):
            assert faults(page) == [rule]


def test_what_lies_outside_of_all_landmarks_is_found(page: Page) -> None:
    page.set_content(ALIKE.replace("MORE", "<p>Words</p>"))
    assert violations(page) == []
    page.set_content(ALIKE.replace("MORE", "").replace("</main>", "</main><p>Words</p>"))
    assert faults(page) == ["region"]


# Styles, and whether one can read black words on white with them by the contrast that the standard
# asks for.
STYLES = [
    ("p { color: #777 }", False),  # a contrast of 4.48
    ("p { color: #767676 }", True),  # of 4.54
    ("p { color: #949494; font-size: 24px }", True),
    ("p { color: #949494; font-size: 23px }", False),
    ("p { color: #949494; font-size: 19px; font-weight: 700 }", True),
    ("p { color: #000; opacity: 0.5 }", False),
    ("p { color: #000; opacity: 0.6 }", True),
    ("main { opacity: 0.8 } p { color: #000; opacity: 0.6 }", False),
    ("p { color: rgb(0 0 0 / 40%) }", False),
    ("p { color: oklch(0.8 0.1 200) }", False),
    ("p { color: #000; -webkit-text-fill-color: #eee }", False),
    ("p { background: linear-gradient(#fff, #333) }", False),
    ("p { background: linear-gradient(#fff, #ddd) }", True),
    ("p { background: url(data:,) }", False),  # nobody knows its colours
    ("p { background: url(data:,) no-repeat right / 1rem; padding-right: 2rem }", True),
    ("p { position: relative } p::before { content: ''; position: absolute; inset: 0;"
     " z-index: -1; background: #222 }", False),
    ("p::after { content: ''; display: block; height: 20px; background: #222 }", False),
    ("p::before { content: ''; display: inline-block; width: 9px; height: 9px;"
     " background: #222 }", True),
]  # fmt: skip


def test_a_text_can_be_read_on_what_it_stands_on(page: Page) -> None:
    for style, readable in STYLES:
        page.set_content(
            '<!doctype html><html lang="en"><title>A page</title><style>body { background: #fff }'
            f"{style}</style><main><h1>A page</h1><p>Some words</p></main>"
        )
        expected = [] if readable else ["color-contrast: <p>Some words</p>"]
        assert violations(page, colours=True) == expected, style


def test_a_text_of_a_chart_is_judged_by_its_fill(page: Page) -> None:
    chart = '<svg role="img" aria-label="A chart"><text y="20" fill="{}">10 ms</text></svg>'
    page.set_content(ALIKE.replace("MORE", chart.format("#000")))
    assert violations(page) == []
    page.set_content(ALIKE.replace("MORE", chart.format("#eee")))
    assert faults(page) == ["color-contrast"]


def test_the_words_in_an_empty_field_are_judged(page: Page) -> None:
    field = '<input aria-label="Name" placeholder="Ada">'
    faint = "<style>input { background: #fff } ::placeholder { color: #ccc }</style>"
    page.set_content(ALIKE.replace("MORE", field))
    assert violations(page) == []
    page.set_content(ALIKE.replace("MORE", faint + field))
    assert violations(page) == [f"color-contrast: {field}"]
