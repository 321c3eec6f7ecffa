"""A stranger's client, written against the base API alone, and the wire itself, over real HTTP.

The server is gunicorn with ``wsgi:app``, as decision 9 promises it for any gunicorn.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.factories import make_key
from tests.support.command import environ_of, start
from tests.support.web_process import Installation, any_gunicorn, installation

FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def installed(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return installation(tmp_path_factory.mktemp("instance"), sqlite_template)


@pytest.fixture(scope="module")
def server(installed: Installation) -> Iterator[str]:
    """The URL of a gunicorn over a database of these tests, on a socket of our own."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        environ = environ_of(**installed.environment)
        process = start(
            any_gunicorn,
            listening,
            *("wsgi:app", "--worker-class", "gthread", "--threads", "4"),
            "--no-control-socket",  # a file in the home directory, which all tests would share
            environ=environ,
        )
        try:
            yield "http://{}:{}".format(*listening.getsockname())
        finally:
            process.terminate()
            process.join(30)


class Stranger:
    """A client that knows paths, field names and headers from the base API, and reads only the
    status of answers."""

    def __init__(self, base_url: str, key: str) -> None:
        self.base_url = base_url
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["Authorization"] = f"Bearer {key}"

    def read(self, path: str, **query: str) -> requests.Response:
        return self.session.get(
            f"{self.base_url}/api/v1/{path}",
            params=query,
            headers={"Accept": "application/json"},
            timeout=60,
        )

    def write(self, method: str, path: str, fields: dict[str, str]) -> requests.Response:
        return self.session.request(
            method,
            f"{self.base_url}/api/v1/{path}",
            data=fields,
            headers={"Content-Type": FORM},
            timeout=60,
        )

    def delete(self, path: str) -> requests.Response:
        return self.session.delete(f"{self.base_url}/api/v1/{path}", timeout=60)


@pytest.fixture
def stranger(installed: Installation, server: str) -> Stranger:
    with installed.app() as app:
        return Stranger(server, make_key(app))


MONITOR = {
    "name": "Shop", "url": "https://shop.example/", "interval": "600",
    "alert_condition": "url_no_text", "alert_text_lookup": "Add to basket",
    "request_method": "POST", "request_headers[0][key]": "X-From",
    "request_headers[0][value]": "monitor", "request_auth_username": "me",
    "request_auth_password": "secret", "cache_buster": "1", "ssl_alert_days": "14",
    "domain_alert_days": "60", "maintenance_start_at": "2027-01-01T00:00:00",
    "maintenance_end_at": "2027-01-01T01:00:00", "alerts[0][key]": "email",
    "alerts[0][value]": "ops@shop.example", "alerts[1][key]": "sms",
    "alerts[1][value]": "+447700900123",
}  # fmt: skip


def test_a_client_written_against_interface_md_alone_works(stranger):
    stored = stranger.write("POST", "monitors", MONITOR)
    assert stored.status_code == 201, stored.text
    id = stored.json()["data"]["id"]
    assert stranger.write("POST", "monitors", MONITOR | {"name": "Second"}).status_code == 201
    assert stranger.read(f"monitors/{id}").json()["data"]["name"] == "Shop"
    for query in (
        {},
        {"search": "sho", "search_by": "name", "sort_by": "name", "sort": "asc", "per_page": "25"},
        {"search": "shop.example", "search_by": "url", "sort_by": "url", "sort": "desc"},
        {"sort_by": "id", "per_page": "100"},
    ):
        page = stranger.read("monitors", **query)
        assert page.status_code == 200, page.text
        assert id in [monitor["id"] for monitor in page.json()["data"]]
    assert stranger.read("monitors", status_page_id="1").status_code == 200
    for method, fields in (
        ("PUT", {"name": "Shop 2", "pause": "true"}),
        ("PATCH", {"pause": "false", "interval": "60", "alert_condition": "url_unavailable"}),
    ):
        updated = stranger.write(method, f"monitors/{id}", fields)
        assert updated.status_code == 200, updated.text
    started = {"monitor_id": str(id), "started_at": "2026-02-01T00:00:00"}
    reported = stranger.write("POST", "incidents", started | {"cause": "Flood", "comment": "Wet"})
    assert reported.status_code == 201, reported.text
    incident = f"incidents/{reported.json()['data']['id']}"
    for fields in (
        {"acknowledged_at": "2026-02-01T01:00:00"},
        {"ended_at": "2026-02-01T02:00:00", "cause": "Rain", "comment": "Dry again"},
    ):
        assert stranger.write("PATCH", incident, fields).status_code == 200
    for query in (
        {"status": "resolved", "sort_by": "ended_at", "sort": "desc", "per_page": "50"},
        {"search": "rain", "search_by": "cause", "monitor_id": str(id)},
        {"search": "shop 2", "search_by": "monitor", "sort_by": "started_at"},
    ):
        page = stranger.read("incidents", **query)
        assert [row["cause"] for row in page.json()["data"]] == ["Rain"], (query, page.text)
    assert stranger.read(incident).json()["data"]["status"] == "resolved"
    for path in (incident, f"monitors/{id}"):
        assert stranger.delete(path).status_code == 200
        assert stranger.read(path).status_code == 404


