"""Clients that are slow on purpose: each holds a socket for a limited time, and never a thread.

The server has 32 threads; there are more clients here.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests

from app.commands.web.connection import ClientConnection
from app.db import faults
from app.records import MAX_FORM_BYTES, DeliveryStatus
from app.slots import LONG_WAITS, REMOTE_ANSWERS, REPEATED_FORMS, THREADS
from app.stores.base import until_attempted
from app.stores.health import CHECKER_SILENT
from tests.factories import PASSWORD, make_key, make_person
from tests.support.web_process import Installation, Web, installation, web_process

CROWD = 40
# A drip would reach none of the usual limits, which are on the time between two bytes.
DRIP_SECONDS = 0.05
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
MONITOR = b"name=Dripped&url=http://dripped.test/&interval=60"
HEADERS = b"GET /login HTTP/1.1\r\nHost: wakeful.test\r\nX-Slow: a"
CHUNKED_HEAD = b"POST /login HTTP/1.1\r\nHost: wakeful.test\r\nTransfer-Encoding: chunked\r\n\r\n"
CSS = b"GET /bootstrap/static/css/bootstrap.min.css HTTP/1.1\r\nHost: wakeful.test\r\n\r\n"


@pytest.fixture(scope="module")
def installed(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return installation(tmp_path_factory.mktemp("instance"), sqlite_template)


@pytest.fixture(scope="module")
def key(installed: Installation) -> str:
    with installed.app() as app:
        make_person(app)
        return make_key(app)


@pytest.fixture(scope="module")
def patient(installed: Installation, key: str) -> Iterator[Web]:
    """The server has the default limits."""
    with web_process(installed) as web:
        yield web


@pytest.fixture(scope="module")
def strict(installed: Installation, key: str) -> Iterator[Web]:
    """The same with limits that a test can wait for."""
    waits = dict.fromkeys(("head_seconds", "body_seconds", "answer_seconds"), 0.6)
    limits = {**waits, "closing_seconds": 0.3, "ask_seconds": 0.1}
    with web_process(installed, limits) as web:
        yield web


@pytest.fixture(scope="module")
def small(installed: Installation, key: str) -> Iterator[Web]:
    """With room for few connections and bytes; it reads bodies before it refuses them."""
    limits = {"connections": 20, "buffered_bytes": 1_000_000, "ask_seconds": 60}
    with web_process(installed, limits) as web:
        yield web


def post(path: str, length: int, *headers: str) -> bytes:
    """The header of a POST whose body is ``length`` bytes long."""
    lines = [f"POST {path} HTTP/1.1", "Host: wakeful.test", *headers, f"Content-Length: {length}"]
    return "\r\n".join([*lines, ""]).encode() + FORM + b"\r\n"


def bearer(key: str) -> str:
    return f"Authorization: Bearer {key}"


@contextmanager
def crowd(web: Web, sent: bytes, number: int = CROWD, **more: int) -> Iterator[list[socket.socket]]:
    """Connections that have sent so much and stay open."""
    with ExitStack() as stack:
        yield [stack.enter_context(web.connect(sent, **more)) for _ in range(number)]


def answers_everybody(web: Web, key: str) -> None:
    """Fails with a timeout when no thread is left."""
    assert web.get("/healthz").status_code == 200
    assert web.get("/readyz").json()["faults"] in ([], [CHECKER_SILENT])  # none runs here
    assert web.get("/login").status_code == 200
    me = web.get("/api/v1/me", headers={"Authorization": f"Bearer {key}"})
    assert me.status_code == 200


def everything_from(client: socket.socket) -> bytes:
    """The bytes that the server sends until it closes."""
    parts = []
    with suppress(ConnectionResetError):
        while part := client.recv(65536):
            parts.append(part)
    return b"".join(parts)


def drip(client: socket.socket, byte: bytes = b"a") -> bytes:
    """Send a byte at a time until the server closes or a time limit; returns its answer."""
    client.settimeout(DRIP_SECONDS)
    answer = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            part = client.recv(65536)
        except TimeoutError:
            client.send(byte)
            continue
        except ConnectionResetError:
            return answer
        if not part:
            return answer
        answer += part
    raise AssertionError("The server lets this client drip for as long as it likes.")


def memory_mb(web: Web) -> int:
    """The most that the web server has used."""
    status = Path(f"/proc/{web.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) // 1024  # type: ignore[index]


def test_a_large_file_is_sent_as_slowly_as_its_client_reads(installed, tmp_path):
    """A backup may be larger than the memory, and take longer than any other answer."""
    file = tmp_path / "backup"
    file.write_bytes(b"begin")
    os.truncate(file, 300_000_000)
    with web_process(installed, {"answer_seconds": 1.0}, file) as web:
        before = memory_mb(web)
        with web.connect(b"GET /file HTTP/1.1\r\nHost: wakeful.test\r\n\r\n") as client:
            answer = client.makefile("rb")
            while (line := answer.readline()) != b"\r\n":
                assert not line.startswith(b"Content-Length") or b" 300000000" in line
            for _pause in range(5):
                time.sleep(0.4)
                assert len(answer.read(10_000_000)) == 10_000_000
            assert web.get("/healthz").status_code == 200
            assert len(answer.read(250_000_000)) == 250_000_000
        assert memory_mb(web) - before < 20


# Nobody holds a thread -------------------------------------------------------------------------


NEVER_FINISHED = {
    "nothing": b"",
    "headers": HEADERS,
    "a login's body": post("/login", 500) + b"email=a",
    "an API body with a wrong key": post("/api/v1/monitors", 500, "Authorization: Bearer no")
    + b"a",
    "a chunk": CHUNKED_HEAD + b"5\r\nab",
    "a second request": b"GET /healthz HTTP/1.1\r\nHost: wakeful.test\r\n\r\n" + HEADERS,
}


@pytest.mark.parametrize("sent", NEVER_FINISHED.values(), ids=NEVER_FINISHED)
def test_many_clients_that_never_finish_block_nobody(patient, key, sent):
    with crowd(patient, sent):
        answers_everybody(patient, key)


def test_many_idle_connections_block_nobody(patient, key):
    with crowd(patient, b"GET /healthz HTTP/1.1\r\nHost: wakeful.test\r\n\r\n") as clients:
        for client in clients:
            assert client.recv(65536).startswith(b"HTTP/1.1 200")
        answers_everybody(patient, key)


def test_many_clients_that_do_not_read_answers_block_nobody(patient, key):
    # Many large files asked for on each connection, more than the system keeps for a reader.
    with crowd(patient, CSS * 60, buffer=4096):
        answers_everybody(patient, key)
        files = [path.resolve().suffix for path in Path(f"/proc/{patient.pid}/fd").iterdir()]
        assert files.count(".css") < CROWD, "one would be open for each of them"


@pytest.mark.parametrize(
    ("sent", "number"),
    [(HEADERS, CROWD), (post("/login", 200_000) + b"a" * 150_000, 10)],
    ids=["all connections", "all memory"],
)
def test_a_new_connection_replaces_the_one_that_has_waited_longest(small, key, sent, number):
    with crowd(small, sent, number) as clients:
        answers_everybody(small, key)
        assert everything_from(clients[0]) == b""


# Every part of a request has a time limit as a whole -------------------------------------------


@pytest.mark.parametrize(
    ("begin", "dripped"),
    [(HEADERS, b"a"), (post("/login", 100_000), b"a"), (CHUNKED_HEAD, b"1\r\na\r\n")],
    ids=["headers", "body", "chunks"],
)
def test_a_slow_part_of_a_request_gets_a_408(strict, begin, dripped):
    with strict.connect(begin) as client:
        assert drip(client, dripped).startswith(b"HTTP/1.1 408 ")


def test_a_slow_api_body_gets_a_408_in_json(strict, key):
    with strict.connect(post("/api/v1/monitors", 100_000, bearer(key))) as client:
        head, _, body = drip(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert json.loads(body) == {"message": "The request did not arrive in time.", "status": 408}


def test_a_silent_connection_is_closed_without_an_answer(strict):
    with strict.connect() as client:
        assert everything_from(client) == b""


def test_a_client_that_does_not_read_the_answer_is_disconnected(strict):
    with strict.connect(CSS * 60, buffer=4096) as client:
        assert client.recv(16, socket.MSG_PEEK) == b"HTTP/1.1 200 OK\r"
        gone(client)


def gone(client: socket.socket) -> None:
    """Wait until the server has closed, without reading what it had sent."""
    client.settimeout(DRIP_SECONDS)
    for _ in range(400):
        try:
            client.send(b"\r")
        except OSError:
            return
        time.sleep(DRIP_SECONDS)
    raise AssertionError("The server waits for this reader for as long as it likes.")


def test_a_client_that_does_not_close_after_the_last_answer_is_disconnected(strict):
    with strict.connect(NEXT) as client:
        assert everything_from(client).endswith(b'{"status":"ok"}')
        gone(client)


# Requests that are well are served as ever -----------------------------------------------------


def test_section_1_no_key_is_answered_without_the_body(patient):
    for header in ((), ("Authorization: Bearer wrong",)):
        with patient.connect(post("/api/v1/monitors", 500, *header)) as client:
            assert everything_from(client).startswith(b"HTTP/1.1 401 ")


def test_a_client_gets_100_continue_only_with_a_key(patient, key):
    expects = "Expect: 100-continue"
    with patient.connect(post("/api/v1/monitors", len(MONITOR), expects)) as client:
        assert everything_from(client).startswith(b"HTTP/1.1 401 ")
    with patient.connect(post("/api/v1/monitors", len(MONITOR), expects, bearer(key))) as client:
        assert client.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(MONITOR)
        assert client.recv(65536).startswith(b"HTTP/1.1 201 ")


def test_a_client_that_expects_100_continue_gets_413_for_a_large_body(patient):
    with patient.connect(post("/login", MAX_FORM_BYTES + 1, "Expect: 100-continue")) as client:
        assert everything_from(client).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("length", "sent", "headers"),
    [
        (MAX_FORM_BYTES + 1, MAX_FORM_BYTES + 1, ["Expect: 100-continue"]),
        (2 * MAX_FORM_BYTES + 1, 2 * MAX_FORM_BYTES + 1, ["Expect: 100-continue"]),
        (100, 5, []),  # it breaks off
    ],
)
def test_section_18_a_ping_counts_and_keeps_the_beginning_of_its_body(
    patient, key, length, sent, headers
):
    with job_of(patient, key) as (path, pings):
        with patient.connect(post(path, length, *headers)) as client:
            if headers:
                assert client.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
            client.sendall(b"a" * sent)
            client.shutdown(socket.SHUT_WR)
            assert everything_from(client).startswith(b"HTTP/1.1 200 ")
        assert pings() == [("success", "a" * min(sent, 10_000))]


def test_section_18_a_ping_counts_although_its_body_does_not_arrive_in_time(strict, key):
    with job_of(strict, key) as (path, pings):
        with strict.connect(post(path, 100_000)) as client:
            assert drip(client).startswith(b"HTTP/1.1 200 ")
        [(kind, body)] = pings()
        assert (kind, body.strip("a")) == ("success", "")


@contextmanager
def job_of(web: Web, key: str) -> Iterator[tuple[str, Callable[[], list[tuple[str, str]]]]]:
    """A new heartbeat: the path of its pings, and what gives the kind and body of each."""
    url = f"http://127.0.0.1:{web.port}/api/v1/monitors"
    with requests.Session() as session:
        session.headers.update(
            {"Authorization": bearer(key).partition(": ")[2], "Host": "wakeful.test"}
        )
        sent = {"name": "Backup", "url": "heartbeat:"}
        job = session.post(url, data=sent, timeout=60).json()["data"]

        def pings() -> list[tuple[str, str]]:
            url_of = f"{url}/{job['id']}/pings"
            ids = [ping["id"] for ping in session.get(url_of, timeout=60).json()["data"]]
            stored = [session.get(f"{url_of}/{id}", timeout=60).json()["data"] for id in ids]
            return [(ping["kind"], ping["body"]) for ping in stored]

        yield f"/ping/{job['ping_url'].rpartition('/')[2]}", pings


def test_a_body_that_is_a_little_too_large_is_read_to_its_end_before_413(small):
    """Proxies give up an answer that comes before; then the next request on it is not answered."""
    body = b"a" * (2 * MAX_FORM_BYTES)
    with small.connect(post("/login", len(body)) + body + NEXT) as client:
        assert statuses(client) == [b"413", b"200"]


def test_a_body_that_is_a_little_too_large_and_slow_is_refused_without_it(strict):
    with strict.connect(post("/login", MAX_FORM_BYTES + 1) + b"a") as client:
        assert everything_from(client).startswith(b"HTTP/1.1 413 ")


def test_a_request_that_arrives_a_byte_at_a_time_is_served(patient, key):
    body = b"".join(b"%x\r\n%c\r\n" % (1, byte) for byte in MONITOR) + b"0\r\nX-Trailer: a\r\n\r\n"
    head = f"POST /api/v1/monitors HTTP/1.1\r\nHost: wakeful.test\r\n{bearer(key)}\r\n".encode()
    request = head + FORM + b"Transfer-Encoding: chunked\r\n\r\n" + body
    with patient.connect() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request:
            client.send(bytes([byte]))
        client.shutdown(socket.SHUT_WR)
        answer = everything_from(client)
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert b'"name":"Dripped"' in answer


def test_requests_sent_without_waiting_are_answered_in_their_order(patient, key):
    chunked = b"Transfer-Encoding: chunked\r\n" + FORM + bearer(key).encode() + b"\r\n\r\n"
    requests = [
        b"GET /healthz HTTP/1.1\r\nHost: wakeful.test\r\n\r\n",
        post("/api/v1/monitors", len(MONITOR), bearer(key)) + MONITOR,
        b"POST /api/v1/monitors HTTP/1.1\r\nHost: wakeful.test\r\n"
        + chunked
        + (b"%x\r\n%b\r\n0\r\n\r\n" % (len(MONITOR), MONITOR)),
        b"GET /no/such/page HTTP/1.1\r\nHost: wakeful.test\r\nConnection: close\r\n\r\n",
    ]
    with patient.connect(b"".join(requests)) as client:
        answers = everything_from(client)
    statuses = re.findall(rb"HTTP/1\.1 (\d+) ", answers)
    assert statuses == [b"200", b"201", b"201", b"404"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\nHost: wakeful.test\n\n", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\n" + b"X-Large: a\r\n" * 20_000, b"431"),
        (CHUNKED_HEAD + b"zz\r\n\r\n", b"400"),
    ],
    ids=["bare line feeds", "no request", "a long line", "endless headers", "no chunk"],
)
def test_bytes_that_are_not_a_request_are_refused_at_once(patient, sent, status):
    with patient.connect() as client:
        with suppress(ConnectionError):
            client.sendall(sent)
        assert everything_from(client).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(
    ("sent", "status", "message"),
    [
        (b"GET /api/v1/monitors?search=" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 414, "too long"),
        (b"GET /api/v1/me HTTP/1.1\r\nNo colon\r\n\r\n", 400, "not valid HTTP"),
        (b"GET /%61pi/v1/me HTTP/1.1\r\nNo colon\r\n\r\n", 400, "not valid HTTP"),
        (b"GET /api/v1/me HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n", 501, "transfer coding"),
    ],
    ids=["a long line", "no header", "an encoded path", "an unknown coding"],
)
def test_what_is_refused_before_the_api_sees_it_is_json_too(patient, sent, status, message):
    with patient.connect() as client:
        with suppress(ConnectionError):
            client.sendall(sent)
        head, _, body = everything_from(client).partition(b"\r\n\r\n")
    line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
    assert head.startswith(line.encode())
    assert b"Content-Type: application/json" in head
    answer = json.loads(body)
    assert (answer["status"], message in answer["message"]) == (status, True)


def test_a_body_that_breaks_off_is_not_taken_for_a_whole_one(patient, key):
    with patient.connect(post("/api/v1/monitors", 500, bearer(key)) + MONITOR) as client:
        client.shutdown(socket.SHUT_WR)
        answer = everything_from(client)
    assert answer.startswith(b"HTTP/1.1 422 ")
    assert b"incomplete" in answer


# Bodies in chunks ------------------------------------------------------------------------------

CHUNKED = (
    b"POST /login HTTP/1.1\r\nHost: wakeful.test\r\n" + FORM + b"Transfer-Encoding: chunked\r\n\r\n"
)
NEXT = b"GET /healthz HTTP/1.1\r\nHost: wakeful.test\r\nConnection: close\r\n\r\n"


def test_bodies_of_tiny_chunks_block_nobody(patient, key):
    with crowd(patient, CHUNKED, 10) as clients:
        for client in clients:
            with suppress(ConnectionError):
                client.sendall(b"1\r\na\r\n" * 30_000)
        answers_everybody(patient, key)
        assert everything_from(clients[0]).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("first", "endless"),
    [(b"", b"1\r\na\r\n"), (b"", b"1;a=" + b"b" * 200 + b"\r\na\r\n"), (b"0\r\n", b"A: b\r\n")],
    ids=["sizes", "extensions", "trailers"],
)
def test_frames_without_end_are_refused(patient, key, first, endless):
    head = chunked_monitor(key)
    for start in (CHUNKED, head):
        with patient.connect(start + first) as client:
            with suppress(ConnectionError):
                client.sendall(endless * (200_000 // len(endless)))
            assert everything_from(client).startswith(b"HTTP/1.1 413 ")


def chunked_monitor(key: str) -> bytes:
    to_api = CHUNKED.replace(b"/login", b"/api/v1/monitors")
    return to_api.replace(FORM, FORM + bearer(key).encode() + b"\r\n")


def statuses(client: socket.socket) -> list[bytes]:
    return re.findall(rb"HTTP/1\.1 (\d+) ", everything_from(client))


@pytest.mark.parametrize(
    "framed",
    [
        b"%08X\r\n%b\r\n000\r\n\r\n",
        b'%x ; a="b;c"; d\r\n%b\r\n0;last\r\n\r\n',
        b"%x\r\n%b\r\n0\r\nX-Trailer: a\r\nContent-Length: 5\r\n\r\n",
    ],
    ids=["leading zeros", "extensions", "trailers"],
)
def test_a_body_in_chunks_is_read_and_the_next_request_begins_behind_it(patient, key, framed):
    head = chunked_monitor(key)
    with patient.connect(head + framed % (len(MONITOR), MONITOR) + NEXT) as client:
        assert statuses(client) == [b"201", b"200"]


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\nab=cdXX0\r\n\r\n", b"5 \r\nab=cd\r\n0\r\n\r\n", b"+5\r\nab=cd\r\n0\r\n\r\n",
        b"0x5\r\nab=cd\r\n0\r\n\r\n", b"-1\r\nab=cd\r\n0\r\n\r\n", b"\r\nab=cd\r\n0\r\n\r\n",
        b"5\nab=cd\r\n0\r\n\r\n", b"5;a\nb\r\nab=cd\r\n0\r\n\r\n", b"5;a\rb\r\nab=cd\r\n0\r\n\r\n",
        b"5\r\nab=cd\r\n0\r\n folded\r\n\r\n", b"5\r\nab=cd\r\n0\r\nA: b\nC: d\r\n\r\n",
        b"5\r\nab=cd\n0\r\n\r\n",
    ],
)  # fmt: skip
def test_after_a_malformed_body_no_further_request_is_served(patient, body):
    with patient.connect(CHUNKED + body + NEXT) as client:
        assert statuses(client) == [b"400"]


@pytest.mark.parametrize(
    ("coding", "status"),
    [
        (b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"400"),
        (b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"400"),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"400"),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", b"400"),
        (b"Transfer-Encoding: identity, chunked", b"501"),
        (b"Transfer-Encoding: gzip, chunked", b"501"),
        (b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", b"501"),
        (b"Transfer-Encoding: xchunked", b"501"),
        (b"Transfer-Encoding: gzip", b"400"),
    ],
)
def test_a_body_whose_end_a_proxy_may_see_elsewhere_is_refused(patient, coding, status):
    head = CHUNKED.replace(b"Transfer-Encoding: chunked", coding)
    with patient.connect(head + b"0\r\n\r\n" + NEXT) as client:
        assert statuses(client) == [status]


@pytest.mark.parametrize("body", [b"5\r\nab", b"5\r\nab=cd\r\n", b"5\r\nab=cd\r\n0\r\nA: b\r\n"])
def test_chunks_that_break_off_are_not_taken_for_a_whole_body(patient, key, body):
    head = chunked_monitor(key)
    with patient.connect(head + body) as client:
        client.shutdown(socket.SHUT_WR)
        answer = everything_from(client)
    assert answer.startswith(b"HTTP/1.1 422 ")
    assert b"incomplete" in answer


def test_a_connection_that_was_reset_is_seen_and_one_that_still_reads_is_kept():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        accepted, address = listening.accept()
    conn = ClientConnection(accepted, address, None)
    with closing(accepted):
        client.shutdown(socket.SHUT_WR)
        assert conn.receive() == 0
        assert not conn.is_broken()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        assert conn.is_broken()


# Slow work behind a request --------------------------------------------------------------------


@contextmanager
def silent() -> Iterator[tuple[str, Callable[[], None]]]:
    """The URL of a server that accepts connections and says nothing until it is released, which
    closes them; and the release."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        released = threading.Event()

        def release() -> None:
            if not released.is_set():
                released.set()
                listening.shutdown(socket.SHUT_RDWR)
                accepting.join()

        def accept() -> None:
            with ExitStack() as stack, suppress(OSError):
                while not released.is_set():
                    stack.enter_context(listening.accept()[0])

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", release
        finally:
            release()


