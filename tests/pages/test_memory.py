"""Pages from memory: how old an answer may be, and what is said while the database is away."""

from __future__ import annotations

import gzip
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import delete

from app import create_app, create_core
from app.config import Settings
from app.db import db, writing
from app.db.tables import StatusPageMonitorRow, StatusPageRow
from app.engine import recorder
from app.errors import NotFound, Unavailable
from app.pages import copies
from app.pages.copies import MONTHS
from app.pages.memory import Memory
from app.pages.serving import StatusPageLayer
from tests.factories import make_outcome, now
from tests.pages.made import change_page, make_page, make_post, make_shown

LOCKED = "let me in, please"


@contextmanager
def away(app: Flask, settings: Settings) -> Iterator[None]:
    """The database is not where it should be."""
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    hidden = path.with_suffix(".hidden")
    with app.app_context():
        db.engine.dispose()
    path.rename(hidden)
    yield
    with app.app_context():
        db.engine.dispose()
    hidden.rename(path)


def test_an_unchanged_page_is_not_sent_again_and_one_with_a_new_post_is(
    app: Flask, client: FlaskClient, later: Callable[[float], None]
):
    page = make_page(app, [make_shown(app)])
    first = client.get("/status/example")
    later(10)

    again = client.get("/status/example", headers={"If-None-Match": first.headers["ETag"]})

    assert (again.status_code, again.data) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert again.headers["Cache-Control"] == first.headers["Cache-Control"] == "public, max-age=4"
    make_post(app, page)
    later(10 - 4)
    assert client.get("/status/example").headers["ETag"] != first.headers["ETag"]


def test_browsers_get_it_compressed_and_others_as_it_is(app: Flask, client: FlaskClient):
    make_page(app, [make_shown(app)])

    plain = client.get("/status/example")
    compressed = client.get("/status/example", headers={"Accept-Encoding": "br, gzip"})
    refused = client.get("/status/example", headers={"Accept-Encoding": "gzip;q=0"})
    head = client.head("/status/example")

    assert gzip.decompress(compressed.data) == plain.data == refused.data
    assert compressed.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    assert head.headers["Content-Length"] == str(len(plain.data))
    assert head.data == b""


def test_a_state_that_another_process_confirms_is_on_the_page_within_ten_seconds(
    app: Flask, client: FlaskClient, settings: Settings, later: Callable[[float], None]
):
    shop = make_shown(app, "Shop")
    make_page(app, [shop])
    before = client.get("/status/example")
    kept = int(before.headers["Cache-Control"].rpartition("=")[2])
    checker = create_core(settings)
    at = now()

    def check(verdict: str) -> None:
        nonlocal at
        at += timedelta(seconds=60)
        with checker.app_context():
            recorder.record([(shop.id, make_outcome(verdict, at))], at)

    def read_again(before: str) -> str:
        """What somebody reads whose browser kept the page until now."""
        later(10 - kept)
        return client.get("/status/example", headers={"If-None-Match": before}).text

    assert "All systems operational" in before.text
    check("down")
    assert read_again(before.headers["ETag"]) == "", "one failed check is not confirmed: 304"
    for _ in range(shop.confirmations):
        check("down")
    assert "Major outage" in read_again(before.headers["ETag"])
    down = client.get("/status/example").headers["ETag"]
    for _ in range(3):
        check("up")
    assert "All systems operational" in read_again(down)
    with checker.app_context():
        db.engine.dispose()


def test_what_readers_ask_beside_the_address_is_not_kept(
    app: Flask, client: FlaskClient, layer: StatusPageLayer
):
    make_page(app, [make_shown(app)])
    first = client.get("/status/example")

    for number in range(50):
        assert client.get(f"/status/example?junk={number}").data == first.data
        client.get(f"/status/example/history?month=2026-11&junk={number}")
        client.get(f"/status/nobody-{number}")

    assert len(layer._pages._entries) == 1
    assert len(layer._months._entries) == 1


def test_months_that_never_were_take_no_memory_without_bounds(
    app: Flask, client: FlaskClient, layer: StatusPageLayer
):
    make_page(app, [make_shown(app)])
    for year in range(2017, 2026):
        for month in range(1, 13):
            client.get(f"/status/example/history?month={year}-{month:02}")
    assert len(layer._months._entries) <= MONTHS
    for junk in ("2026-13", "0000-00", "x", "2026-1", "9999-12", "1990-01"):
        assert client.get(f"/status/example/history?month={junk}").status_code == 404, junk


