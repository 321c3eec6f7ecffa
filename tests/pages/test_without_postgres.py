"""Pages while a PostgreSQL server is stopped, one of the test's own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask
from werkzeug.test import create_environ

from app import create_app, create_core
from app.config import Settings
from app.db import db, schema
from app.pages.memory import READER
from tests.conftest import SECRET_KEY
from tests.factories import make_incident, now
from tests.pages.made import make_day, make_page, make_post, make_shown
from tests.support.postgres import Server, own_server
from tests.support.service import eventually

REQUESTS = 300
PASSWORD = "let me in, please"
NAMES = (
    "", ".json", "/history", "/feed.rss", "/feed.atom", "/maintenance.ics", "/widget", "/widget.js",
    "/badge/1.svg", "/badge/1.json", "/subscribe",
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server() as server:
        yield server


@pytest.fixture
def settings(server: Server, tmp_path: Path) -> Settings:
    return Settings(
        instance=tmp_path,
        database_url=server.url(server.create()),
        secret_key=SECRET_KEY,
        canaries="",
    )


@pytest.fixture
def app(settings: Settings) -> Iterator[Flask]:
    with (core := create_core(settings)).app_context():
        schema.upgrade()
        db.engine.dispose()
    app = create_app(settings)
    assert core is not app
    shop = make_shown(app, "Shop")
    make_day(app, shop, now())
    make_incident(app, shop, started_at=now())
    page = make_page(app, [shop], domain="status.example.com")
    make_post(app, page, "The shop is away", monitors=[shop])
    make_page(app, [shop], slug="locked", password=PASSWORD)
    yield app
    close(app)


def close(app: Flask) -> None:
    """A reading that goes on would give its connection back later, to a pool that is gone."""
    for thread in threading.enumerate():
        if thread.name == READER:
            thread.join(60)
    with app.app_context():
        db.engine.dispose()


def ask(app: Flask, path: str, cookie: str = "", host: str = "localhost") -> tuple[str, bytes]:
    lines: list[str] = []
    headers = {"Host": host} | ({"Cookie": cookie} if cookie else {})
    environ = create_environ(path, headers=headers)
    body = b"".join(app(environ, lambda status, headers: lines.append(status)))
    return lines[0][:3], body


def test_while_it_is_stopped_all_requests_are_answered_also_after_a_restart(
    app: Flask, settings: Settings, server: Server
):
    layer = app.extensions["wakeful.pages"]
    paths = [f"/status/example{name}" for name in NAMES] + ["/status"]
    client = app.test_client()
    entered = client.post("/status/locked", data={"password": PASSWORD})
    cookie = entered.headers["Set-Cookie"].partition(";")[0]
    for path in paths:
        assert ask(app, path)[0] == "200", path
    assert ask(app, "/status/locked", cookie)[0] == "200"

    server.stop()
    try:
        passed = 0.0
        layer.clock = lambda: time.monotonic() + passed
        for number in range(REQUESTS):
            passed += 0.31  # so it is tried again dozens of times
            path = paths[number % len(paths)]
            assert ask(app, path)[0] == "200", (number, path)
        assert passed > 90
        for path, host in (("/", "status.example.com"), ("/status/example", "localhost")):
            status, body = ask(app, path, host=host)
            assert status == "200"
            assert b"The shop is away" in body
            assert b"cannot be updated" in body
        assert ask(app, "/status/locked", cookie)[0] == "200"
        assert ask(app, "/status/nobody")[0] == "404"

        fresh = create_app(replace(settings))
        for path in paths:
            assert ask(fresh, path)[0] == "200", path
        assert b"cannot be updated" in ask(fresh, "/status/example/history")[1]
        assert b"The shop is away" in ask(fresh, "/status/example")[1]
        assert b"Shop" in ask(fresh, "/status/locked", cookie)[1]
        assert b"Shop" not in ask(fresh, "/status/locked")[1]
    finally:
        server.start()

    for application in (app, fresh):
        application.extensions["wakeful.pages"].clock = lambda: time.monotonic() + 1000

        def is_updated(application: Flask = application) -> bool:
            status, body = ask(application, "/status/example")
            assert status == "200"
            return b"cannot be updated" not in body

        # On a busy machine, reading from a server that has just started takes a while.
        eventually(is_updated, "the page to be updated")
        assert ask(application, "/status/example/history")[0] == "200"
    close(fresh)
