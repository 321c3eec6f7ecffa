"""A page on a host name of its own: that page, and nothing else of Wakeful."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urljoin

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.factories import make_key
from tests.pages.made import change_page, make_page, make_shown

HOST = {"base_url": "https://status.example.com"}


def test_the_page_is_at_the_root_of_its_host_name_with_its_links_and_files(
    app: Flask, client: FlaskClient
):
    make_page(app, [make_shown(app, "Shop")], domain="status.example.com")

    assert "Shop" in client.get("/", **HOST).text
    assert "Shop" in client.get("/", base_url="https://STATUS.example.com:8443").text
    for path in ("/", "/history"):
        links = re.findall(r'(?:href|src)="([^"]*)"', client.get(path, **HOST).text)
        assert links
        for link in links:
            there = urljoin(path, link.partition("#")[0])
            assert client.get(there, **HOST).status_code == 200, link


def test_nothing_else_of_wakeful_is_there(app: Flask, client: FlaskClient):
    make_page(app, domain="status.example.com")
    make_page(app, slug="other")
    key = {"Authorization": f"Bearer {make_key(app)}"}

    for path in (
        "/login", "/monitors", "/docs", "/docs/api",
        "/api/v1/monitors", "/api/v1/openapi.json", "/healthz", "/readyz",
        "/metrics", "/status", "/status/example", "/status/other", "/static/css/base.css",
        "/static/../wsgi.py", "/bootstrap/static/css/bootstrap.min.css",
    ):  # fmt: skip
        assert client.get(path, headers=key, **HOST).status_code == 404, path


def test_the_icon_is_answered_as_the_page_is(app: Flask, client: FlaskClient):
    make_page(app, domain="status.example.com")
    make_page(app, slug="ours", visibility="closed", domain="ours.example.com")
    for method, status in (("GET", 302), ("HEAD", 302), ("POST", 405), ("DELETE", 405)):
        shown, closed = (
            client.open("/favicon.ico", method=method, base_url=f"http://{name}.example.com")
            for name in ("status", "ours")
        )
        assert (shown.status_code, closed.status_code) == (status, 404)


@pytest.mark.settings(allowed_hosts=("elsewhere.example",))
def test_the_dashboard_stays_where_it_is(app: Flask, client: FlaskClient):
    make_page(app, domain="status.example.com")
    make_page(app, slug="other", domain="wakeful.test")
    for base in ("http://localhost", "http://elsewhere.example", "http://wakeful.test"):
        assert client.get("/login", base_url=base).status_code == 200, base


@pytest.mark.settings(public_url="https://bücher.example")
def test_nobody_takes_an_international_host_name_of_the_dashboard(app: Flask, client: FlaskClient):
    make_page(app, domain="xn--bcher-kva.example")
    assert client.get("/login", base_url="https://xn--bcher-kva.example").status_code == 200


@pytest.mark.settings(public_url=None)
def test_the_host_name_that_the_dashboard_is_open_at_is_refused(app: Flask, client: FlaskClient):
    api = {"Authorization": f"Bearer {make_key(app)}"}
    sent = {"name": "Shop", "domain": "wakeful.lan"}

    there = {"base_url": "http://Wakeful.LAN.:8000", "headers": api}
    refused = client.post("/api/v1/status-pages", json=sent, **there)
    elsewhere = client.post("/api/v1/status-pages", json=sent, headers=api)

    assert refused.status_code == 422
    assert "leads to Wakeful's dashboard" in refused.json["errors"]["domain"][0]
    assert elsewhere.status_code == 201
    assert client.get("/login", base_url="http://other.lan").status_code == 200


def test_a_new_host_name_works_at_once(
    app: Flask, client: FlaskClient, later: Callable[[float], None]
):
    id = make_page(app, [make_shown(app, "Shop")])
    assert client.get("/", **HOST).status_code == 400, "nobody has it yet"
    change_page(app, id, domain="status.example.com")
    later(10)
    assert "Shop" in client.get("/", **HOST).text


def test_the_cookie_of_a_password_is_for_the_host_name(app: Flask, client: FlaskClient):
    make_page(app, domain="status.example.com", password="let me in, please")

    answer = client.post("/", data={"password": "let me in, please"}, **HOST)

    assert answer.status_code == 303
    assert "; Path=/;" in f"{answer.headers['Set-Cookie']};"
    assert "Secure" in answer.headers["Set-Cookie"]


def test_behind_a_folder_all_links_lead_back_into_it(app: Flask, client: FlaskClient):
    make_page(app, [make_shown(app, "Shop")])
    folder = {"environ_overrides": {"SCRIPT_NAME": "/watch"}}

    for path in ("/status/example", "/status/example/history"):
        page = client.get(path, **folder).text
        assert not re.findall(r'(?:href|src|action)="/', page), "an absolute path leaves the folder"
