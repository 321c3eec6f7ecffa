"""``make bench-status``: how many requests a second a status page takes, and what a change costs.

    python -m bench.status                    make the installation (minutes, once), then measure
    python -m bench.status --monitors 2000    a smaller one

The server is the one that ``wakeful serve`` starts. Clients keep a connection each and ask again as
soon as they have an answer; beside them, in the same run, an empty Flask view on the same server.
The ratio is of requests a second. What a change costs is the reading and making of a page of 100
monitors, in this process.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from flask import Flask
from sqlalchemy import delete, select

from app import create_app
from app.db import db, writing
from app.db.tables import MonitorRow, StatusPageMonitorRow, StatusPageRow
from bench import installation
from bench.web import WEB, Server, serving

CLIENTS, SECONDS, TIMES = 8, 5.0, 30
GOAL, GOAL_UNCHANGED, GOAL_MS, GOAL_BYTES = 0.6, 0.8, 40.0, 40_000


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--monitors", type=int, default=10_000, help="default 10000")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each kind; default 5")
    parser.add_argument("--folder", type=Path, help="where the installation is kept")
    options = parser.parse_args()
    folder = options.folder or installation.default_folder(options.monitors)
    installation.prepare(folder, options.monitors)
    app = create_app(installation.settings(folder))
    large = make_pages(app)
    change(app, large)
    size = len(app.test_client().get("/status/small").data)
    print(f"{'a page of 20 monitors':32}{size:10,} bytes  goal {GOAL_BYTES:,}")
    with (
        serving(["-m", "bench.web", "--empty"], {}) as reference,
        serving(WEB, installation.environment(folder)) as server,
    ):
        etag = _first(server, "/status/small")["etag"]
        empty = rate(reference, "/", {}, options.seconds)
        print(f"{'an empty view':32}{empty:10.0f} a second")
        for name, headers, goal in (
            ("the page, as it is", {}, GOAL),
            ("the page, compressed", {"Accept-Encoding": "gzip"}, GOAL),
            ("the page, If-None-Match", {"If-None-Match": etag}, GOAL_UNCHANGED),
        ):
            # In turns: a machine that others use is not the same a moment later.
            empty = rate(reference, "/", {}, options.seconds)
            found = rate(server, "/status/small", headers, options.seconds)
            print(f"{name:32}{found:10.0f} a second  ratio {found / empty:.2f}  goal {goal}")
    return 0


def make_pages(app: Flask) -> int:
    """A page of 20 monitors and one of 100, spread over all; the id of the second."""
    now = datetime.now(UTC)
    with app.app_context(), writing() as session:
        session.execute(delete(StatusPageRow))
        ids = session.scalars(select(MonitorRow.id).order_by(MonitorRow.id)).all()
        for slug, count in (("small", 20), ("large", 100)):
            page = StatusPageRow(name=slug, slug=slug, created_at=now, updated_at=now)
            session.add(page)
            session.flush()
            for place, id in enumerate(ids[:: len(ids) // count][:count]):
                session.add(
                    StatusPageMonitorRow(status_page_id=page.id, monitor_id=id, position=place)
                )
        return page.id


def change(app: Flask, id: int) -> None:
    """What it takes to read and make a page after a change, in processor time: others may use the
    machine.
    """
    public = app.extensions["wakeful.public"]
    pages = app.extensions["wakeful.pages"]
    took, read = [], []
    now = 0.0
    pages.clock = lambda: now
    client = app.test_client()
    client.get("/status/large")
    for number in range(TIMES):
        with app.app_context(), writing() as session:
            session.get(StatusPageRow, id).name = f"large {number}"
        now += 3.0
        began = time.process_time()
        assert client.get("/status/large").status_code == 200  # noqa: S101
        took.append((time.process_time() - began) * 1000)
        with app.app_context():
            began = time.process_time()
            public.page(id)
            read.append((time.process_time() - began) * 1000)
            db.session.remove()
    print(
        f"{'100 monitors, after a change':32}{statistics.median(took):10.1f} ms  goal {GOAL_MS:g}"
        f"  (of it reading {statistics.median(read):.1f} ms)"
    )


# --- Clients --------------------------------------------------------------------------------------


def request_of(path: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _answer(client: socket.socket) -> tuple[bytes, int]:
    """The head of an answer and its size; all of it is read."""
    data = client.recv(65536)
    while b"\r\n\r\n" not in data:
        more = client.recv(65536)
        if not more:
            raise ConnectionError
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    got = len(body)
    while got < length:
        got += len(client.recv(65536))
    return head, got


def _first(server: Server, path: str) -> dict[str, str]:
    with socket.create_connection((server.host, server.port)) as client:
        client.sendall(request_of(path, {}))
        head, _ = _answer(client)
    lines = head.decode().split("\r\n")
    if " 200 " not in lines[0]:
        raise SystemExit(lines[0])
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}


def rate(server: Server, path: str, headers: Mapping[str, str], seconds: float) -> float:
    return rate_of(server, [request_of(path, headers)] * CLIENTS, seconds)


def rate_of(server: Server, requests: Sequence[bytes], seconds: float) -> float:
    """Requests a second, of all clients; each client is a process, with a request of its own."""
    readers = []
    until = time.monotonic() + seconds
    for request in requests:
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.write(writer, str(_ask(server, request, until)).encode())
            os._exit(0)
        os.close(writer)
        readers.append(reader)
    count = 0
    for reader in readers:
        count += int(os.read(reader, 32))
        os.close(reader)
        os.wait()
    return count / seconds


def _ask(server: Server, request: bytes, until: float) -> int:
    count = 0
    client = socket.create_connection((server.host, server.port))
    while time.monotonic() < until:
        client.sendall(request)
        head, _ = _answer(client)
        count += 1
        if b"connection: close" in head.lower():
            client.close()
            client = socket.create_connection((server.host, server.port))
    return count


if __name__ == "__main__":
    sys.exit(main())
