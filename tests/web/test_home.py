"""Home: its heading agrees with what is listed below it."""

from __future__ import annotations

import re

import pytest

from tests.factories import make_incident, make_monitor

pytestmark = pytest.mark.sqlite


def test_what_people_reported_is_not_called_down(app, viewer):
    make_incident(app, make_monitor(app, state={"verdict": "down"}))
    assert "Down now" in viewer.open("/").text
    make_incident(app, make_monitor(app, name="Fine", state={"verdict": "up"}), by_hand=True)
    assert "Down now" not in viewer.open("/").text
    assert "Open incidents" in viewer.text


def test_each_button_to_acknowledge_says_of_what(app, editor):
    for name in ("Alpha", "Beta"):
        make_incident(app, make_monitor(app, name=name))
    page = editor.open("/").page.text
    for name in ("Alpha", "Beta"):
        assert re.search(rf'Acknowledge<span class="visually-hidden"> {name}</span></button>', page)
