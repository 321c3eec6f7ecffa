"""A write for a checker or an alert worker wakes it, and nothing is lost if it does not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from flask import Flask
from sqlalchemy import literal, text

from app.access import Access
from app.access.settings import ALLOW_NETWORKS
from app.alerts import by_hand, lanes, subscribers
from app.alerts.worker import Worker
from app.config import Settings
from app.db import changes, db, liveness, wakeups, writing
from app.db.tables import StatusPageRow, SubscriberRow
from app.records import SubscriberEvent
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import HttpSink, Reply
from tests.factories import make_delivery, make_monitor
from tests.support.checkers import Site, results, running, until
from tests.support.pages import Pages

CHECKER, WORKER = liveness.CHECKER, liveness.WORKER
NEVER = 3600.0  # longer than any test: what happens nevertheless was not polled for


class Woken:
    """The roles that were woken since the last call."""

    def __init__(self, app: Flask) -> None:
        with app.app_context():
            folder = wakeups._folder()
        self.sockets = {role: wakeups._Datagrams(str(folder), role) for role in (CHECKER, WORKER)}

    def __call__(self) -> set[str]:
        roles = set()
        for role, source in self.sockets.items():
            source._receiver.setblocking(False)
            try:
                while source._receiver.recv(1):
                    roles.add(role)
            except BlockingIOError:
                pass
        return roles


@pytest.fixture
def woken(core: Flask) -> Iterator[Woken]:
    made = Woken(core)
    yield made
    for source in made.sockets.values():
        with suppress(OSError):  # a test has closed it
            source.end()
        source.close()


def _subscribe(box: Outbox, event: SubscriberEvent) -> None:
    page = Pages(box.app).page(now=box.clock.now)
    id = Pages(box.app).subscriber(page, "email", "ada@example.org", now=box.clock.now)
    with box.app.app_context(), writing() as session:
        row, of_page = session.get_one(SubscriberRow, id), session.get_one(StatusPageRow, page)
        subscribers.enqueue_answer(session, event, row, of_page, box.clock.now)


def _post(box: Outbox) -> None:
    pages = Pages(box.app)
    page = pages.page(now=box.clock.now)
    pages.subscriber(page, "email", "ada@example.org", now=box.clock.now)
    pages.post(page, now=box.clock.now)


def _retry(box: Outbox) -> None:
    id = make_delivery(box.app, status="failed")
    with box.app.app_context():
        by_hand.retry(id, box.clock.now)


def _test(box: Outbox) -> None:
    with box.app.app_context():
        by_hand.send_test_to([("webhook", "http://127.0.0.1:9/")], box.clock.now)


def _allow(box: Outbox) -> None:
    with box.app.app_context():
        Access().settings.set(ALLOW_NETWORKS, "private")


WRITES: dict[str, tuple[Callable[[Outbox], object], set[str]]] = {
    "a monitor": (lambda box: box.monitor(), {CHECKER}),
    "its alert": (
        lambda box: box.notice(box.monitor(("webhook", "http://a.example/"))),
        {CHECKER, WORKER},
    ),
    "a test message": (_test, {WORKER}),
    "a retry by hand": (_retry, {WORKER}),
    "a post with subscribers": (_post, {WORKER}),
    "a subscription to confirm": (lambda box: _subscribe(box, SubscriberEvent.CONFIRM), {WORKER}),
    "a second subscription": (lambda box: _subscribe(box, SubscriberEvent.KNOWN), {WORKER}),
    "the networks of checks": (_allow, {CHECKER}),
    "a heartbeat": (lambda box: _write_sign(box.app), set()),
}


def _write_sign(app: Flask) -> None:
    with app.app_context():
        liveness.write("checker:here:1", datetime.now(UTC))


@pytest.mark.parametrize("what", WRITES)
def test_a_write_wakes_those_who_wait_for_it(box, woken, what):
    write, roles = WRITES[what]
    write(box)
    assert woken() == roles


def _note_and_fail() -> None:
    with writing() as session:
        wakeups.note(session, WORKER)
        raise ZeroDivisionError


def test_nobody_is_woken_before_the_commit_or_without_one(core, woken):
    with core.app_context():
        with writing() as session:
            with session.begin_nested():
                wakeups.note(session, WORKER)
            assert woken() == set(), "a savepoint is no commit"
        assert woken() == {WORKER}
        with pytest.raises(ZeroDivisionError):
            _note_and_fail()
        with writing() as session:
            changes.note(session, 1)
        assert woken() == {CHECKER}


def test_a_socket_that_a_killed_process_left_behind_is_removed(core, woken):
    woken.sockets[WORKER].close()
    with core.app_context():
        folder = Path(str(wakeups._folder()))
        assert len(list(folder.glob("worker.*"))) == 1
        with writing() as session:
            wakeups.note(session, WORKER)
    assert not list(folder.glob("worker.*"))


def test_a_process_that_does_not_read_delays_no_writer(core, woken):
    with core.app_context():
        for _ in range(1_000):  # far more than the kernel keeps
            with writing() as session:
                wakeups.note(session, WORKER)
    assert woken() == {WORKER}


@contextmanager
def sending(core: Flask, settings: Settings) -> Iterator[None]:
    """A worker at work that has nothing to do."""
    worker, stop, idle = Worker(core, settings), threading.Event(), threading.Event()
    worker.on_turn = idle.set
    thread = threading.Thread(target=worker.run, args=[stop])
    thread.start()
    try:
        assert idle.wait(60)
        yield
    finally:
        stop.set()
        worker.wake()
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(params=["woken", "not reached"])
def polling(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that are woken and never poll, or that poll because nothing reaches them: no
    datagram, or no notification through a pooler in transaction mode.
    """
    if request.param == "woken":
        monkeypatch.setattr(wakeups, "POLL_SECONDS", NEVER)
    else:
        monkeypatch.setattr(wakeups, "POLL_SECONDS", 0.1)
        monkeypatch.setattr(wakeups, "_send", lambda _folder, _roles: None)
        nothing = SimpleNamespace(pg_notify=lambda *_texts: literal(1))
        monkeypatch.setattr(wakeups, "func", nothing)