def raw(server: str, request: bytes, *, ends: bool = False) -> bytes:
    """The answer to these bytes on a new connection; ``ends``: nothing more is sent."""
    host, port = server.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(request)
        if ends:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


def test_http_at_the_level_of_bytes(stranger, server):
    """Bodies that are too large or chunked, paths that clients would tidy, and HEAD."""
    session, monitors = stranger.session, f"{server}/api/v1/monitors"
    form = {"Content-Type": FORM}
    for _ in range(2):  # the connection stays open
        large = session.post(monitors, data=b"name=" + b"a" * 2_097_152, headers=form, timeout=60)
        assert large.status_code == 413
        assert large.json()["status"] == 413
    chunked = session.post(
        monitors,
        data=iter([b"name=Chunks&url=http%3A%2F%2Fx.example", b"&interval=60"]),
        headers=form,
        timeout=60,
    )
    assert chunked.status_code == 201, chunked.text
    endless = session.post(
        monitors, data=iter([b"name=" + b"a" * 65_536] * 40), headers=form, timeout=60
    )
    assert endless.status_code == 413

    key = session.headers["Authorization"].encode()
    lines = b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: " + key + b"\r\n"
    head = raw(server, b"HEAD /api/v1/monitors" + lines + b"\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert head.endswith(b"\r\n\r\n")
    for path in (b"//api/v1/monitors", b"/api//v1/monitors", b"/api/v1/monitors/", b"/api/v1/../x"):
        answer = raw(server, b"GET " + path + lines + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 404"), path
        assert b'"status":404' in answer
    # An unknown method, an invalid host, and a body that waits for 100 Continue.
    odd = raw(server, b"BREW /api/v1/monitors" + lines + b"\r\n")
    assert odd.startswith(b"HTTP/1.1 405")
    assert b"\r\nAllow: GET, HEAD, POST, OPTIONS\r\n" in odd
    for host in (b"a b", b"\xff", b"x/../y", b"[::1", b""):
        strange = lines.replace(b"Host: x", b"Host: " + host)
        answer = raw(server, b"GET /api/v1/monitors" + strange + b"\r\n")
        assert answer[9:10] in (b"2", b"4"), answer
        assert b'"status":' in answer or b"gunicorn" in answer or b"<html>" in answer
    asked = raw(
        server,
        b"POST /api/v1/monitors" + lines + b"Expect: 100-continue\r\nContent-Length: 6\r\n"
        b"Content-Type: application/json\r\n\r\n[1, 2]",
    )
    assert b"HTTP/1.1 422" in asked

    # A client that disconnects early, and invalid chunks: nothing of it is stored.
    before = stranger.read("monitors").json()["meta"]["total"]
    post = b"POST /api/v1/monitors" + lines + b"Content-Type: application/x-www-form-urlencoded\r\n"
    half = b"name=Half&url=http%3A%2F%2Fhalf.example&interval=60"
    for broken in (
        b"Content-Length: 500\r\n\r\n" + half,
        b"Transfer-Encoding: chunked\r\n\r\n33\r\n" + half,
        b"Transfer-Encoding: chunked\r\n\r\n33\r\n" + half + b"\r\nZZ\r\n",
    ):
        answer = raw(server, post + broken, ends=True)
        assert answer.startswith(b"HTTP/1.1 422"), (broken, answer)
        assert b'"body":["The body is incomplete' in answer
    assert stranger.read("monitors").json()["meta"]["total"] == before