def test_slow_checks_on_request_leave_threads_for_others(patient, key):
    headers = {"Authorization": f"Bearer {key}"}
    with silent() as (url, release), ThreadPoolExecutor(20) as pool:
        fields = {"url": url, "timeout": "60"}
        asked = [
            pool.submit(patient.post, "/api/v1/checks", fields, headers=headers) for _ in range(20)
        ]
        refused = first_done(asked, 20 - LONG_WAITS.size)
        answers_everybody(patient, key)
        release()
        checked = [client.result() for client in asked if client not in refused]
    for answer in (client.result() for client in refused):
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) > 0
        assert "Try again" in answer.json()["message"]
    assert [answer.status_code for answer in checked] == [200] * LONG_WAITS.size
    assert {answer.json()["data"]["verdict"] for answer in checked} == {"down"}


def first_done(futures, number):
    """The first ``number`` that are done; the others are still waiting."""
    deadline = time.monotonic() + 60
    while len(done := [future for future in futures if future.done()]) < number:
        assert time.monotonic() < deadline, f"{len(done)} of {number} are done"
        time.sleep(0.02)
    assert len(done) == number
    return done


@pytest.mark.parametrize("headers", [{"X-Fragment": "check"}, {}], ids=["in place", "of one page"])
def test_slow_tests_on_the_dashboard_leave_threads_for_others(patient, key, headers):
    """Tests of one page are one form sent many times: each waits for the first."""
    person = patient.log_in("admin@wakeful.test", PASSWORD)
    page = person.get(f"{patient.base}/monitors/new", timeout=60).text
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)[1]
    with silent() as (url, release), ThreadPoolExecutor(20) as pool:
        typed = {"csrf_token": token, "name": "Slow", "url": url, "timeout": "60", "check": "1"}
        more = {"headers": headers, "cookies": person.cookies.get_dict()}
        asked = [pool.submit(patient.post, "/monitors/new", typed, **more) for _ in range(20)]
        waiting = LONG_WAITS.size if headers else 1 + REPEATED_FORMS.size
        refused = first_done(asked, 20 - waiting)
        answers_everybody(patient, key)
        release()
    for answer in (client.result() for client in refused):
        if headers:
            assert "Too many manual checks are running" in answer.text
        else:
            assert answer.status_code == 302


