"""Badges as images and as JSON for shields.io."""

import json

import pytest
from hypothesis import example, given

from app.pages import badges
from app.records import ComponentState
from tests.pages.a_page import NASTY, TEXT, component, xml

SVG = "{http://www.w3.org/2000/svg}"


def drawn(**fields):
    return xml(badges.svg(component(1, **fields)))


def contrast(first, second):
    """WCAG 2: the ratio of two colours."""
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_badge_says_name_and_state_in_words_that_stand_out_in_a_colour_of_its_own():
    for state in ComponentState:
        root = drawn(state=state)
        assert [label.text for label in root.iter(f"{SVG}text")] == ["Shop 1", state]
        assert root.find(f"{SVG}title").text == f"Shop 1: {state}"
        assert (root.get("role"), root.get("aria-label")) == ("img", f"Shop 1: {state}")
        boxes = [box.get("fill") for box in root.find(f"{SVG}g").iter(f"{SVG}rect")]
        [ink] = [group.get("fill") for group in root.iter(f"{SVG}g") if group.get("fill")]
        assert len(boxes) == 2, state
        assert all(contrast(ink, box) >= 4.5 for box in boxes), (state, ink, boxes)
    assert len({badges.COLOURS[state] for state in ComponentState}) == len(ComponentState)


@pytest.mark.parametrize("name", ["i", "Shop", "WWWWWW", "字字字", "شكر", "Checkout & payments"])
def test_texts_are_within_their_boxes(name):
    root = drawn(name=name)
    boxes = list(root.find(f"{SVG}g").iter(f"{SVG}rect"))
    for box, text in zip(boxes, root.iter(f"{SVG}text"), strict=True):
        left, width = float(box.get("x")), float(box.get("width"))
        half = float(text.get("textLength")) / 2
        assert left < float(text.get("x")) - half
        assert float(text.get("x")) + half < left + width
    assert float(root.get("width")) == sum(float(box.get("width")) for box in boxes)


def test_a_long_name_is_cut_and_whole_in_the_title():
    name = "Checkout " * 20
    root = drawn(name=name)
    label = next(root.iter(f"{SVG}text")).text
    assert label.endswith("…")
    assert len(label) <= badges.MAX_LABEL
    assert root.find(f"{SVG}title").text.startswith(name.strip())


@given(name=TEXT)
@example(name=NASTY)
def test_any_name_is_valid_xml(name):
    _label, message = drawn(name=name).iter(f"{SVG}text")
    assert message.text == "operational"


def test_shields_reads_the_same_words_and_colours():
    for state in ComponentState:
        assert json.loads(badges.shields(component(1, state, name="Till “1”"))) == {
            "schemaVersion": 1, "label": "Till “1”", "message": state,
            "color": badges.COLOURS[state], "labelColor": badges.LABEL_COLOUR,
            "isError": state == ComponentState.OUTAGE, "cacheSeconds": 300,
        }  # fmt: skip
    assert badges.svg(component(1)) == badges.svg(component(1))
