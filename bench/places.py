"""``make bench-places``: what a check costs over the queue and by an agent, beside in process.

    python -m bench.places                               2,000 monitors every 10 seconds
    python -m bench.places --monitors 500 --seconds 60
    python -m bench.places --json FILE --svg FILE

Three installations of the same size run at the same time against nginx on loopback, over HTTP, each
on an SQLite of its own, so that whatever else the machine does is the same for all:

    in process    a checker
    queue         a checker that sends batches, Redis, and a prober that makes the checks
    agent         an agent, and the web server that it reports to

CPU is that of all their processes for a check; nginx is not in it. ``start`` is how long after its
time a check starts, ``known`` how long after its time its result can be read from the database,
looked at every 50 ms. ``added`` is what the way adds to in process.
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flask import Flask
from sqlalchemy import func, select, update

from app.access.agents import give_token
from app.config import Settings
from app.db import db, writing
from app.db.tables import AssignmentRow, LocationRow, ResultRow
from app.engine.schedule import last_slot
from app.records import Carrier
from bench import figures
from bench.beside import cpu_of_all, target
from bench.engine import all_good, as_if_checked, prepare
from bench.schedule import first_check
from bench.web import WEB, serving
from tests.support.redis import Redis

IN_PROCESS, QUEUE, AGENT = "in process", "queue", "agent"
WATCHED = 200  # monitors whose results are looked for
LOOK_S = 0.05
STOP_S = 30
WARM_UP = 30  # seconds: on a busy machine, late starts are made up for in the first
# A check may start a moment before its slot, by what an agent's clock is corrected.
EARLY = timedelta(seconds=1)
COMMON = {"WAKEFUL_ALLOW_NETWORKS": "loopback", "WAKEFUL_CANARIES": ""}


@dataclass
class Way:
    """An installation, and the processes that make and record its checks, by name."""

    name: str
    app: Flask
    file: Path
    parts: dict[str, int]
    used: dict[str, float] = field(default_factory=dict)
    seen: set[tuple[int, int]] = field(default_factory=set)
    starts: list[float] = field(default_factory=list)  # ms after the slot
    known: list[float] = field(default_factory=list)

    def cpu(self) -> dict[str, float]:
        return {name: cpu_of_all(pid) for name, pid in self.parts.items()}


@dataclass(frozen=True, slots=True)
class Found:
    """``cpu``: milliseconds a check by process. Delays: median and 99%, in milliseconds."""

    name: str
    checks: int
    cpu: Mapping[str, float]
    start: tuple[float, float]
    known: tuple[float, float]

    @property
    def total(self) -> float:
        return sum(self.cpu.values())


def main() -> int:
    parser = figures.parser(__doc__)
    parser.add_argument("--monitors", type=int, default=2_000, help="default 2000")
    parser.add_argument("--interval", type=int, default=10, help="default 10")
    parser.add_argument("--seconds", type=int, default=60, help="default 60")
    options = parser.parse_args()
    if shutil.which("redis-server") is None:
        raise SystemExit("This bench needs Redis: apt-get install redis-server.")
    with ExitStack() as ends:
        name = ends.enter_context(tempfile.TemporaryDirectory(prefix="wakeful-bench-"))
        urls, _authority = ends.enter_context(target(Path(name)))
        ways = [make(Path(name), urls["http"], options, ends) for make in (alone, queue, agent)]
        began = time.monotonic()
        for way in ways:
            first_check(way.app, began)
        time.sleep(options.interval + WARM_UP)
        found = measure(ways, options.interval, options.seconds)
    print(
        f"{options.monitors:,} monitors every {options.interval} s each, {options.seconds} s,"
        f" load {os.getloadavg()[0]:.1f}"
    )
    for one in found:
        show(one, found[0])
    figures.keep(
        options,
        {
            "monitors": options.monitors,
            "interval": options.interval,
            "seconds": options.seconds,
            "ways": [described(one, found[0]) for one in found],
        },
        "A check by way, in times of one in process",
        [
            figures.Bars(
                one.name, [one.total / found[0].total, one.known[0] / (found[0].known[0] or 1.0)]
            )
            for one in found
        ],
        ["CPU of all processes", "time until known"],
    )
    return 0


# The three ways -------------------------------------------------------------------------------


def alone(folder: Path, url: str, options: argparse.Namespace, ends: ExitStack) -> Way:
    app, settings = _installation(folder / "alone", url, options)
    pid = ends.enter_context(_part(["checker"], _database(settings)))
    return _way(IN_PROCESS, app, settings, {"checker": pid})


def queue(folder: Path, url: str, options: argparse.Namespace, ends: ExitStack) -> Way:
    app, settings = _installation(folder / "queue", url, options)
    _move(app, LocationRow(name=QUEUE, carrier=Carrier.QUEUE, created_at=datetime.now(UTC)))
    redis = Redis(folder / "redis")
    redis.start()
    ends.callback(redis.close)
    broker = {
        "WAKEFUL_BROKER_URL": redis.url,
        "WAKEFUL_BATCH_KEY": base64.b64encode(os.urandom(32)).decode(),
    }
    sender = _database(settings) | broker | {"WAKEFUL_LOCATION": QUEUE}
    prober = broker | {"WAKEFUL_INSTANCE": str(folder / "prober")}
    parts = {
        "checker": ends.enter_context(_part(["checker", "--carrier", "queue"], sender)),
        "prober": ends.enter_context(_part(["prober", "--location", QUEUE], prober)),
        "redis": redis.process.pid,
    }
    return _way(QUEUE, app, settings, parts)


def agent(folder: Path, url: str, options: argparse.Namespace, ends: ExitStack) -> Way:
    app, settings = _installation(folder / "server", url, options)
    place = LocationRow(name=AGENT, carrier=Carrier.AGENT, created_at=datetime.now(UTC))
    token = give_token(place)
    _move(app, place)
    server = ends.enter_context(serving(WEB, _database(settings) | COMMON))
    own = {
        "WAKEFUL_SERVER": server.base,
        "WAKEFUL_AGENT_TOKEN": token,
        "WAKEFUL_INSTANCE": str(folder / "agent"),
    }
    pid = ends.enter_context(_part(["agent"], own))
    return _way(AGENT, app, settings, {"agent": pid, "web server": server.pid})


def _installation(folder: Path, url: str, options: argparse.Namespace) -> tuple[Flask, Settings]:
    folder.mkdir()
    app, settings = prepare(folder, url, options.monitors, options.interval)
    as_if_checked(app, options.interval)
    return app, settings


def _move(app: Flask, place: LocationRow) -> None:
    """Let this place make all checks."""
    with app.app_context(), writing() as session:
        session.add(place)
        session.flush()
        session.execute(update(AssignmentRow).values(location_id=place.id))


def _way(name: str, app: Flask, settings: Settings, parts: dict[str, int]) -> Way:
    return Way(name, app, settings.instance / "wakeful.db", parts)


def _database(settings: Settings) -> dict[str, str]:
    return {
        "WAKEFUL_DATABASE_URL": settings.database_url or "",
        "WAKEFUL_INSTANCE": str(settings.instance),
        "WAKEFUL_SECRET_KEY": settings.secret_key or "",
    }


@contextmanager
def _part(words: Sequence[str], environment: Mapping[str, str]) -> Iterator[int]:
    """A part of Wakeful in a process of its own; its id."""
    # Nothing of the settings of whoever measures may leak in.
    own = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("wakeful")), *words], env=own | COMMON | environment
    )
    try:
        yield process.pid
        if process.poll() is not None:
            raise SystemExit(f"wakeful {' '.join(words)} ended: the figures mean nothing.")
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# Measuring ------------------------------------------------------------------------------------


def measure(ways: Sequence[Way], interval: int, seconds: int) -> list[Found]:
    since = datetime.now(UTC)
    before = [way.cpu() for way in ways]
    watch(ways, interval, since, seconds)
    until = datetime.now(UTC)
    for way, then in zip(ways, before, strict=True):
        way.used = {name: now - then[name] for name, now in way.cpu().items()}
    time.sleep(5)  # the last checks are being recorded
    return [figures_of(way, since, until) for way in ways]


def watch(ways: Sequence[Way], interval: int, since: datetime, seconds: int) -> None:
    """Note when results of WATCHED monitors that were made after ``since`` can be read."""
    with ExitStack() as ends:
        connections = [
            ends.enter_context(closing(sqlite3.connect(f"file:{way.file}?mode=ro", uri=True)))
            for way in ways
        ]
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for way, connection in zip(ways, connections, strict=True):
                for id, at, now in _results(connection, since):
                    if (id, at) not in way.seen:
                        way.seen.add((id, at))
                        checked = datetime.fromtimestamp(at / 1000, UTC)
                        slot = last_slot(id, interval, checked + EARLY).timestamp() * 1000
                        way.starts.append(at - slot)
                        way.known.append(now - slot)
            time.sleep(LOOK_S)


def _results(connection: sqlite3.Connection, since: datetime) -> list[tuple[int, int, float]]:
    """Monitor and time of results, and when they were read, in ms since 1970."""
    rows = connection.execute(
        "SELECT monitor_id, at FROM results WHERE monitor_id <= ? AND at >= ?",
        [WATCHED, int(since.timestamp() * 1000)],
    ).fetchall()
    now = time.time() * 1000
    return [(id, at, now) for id, at in rows]


def figures_of(way: Way, since: datetime, until: datetime) -> Found:
    all_good(way.app)
    begin, end = (int(moment.timestamp() * 1000) for moment in (since, until))
    with way.app.app_context():
        checks = db.session.scalar(
            select(func.count()).select_from(ResultRow).where(ResultRow.at.between(begin, end))
        )
    if not checks or len(way.known) < 2:
        raise SystemExit(f"Too few checks were made ({way.name}): the figures mean nothing.")
    cpu = {name: used * 1000 / checks for name, used in way.used.items()}
    return Found(way.name, checks, cpu, _cuts(way.starts), _cuts(way.known))


def _cuts(delays: Sequence[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(delays, n=100)
    return cuts[49], cuts[98]


def show(one: Found, reference: Found) -> None:
    parts = ", ".join(f"{name} {ms:.3f}" for name, ms in one.cpu.items())
    times = one.total / reference.total
    added = "" if one is reference else f" (added {one.known[0] - reference.known[0]:.0f})"
    print(
        f"{one.name:<11} CPU {one.total:.3f} ms a check ({parts}), {times:.2f} x in process;"
        f" start {one.start[0]:.0f} ms (median), {one.start[1]:.0f} ms (99%);"
        f" known {one.known[0]:.0f} ms{added}, {one.known[1]:.0f} ms (99%); {one.checks:,} checks"
    )


def described(one: Found, reference: Found) -> dict[str, object]:
    """For JSON."""
    return {
        "name": one.name,
        "checks": one.checks,
        "cpu_ms": {name: round(ms, 4) for name, ms in one.cpu.items()},
        "cpu_total_ms": round(one.total, 4),
        "cpu_times_in_process": round(one.total / reference.total, 3),
        "start_ms": {"median": round(one.start[0]), "p99": round(one.start[1])},
        "known_ms": {"median": round(one.known[0]), "p99": round(one.known[1])},
        "known_added_ms": round(one.known[0] - reference.known[0]),
    }


if __name__ == "__main__":
    sys.exit(main())
