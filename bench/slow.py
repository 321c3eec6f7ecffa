"""``make bench-slow``: what normal requests take while slow clients hold connections.

    python -m bench.slow                      500 slow connections of each kind
    python -m bench.slow --connections 1000 --requests 500
    python -m bench.slow --plain              also gunicorn's own gthread, which stands still

Each slow client sends a byte a second of a header, of a log-in or of an API body without a key, and
comes back at once whenever it is closed. Normal requests (/healthz and the log-in page, each on a
connection of its own) come one after another beside them. The first line of each server is the
same without slow clients. Clients and server share the machine.
"""

from __future__ import annotations

import argparse
import http.client
import os
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app import create_core
from app.commands.serve import listen
from app.commands.web.webserver import WebServer
from app.db import db, schema
from bench import installation
from bench.web import Server

PATHS = ("/healthz", "/login")
GIVEN_UP_SECONDS = 15
_HOST = "Host: wakeful.test\r\n"
_FORM = f"{_HOST}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 10000\r\n\r\n"
KINDS = {
    "headers": f"GET /login HTTP/1.1\r\n{_HOST}X-Slow: ",
    "a log-in's body": f"POST /login HTTP/1.1\r\n{_FORM}",
    "an API body without a key": f"POST /api/v1/checks HTTP/1.1\r\n{_FORM}",
    "nothing": "",
}


class _Plain(WebServer):
    """gunicorn's own worker."""

    def load_config(self) -> None:
        super().load_config()
        self.cfg.set("worker_class", "gthread")


class Slow:
    """Slow clients, on one thread."""

    def __init__(self, server: Server, number: int, start: bytes) -> None:
        self.server, self.start = server, start
        self.opened = 0
        self._poller = selectors.DefaultSelector()
        self._clients: dict[socket.socket, None] = {}
        self._stopped = threading.Event()
        for _ in range(number):
            self._open()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _open(self) -> None:
        client = socket.create_connection((self.server.host, self.server.port))
        client.setblocking(False)
        with suppress(OSError):
            client.send(self.start)
        self._clients[client] = None
        self._poller.register(client, selectors.EVENT_READ)
        self.opened += 1

    def _run(self) -> None:
        due = time.monotonic() + 1
        while not self._stopped.is_set():
            for key, _ in self._poller.select(max(0.0, due - time.monotonic())):
                self._hear(key.fileobj)
            if time.monotonic() >= due:
                due += 1
                for client in list(self._clients) if self.start else []:
                    with suppress(OSError):  # closed: it is heard of next
                        client.send(b"a")

    def _hear(self, client: socket.socket) -> None:
        try:
            gone = not client.recv(65536)
        except OSError:
            gone = True
        if gone:
            self._poller.unregister(client)
            del self._clients[client]
            client.close()
            self._open()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._poller.close()
        for client in self._clients:
            client.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--connections", type=int, default=500, help="slow ones; default 500")
    parser.add_argument("--requests", type=int, default=300, help="normal ones; default 300")
    parser.add_argument("--plain", action="store_true", help="gunicorn's own gthread as well")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        kind, fd = options.serve
        folder = Path(os.environ["WAKEFUL_INSTANCE"])
        {"own": WebServer, "plain": _Plain}[kind](installation.settings(folder), int(fd)).run()
        return 0
    print(f"{options.connections} slow connections, {options.requests} normal requests, ms")
    for kind in ("own", "plain") if options.plain else ("own",):
        measure_server(kind, options.connections, options.requests)
    return 0


def measure_server(kind: str, connections: int, requests: int) -> None:
    with serving(kind) as server:
        print(f"{kind:28}{'median':>8}{'p99':>8}{'max':>8}{'failed':>8}{'MiB':>6}{'opened':>8}")
        show("undisturbed", measure(server, requests), memory(server), 0)
        for name, start in KINDS.items():
            slow = Slow(server, connections, start.encode())
            try:
                show(name, measure(server, requests), memory(server), slow.opened)
            finally:
                slow.stop()


@contextmanager
def serving(kind: str) -> Iterator[Server]:
    """A web server over an empty installation of its own."""
    with tempfile.TemporaryDirectory() as folder, listen("127.0.0.1:0") as listener:
        environ = os.environ | {"WAKEFUL_INSTANCE": folder}
        core = create_core(installation.settings(Path(folder)))
        with core.app_context():
            schema.upgrade()
            db.engine.dispose()
        words = ["-m", "bench.slow", "--serve", kind, str(listener.fileno())]
        process = subprocess.Popen(
            [sys.executable, *words], env=environ, pass_fds=[listener.fileno()]
        )
        host, port = listener.getsockname()[:2]
        server = Server(host, port, process.pid)
        try:
            for path in PATHS * 5:  # once it answers, everything is loaded
                ask(server, path)
            yield server
        finally:
            process.terminate()
            process.wait()


def measure(server: Server, requests: int) -> list[float]:
    """The ms that each took; infinite where there was no answer."""
    took = []
    for number in range(requests):
        began = time.perf_counter()
        answered = ask(server, PATHS[number % len(PATHS)])
        took.append((time.perf_counter() - began) * 1000 if answered else float("inf"))
        if took.count(float("inf")) == 3:  # a server that stands still: it takes long enough
            break
        time.sleep(0.05)  # so that slow clients reach their time limits meanwhile
    return took


def ask(server: Server, path: str) -> bool:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=GIVEN_UP_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().read() != b""
    except OSError:
        return False
    finally:
        connection.close()


def memory(server: Server) -> float:
    """What the process that answers has in memory, in MiB."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    pages = int(Path(f"/proc/{children[0]}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def show(name: str, took: list[float], mib: float, opened: int) -> None:
    ordered = sorted(took)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    failed = ordered.count(float("inf"))
    print(
        f"  {name:26}{statistics.median(ordered):8.1f}{p99:8.1f}{ordered[-1]:8.1f}"
        f"{failed:8}{mib:6.0f}{opened:8}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
