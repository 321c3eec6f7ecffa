"""The readers of a page: everybody, those who know its link or its password, or people with an
account.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import time_machine
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.db import writing
from app.db.tables import StatusPageRow
from tests.factories import PASSWORD, make_person, now
from tests.pages.made import change_page, make_page, make_shown

SECRET = "let me in, please"


def enter(client: FlaskClient, password: str, **options: Any) -> TestResponse:
    return client.post("/status/example", data={"password": password}, **options)


def test_only_public_pages_may_be_indexed(app: Flask, client: FlaskClient):
    make_page(app, slug="open")
    make_page(app, slug="hidden", visibility="unlisted")

    assert "X-Robots-Tag" not in client.get("/status/open").headers
    hidden = client.get("/status/hidden")
    assert hidden.status_code == 200
    assert hidden.headers["X-Robots-Tag"] == "noindex"
    assert '<meta name="robots" content="noindex">' in hidden.text


def test_unknown_and_closed_pages_are_the_same_404(app: Flask, client: FlaskClient):
    make_page(app, [make_shown(app)], slug="ours", visibility="closed")

    answers = [
        client.open(path, method=method)
        for method in ("GET", "POST", "HEAD")
        for path in (
            "/status/unknown", "/status/ours", "/status/ours/history", "/status/ours/no",
            "/status/ours/subscribe", "/status/ours/confirm/x", "/status/ours/unsubscribe/x",
        )
    ]  # fmt: skip

    assert {answer.status_code for answer in answers} == {404}
    assert len({str(answer.headers) for answer in answers}) == 1
    assert len({answer.data for answer in answers}) == 2, "with a body, and without for HEAD"


def test_a_deleted_page_is_a_404_like_any(
    app: Flask, client: FlaskClient, later: Callable[[float], None]
):
    id = make_page(app)
    assert client.get("/status/example").status_code == 200
    with app.app_context(), writing() as session:
        session.delete(session.get(StatusPageRow, id))
    later(10)

    gone, unknown = client.get("/status/example"), client.get("/status/unknown")

    assert (gone.status_code, gone.data) == (404, unknown.data)
    assert str(gone.headers) == str(unknown.headers)


def test_a_closed_page_is_for_people_who_are_logged_in(app: Flask, client: FlaskClient):
    make_page(app, name="For us", visibility="closed")
    person = make_person(app, "viewer")
    app.config["WTF_CSRF_ENABLED"] = False
    client.post("/login", data={"email": person.email, "password": PASSWORD})

    answer = client.get("/status/example")

    assert answer.status_code == 200
    assert "For us" in answer.text
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert app.test_client().get("/status/example").status_code == 404


def test_a_page_with_a_password_asks_for_it_and_tells_nothing(app: Flask, client: FlaskClient):
    make_page(app, [make_shown(app, "Shop")], name="Secret Ltd", password=SECRET)

    for path in ("/status/example", "/status/example/history"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert 'type="password"' in answer.text
        assert "Shop" not in answer.text
        assert "Secret Ltd" not in answer.text
        assert answer.headers["Cache-Control"] == "private, no-store"
        assert "ETag" not in answer.headers
        assert "Set-Cookie" not in answer.headers
        for method in ("PUT", "DELETE", "TRACE", "OPTIONS"):
            refused = client.open(path, method=method)
            assert (refused.status_code, "GET" in refused.headers["Allow"]) == (405, True)


def test_the_right_password_opens_the_page_and_nothing_else(app: Flask, client: FlaskClient):
    make_page(app, [make_shown(app, "Shop")], password=SECRET)

    answer = enter(client, SECRET)

    assert answer.status_code == 303
    cookies = answer.headers.getlist("Set-Cookie")
    paths = [part for cookie in cookies for part in cookie.split("; ") if "Path=" in part]
    assert paths == ["Path=/status/example", "Path=/status/example.json"]
    assert all("HttpOnly" in cookie and "SameSite=Lax" in cookie for cookie in cookies)
    page = client.get("/status/example")
    assert "Shop" in page.text
    assert page.headers["Cache-Control"] == "private, no-store"
    assert "Shop" in client.get("/status/example/history").text


def test_the_ticket_of_one_page_opens_no_other(app: Flask, client: FlaskClient):
    make_page(app, slug="example", password=SECRET)
    make_page(app, [make_shown(app, "Shop")], slug="other", password="another good one")
    ticket = enter(client, SECRET).headers["Set-Cookie"].partition(";")[0]

    answer = app.test_client(use_cookies=False).get("/status/other", headers={"Cookie": ticket})

    assert "Shop" not in answer.text


def test_a_ticket_that_a_browser_keeps_for_too_long_opens_nothing(app: Flask, client: FlaskClient):
    make_page(app, [make_shown(app, "Shop")], password=SECRET)
    ticket = enter(client, SECRET).headers["Set-Cookie"].partition(";")[0]
    for days, opens in ((29, True), (31, False)):
        kept = app.test_client(use_cookies=False)
        with time_machine.travel(now() + timedelta(days=days)):
            answer = kept.get("/status/example", headers={"Cookie": ticket})
        assert ("Shop" in answer.text) == opens, days


def test_a_new_password_ends_what_the_old_one_opened(
    app: Flask, client: FlaskClient, later: Callable[[float], None]
):
    id = make_page(app, [make_shown(app, "Shop")], password=SECRET)
    enter(client, SECRET)
    change_page(app, id, password_turn=1)
    later(10)
    assert "Shop" not in client.get("/status/example").text


def test_ten_wrong_passwords_are_enough_and_right_ones_are_not_counted(
    app: Flask, client: FlaskClient
):
    make_page(app, [make_shown(app, "Shop")], password=SECRET)
    assert {enter(client, SECRET).status_code for _ in range(12)} == {303}
    for _ in range(10):
        wrong = enter(client, "a guess")
        assert wrong.status_code == 422
        assert "The password is wrong." in wrong.text
        assert "Set-Cookie" not in wrong.headers
    answer = enter(client, SECRET)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 900
    elsewhere = enter(client, SECRET, environ_base={"REMOTE_ADDR": "192.0.2.9"})
    assert elsewhere.status_code == 303


def test_no_answer_sets_a_cookie_unasked(app: Flask, client: FlaskClient):
    make_page(app, [make_shown(app)])
    for path in ("/status", "/status/example", "/status/example/history", "/status/nobody"):
        assert "Set-Cookie" not in client.get(path).headers, path
