"""A checker at work on a web site whose answer a test chooses."""

import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sqlalchemy import select, update

from app.db import changes, db, journal, writing
from app.db.tables import AssignmentRow, ResultRow
from app.engine.checker import Checker
from tests.lab.http import serve
from tests.lab.net import Listener


class Site:
    """A small web site whose answer a test chooses, and that counts its requests."""

    def __init__(self):
        self.status = 200
        self.asked = 0
        self.lock = threading.Lock()
        self.hold = threading.Event()
        self.hold.set()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                with site.lock:
                    site.asked += 1
                site.hold.wait(60)
                self.send_response(site.status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_arguments):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = False
            request_queue_size = 128  # five, the default, overflow when a busy machine accepts late

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, args=[0.01])
        self.thread.start()

    def close(self):
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@contextmanager
def running(core, settings, **options):
    """A checker at work, as ``wakeful checker`` runs it but in a thread."""
    checker = Checker(core, settings, **options)
    stop = threading.Event()
    thread = threading.Thread(target=checker.run, args=[stop])
    thread.start()
    try:
        yield checker
    finally:
        stop.set()
        checker.checks.wake()
        thread.join(60)
        assert not thread.is_alive(), "a stop takes 10 s at most, and on a busy machine no minute"


def until(core, look, seconds=60):
    """What ``look`` returns once it is true: the checker announces nothing but by its rows."""
    pause = threading.Event()
    deadline = datetime.now(UTC) + timedelta(seconds=seconds)
    while datetime.now(UTC) < deadline:
        with core.app_context():
            if result := look():
                return result
        pause.wait(0.05)
    raise AssertionError(f"not within {seconds} s: {look}")


def results(id):
    return journal.decode(
        db.session.execute(
            select(*journal.RAW.values()).where(ResultRow.monitor_id == id).order_by(ResultRow.at)
        ).all()
    )


def due_at_once(core, id):
    with core.app_context(), writing() as session:
        session.execute(
            update(AssignmentRow)
            .where(AssignmentRow.monitor_id == id)
            .values(scheduled_at=None, generation=AssignmentRow.generation + 1)
        )
        changes.note(session, id)


class Place:
    """A port that serves web pages, refuses connections, or drops them, as the test chooses."""

    def __init__(self, kind=Listener):
        self.port = 0
        self.be(kind)

    def be(self, kind):
        if self.port:
            self.part.close()
        self.part = Listener(serve, port=self.port) if kind is Listener else kind(port=self.port)
        self.port = self.part.port


@pytest.fixture
def site():
    made = Site()
    yield made
    made.close()
