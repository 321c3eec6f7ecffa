"""``make bench-pings``: how many pings a second are taken, and whether a burst of them is kept.

    python -m bench.pings

Clients keep a connection each and ping again as soon as they have an answer: pings that come while
others are stored are stored together, so few clients mean many transactions. Beside them, in the
same run, /healthz of the same server. The ratio is of requests a second; what one takes of the
server's processor depends less on what else the machine does. Then a thousand jobs ping in the same
second, as cron does at midnight, each over a connection of its own.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from flask import Flask

from app import create_app
from app.db import db
from app.db.tables import PingRow
from bench import installation
from bench.status import rate_of, request_of
from bench.web import WEB, Server, serving
from tests.factories import make_heartbeat

MONITORS, JOBS, SECONDS, CLIENTS = 100, 1_000, 5.0, (8, 32, 64)
GOAL = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each kind; default 5")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        installation.prepare(folder, MONITORS, days=1)
        app = create_app(installation.settings(folder))
        tokens = [str(uuid.uuid4()) for _ in range(JOBS)]
        for token in tokens:
            make_heartbeat(app, token)
        with serving(WEB, installation.environment(folder)) as server:
            good = True
            for clients in CLIENTS:
                paths = [f"/ping/{token}" for token in tokens[:clients]]
                health, health_ms = measured(server, ["/healthz"] * clients, options.seconds)
                pings, ping_ms = measured(server, paths, options.seconds)
                good &= clients < max(CLIENTS) or pings / health >= GOAL
                print(
                    f"{clients:2} clients: /healthz {health:6,.0f} a second ({health_ms:.2f} ms),"
                    f" pings {pings:6,.0f} ({ping_ms:.2f} ms)  ratio {pings / health:.2f}"
                )
            print(f"goal with {max(CLIENTS)} clients: {GOAL}")
            before = stored(app)
            began = time.monotonic()
            answers = burst(server, tokens)
            took, kept = time.monotonic() - began, stored(app) - before
            good &= answers == kept == JOBS
            print(f"{JOBS:,} at once: {answers:,} answered in {took:.1f} s, {kept:,} kept")
    return 0 if good else 1


def measured(server: Server, paths: Sequence[str], seconds: float) -> tuple[float, float]:
    """How many a second, a client for each path, and the milliseconds of processor time of each."""
    before = used_ms(server.pid)
    found = rate_of(server, [request_of(path, {}) for path in paths], seconds)
    return found, (used_ms(server.pid) - before) / max(1.0, found * seconds)


def used_ms(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def stored(app: Flask) -> int:
    with app.app_context():
        return db.session.query(PingRow).count()


def burst(server: Server, tokens: Sequence[str]) -> int:
    """How many are answered with OK."""
    with ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection((server.host, server.port), 60))
            for _token in tokens
        ]
        for client, token in zip(clients, tokens, strict=True):
            client.sendall(f"GET /ping/{token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return sum(_answer(client).endswith(b"\r\n\r\nOK") for client in clients)


def _answer(client: socket.socket) -> bytes:
    answer = b""
    while not answer.endswith(b"\r\n\r\nOK") and (part := client.recv(65536)):
        answer += part
    return answer


if __name__ == "__main__":
    sys.exit(main())