def test_without_the_database_the_page_stays_and_says_since_when(
    app: Flask, client: FlaskClient, settings: Settings, later: Callable[[float], None]
):
    make_page(app, [make_shown(app, "Shop")], zone="UTC")
    client.get("/status/example")
    at = now()

    with away(app, settings):
        later(10)
        answers = [client.get("/status/example") for _ in range(20)]

    assert {answer.status_code for answer in answers} == {200}
    assert "Shop" in answers[0].text
    assert "cannot be updated" in answers[0].text
    shown = {f"{moment:%H:%M} UTC" for moment in (at, at + timedelta(minutes=1))}
    assert any(text in answers[0].text for text in shown)
    later(10)
    assert "cannot be updated" not in client.get("/status/example").text


def test_after_a_restart_without_the_database_the_last_copy_is_served(
    app: Flask, client: FlaskClient, settings: Settings
):
    make_page(app, [make_shown(app, "Shop")], domain="status.example.com")
    make_page(app, [make_shown(app, "Vault")], slug="locked", password=LOCKED)
    client.get("/status/example")
    client.get("/status")
    client.post("/status/locked", data={"password": LOCKED})
    client.get("/status/locked")

    with away(app, settings):
        fresh = create_app(settings).test_client()
        page = fresh.get("/status/example")
        own = fresh.get("/", base_url="https://status.example.com")
        locked = fresh.get("/status/locked")
        unknown = fresh.get("/status/nobody")
        listed = fresh.get("/status")

    assert page.status_code == own.status_code == listed.status_code == 200
    assert "Shop" in page.text
    assert "cannot be updated" in page.text
    assert "Vault" not in locked.text
    assert unknown.status_code == 404


def test_copies_are_for_nobody_else_on_the_machine(
    app: Flask, client: FlaskClient, settings: Settings
):
    make_page(app, [make_shown(app, "Shop")], slug="locked", password=LOCKED)
    client.post("/status/locked", data={"password": LOCKED})
    client.get("/status/locked")

    files = list((settings.instance / "status-pages").iterdir())

    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert {path.name for path in files} == {"addresses", "page-1"}
    assert not any(b"Shop" in path.read_bytes() for path in files)


def test_a_damaged_copy_is_none(app: Flask, client: FlaskClient, settings: Settings):
    make_page(app, [make_shown(app, "Shop")])
    client.get("/status/example")
    for path in (settings.instance / "status-pages").iterdir():
        path.write_bytes(path.read_bytes()[:-9])

    with away(app, settings):
        answer = create_app(settings).test_client().get("/status/example")

    assert answer.status_code == 503
    assert answer.headers["Retry-After"]


def test_a_page_that_is_deleted_leaves_no_copy(
    app: Flask, client: FlaskClient, settings: Settings, later: Callable[[float], None]
):
    id = make_page(app)
    client.get("/status/example")
    client.get("/status/example/history")
    with app.app_context(), writing() as session:
        session.delete(session.get(StatusPageRow, id))
    later(10)
    client.get("/status/example")
    names = [path.name for path in (settings.instance / "status-pages").iterdir()]
    assert names == ["addresses"]


