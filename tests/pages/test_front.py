"""The front of a status page: what a reader is told of the whole and of each monitor."""

from __future__ import annotations

from flask import Flask
from flask.testing import FlaskClient

from tests.pages.made import make_page, make_shown


def test_a_page_answers_under_its_slug(app: Flask, client: FlaskClient):
    make_page(app, [make_shown(app, "Shop")])

    answer = client.get("/status/example")

    assert answer.status_code == 200
    assert "All systems operational" in answer.text
    assert "Shop" in answer.text