@pytest.mark.both_databases
def test_a_message_is_sent_at_once_and_again_when_it_is_due(
    core, settings, sink: HttpSink, polling, monkeypatch
):
    monkeypatch.setattr(lanes, "PAUSES", (0.1,))
    sink.replies["/"] = [Reply(503), Reply(200)]
    with sending(core, settings):
        box = Outbox(core)
        box.clock.now = datetime.now(UTC)
        (id,) = box.notice(box.monitor(("webhook", f"{sink.url}/")))
        until(core, lambda: box.row(id).status == "delivered")
    assert len(sink.requests) == 2


@pytest.mark.both_databases
def test_a_new_monitor_is_checked_at_once(core, settings, polling):
    site = Site()
    try:
        with running(core, settings) as checker:
            ready = threading.Event()
            checker.checks.on_turn = ready.set
            assert ready.wait(60)
            monitor = make_monitor(core, url=site.url)
            until(core, lambda: results(monitor.id))
    finally:
        site.close()


ON_POSTGRESQL = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)


@contextmanager
def listening(core: Flask) -> Iterator[tuple[Callable[[], bool], threading.Semaphore]]:
    woken = threading.Semaphore(0)
    with wakeups.listening(core, WORKER, woken.release, 0.0) as works:
        yield works, woken


@ON_POSTGRESQL
@pytest.mark.parametrize("pause", [NEVER, 0.01], ids=["not yet again", "again"])
def test_a_process_whose_listening_connection_is_lost_polls_until_it_listens_again(
    core, monkeypatch, pause
):
    monkeypatch.setattr(wakeups, "FIRST_PAUSE", pause)
    ends = text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE query ~ '^LISTEN' AND datname = current_database()"
    )
    with listening(core) as (works, woken):
        assert woken.acquire(timeout=60)
        assert works()
        with core.app_context():
            assert len(db.session.execute(ends).all()) == 1
        assert woken.acquire(timeout=60), "what was announced meanwhile is found by a look"
        if pause != NEVER:
            assert woken.acquire(timeout=60)
        assert works() == (pause != NEVER)


@ON_POSTGRESQL
def test_behind_a_pooler_that_passes_no_notifications_processes_poll(core, monkeypatch):
    monkeypatch.setattr(wakeups, "PROBE_SECONDS", 0.01)
    monkeypatch.setattr(wakeups, "FIRST_PAUSE", 0.01)
    failed = threading.Semaphore(0)
    monkeypatch.setattr(wakeups.log, "info", lambda *_line: failed.release())
    nothing = SimpleNamespace(pg_notify=lambda *_texts: literal(1))
    monkeypatch.setattr(wakeups, "func", nothing)
    with listening(core) as (works, woken):
        for _try in range(3):
            assert failed.acquire(timeout=60)
        assert not works()
        assert not woken.acquire(blocking=False)
