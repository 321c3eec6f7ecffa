"""Plain text with links: which of its pieces are links, and that the rest stays text."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.rules.linked import linked


def links(text):
    return [unescape(link) for link in re.findall('<a href="([^"]*)"', linked(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no link", []),
        ("http://a.example and https://b.example/x?y=1#z", [
            "http://a.example", "https://b.example/x?y=1#z",
        ]),
        ("See https://a.example/x.", ["https://a.example/x"]),
        ("(https://a.example/x)", ["https://a.example/x"]),
        ("(https://a.example/x_(y))", ["https://a.example/x_(y)"]),
        ("https://a.example/x!?", ["https://a.example/x"]),
        ("javascript://a.example", []),
        ("xhttps://a.example", []),
        ('https://a.example/"onclick=', ["https://a.example/"]),
        ("https://a.example/<b>", ["https://a.example/"]),
        ("https://a.example\nnext", ["https://a.example"]),
    ],
)  # fmt: skip
def test_links_end_where_the_sentence_goes_on(text, expected):
    assert links(text) == expected


@given(st.text() | st.text(alphabet="https:/.a)([] <&"))
def test_all_but_the_links_is_the_text(text):
    assert unescape(re.sub('<a href="[^"]*" rel="[^"]*">|</a>', "", linked(text))) == text
