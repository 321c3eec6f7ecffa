"""``make bench-web``: how long pages and answers take with 10,000 monitors and 90 days of history.

    python -m bench.web                       make the installation (minutes, once), then measure
    python -m bench.web --monitors 1000       a smaller one
    python -m bench.web --only "list" --requests 200
    python -m bench.web --json FILE --svg FILE

Each kind is measured twice, beside an empty Flask view in the same run:

    median, p95, server   on the server that ``wakeful serve`` starts, a process of its own, over
                          loopback, one after another on one connection. ``server`` is the CPU that
                          its processes use for one request.
    least, middle, ratio  the CPU of one request in this process, see bench/oneprocess.py: the least
                          and the median of all, and the least in times of the empty view's. This is
                          what to compare with another day, because machines are noisy.

``sent`` is the weight of the body as it travels to a browser, ``KB`` that of the same uncompressed.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import requests
from flask import Flask

from app.commands.serve import listen
from app.commands.web.webserver import WebServer
from bench import figures, installation, kinds
from bench.beside import environment as inherited
from bench.kinds import Kind
from bench.oneprocess import EMPTY, Cpu, OneProcess

LIMIT_MS, LIMIT_BYTES = 100, 100_000
WEB = "-m", "app.commands.cli", "web", "--fd"
WARM_UP = 5


def main() -> int:
    parser = figures.parser(__doc__)
    parser.add_argument("--monitors", type=int, default=10_000, help="default 10000")
    parser.add_argument("--days", type=int, default=installation.DAYS, help="default 90")
    parser.add_argument("--requests", type=int, default=50, help="of each kind; default 50")
    parser.add_argument("--only", default="", help="kinds whose name has this")
    parser.add_argument("--folder", type=Path, help="where the installation is kept")
    parser.add_argument("--empty", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.empty is not None:
        _Empty(installation.settings(Path()), options.empty).run()
        return 0
    folder = options.folder or installation.default_folder(options.monitors, options.days)
    installation.prepare(folder, options.monitors, options.days)
    inside = OneProcess(folder)
    visitor = inside.visitor
    asked = kinds.pages(options.monitors, visitor) + kinds.answers(options.monitors, visitor)
    found: dict[str, tuple[Measured, Cpu]] = {}
    with (
        serving(["-m", "bench.web", "--empty"], {}) as reference,
        serving(WEB, installation.environment(folder)) as server,
    ):
        empty = measure(reference, EMPTY, options.requests)
        print(f"{options.monitors:,} monitors, {options.requests} requests of each kind, ms of CPU")
        print(
            f"{'':27}{'median':>8}{'p95':>8}{'server':>8}{'least':>8}{'middle':>8}{'ratio':>7}"
            f"{'sent':>8}{'KB':>8}"
        )
        for kind in asked:
            if options.only in kind.name:
                seen = measure(server, kind, options.requests)
                cpu = inside.measure(kind, options.requests)
                found[kind.name] = seen, cpu
                show(kind.name, seen, cpu)
        print(f"{EMPTY.name:27}{empty.median:8.1f}{empty.p95:8.1f}{empty.cpu:8.1f}")
    requests_ = {name: asdict(seen) | cpu.figures() for name, (seen, cpu) in found.items()}
    size = {"monitors": options.monitors, "days": options.days, "of_each": options.requests}
    figures.keep(
        options,
        {**size, "empty": asdict(empty), "requests": requests_},
        f"CPU of a request in times of an empty view's, {options.monitors:,} monitors",
        [figures.Bars(name, [cpu.ratio]) for name, (_, cpu) in found.items()],
    )
    return 0


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
        env=inherited() | environment,
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


def show(name: str, seen: Measured, cpu: Cpu) -> None:
    faults = [
        word
        for word, over in (("slow", seen.median > LIMIT_MS), ("heavy", seen.sent > LIMIT_BYTES))
        if over
    ]
    print(
        f"{name:27}{seen.median:8.1f}{seen.p95:8.1f}{seen.cpu:8.1f}{cpu.least:8.1f}"
        f"{cpu.median:8.1f}{cpu.ratio:7.0f}{seen.sent / 1000:8.1f}{seen.size / 1000:8.1f}"
        f"  {' '.join(faults)}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
