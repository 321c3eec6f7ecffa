"""The labels of inputs on pages that show what was typed."""

import pytest

import app.web.views.windows  # noqa: F401 - its form is among those that are read
from app.web.frame.errors import choice_of, label_of


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("url", "URL"),
        ("cache_buster", "Bypass caches"),
        ("alerts[0][key]", "Alerts, row 1: Channel"),
        ("alerts[11][value]", "Alerts, row 12: Address or key"),
        ("request_headers[2][value]", "Request headers, row 3: Value"),
        ("often", "Repeat"),  # of the form of a single page
        ("of_another_page", "Of another page"),
        ("odd[", "Odd"),
        ("odd[x][y]", "Odd"),
    ],
)
def test_an_input_goes_by_the_label_of_its_form(name: str, label: str) -> None:
    assert label_of(name) == label


@pytest.mark.parametrize(
    ("name", "value", "label"),
    [
        ("role", "viewer", "Viewer: read only"),
        ("scope", "read", "Read: view only, secrets masked"),  # windows have another scope
        ("keys", "mine", "Hand them over to me: they go on working"),
        ("role", "emperor", "emperor"),
        ("name", "viewer", "viewer"),
    ],
)
def test_a_choice_goes_by_the_label_that_the_form_shows(name: str, value: str, label: str) -> None:
    assert choice_of(name, value) == label
