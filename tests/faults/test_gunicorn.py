"""Behaviour of gunicorn that app/commands/web relies on and gunicorn does not promise: one test for
each.

A new version of gunicorn that changes one of them fails here by name, not in a server that hangs.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from inspect import signature
from pathlib import Path

import pytest
from gunicorn import http
from gunicorn.config import Config
from gunicorn.http import wsgi
from gunicorn.workers.gthread import PollableMethodQueue, ThreadWorker

from tests.support.web_process import installation, web_process

HEAD = b"POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
CLIENT, SERVER = ("127.0.0.1", 1), ("127.0.0.1", 2)


class Log:
    def __getattr__(self, name: str) -> object:
        return lambda *_arguments, **_named: None


class Socket:
    """The socket that gunicorn writes to."""

    def __init__(self) -> None:
        self.written = b""

    def sendall(self, data: bytes) -> None:
        self.written += data

    def send(self, data: bytes) -> int:
        self.sendall(data)
        return len(data)

    def gettimeout(self) -> float:
        return 0.0


@pytest.fixture
def worker() -> Iterator[ThreadWorker]:
    worker = ThreadWorker(0, 0, [], None, 1, Config(), Log())
    yield worker
    worker.tmp.close()


def request_of(head: bytes) -> object:
    return next(http.get_parser(Config(), [head], CLIENT))


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("accept", ["listener"]),
        ("murder_pending", []),
        ("_cap_keepalive", ["deadline"]),
        ("finish_request", ["conn", "fs"]),
        ("handle", ["conn"]),
        ("handle_request", ["req", "conn"]),
        ("handle_error", ["req", "client", "addr", "exc"]),
        ("init_process", []),
    ],
)
def test_a_method_that_is_replaced_or_called_has_these_parameters(method, parameters):
    assert list(signature(getattr(ThreadWorker, method)).parameters)[1:] == parameters


def test_the_pool_is_a_pool_of_threads(worker):
    with closing_pool(worker.get_thread_pool()) as pool:
        assert isinstance(pool, ThreadPoolExecutor)


class closing_pool:
    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self.pool = pool

    def __enter__(self) -> ThreadPoolExecutor:
        return self.pool

    def __exit__(self, *_fault: object) -> None:
        self.pool.shutdown()


def test_open_connections_are_counted_and_bounded_by_the_setting(worker):
    assert (worker.nr_conns, worker.worker_connections) == (0, worker.cfg.worker_connections)


def test_what_the_poller_has_registered_is_called_with_the_socket(worker):
    called: list[object] = []
    with selectors.DefaultSelector() as poller:
        ours, theirs = socket.socketpair()
        with closing(ours), closing(theirs):
            worker.poller = poller
            poller.register(ours, selectors.EVENT_READ, called.append)
            theirs.send(b"x")
            worker.wait_for_and_dispatch_events(5)
            assert called == [ours]


def test_a_call_is_deferred_to_the_thread_of_the_event_loop():
    queue = PollableMethodQueue()
    queue.init()
    called: list[object] = []
    thread = threading.Thread(target=queue.defer, args=(called.append, "by another thread"))
    thread.start()
    thread.join()
    assert called == []
    queue.run_callbacks(queue.fileno())
    queue.close()
    assert called == ["by another thread"]


def test_the_worker_has_the_application_that_was_loaded(worker):
    worker.app = type("Loaded", (), {"wsgi": lambda _self: "the application"})()
    worker.load_wsgi()
    assert worker.wsgi == "the application"


def test_a_parser_makes_a_request_of_the_bytes_of_a_header():
    request = request_of(HEAD)
    assert (request.method, request.path, request.query) == ("POST", "/a", "b")
    assert ("CONTENT-LENGTH", "2") in request.headers


def test_a_request_has_an_environment_and_a_response_to_write():
    sock = Socket()
    response, environ = wsgi.create(request_of(HEAD), sock, CLIENT, SERVER, Config())
    assert (environ["PATH_INFO"], environ["QUERY_STRING"]) == ("/a", "b")
    before = sock.written
    response.start_response("204 No Content", [])
    assert (response.status_code, sock.written) == (204, before), "it is written with the body"
    response.force_close()
    response.close()
    assert b"HTTP/1.1 204 No Content\r\n" in sock.written
    assert b"Connection: close" in sock.written


@pytest.mark.parametrize("expected", [True, False])
def test_a_mark_on_the_request_makes_the_answer_begin_with_100(expected):
    request, sock = request_of(HEAD), Socket()
    request._expected_100_continue = expected
    wsgi.create(request, sock, CLIENT, SERVER, Config())
    assert sock.written.startswith(b"HTTP/1.1 100 Continue") is expected


def test_an_error_is_written_at_once_with_its_status(worker):
    page = Socket()
    worker.handle_error(None, page, CLIENT, http.errors.LimitRequestHeaders("too large"))
    assert page.written.startswith(b"HTTP/1.1 431 ")


def test_a_worker_serves_without_its_arbiter(tmp_path: Path, sqlite_template: Path) -> None:
    """One process answers, and does not end when the terminal that started it is closed."""
    with web_process(installation(tmp_path, sqlite_template)) as web:
        assert not Path(f"/proc/{web.pid}/task/{web.pid}/children").read_text()
        os.kill(web.pid, signal.SIGHUP)
        assert web.get("/healthz").status_code == 200
