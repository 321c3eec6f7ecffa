"""CPU seconds of one request, in this process: no server, no network and no other process in them.

A busy machine makes a request wait, which does not count here. What does count is that others push
its data out of the processor's caches: so the smallest of many is nearest to a quiet machine, and
each request stands beside an empty Flask view, which is asked in turn with it.
"""

from __future__ import annotations

import gc
import re
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from flask import Flask
from flask.testing import FlaskClient

from app import create_app
from bench import installation
from bench.installation import EMAIL, PASSWORD
from bench.kinds import Kind, Visitor

WARM_UP = 4
EMPTY_AT_ONCE = 10  # one takes too little to be measured alone on a busy machine
EMPTY = Kind("an empty view", "/", {})


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU milliseconds of one request, the smallest and the median of many; ``empty`` is the
    smallest of the empty view's. ``wall`` are the milliseconds that passed, sorted.
    """

    least: float
    median: float
    empty: float
    wall: tuple[float, ...]
    size: int  # bytes of the body

    @property
    def ratio(self) -> float:
        return self.least / self.empty

    def figures(self) -> dict[str, float]:
        """For JSON."""
        return {
            "cpu_min_ms": round(self.least, 3), "cpu_median_ms": round(self.median, 3),
            "empty_min_ms": round(self.empty, 3), "times_empty": round(self.ratio, 2),
        }  # fmt: skip


class OneProcess:
    """The application of an installation, and an empty one beside it."""

    def __init__(self, folder: Path) -> None:
        self.app = create_app(installation.settings(folder))
        self.visitor = _visitor(self.app)
        # Requests carry their own cookies, so that a server can be asked with the same ones.
        self._client = self.app.test_client(use_cookies=False)
        empty = Flask("empty")
        empty.add_url_rule("/", view_func=lambda: "ok")
        self._empty = empty.test_client(use_cookies=False)
        # As the web server does: what start-up made is not looked through during requests.
        gc.collect()
        gc.freeze()

    def measure(self, kind: Kind, times: int) -> Cpu:
        found, wall, empty = [], [], []
        for number in range(WARM_UP + times):
            reference = sum(_ask(self._empty, EMPTY)[0] for _ in range(EMPTY_AT_ONCE))
            used, passed, size = _ask(self._client, kind)
            if number >= WARM_UP:
                found.append(used)
                wall.append(passed)
                empty.append(reference / EMPTY_AT_ONCE)
        return Cpu(min(found), statistics.median(found), min(empty), tuple(sorted(wall)), size)


def _ask(client: FlaskClient, kind: Kind) -> tuple[float, float, int]:
    """CPU milliseconds, milliseconds that passed, and bytes of the body."""
    began, used = time.perf_counter(), time.thread_time()
    answer = client.get(kind.path, headers=dict(kind.headers))
    size = len(answer.data)
    used, passed = time.thread_time() - used, time.perf_counter() - began
    if answer.status_code != 200:
        raise SystemExit(f"{kind.path}: {answer.status_code} {answer.text[:300]}")
    return used * 1000, passed * 1000, size


def _visitor(app: Flask) -> Visitor:
    person = app.test_client()
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', person.get("/login").text)
    if token is None:
        raise SystemExit("The login page has no form.")
    fields = {"csrf_token": token[1], "email": EMAIL, "password": PASSWORD}
    answer = person.post("/login", data=fields)
    if answer.status_code != 302:
        raise SystemExit(f"Logging in failed: {answer.status_code}.")
    with app.app_context():
        _, key = app.extensions["wakeful.access"].keys.create("bench", "write")
    person.get("/")  # its session has the token of forms from now on, as a browser's has
    sent = person.get("/", headers={"Accept-Encoding": "gzip"}).request.headers["Cookie"]
    incidents = app.test_client().get(
        "/api/v1/incidents?status=unresolved", headers={"Authorization": f"Bearer {key}"}
    )
    return Visitor(sent, key, str(incidents.json["data"][0]["id"]))
