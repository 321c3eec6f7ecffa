"""``make bench-start``: from the start of ``wakeful serve`` to its first check.

    python -m bench.start
    python -m bench.start --rounds 10
    python -m bench.start --monitors 10000

A fresh installation watches one page on loopback, with one monitor or with many, which are due at
each start; the clock stops when the page is asked for. Beside it, in turn with it, stand two
programs that do far less: Python importing Flask and SQLAlchemy, and gunicorn until it answers with
an empty Flask view. Look at the ratios: machines are noisy.
"""

from __future__ import annotations

import argparse
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import requests

from app import create_app
from app.config import read
from app.db import schema
from app.forms.monitor import MonitorForm
from app.forms.schema import bind
from app.stores import current_store
from bench.engine import add_monitors
from tests.support.service import Service

HELLO = "from flask import Flask\napp = Flask('hello')\n@app.get('/')\ndef show(): return 'hello'\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="default 5")
    parser.add_argument("--monitors", type=int, default=1, help="of the page; default 1")
    arguments = parser.parse_args()
    rounds = arguments.rounds
    with tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder:
        page = Page()
        path = Path(folder)
        service = prepare(path, page.url, arguments.monitors)
        (path / "hello.py").write_text(HELLO)
        times: dict[str, list[float]] = {"imports": [], "gunicorn": [], "wakeful": []}
        for _ in range(rounds):
            times["imports"].append(imports())
            times["gunicorn"].append(gunicorn(path))
            times["wakeful"].append(first_check(service, path, page))
        page.server.shutdown()
        page.server.server_close()
    middle = {name: statistics.median(found) for name, found in times.items()}
    for name, seconds in middle.items():
        print(f"{name:<9} {seconds:6.2f} s (median of {rounds})")
    for name in ("imports", "gunicorn"):
        print(f"first check, times {name}: {middle['wakeful'] / middle[name]:.1f}")
    return 0


class Page:
    """The page that is watched. ``asked`` is set when it is."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page.asked.set()
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_arguments: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def prepare(folder: Path, url: str, monitors: int) -> Service:
    service = Service(folder, CANARIES="")
    app = create_app(read(service.environ))
    with app.app_context():
        schema.upgrade()
        current_store().monitors.create(
            bind(MonitorForm, [("name", "Page"), ("url", url), ("interval", "3600")])
        )
        add_monitors(url, range(monitors - 1))
    return service


def first_check(service: Service, folder: Path, page: Page) -> float:
    with closing(sqlite3.connect(folder / "wakeful.db")) as database, database:
        database.execute("UPDATE assignments SET slot = NULL")
    page.asked.clear()
    began = time.perf_counter()
    service.start()
    if not page.asked.wait(120):
        raise SystemExit("No check came within 120 s:\n" + "\n".join(service.lines))
    seconds = time.perf_counter() - began
    service.stop()
    return seconds


def imports() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import flask, sqlalchemy"], check=True)
    return time.perf_counter() - began


def gunicorn(folder: Path) -> float:
    with socket.create_server(("127.0.0.1", 0)) as free:
        bind_to = f"127.0.0.1:{free.getsockname()[1]}"
    words = ["-m", "gunicorn", "--log-level=critical", f"--bind={bind_to}", "hello:app"]
    began = time.perf_counter()
    server = subprocess.Popen([sys.executable, *words], cwd=folder)
    try:
        while True:
            try:
                requests.get(f"http://{bind_to}/", timeout=30)
                return time.perf_counter() - began
            except requests.ConnectionError:
                time.sleep(0.005)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