def test_a_silent_server_behind_the_dashboard_leaves_threads_for_others(installed, key):
    with silent() as (url, release):
        remote = {"STORE": "remote", "REMOTE_URL": url, "REMOTE_KEY": "key"}
        with web_process(installed, **remote) as web, ThreadPoolExecutor(20) as pool:
            person = web.log_in("admin@wakeful.test", PASSWORD)
            cookies = person.cookies.get_dict()
            futures = [pool.submit(web.get, "/", cookies=cookies) for _ in range(20)]
            refused = first_done(futures, 20 - REMOTE_ANSWERS.size)
            assert web.get("/healthz").status_code == 200
            [fault] = web.get("/readyz").json()["faults"]
            assert url.partition("://")[2] in fault
            assert web.get("/login").status_code == 200
            release()
    assert {future.result().status_code for future in futures} == {503}
    assert all("has too many requests waiting" in client.result().text for client in refused)


def test_tests_of_channels_do_not_wait_for_answers_when_many_others_wait():
    unanswered = SimpleNamespace(attempts=(), status=DeliveryStatus.PENDING)
    looked_at = []

    def read(id):
        looked_at.append(id)
        return unanswered

    with ExitStack() as stack:
        while stack.enter_context(LONG_WAITS.taken()):
            pass
        assert until_attempted(read, [7], 60.0, 0.01) == [unanswered]
    assert looked_at == [7]


