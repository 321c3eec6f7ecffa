"""The accent colour of a status page can be read in both themes, whatever it is."""

import re

import pytest

from app.paths import STATIC
from app.rules import colours

TOKENS = (STATIC / "css" / "tokens.css").read_text()
GROUNDS = re.findall(
    r"--(?:ground|surface|raised|sunken): light-dark\((#\w{6}), (#\w{6})\)", TOKENS
)
ENTERED = ("#000000", "#ffffff", "#ffcc00", "#2b59c3", "#00ff00", "#7f7f7f", "#ff0000", "#0b746f")


@pytest.mark.parametrize("accent", ENTERED)
def test_texts_and_buttons_have_a_contrast_of_4_5_on_every_ground(accent):
    assert len(GROUNDS) == 4
    readable = colours.readable(accent)
    for light, dark in GROUNDS:
        assert colours.contrast(readable[0], light) >= 4.5
        assert colours.contrast(readable[1], dark) >= 4.5
    assert colours.contrast(readable[0], "#ffffff") >= 4.5
    assert colours.contrast(readable[1], "#0e1318") >= 4.5
    for name in readable:
        assert name in colours.adjusted(accent)
        assert name in colours.sheet(accent)


def test_a_colour_that_can_be_read_stays_as_it_is():
    assert colours.readable("#1f4499")[0] == "#1f4499"
    assert colours.readable("#b3ccff")[1] == "#b3ccff"


def test_contrast_is_that_of_wcag():
    assert colours.contrast("#ffffff", "#000000") == 21
    assert round(colours.contrast("#767676", "#ffffff"), 2) == 4.54


def test_colours_are_read_as_people_write_them():
    for text in ("#2B59C3", "2b59c3", " #2b59c3 "):
        assert colours.read_colour(text) == "#2b59c3"
    assert colours.read_colour("#26C") == "#2266cc"
    for wrong in ("blue", "#12345", "#1234567", "#ggg", "rgb(1,2,3)", "url(https://a.example)"):
        with pytest.raises(ValueError, match="hexadecimal"):
            colours.read_colour(wrong)
