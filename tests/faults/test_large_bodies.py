"""Bodies that are too large are refused before they take memory or disk."""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from flask import Flask

from app.db import db
from app.db.tables import PingRow
from app.records import MAX_BODY_BYTES, MAX_FORM_BYTES, MAX_PING_BODY_BYTES
from tests.factories import PASSWORD, make_heartbeat, make_person
from tests.support.web_process import Installation, Web, installation, web_process

MIB = 1024 * 1024
MANY_BYTES = 200 * MIB  # what a client tries to send
BOUND = 100 * MIB  # of memory, beside what the server takes anyway
FORM = "application/x-www-form-urlencoded"
BOUNDARY = b"--parts"
PART = BOUNDARY + b'\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'


@pytest.fixture(scope="module")
def installed(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return installation(tmp_path_factory.mktemp("instance"), sqlite_template)


@pytest.fixture(scope="module")
def spool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for temporary files of the server."""
    return tmp_path_factory.mktemp("spool")


@pytest.fixture(scope="module")
def storing(installed: Installation) -> Iterator[Flask]:
    with installed.app() as app:
        make_person(app)
        yield app


@pytest.fixture(scope="module")
def web(installed: Installation, storing: Flask, spool: Path) -> Iterator[Web]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(spool))
        with web_process(installed) as running:
            yield running


def head(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: wakeful.test", *lines, "", ""]).encode()


def send_many(client: socket.socket, piece: bytes, chunked: bool) -> None:
    """Send ``MANY_BYTES`` of ``piece``, or less when the server closes."""
    framed = b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece
    with suppress(ConnectionError):
        for _ in range(MANY_BYTES // len(piece)):
            client.sendall(framed)


def answer(client: socket.socket) -> bytes:
    """The answer of the server, as far as it arrived before the connection closed."""
    answer = b""
    with suppress(ConnectionError):
        while part := client.recv(65536):
            answer += part
    return answer


def written(pid: int) -> int:
    """The bytes that the process has handed to the disk."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


@pytest.mark.parametrize(
    ("path", "chunked", "multipart"),
    [
        ("/login", False, True), ("/login", True, True), ("/monitors/import", True, False),
        ("/no/such/page", False, False),
    ],
)  # fmt: skip
def test_many_large_bodies_are_refused_without_using_memory_or_disk(
    web, spool, path, chunked, multipart
):
    web.forget_peak()
    memory, disk = web.peak_memory(), written(web.pid)
    kind = f"multipart/form-data; boundary={BOUNDARY[2:].decode()}" if multipart else FORM
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {MANY_BYTES}"
    with web.connect(head(path, f"Content-Type: {kind}", length)) as client:
        if multipart:
            client.sendall(b"%x\r\n%b\r\n" % (len(PART), PART) if chunked else PART)
        send_many(client, b"a" * MIB, chunked)
    assert web.get("/healthz").status_code == 200
    assert web.peak_memory() - memory < BOUND
    assert written(web.pid) - disk < MIB
    assert os.listdir(spool) == []


@pytest.mark.parametrize(
    ("kind", "length", "status", "text"),
    [
        (FORM, MAX_FORM_BYTES + 1, b"413", b"That is too large"),
        ("multipart/form-data; boundary=parts", MAX_FORM_BYTES + 1, b"415", b"cannot be read"),
    ],
)
def test_the_refusal_is_a_page_that_says_why(web, kind, length, status, text):
    sent = head("/login", f"Content-Type: {kind}", f"Content-Length: {length}")
    with web.connect(sent) as client:
        page = answer(client)
    assert page.startswith(b"HTTP/1.1 " + status)
    assert b"</html>" in page
    assert text in page


def test_chunks_that_grow_too_large_are_refused_by_a_page_too(web):
    sent = head("/login", f"Content-Type: {FORM}", "Transfer-Encoding: chunked")
    with web.connect(sent) as client:
        body = b"a" * (MAX_FORM_BYTES + 1)
        client.sendall(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        page = answer(client)
    assert page.startswith(b"HTTP/1.1 413 ")
    assert b"That is too large" in page


def test_a_form_of_too_many_fields_is_refused(web):
    web.forget_peak()
    memory = web.peak_memory()
    refused = web.post(
        "/login", "&".join("a" * (MAX_FORM_BYTES // 2)), headers={"Content-Type": FORM}
    )
    assert refused.status_code == 413
    assert web.peak_memory() - memory < BOUND


def test_the_largest_form_is_read(web):
    person = web.log_in("admin@wakeful.test", PASSWORD)
    token = csrf_of(person, web)
    lines = "\n".join(f"https://host{n}.wakeful.test/{'ü' * 40}" for n in range(8_000))
    fields = {"csrf_token": token, "urls": f"{lines}\nthis is no URL", "interval": "60"}
    answered = person.post(f"{web.base}/monitors/import", fields, timeout=120)
    assert len(answered.request.body) > 2 * MIB
    assert len(answered.request.body) < MAX_FORM_BYTES
    assert answered.status_code == 200, answered.text[:2000]
    assert "7,501 more do not fit on this page" in answered.text


def test_the_largest_file_is_read_and_does_not_reach_the_disk(web, spool):
    person = web.log_in("admin@wakeful.test", PASSWORD)
    fields = {"csrf_token": csrf_of(person, web), "interval": "60"}
    lines = "\n".join(f"https://host{n}.wakeful.test/{'u' * 60}" for n in range(9_000))
    padded = lines + " " * (MAX_FORM_BYTES - 2048 - len(lines))
    disk = written(web.pid)
    answered = person.post(
        f"{web.base}/monitors/import", fields, files={"file": ("list.csv", padded)}, timeout=120
    )
    assert answered.status_code == 200, answered.text[:2000]
    assert "8,500 more do not fit on this page" in answered.text
    assert written(web.pid) - disk < MIB
    assert os.listdir(spool) == []


def csrf_of(person, web):
    page = person.get(f"{web.base}/monitors/import", timeout=60).text
    return re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)[1]


@pytest.mark.parametrize(
    ("size", "chunked", "stays", "ping"),
    [
        (9_000, False, True, "ping"), (9_000, True, True, "ping"),
        (MAX_BODY_BYTES, False, True, "ping"), (MAX_BODY_BYTES + 1, False, False, "ping"),
        (MAX_BODY_BYTES + 1, False, False, "%70ing"), (MAX_FORM_BYTES + 1, False, False, "ping"),
        (MAX_FORM_BYTES + 1, True, False, "ping"), (20 * MIB, False, False, "ping"),
        (20 * MIB, True, False, "ping"),
    ],
)  # fmt: skip
def test_of_any_body_the_first_bytes_are_kept_with_the_ping(
    web, storing, size, chunked, stays, ping
):
    body = b"first line\n" + b"x" * (size - 11)
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {size}"
    token = str(uuid.uuid4())
    make_heartbeat(storing, token)
    with storing.app_context():
        with web.connect(head(f"/{ping}/{token}", length)) as client:
            pieces = (body[at : at + 16_384] for at in range(0, size, 16_384))
            framed = (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
            # All of it: a proxy, and curl behind it, fails where the answer comes before the end.
            client.sendall(b"".join(framed) + b"0\r\n\r\n" if chunked else body)
            client.shutdown(socket.SHUT_WR)
            page = answer(client)
        assert page.startswith(b"HTTP/1.1 200 ")
        assert page.endswith(b"\r\n\r\nOK")
        assert (b"\r\nConnection: keep-alive\r\n" in page) == stays
        stored = db.session.query(PingRow).order_by(PingRow.id.desc()).first()
        assert stored.body == body[:MAX_PING_BODY_BYTES].decode()