def test_health_answers_while_every_thread_waits(installed, patient, key):
    with locked(installed) as lock:  # other writers now wait
        sent = post("/api/v1/monitors", len(MONITOR), bearer(key)) + MONITOR
        with crowd(patient, sent) as clients:
            await_standstill(patient)
            assert patient.get("/healthz").status_code == 200
            ready = patient.get("/readyz")
            lock.rollback()
            assert all(client.recv(100) for client in clients)
    # The second where those who wait have all connections of the pool.
    assert ready.json()["faults"] in ([faults.BUSY], [faults.NO_ANSWER])
    assert ready.status_code == 503


def test_pages_are_answered_while_more_pings_wait_than_the_server_has_threads(
    installed, patient, key
):
    with job_of(patient, key) as (path, _pings), locked(installed) as lock:
        sent = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        with crowd(patient, sent, THREADS + 1) as pings:
            assert requests.get(f"{patient.base}/login", timeout=5).status_code == 200
            lock.rollback()
            assert all(ping.recv(100).startswith(b"HTTP/1.1 200 ") for ping in pings)


@contextmanager
def locked(installed: Installation) -> Iterator[sqlite3.Connection]:
    """The lock of a writer, until it is rolled back."""
    with closing(sqlite3.connect(installed.folder / "wakeful.db")) as lock:
        lock.execute("BEGIN IMMEDIATE")
        yield lock


def await_standstill(web: Web) -> None:
    """Wait until an ordinary page is not answered."""
    for _ in range(100):
        try:
            requests.get(f"{web.base}/login", timeout=1)
        except requests.Timeout:
            return
    raise AssertionError("Some thread is always free.")
