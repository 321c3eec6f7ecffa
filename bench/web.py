"""``make bench-web``: how long pages and answers take with 10,000 monitors and 90 days of history.

    python -m bench.web                       make the installation (minutes, once), then measure
    python -m bench.web --monitors 1000       a smaller one
    python -m bench.web --only "list" --requests 200

The server is the one that ``wakeful serve`` starts, a process of its own; requests come one after
another over loopback, logged in, on one connection. Beside them, in the same run, an empty Flask
view on the same server: the ratio tells more than milliseconds of a busy machine. ``CPU`` is what
the server's process used for one request. ``sent`` is the weight of the body as it travels to a
browser, ``KB`` that of the same uncompressed.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests
from flask import Flask

from app.commands.serve import listen
from app.commands.webserver import WebServer
from bench import installation
from bench.installation import DETAILED_EVERY, DOWN, EMAIL, PASSWORD, SECRET_KEY, number_of

LIMIT_MS, LIMIT_BYTES = 100, 100_000
WARM_UP = 5
FRAGMENT = {"X-Fragment": "live"}
EMPTY = "an empty view"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of request. ``{up}`` and ``{down}`` are monitors, ``{incident}`` an open incident."""

    name: str
    path: str
    headers: Mapping[str, str]


def kinds(monitors: int, incident: str, cookie: str, key: str) -> list[Kind]:
    person = {"Cookie": cookie, "Accept-Encoding": "gzip, deflate, br"}
    machine = {"Authorization": f"Bearer {key}"}
    names = {
        # A monitor whose last day of results is there too.
        "up": str(number_of(monitors, 0) or DETAILED_EVERY),
        "down": str(number_of(monitors, DOWN)),
        "incident": incident,
        "last": str(max(1, monitors // 100)),
    }
    pages = [
        ("home", "/"),
        ("list, 25", "/monitors?per_page=25"),
        ("list, 100", "/monitors?per_page=100"),
        ("list, 100, last page", "/monitors?per_page=100&page={last}"),
        ("list, search", "/monitors?search=shop+55&per_page=25"),
        ("list, state down", "/monitors?state=down"),
        ("monitor, 24 h", "/monitors/{up}"),
        ("monitor, 24 h, phases", "/monitors/{up}?phases"),
        ("monitor, 90 d", "/monitors/{up}?range=90d"),
        ("monitor, 7 d", "/monitors/{up}?range=7d"),
        ("monitor, 30 d", "/monitors/{up}?range=30d"),
        ("monitor, 1 year", "/monitors/{up}?range=365d"),
        ("monitor that is down", "/monitors/{down}"),
        ("incident", "/incidents/{incident}"),
        ("incidents, 100", "/incidents?per_page=100"),
        ("wall", "/wall"),
    ]
    answers = [
        ("API: list, 10", "/api/v1/monitors"),
        ("API: list, 100", "/api/v1/monitors?per_page=100"),
        ("API: show", "/api/v1/monitors/{up}"),
        ("API: incidents, 100", "/api/v1/incidents?per_page=100"),
        ("API: statistics 24 h", "/api/v1/monitors/{up}/statistics"),
        ("API: statistics 90 d", "/api/v1/monitors/{up}/statistics?range=90d"),
        ("API: me", "/api/v1/me"),
    ]
    refreshed = [
        (f"{name}, refreshed", path)
        for name, path in pages
        if name in ("home", "list, 25", "monitor, 24 h")
    ]
    return [
        Kind(name, path.format(**names), headers)
        for group, headers in ((pages, person), (refreshed, person | FRAGMENT), (answers, machine))
        for name, path in group
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--monitors", type=int, default=10_000, help="default 10000, at least 2000")
    parser.add_argument("--requests", type=int, default=50, help="of each kind; default 50")
    parser.add_argument("--only", default="", help="kinds whose name has this")
    parser.add_argument("--folder", type=Path, help="where the installation is kept")
    parser.add_argument("--empty", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.empty is not None:
        _Empty(installation.settings(Path()), options.empty).run()
        return 0
    folder = options.folder or default_folder(options.monitors)
    _, key = installation.prepare(folder, options.monitors)
    with serving(["-m", "bench.web", "--empty"], {}) as reference:
        empty = measure(reference, Kind(EMPTY, "/", {}), options.requests)
    with serving(["-m", "app.commands.cli", "web", "--fd"], _environment(folder)) as server:
        cookie = log_in(server.base)
        wanted = kinds(options.monitors, _open_incident(server.base, key), cookie, key)
        print(f"{options.monitors:,} monitors, {options.requests} requests of each kind")
        print(f"{'':24}{'median':>8}{'p95':>8}{'CPU ms':>8}{'ratio':>7}{'sent':>8}{'KB':>8}")
        show(EMPTY, empty, empty)
        for kind in wanted:
            if options.only in kind.name:
                show(kind.name, measure(server, kind, options.requests), empty)
    return 0


def default_folder(monitors: int) -> Path:
    return Path(tempfile.gettempdir()) / f"wakeful-bench-web-{os.getuid()}-{monitors}"


# The servers ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int
    pid: int  # of gunicorn's parent process

    @property
    def base(self) -> str:
        return f"http://{self.host}:{self.port}"

    def cpu_ms(self) -> float:
        """What the processes that answer have used so far."""
        used = 0
        for child in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split():
            for task in Path(f"/proc/{child}/task").iterdir():
                used += int((task / "schedstat").read_text().split()[0])
        return used / 1e6


@contextmanager
def serving(words: Sequence[str], environment: Mapping[str, str]) -> Iterator[Server]:
    """A web server in a process of its own; ``words`` and the number of a socket start it."""
    listener = listen("127.0.0.1:0")
    host, port = listener.getsockname()[:2]
    process = subprocess.Popen(
        [sys.executable, *words, str(listener.fileno())],
        env=os.environ | environment,
        pass_fds=[listener.fileno()],
    )
    try:
        # It listens already: the first answer waits until the application is there.
        requests.get(f"http://{host}:{port}/healthz", timeout=60)
        yield Server(host, port, process.pid)
    finally:
        process.terminate()
        process.wait()
        listener.close()


class _Empty(WebServer):
    """The same server around the least that Flask can do."""

    def load(self) -> Flask:
        app = Flask("empty")
        app.add_url_rule("/", view_func=lambda: "ok")
        return app


def _environment(folder: Path) -> dict[str, str]:
    return {
        "WAKEFUL_INSTANCE": str(folder),
        "WAKEFUL_DATABASE_URL": installation.settings(folder).database_url,
        "WAKEFUL_SECRET_KEY": SECRET_KEY,
        "WAKEFUL_RATE_LIMIT": "1000000",  # counted as ever, but never reached
    }


def log_in(base: str) -> str:
    """The cookie of a session."""
    session = requests.Session()
    page = session.get(f"{base}/login", timeout=60)
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page.text)
    if token is None:
        raise SystemExit("The login page has no form.")
    fields = {"csrf_token": token[1], "email": EMAIL, "password": PASSWORD}
    answer = session.post(f"{base}/login", fields, timeout=60, allow_redirects=False)
    if answer.status_code != 302:
        raise SystemExit(f"Logging in failed: {answer.status_code}.")
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in session.cookies)


def _open_incident(base: str, key: str) -> str:
    answer = requests.get(
        f"{base}/api/v1/incidents?status=unresolved",
        headers={"Authorization": f"Bearer {key}"},
        timeout=60,
    )
    return str(answer.json()["data"][0]["id"])


# Measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    median: float  # ms, as p95
    p95: float
    cpu: float  # ms
    sent: int  # bytes, as size
    size: int


def measure(server: Server, kind: Kind, times: int) -> Measured:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    for _ in range(WARM_UP):
        _ask(connection, kind)
    took = []
    before = server.cpu_ms()
    for _ in range(times):
        began = time.perf_counter()
        sent, packed = _ask(connection, kind)
        took.append((time.perf_counter() - began) * 1000)
    cpu = (server.cpu_ms() - before) / times
    connection.close()
    took.sort()
    size = len(gzip.decompress(sent) if packed else sent)
    return Measured(statistics.median(took), took[int(len(took) * 0.95)], cpu, len(sent), size)


def _ask(connection: http.client.HTTPConnection, kind: Kind) -> tuple[bytes, bool]:
    """The body, and whether it is compressed."""
    connection.request("GET", kind.path, headers=dict(kind.headers))
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{kind.path}: {answer.status} {body[:300]!r}")
    return body, answer.headers["Content-Encoding"] == "gzip"


def show(name: str, seen: Measured, empty: Measured) -> None:
    faults = [
        word
        for word, over in (("slow", seen.median > LIMIT_MS), ("heavy", seen.sent > LIMIT_BYTES))
        if over
    ]
    weights = f"{seen.sent / 1000:8.1f}{seen.size / 1000:8.1f}"
    print(
        f"{name:24}{seen.median:8.1f}{seen.p95:8.1f}{seen.cpu:8.1f}"
        f"{seen.cpu / empty.cpu:7.0f}{weights}  {' '.join(faults)}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
