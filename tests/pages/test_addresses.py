"""Addresses that people write instead of a page's, and the answer if there is no page."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urljoin

from flask import Flask
from flask.testing import FlaskClient

from app.access.tokens import Purpose, subscription_token
from tests.factories import now
from tests.pages.made import make_page, make_shown


def test_a_slash_at_the_end_leads_to_the_address_without_it(app: Flask, client: FlaskClient):
    make_page(app, [make_shown(app)])
    for path in ("/status", "/status/example", "/status/nobody"):
        answer = client.get(f"{path}/", base_url="http://localhost/folder")
        assert answer.status_code == 308, path
        assert urljoin(f"{path}/", answer.headers["Location"]) == path
        assert urljoin(f"/folder{path}/", answer.headers["Location"]) == f"/folder{path}"
    for path in (
        "/status//", "/status/example//", "/status/example.json/", "/status/%0d%0aX-Header:1/",
        "/status/../login/", "/status/example/history/",
    ):  # fmt: skip
        answer = client.get(path)
        assert answer.status_code == 404, path
        assert "Location" not in answer.headers, path


def test_whoever_stands_at_the_door_of_a_page_sees_its_theme(app: Flask, client: FlaskClient):
    make_page(app, theme="dark")
    make_page(app, slug="locked", theme="dark", password="let me in, please")
    with app.app_context():
        confirm, leave = (subscription_token(purpose, 1, 1, "d" * 32, now()) for purpose in Purpose)
    doors = [
        client.get(f"/status/{path}")
        for path in (
            "example/subscribe", f"example/confirm/{confirm}", f"example/unsubscribe/{leave}",
            "example/confirm/none", "example/nothing", "example/history?month=2026-13", "locked",
            "example/badge/99.svg",
        )
    ]  # fmt: skip
    doors += [client.post("/status/locked", data={"password": "wrong"})]
    for answer in doors:
        assert 'data-theme="dark"' in answer.text, answer.request.path


def test_the_theme_of_a_closed_page_is_not_shown(
    app: Flask, client: FlaskClient, later: Callable[[float], None]
):
    make_page(app, slug="ours", theme="dark", visibility="closed")
    for name in ("", ".json", "/history", "/nothing", "/subscribe", "/confirm/x"):
        assert client.get(f"/status/ours{name}").data == client.get(f"/status/none{name}").data
