"""Headers of every kind of answer (decision 15): HSTS, cookies, caches, policies."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask

from app.access.tokens import acknowledgement_token
from tests.factories import make_incident, make_key, make_monitor, make_person, now
from tests.pages.made import make_page, make_shown
from tests.support.web_process import installation, web_process
from tests.web.visitor import Visitor

HTTPS = pytest.mark.settings(public_url="https://up.example.org")
YEAR = "max-age=31536000"
# Paths of every kind: dashboard, API, machines, files, status pages, errors.
PATHS = (
    "/", "/login", "/monitors", "/no/such/page", "/people/99999999999999999999",
    "/api/v1/monitors", "/api/v1/none", "/api/v1/openapi.json", "/healthz", "/readyz", "/metrics",
    "/static/css/base.css", "/static/none", "/status", "/status/example", "/status/none",
    "/status/example.json", "/status/example/feed.rss", "/status/example/badge/1.svg",
)  # fmt: skip


@HTTPS
def test_every_answer_has_hsts_and_says_what_browsers_may_do(app: Flask):
    make_page(app, [make_shown(app)])
    for client, methods in (
        (app.test_client(), ("GET", "POST", "HEAD", "BREW")),
        (_logged_in(app).client, ("GET", "POST")),
    ):
        for path in PATHS:
            for method in methods:
                answer = client.open(path, method=method)
                answer.close()
                case = f"{method} {path}: {answer.status_code}"
                assert answer.headers.getlist("Strict-Transport-Security") == [YEAR], case
                assert answer.headers["X-Content-Type-Options"] == "nosniff", case
                assert answer.headers["Referrer-Policy"] == "same-origin", case
                (policy,) = answer.headers.getlist("Content-Security-Policy")
                assert "frame-ancestors 'none'" in policy, case
                if answer.mimetype == "text/html":
                    assert "base-uri 'none'" in policy, case
                assert len(answer.headers.getlist("Cache-Control")) == 1, case


@HTTPS
def test_a_foreign_host_gets_the_same(app: Flask):
    answer = app.test_client().get("/login", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert answer.headers["Strict-Transport-Security"] == YEAR
    assert answer.headers["Referrer-Policy"] == "same-origin"


@HTTPS
def test_the_owner_of_a_pages_host_name_decides_on_https(app: Flask):
    make_page(app, [make_shown(app)], domain="status.example.com")
    for path in ("/", "/none", "/summary.json"):
        answer = app.test_client().get(path, base_url="https://status.example.com")
        assert "Strict-Transport-Security" not in answer.headers, path
        assert answer.headers["X-Content-Type-Options"] == "nosniff", path


def test_without_https_there_is_no_hsts_and_the_cookie_has_its_plain_name(app: Flask):
    visitor = _logged_in(app)
    assert "Strict-Transport-Security" not in visitor.open("/").page.headers
    assert visitor.client.get_cookie("wakeful") is not None


@HTTPS
def test_with_https_cookies_are_bound_to_the_host(app: Flask):
    make_person(app, "viewer")
    client = app.test_client()
    client.environ_base["wsgi.url_scheme"] = "https"
    visitor = Visitor(app)
    visitor.client = client
    visitor.log_in("viewer@wakeful.test")
    cookies = visitor.page.headers.getlist("Set-Cookie")
    assert [cookie for cookie in cookies if cookie.startswith("__Host-wakeful=")]
    for cookie in cookies:
        assert cookie.startswith("__Host-"), cookie
        parts = {part.strip() for part in cookie.split(";")}
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax"} <= parts, cookie
        assert "Domain" not in cookie


@pytest.mark.settings(public_url=None)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_cookies_of_a_path_have_a_prefix_where_there_is_https(app: Flask, scheme: str):
    make_page(app, [make_shown(app)], password="let me in, please")
    client, base = app.test_client(), f"{scheme}://localhost"
    prefix = "__Secure-" if scheme == "https" else ""
    typed = {"password": "let me in, please"}
    answer = client.post("/status/example", data=typed, base_url=base)
    assert client.get("/status/example", base_url=base).status_code == 200, "it opens the page"
    incidents = [make_incident(app, make_monitor(app), started_at=now()) for _ in range(2)]
    with app.app_context():
        path, other = (
            f"/acknowledge/{acknowledgement_token(incident.id)}" for incident in incidents
        )
    visitor = Visitor(app)
    visitor.client = client
    visitor.open(path, base_url=base)
    form = dict(visitor.forms[0].values) | {"name": "Ada"}
    sent = client.post(path, data=form, base_url=base, headers={"Referer": f"{base}{path}"})
    assert 'value="Ada"' in client.get(other, base_url=base).text, "it is remembered"
    set_cookies = [
        value for response in (answer, sent) for value in response.headers.getlist("Set-Cookie")
    ]
    names = {value.partition("=")[0] for value in set_cookies} - {"wakeful"}
    assert names == {f"{prefix}wakeful_page", f"{prefix}wakeful_name"}
    for cookie in set_cookies:
        if not cookie.startswith("wakeful="):
            assert ("Secure" in cookie.split("; ")) == (scheme == "https"), cookie


def test_what_carries_secrets_or_personal_data_is_kept_by_no_cache(app: Flask):
    shop = make_monitor(app)
    page = make_page(app, [make_shown(app)], password="let me in, please")
    key = {"Authorization": f"Bearer {make_key(app)}"}
    admin = _logged_in(app, "admin").client
    for path in (
        "/", f"/monitors/{shop.id}/edit", "/people", "/profile", "/audit.jsonl", "/login",
        "/reports/csv", f"/status-pages/{page}/subscribers.csv",
    ):  # fmt: skip
        answer = admin.get(path)
        assert answer.status_code < 400, path
        assert "no-store" in answer.headers["Cache-Control"], path
    for path in ("/api/v1/monitors", "/api/v1/me", "/api/v1/none", "/metrics"):
        assert admin.get(path, headers=key).headers["Cache-Control"] == "no-store", path
    assert "no-store" in admin.get("/status/example").headers["Cache-Control"]
    with admin.get("/static/css/base.css") as sheet:
        assert "no-store" not in sheet.headers["Cache-Control"]


def test_errors_of_the_server_itself_have_them_too(tmp_path: Path, sqlite_template: Path):
    installed = installation(tmp_path, sqlite_template)
    with web_process(installed, {"head_seconds": 0.5}, PUBLIC_URL="https://up.example.org") as web:
        long = b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n"
        for sent in (b"NONSENSE\r\n\r\n", long, b"GET / HTTP/1.1\r\nHost: localhost\r\n"):
            with web.connect(sent) as client:
                answer = b""
                while more := client.recv(4096):
                    answer += more
            head = answer.partition(b"\r\n\r\n")[0]
            assert head.startswith(b"HTTP/1.1 4"), head
            for name in (b"Referrer-Policy: same-origin", b"Cache-Control: no-store", b"nosniff"):
                assert name in head, head


def _logged_in(app: Flask, role: str = "viewer") -> Visitor:
    make_person(app, role)
    return Visitor(app).log_in(f"{role}@wakeful.test")
