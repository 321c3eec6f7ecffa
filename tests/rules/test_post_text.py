"""The text of a post: which of its pieces are links."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.rules.posts import parts


def links(text):
    return [piece for piece, link in parts(text) if link]


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


@given(st.text() | st.text(alphabet="https:/.a)([] "))
def test_the_pieces_are_the_text(text):
    assert "".join(piece for piece, _ in parts(text)) == text