def test_only_the_months_that_were_read_last_are_copied(
    app: Flask, client: FlaskClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(copies, "MONTHS", 2)
    make_page(app, [make_shown(app)], created_at=now() - timedelta(days=150))
    current = now().year * 12 + now().month - 1
    read = [f"{number // 12}-{number % 12 + 1:02}" for number in range(current - 3, current + 1)]
    for at, month in enumerate(read):
        client.get(f"/status/example/history?month={month}")
        path = settings.instance / "status-pages" / f"month-1-{month}"
        os.utime(path, (at, at))
    names = {path.name for path in (settings.instance / "status-pages").glob("month-*")}
    assert names == {f"month-1-{month}" for month in read[-2:]}


def test_a_copy_that_is_too_large_is_not_written(
    app: Flask, client: FlaskClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(copies, "MAX_BYTES", 300)
    make_page(app, [make_shown(app)])
    assert client.get("/status/example/history").status_code == 200
    assert not list((settings.instance / "status-pages").glob("month-*"))


def test_a_month_that_was_read_before_the_page_was_changed_is_not_shown(
    app: Flask, client: FlaskClient, settings: Settings, later: Callable[[float], None]
):
    shop, secret = make_shown(app, "Shop"), make_shown(app, "Secret")
    page = make_page(app, [shop, secret])
    assert "Secret" in client.get("/status/example/history").text
    with app.app_context(), writing() as session:
        session.execute(
            delete(StatusPageMonitorRow).where(StatusPageMonitorRow.monitor_id == secret.id)
        )
    change_page(app, page, updated_at=now() + timedelta(seconds=5))
    later(10)
    client.get("/status/example")

    with away(app, settings):
        later(10)
        answers = [
            visitor.get("/status/example/history")
            for visitor in (client, create_app(settings).test_client())
        ]

    assert [answer.status_code for answer in answers] == [503, 503]
    assert not any("Secret" in answer.text for answer in answers)


# --- The memory itself


class Waiting:
    """Reads 1, and then 2 once it may go on."""

    def __init__(self) -> None:
        self.passed, self.reading, self.go_on = 0.0, threading.Event(), threading.Event()
        self.memory = Memory(self.read, 5, clock=lambda: time.monotonic() + self.passed, prompt=30)

    def read(self, key: str, before: int | None) -> int:
        if before is None:
            return 1
        self.reading.set()
        assert self.go_on.wait(30)
        return 2

    def get_at_once(self, readers: int) -> list[tuple[int, bool]]:
        got: list[tuple[int, bool]] = []
        get = lambda: got.append(self.memory.get("a"))  # noqa: E731
        threads = [threading.Thread(target=get) for _ in range(readers)]
        for thread in threads:
            thread.start()
        assert self.reading.wait(30)
        self.meanwhile = self.memory.get("a") if readers == 1 else None
        self.go_on.set()
        for thread in threads:
            thread.join()
        return got


def test_while_one_thread_reads_the_others_get_the_last_answer():
    waiting = Waiting()
    assert waiting.memory.get("a") == (1, False)
    waiting.passed = 1.8
    waiting.get_at_once(1)
    assert waiting.meanwhile == (1, False)
    assert waiting.memory.get("a") == (2, False)


def test_an_answer_that_is_too_old_is_not_given_while_another_is_read():
    waiting = Waiting()
    waiting.memory.get("a")
    waiting.passed = 60.0
    assert waiting.get_at_once(4) == [(2, False)] * 4


def test_what_was_read_before_a_change_is_not_given_after_it():
    """This holds even if that reading has not ended yet."""
    reading, go_on = threading.Event(), threading.Event()
    stored = 1

    def read(key: str, before: int | None) -> int:
        value = stored
        if before is not None and not reading.is_set():
            reading.set()
            assert go_on.wait(30)
        return value

    memory = Memory(read, 5, prompt=30)
    assert memory.get("a") == (1, False)
    memory.expire()
    early = threading.Thread(target=memory.get, args=["a"])
    early.start()
    assert reading.wait(30)
    stored = 2
    memory.expire()
    got = []
    after = threading.Thread(target=lambda: got.append(memory.get("a")))
    after.start()
    go_on.set()
    for thread in (early, after):
        thread.join()
    assert got == [(2, False)]


def test_a_reading_that_takes_long_is_not_waited_for():
    go_on, passed = threading.Event(), 0.0

    def read(key: str, before: int | None) -> int:
        if before is None:
            return 1
        assert go_on.wait(30)
        return 2

    memory = Memory(read, 5, clock=lambda: time.monotonic() + passed, prompt=0.01)
    memory.get("a")
    passed += 60
    assert memory.get("a") == memory.get("a") == (1, True)
    go_on.set()
    while memory.get("a") == (1, True):
        pass
    assert memory.get("a") == (2, False)


def test_a_change_made_here_is_waited_for_where_reading_takes_long():
    memory = Memory(lambda key, before: time.sleep(0.1) or (before or 0) + 1, 5, prompt=0.01)
    assert memory.get("a") == (1, False)
    memory.expire()
    assert memory.get("a") == (2, False)


def test_the_least_used_is_forgotten_first():
    memory: Memory[int, int] = Memory(lambda key, before: key, 2)
    for key in (1, 2, 1, 3):
        memory.get(key)
    assert (memory.cached(1), memory.cached(2), memory.cached(3)) == (1, None, 3)


def test_what_is_gone_is_forgotten_and_what_cannot_be_read_is_not():
    faults: list[Exception] = []
    passed = 0.0

    def read(key: str, before: int | None) -> int:
        if faults:
            raise faults[0]
        return 1

    memory = Memory(read, 2, clock=lambda: time.monotonic() + passed)
    memory.get("a")
    faults.append(Unavailable("away"))
    passed += 10
    assert memory.get("a") == (1, True)
    faults[0] = NotFound("page", "a")
    passed += 10
    with pytest.raises(NotFound):
        memory.get("a")
    assert len(memory._entries) == 0
