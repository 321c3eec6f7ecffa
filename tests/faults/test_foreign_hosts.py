"""Requests for hosts that are not Wakeful's (decision 15, ``ALLOWED_HOSTS``)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app.access import tokens
from app.access.tokens import Purpose
from app.db import db
from tests.factories import make_key, make_person, make_subscriber, now
from tests.pages.made import make_page, make_shown
from tests.support.web_process import Web, installation, web_process
from tests.web.visitor import Visitor

OWN = pytest.mark.settings(public_url="https://up.example.org:8443", bind="192.0.2.7:8000")
LISTED = pytest.mark.settings(public_url=None, allowed_hosts=("up.example.org", "2001:db8::7"))
ANY = pytest.mark.settings(public_url=None)
MALFORMED = [
    "..", ".", "a..b", ".up.example.org", "up.example.org, evil.example",
    "up.example.org,up.example.org",
    "up.example.org evil.example", "up.example.org/evil", "evil.example/@up.example.org",
    "ada@up.example.org", "up.example.org:port", "up.example.org:0",
    "up.example.org:65536", "up.example.org:80:80", "[::1", "[]", "[up.example.org]", "::1",
    "up.example.org#", "up.example.org?", "up.example.org\\",
    "<up.example.org>", "%75p.example.org",
    "a" * 64 + ".example", "bücher.example",
]  # fmt: skip


def status(client: FlaskClient, host: str | None, path: str = "/login", **more: Any) -> int:
    environ = {"HTTP_HOST": host} if host is not None else {}
    return client.open(path, environ_overrides=environ, **more).status_code


@OWN
def test_the_dashboard_answers_under_public_url_bind_and_this_machines_own_names(
    client: FlaskClient,
):
    for host in (
        "up.example.org", "up.example.org:8443", "up.example.org:1", "up.example.org:",
        "UP.example.org.:8443", "localhost", "localhost:8000", "127.8.8.8:8000", "[::1]:8000",
        "192.0.2.7:8000",
    ):  # fmt: skip
        assert status(client, host) == 200, host


@OWN
def test_another_host_and_a_malformed_one_are_refused(client: FlaskClient):
    for host in (
        "evil.example", "evil.example:8443", "up.example.org.evil.example", "evil.up.example.org",
        "example.org", "up-example.org", "192.0.2.8", "[2001:db8::1]", "127.0.0.1.evil.example",
        "0.0.0.0", "", *MALFORMED,
    ):  # fmt: skip
        assert status(client, host) == 400, host


@ANY
def test_a_malformed_host_is_refused_where_any_host_is_allowed(client: FlaskClient):
    assert {status(client, host) for host in MALFORMED} == {400}


@ANY
def test_without_settings_every_host_is_answered(client: FlaskClient):
    for host in ("evil.example", "192.0.2.8:1", "[2001:db8::1]", "my_server", "bare"):
        assert status(client, host) == 200, host


@LISTED
def test_allowed_hosts_alone_limits_hosts_too(client: FlaskClient):
    answers = {
        host: status(client, host)
        for host in ("up.example.org:80", "[2001:DB8:0::7]:8000", "localhost", "evil.example")
    }
    assert list(answers.values()) == [200, 200, 200, 400], answers


@pytest.mark.settings(public_url="https://up.example.org", allowed_hosts=("*",))
def test_a_star_allows_every_host(client: FlaskClient):
    assert status(client, "evil.example") == 200


@OWN
def test_a_refusal_is_plain_and_json_below_api_and_sets_nothing(client: FlaskClient):
    for path in ("/", "/login", "/no/such/page", "/status", "/static/css/base.css"):
        answer = client.get(path, headers={"Host": "evil.example"})
        assert (answer.status_code, answer.mimetype) == (400, "text/plain"), path
        assert "WAKEFUL_ALLOWED_HOSTS" in answer.text
        assert "evil" not in answer.text
        assert "Set-Cookie" not in answer.headers
        assert answer.headers["Cache-Control"] == "no-store"
    for path in ("/api", "/api/v1/monitors", "/api//v1"):
        answer = client.get(path, headers={"Host": "evil.example"})
        assert (answer.status_code, answer.json["status"]) == (400, 400), path
        assert "WAKEFUL_ALLOWED_HOSTS" in answer.json["message"]


@OWN
def test_load_balancers_and_prometheus_are_answered_under_any_host_or_none(client: FlaskClient):
    for path in ("/healthz", "/readyz", "/metrics"):
        for host in ("10.0.0.7:8000", "evil.example", "..", ""):
            assert status(client, host, path) in (200, 503), (path, host)


@OWN
def test_the_host_name_of_a_page_is_answered_from_the_moment_that_it_has_it(
    app: Flask, client: FlaskClient
):
    assert status(client, "status.example.com", "/") == 400
    make_page(app, [make_shown(app)], domain="status.example.com")
    app.extensions["wakeful.pages"].clock = lambda: 1e9  # what is kept in memory has expired
    assert status(client, "Status.Example.com.:443", "/") == 200
    assert status(client, "status.example.com", "/login") == 404  # nothing else of Wakeful
    assert status(client, "other.example.com", "/") == 400


@OWN
def test_a_link_to_end_a_subscription_works_under_the_name_that_the_page_had(
    app: Flask, client: FlaskClient
):
    page = make_page(app, [make_shown(app)], domain="new.example.com")
    reader = make_subscriber(app, page)
    with app.app_context():
        mark = reader.digest
        token = tokens.subscription_token(Purpose.UNSUBSCRIBE, page, reader.id, mark, now())
    assert status(client, "old.example.com", f"/unsubscribe/{token}") == 200
    assert status(client, "old.example.com", f"/unsubscribe/{token}0") == 400
    assert status(client, "old.example.com", "/") == 400


@OWN
def test_nothing_is_read_for_a_foreign_host(
    app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
):
    key = make_key(app)
    status(client, "evil.example")  # the host names of pages are in memory from now on

    class Body:
        def read(self, *_size: int) -> bytes:
            raise AssertionError("The body of a foreign request was read.")

    def ask(*_what: Any, **_how: Any) -> None:
        raise AssertionError("The database was asked for a foreign request.")

    with app.app_context():
        monkeypatch.setattr(db.engine, "connect", ask)
        monkeypatch.setattr(db.engine, "raw_connection", ask)
    pages = app.extensions["wakeful.pages"]
    monkeypatch.setattr(pages, "clock", partial(float, pages.clock()))  # nothing expires
    for path in ("/login", "/api/v1/monitors"):
        answer = client.post(
            path,
            headers={"Host": "evil.example", "Authorization": f"Bearer {key}"},
            environ_overrides={"wsgi.input": Body(), "CONTENT_LENGTH": "10"},
        )
        assert answer.status_code == 400, path


@OWN
def test_an_invitation_has_the_host_of_public_url_whatever_the_request_names(app: Flask):
    make_person(app, "admin")
    admin = Visitor(app)
    admin.client.environ_base["HTTP_HOST"] = "192.0.2.7:81"
    admin.log_in("admin@wakeful.test").open("/people/invite")
    invited = admin.press("Create link", email="new@example.org", role="viewer")
    assert "https://up.example.org:8443/invitation/" in invited.page.text
    assert "192.0.2.7" not in invited.page.text


def test_the_web_server_refuses_foreign_hosts_before_the_body_has_come(
    tmp_path: Path, sqlite_template: Path
):
    installed = installation(tmp_path, sqlite_template)
    with web_process(installed, PUBLIC_URL="https://up.example.org") as web:
        waits = b"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
        assert _first_line(web, b"POST /login HTTP/1.1\r\nHost: evil.example\r\n" + waits) == b"400"
        waits = b"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
        head = b"POST /api/v1/monitors HTTP/1.1\r\nHost: evil.example\r\n"
        assert _first_line(web, head + waits) == b"400"
        assert (
            _first_line(web, b"POST /login HTTP/1.1\r\nHost: up.example.org\r\n" + waits) == b"100"
        )
        for head in (
            b"GET /login HTTP/1.1\r\nHost: up.example.org\r\nHost: evil.example\r\n\r\n",
            b"GET /login HTTP/1.1\r\nHost: evil.example\r\nHost: up.example.org\r\n\r\n",
            b"GET /login HTTP/1.1\r\nHost:\r\n\r\n",
            b"GET /login HTTP/1.1\r\nHost: ..\r\n\r\n",
            b"GET /login HTTP/1.0\r\n\r\n",
        ):
            assert _first_line(web, head) == b"400", head
        assert _first_line(web, b"GET /login HTTP/1.1\r\nHost: UP.example.org.\r\n\r\n") == b"200"
        assert _first_line(web, b"GET /readyz HTTP/1.0\r\n\r\n") in (b"200", b"503")


def _first_line(web: Web, sent: bytes) -> bytes:
    """The status of the answer."""
    with web.connect(sent) as client:
        return client.recv(4096).split(b" ")[1]
