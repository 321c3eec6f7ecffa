"""Wakeful is started, as after a restart of the machine, before its PostgreSQL server is."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests
from sqlalchemy import make_url

from app import create_app
from app.config import Settings
from app.db import db, schema
from tests.conftest import SECRET_KEY
from tests.pages.made import make_page, make_shown
from tests.support.postgres import Server, own_server
from tests.support.service import Service, eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

AWAY = "cannot be updated"
SECONDS = 60


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server() as server:
        yield server


@pytest.fixture
def settings(server: Server, tmp_path: Path) -> Settings:
    return Settings(
        instance=tmp_path / "instance",
        database_url=server.url(server.create()),
        secret_key=SECRET_KEY,
        canaries="",
    )


@pytest.fixture
def copied(settings: Settings) -> None:
    """A status page that somebody has read."""
    app = create_app(settings)
    with app.app_context():
        schema.upgrade()
    make_page(app, [make_shown(app, "Shop")])
    assert app.test_client().get("/status/example").status_code == 200
    with app.app_context():
        db.engine.dispose()


@pytest.fixture
def service(settings: Settings) -> Iterator[Callable[..., Service]]:
    started: list[Service] = []

    def start(command: str, **more: str) -> Service:
        own = {"DATABASE_URL": settings.database_url, "SECRET_KEY": SECRET_KEY, "CANARIES": ""}
        started.append(Service(settings.instance, **own | more))
        started[-1].start(command)
        return started[-1]

    yield start
    for process in started:
        process.stop()


def set_version(server: Server, settings: Settings, version: str) -> None:
    """Let the database be of another version."""
    name = make_url(settings.database_url).database or ""
    with server.connect(name) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", [version])


def get(base: str, path: str) -> requests.Response:
    return requests.get(base + path, timeout=SECONDS, allow_redirects=False)


def answers(base: str) -> bool:
    with suppress(requests.ConnectionError):
        return get(base, "/healthz").status_code == 200
    return False


@pytest.mark.usefixtures("copied")
def test_serve_answers_from_copies_and_does_all_the_rest_once_the_server_runs(
    server: Server, service: Callable[..., Service]
):
    server.stop()
    try:
        running = service("serve")
        base = running.await_line(r"Wakeful runs at (http://\S+) ")[1]
        running.await_line("Until it works, no checks run")
        page = get(base, "/status/example")
        assert page.status_code == 200
        assert "Shop" in page.text
        assert AWAY in page.text
        assert get(base, "/login").status_code == 503
        assert get(base, "/healthz").status_code == 200
        assert get(base, "/readyz").json()["faults"] == ["The database does not answer."]
        assert not any("/setup/" in line for line in running.lines)
    finally:
        server.start()

    running.await_line("Create the first account here")
    eventually(lambda: AWAY not in get(base, "/status/example").text, "the page is read again")
    eventually(lambda: get(base, "/readyz").json().get("heartbeat_age") is not None, "it checks")
    assert get(base, "/login").status_code != 503
    assert running.stop() == 0
    # A server that starts refuses for another reason than one that is away.
    messages = [line.split(" ", 3)[-1] for line in running.lines if "Until it works" in line]
    assert len(messages) == len(set(messages)) <= 2, messages
    assert not any(" ended (" in line for line in running.lines), "no part was started in vain"


def test_serve_creates_the_tables_of_a_server_that_starts_later(
    server: Server, service: Callable[..., Service]
):
    server.stop()
    try:
        running = service("serve")
        base = running.await_line(r"Wakeful runs at (http://\S+) ")[1]
        assert get(base, "/status/example").status_code == 503
    finally:
        server.start()
    link = running.await_line(r"http://\S+/setup/\S+")[0]
    eventually(lambda: get(base, link.removeprefix(base)).status_code == 200, "the set-up page")
    eventually(lambda: get(base, "/status/example").status_code == 404, "no page is there")


@pytest.mark.usefixtures("copied")
def test_serve_refuses_a_newer_database_also_one_that_starts_later(
    server: Server, settings: Settings, service: Callable[..., Service]
):
    set_version(server, settings, "9999")
    server.stop()
    try:
        running = service("serve")
        running.await_line("Until it works")
    finally:
        server.start()
    running.await_line("written by a newer version of Wakeful")
    assert running.process.wait(SECONDS) == 1


@pytest.mark.usefixtures("copied")
def test_web_starts_without_the_server_and_works_once_it_runs(
    server: Server, settings: Settings, service: Callable[..., Service]
):
    with socket.socket() as kept:
        # Nobody else gets a port that is bound, and the web server may listen on it.
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        bind = f"127.0.0.1:{kept.getsockname()[1]}"
        server.stop()
        try:
            running = service("web", BIND=bind)
            running.await_line("status pages come from their last copies")
            eventually(lambda: answers(f"http://{bind}"), "it listens")
            page = get(f"http://{bind}", "/status/example")
            assert (page.status_code, AWAY in page.text) == (200, True)
            assert get(f"http://{bind}", "/login").status_code == 503
        finally:
            server.start()
        eventually(
            lambda: AWAY not in get(f"http://{bind}", "/status/example").text,
            "the page is read again",
        )
        assert get(f"http://{bind}", "/login").status_code != 503


def test_serve_says_of_a_missing_database_what_the_server_says_and_stops_while_it_waits(
    server: Server, service: Callable[..., Service]
):
    running = service("serve", DATABASE_URL=server.url("nobody_made_it"))
    running.await_line('database "nobody_made_it" does not exist')
    base = running.await_line(r"Wakeful runs at (http://\S+) ")[1]
    assert get(base, "/readyz").status_code == 503
    assert get(base, "/healthz").status_code == 200
    os.kill(running.process.pid, signal.SIGINT)
    assert running.process.wait(SECONDS) == 0


def test_a_web_server_that_started_early_asks_nothing_of_tables_of_another_version(
    server: Server, settings: Settings, copied: None
):
    app = create_app(settings)
    set_version(server, settings, min(schema.revisions()))
    with app.app_context():
        schema.refuse_until_current()
        client = app.test_client()

        page = client.get("/status/example")
        faults = client.get("/readyz").get_json()["faults"]
        refused = client.get("/login")
        set_version(server, settings, schema.newest_revision())
        layer = app.extensions["wakeful.pages"]
        clock, layer.clock = layer.clock, lambda: clock() + 60
        eventually(lambda: AWAY not in client.get("/status/example").text, "it is read again")
        db.engine.dispose()

    assert (page.status_code, AWAY in page.text) == (200, True)
    assert refused.status_code == 503
    assert faults == [schema.OLD]
