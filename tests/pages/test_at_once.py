"""A change is public at once in the process that stored it, and within two seconds in others
(decision 12).
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import create_app
from app.config import Settings
from app.db import db
from app.engine import recorder
from app.pages.memory import READER
from app.pages.serving import LOOKUPS, StatusPageLayer
from tests.api.conftest import Api
from tests.factories import make_key, make_outcome, now
from tests.pages.made import make_shown
from tests.support.queries import queries

HOST = "status.shop.example"


@pytest.fixture
def api(app: Flask, client: FlaskClient) -> Api:
    return Api(client, make_key(app))


@pytest.fixture
def elsewhere(settings: Settings) -> Iterator[Api]:
    """The API in another process: no change here is announced there, nor one there here."""
    app = create_app(settings)
    yield Api(app.test_client(), make_key(app))
    with app.app_context():
        db.engine.dispose()


def statuses(client: FlaskClient, *paths: str, **more: str) -> set[int]:
    return {client.get(path, **more).status_code for path in paths}


def test_each_answer_of_a_page_follows_what_was_just_stored(
    app: Flask, client: FlaskClient, api: Api
):
    shop = make_shown(app, "Shop")
    assert statuses(client, "/status/shop", "/status/shop.json") == {404}
    sent = {"name": "Shop", "monitors": [shop.id], "show_urls": False}
    page = api.data("POST", "/status-pages", json=sent)
    path = f"/status-pages/{page['id']}"
    answers = [
        "/status/shop", "/status/shop.json", "/status/shop/feed.rss", "/status/shop/feed.atom",
        "/status/shop/maintenance.ics", "/status/shop/history", f"/status/shop/badge/{shop.id}.svg",
        f"/status/shop/badge/{shop.id}.json", "/status/shop/widget", "/status/shop/subscribe",
    ]  # fmt: skip
    assert page["link"] == "http://wakeful.test/status/shop"
    assert statuses(client, *answers) == {200}
    assert "Shop" in client.get("/status").text

    post = {"title": "Tills are slow", "state": "investigating", "body": "We look."}
    id = api.data("POST", f"{path}/posts", json=post)["id"]
    for answer in (*answers[:4], "/status/shop/history"):
        assert "Tills are slow" in client.get(answer).text, answer
    api("PATCH", f"{path}/posts/{id}", json={"title": "Tills work"})
    for answer in answers[:4]:
        assert "Tills work" in client.get(answer).text, answer

    times = {"start_at": "2026-11-01T00:00:00", "end_at": "2099-01-01T00:00:00"}
    shown = {"name": "internal", "public": True, "public_name": "Cables"}
    window = api.data("POST", "/maintenance-windows", json=shown | times)
    for answer in (answers[0], answers[1], answers[4]):
        assert "Cables" in client.get(answer).text, answer
    api("DELETE", f"/maintenance-windows/{window['id']}")
    assert "Cables" not in client.get("/status/shop").text

    api("PATCH", f"/monitors/{shop.id}", json={"name": "Till"})
    assert "Till" in client.get("/status/shop").text
    assert "Till" in client.get(answers[6]).text
    at = now()
    for _ in range(shop.confirmations + 1):
        at += timedelta(seconds=60)
        with app.app_context():
            recorder.record([(shop.id, make_outcome("down", at))], at)
    assert "major_outage" in client.get("/status/shop.json").text

    api("PATCH", path, json={"visibility": "password", "password": "open sesame"})
    assert "Till" not in client.get("/status/shop").text
    assert statuses(client, *answers[1:5]) == {403}
    client.post("/status/shop", data={"password": "open sesame"})
    assert "Till" in client.get("/status/shop").text
    api("PATCH", path, json={"password": "another secret"})
    assert "Till" not in client.get("/status/shop").text

    api("PATCH", path, json={"visibility": "public", "domain": HOST})
    assert "Till" in client.get("/", base_url=f"http://{HOST}").text
    api("PATCH", path, json={"domain": None, "slug": "till"})
    assert "Till" not in client.get("/", base_url=f"http://{HOST}").text
    assert statuses(client, *answers) == {404}
    assert statuses(client, "/status/till") == {200}
    api("PATCH", path, json={"visibility": "closed", "slug": "shop"})
    assert statuses(client, *answers) == {404}
    api("PATCH", path, json={"visibility": "public"})
    assert statuses(client, *answers) == {200}
    api("DELETE", path)
    assert statuses(client, *answers) == {404}
    assert "Shop" not in client.get("/status").text


def test_another_process_knows_a_new_page_at_once_and_a_change_within_two_seconds(
    client: FlaskClient, elsewhere: Api, later: Callable[[float], None]
):
    assert statuses(client, "/status", "/status/shop") == {200, 404}
    page = elsewhere.data("POST", "/status-pages", json={"name": "Shop"})
    assert statuses(client, "/status/shop") == {200}
    path = f"/status-pages/{page['id']}"

    elsewhere("PATCH", path, json={"name": "Our shop"})
    later(2)
    assert "Our shop" in client.get("/status/shop").text
    elsewhere("PATCH", path, json={"visibility": "closed"})
    later(2)
    assert statuses(client, "/status/shop", "/status/shop.json") == {404}
    elsewhere("PATCH", path, json={"visibility": "public"})
    later(2)
    assert statuses(client, "/status/shop") == {200}
    elsewhere("DELETE", path)
    later(2)
    assert statuses(client, "/status/shop") == {404}


def test_strangers_who_guess_addresses_do_not_ask_the_database_each_time(
    app: Flask, client: FlaskClient, layer: StatusPageLayer
):
    client.get("/status/shop")
    now = time.monotonic()
    layer.clock = lambda: now
    with app.app_context(), queries() as asked:
        for number in range(200):
            assert client.get(f"/status/guess-{number}").status_code == 404
    assert sum("status_pages" in statement for statement in asked) <= LOOKUPS


@pytest.mark.settings(public_url=None)
def test_the_link_of_a_page_is_absolute_also_without_a_public_url(api: Api):
    page = api.data("POST", "/status-pages", data={"name": "Shop"})
    assert page["link"] == "http://localhost/status/shop"
    path = f"/status-pages/{page['id']}"
    shown = api("GET", path, base_url="https://watch.example:8443").json["data"]
    assert shown["link"] == "https://watch.example:8443/status/shop"
    domain = api.data("PATCH", path, json={"domain": HOST})
    assert domain["link"] == f"http://{HOST}/"


HOLD = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    fcntl.lockf(file, fcntl.LOCK_EX, 8, 120)
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_locks(settings: Settings) -> Iterator[None]:
    """Another program holds the locks of SQLite's WAL, and SQLite waits for them for 10 s."""
    path = f"{settings.database_url.removeprefix('sqlite:///')}-shm"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLD, path], **pipes) as holder:
        try:
            assert holder.stdout.readline() == b"held\n"
            yield
        finally:
            holder.communicate()


def test_a_page_comes_from_memory_while_somebody_holds_the_locks_of_the_wal(
    app: Flask, client: FlaskClient, settings: Settings, api: Api,
    later: Callable[[float], None],
):  # fmt: skip
    shop = make_shown(app, "Shop")
    api.data("POST", "/status-pages", json={"name": "Shop", "monitors": [shop.id]})
    paths = ("/status/shop", "/status/shop.json", "/status/shop/history")
    assert statuses(client, *paths) == {200}
    with held_locks(settings):
        later(10)
        answers = [client.get(path) for path in paths]
        assert {answer.status_code for answer in answers} == {200}
        assert "cannot be updated" in answers[0].text
        readings = [thread for thread in threading.enumerate() if thread.name == READER]
        assert readings, "nobody waited until SQLite gave up"
    for reading in readings:
        reading.join(30)
    later(10)
    assert "cannot be updated" not in client.get("/status/shop").text
