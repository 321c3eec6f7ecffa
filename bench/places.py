"""``make bench-places``: what a check from another place costs by each way, beside in process.

    python -m bench.places                               2,000 monitors every 10 seconds
    python -m bench.places --monitors 1000 --interval 60 --seconds 120
    python -m bench.places --round-trip 300 --way agent  as if the place was on another continent
    python -m bench.places --json FILE --svg FILE

Four installations of the same size run at the same time against nginx on loopback, over HTTP, each
on a database of its own, so that whatever else the machine does is the same for all:

    in process    a checker, on SQLite
    there         a checker that reaches PostgreSQL over the line
    queue         a checker that sends batches, Redis, and a prober that reaches Redis over the line
    agent         an agent, and the web server that it reaches over the line

The line is a relay: it counts bytes, and adds a round trip to each question (``--round-trip``).
CPU is that of all their processes for a check, without nginx and PostgreSQL; memory what they hold
at the end. ``start`` is how long after its time a check starts, ``known`` how long after its time
its result can be read from the database, looked at every 50 ms. ``added`` is what the way adds to
in process.
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flask import Flask
from sqlalchemy import Connection, func, select, update

from app.access.keys import give_token
from app.config import Settings
from app.db import db, writing
from app.db.tables import AssignmentRow, PlaceRow, ResultRow
from app.engine.schedule import last_scheduled
from app.records import Carrier
from bench import figures
from bench.beside import ADDRESS, cpu_of_all, environment, target
from bench.engine import all_good, as_if_checked, prepare
from bench.relay import Relay
from bench.schedule import first_check, memory_of
from bench.web import WEB, serving
from tests.support.postgres import find_binaries, own_server
from tests.support.redis import Redis

IN_PROCESS, THERE, QUEUE, AGENT = "in process", "there", "queue", "agent"
WATCHED = 200  # monitors whose results are looked for
LOOK_S = 0.05
STOP_S = 30
WARM_UP = 30  # seconds: on a busy machine, late starts are made up for in the first
# A check may start a moment before its scheduled time, by what an agent's clock is corrected.
EARLY = timedelta(seconds=1)
COMMON = {"WAKEFUL_ALLOW_NETWORKS": "loopback", "WAKEFUL_CANARIES": ""}


@dataclass
class Way:
    """An installation, and the processes that make and record its checks, by name."""

    name: str
    app: Flask
    parts: dict[str, int]
    line: Relay | None = None
    passed: int = 0  # bytes over the line
    memory: dict[str, float] = field(default_factory=dict)  # MB
    used: dict[str, float] = field(default_factory=dict)
    seen: set[tuple[int, int]] = field(default_factory=set)
    starts: list[float] = field(default_factory=list)  # ms after the scheduled time
    known: list[float] = field(default_factory=list)

    def sent(self) -> int:
        return 0 if self.line is None else self.line.bytes

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
    memory: Mapping[str, float]
    line: float  # bytes a second

    @property
    def total(self) -> float:
        return sum(self.cpu.values())


def main() -> int:
    parser = figures.parser(__doc__)
    parser.add_argument("--monitors", type=int, default=2_000, help="default 2000")
    parser.add_argument("--interval", type=int, default=10, help="default 10")
    parser.add_argument("--seconds", type=int, default=60, help="default 60")
    parser.add_argument("--round-trip", type=float, default=0, metavar="MS", help="default 0")
    parser.add_argument(
        "--way", choices=[*WAYS], action="append", help="beside in process; default all"
    )
    options = parser.parse_args()
    if shutil.which("redis-server") is None:
        raise SystemExit("This bench needs Redis: apt-get install redis-server.")
    if find_binaries() is None:
        raise SystemExit("This bench needs PostgreSQL: apt-get install postgresql.")
    with ExitStack() as ends:
        name = ends.enter_context(tempfile.TemporaryDirectory(prefix="wakeful-bench-"))
        urls, _authority = ends.enter_context(target(Path(name)))
        makers = [WAYS[one] for one in options.way or WAYS]
        ways = [make(Path(name), urls["http"], options, ends) for make in (alone, *makers)]
        began = time.monotonic()
        for way in ways:
            first_check(way.app, began)
        time.sleep(options.interval + WARM_UP)
        found = measure(ways, options.interval, options.seconds)
    print(
        f"{options.monitors:,} monitors every {options.interval} s each, {options.seconds} s,"
        f" a round trip of {options.round_trip:.0f} ms, load {os.getloadavg()[0]:.1f}"
    )
    for one in found:
        show(one, found[0])
    figures.keep(
        options,
        {
            "monitors": options.monitors,
            "interval": options.interval,
            "seconds": options.seconds,
            "round_trip_ms": options.round_trip,
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


# The four ways --------------------------------------------------------------------------------


def alone(folder: Path, url: str, options: argparse.Namespace, ends: ExitStack) -> Way:
    app, settings = _installation(folder / "alone", url, options)
    pid = ends.enter_context(_part(["checker"], _database(settings)))
    return Way(IN_PROCESS, app, {"checker": pid})


def there(folder: Path, url: str, options: argparse.Namespace, ends: ExitStack) -> Way:
    server = ends.enter_context(own_server())
    name = server.create()
    app, settings = _installation(folder / THERE, url, options, server.url(name))
    _move(app, PlaceRow(name=THERE, created_at=datetime.now(UTC)))
    line = _line(str(server.directory / ".s.PGSQL.5432"), options, ends)
    far = {
        "WAKEFUL_DATABASE_URL": f"postgresql://postgres@{ADDRESS}:{line.port}/{name}",
        "WAKEFUL_LOCATION": THERE,
    }
    pid = ends.enter_context(_part(["checker"], _database(settings) | far))
    return Way(THERE, app, {"checker": pid}, line)


def queue(folder: Path, url: str, options: argparse.Namespace, ends: ExitStack) -> Way:
    app, settings = _installation(folder / "queue", url, options)
    _move(app, PlaceRow(name=QUEUE, carrier=Carrier.QUEUE, created_at=datetime.now(UTC)))
    redis = Redis(folder / "redis")
    redis.start()
    ends.callback(redis.close)
    line = _line(redis.port, options, ends)
    key = {"WAKEFUL_BATCH_KEY": base64.b64encode(os.urandom(32)).decode()}
    near = {"WAKEFUL_BROKER_URL": redis.url, "WAKEFUL_LOCATION": QUEUE}
    sender = _database(settings) | key | near
    prober = key | {
        "WAKEFUL_BROKER_URL": f"redis://{ADDRESS}:{line.port}/0",
        "WAKEFUL_INSTANCE": str(folder / "prober"),
    }
    parts = {
        "checker": ends.enter_context(_part(["checker", "--carrier", "queue"], sender)),
        "prober": ends.enter_context(_part(["prober", "--location", QUEUE], prober)),
        "redis": redis.process.pid,
    }
    return Way(QUEUE, app, parts, line)


def agent(folder: Path, url: str, options: argparse.Namespace, ends: ExitStack) -> Way:
    app, settings = _installation(folder / "server", url, options)
    place = PlaceRow(name=AGENT, carrier=Carrier.AGENT, created_at=datetime.now(UTC))
    token = give_token(place)
    _move(app, place)
    server = ends.enter_context(serving(WEB, _database(settings) | COMMON))
    line = _line(server.port, options, ends)
    own = {
        "WAKEFUL_SERVER": f"http://{ADDRESS}:{line.port}",
        "WAKEFUL_AGENT_TOKEN": token,
        "WAKEFUL_INSTANCE": str(folder / "agent"),
    }
    pid = ends.enter_context(_part(["agent"], own))
    return Way(AGENT, app, {"agent": pid, "web server": server.pid}, line)


WAYS = {THERE: there, QUEUE: queue, AGENT: agent}


def _line(to: int | str, options: argparse.Namespace, ends: ExitStack) -> Relay:
    line = Relay(to, options.round_trip / 1000)
    ends.callback(line.close)
    return line


def _installation(
    folder: Path, url: str, options: argparse.Namespace, database: str | None = None
) -> tuple[Flask, Settings]:
    folder.mkdir()
    app, settings = prepare(folder, url, options.monitors, options.interval, database=database)
    as_if_checked(app, options.interval)
    return app, settings


def _move(app: Flask, place: PlaceRow) -> None:
    """Let this place make all checks."""
    with app.app_context(), writing() as session:
        session.add(place)
        session.flush()
        session.execute(update(AssignmentRow).values(location_id=place.id))


def _database(settings: Settings) -> dict[str, str]:
    return {
        "WAKEFUL_DATABASE_URL": settings.database_url or "",
        "WAKEFUL_INSTANCE": str(settings.instance),
        "WAKEFUL_SECRET_KEY": settings.secret_key or "",
    }


@contextmanager
def _part(words: Sequence[str], settings: Mapping[str, str]) -> Iterator[int]:
    """A part of Wakeful in a process of its own; its id."""
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("wakeful")), *words],
        env=environment() | COMMON | settings,
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
    for way in ways:
        way.passed = -way.sent()
    watch(ways, interval, since, seconds)
    until = datetime.now(UTC)
    for way in ways:
        way.passed += way.sent()
        way.memory = {name: memory_of_all(pid) for name, pid in way.parts.items()}
    for way, then in zip(ways, before, strict=True):
        way.used = {name: now - then[name] for name, now in way.cpu().items()}
    time.sleep(5)  # the last checks are being recorded
    return [figures_of(way, since, until) for way in ways]


def watch(ways: Sequence[Way], interval: int, since: datetime, seconds: int) -> None:
    """Note when results of WATCHED monitors that were made after ``since`` can be read."""
    with ExitStack() as ends:
        connections = [ends.enter_context(_connection(way.app)) for way in ways]
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for way, connection in zip(ways, connections, strict=True):
                for id, at, now in _results(connection, since):
                    if (id, at) not in way.seen:
                        way.seen.add((id, at))
                        checked = datetime.fromtimestamp(at / 1000, UTC)
                        scheduled = last_scheduled(id, interval, checked + EARLY).timestamp() * 1000
                        way.starts.append(at - scheduled)
                        way.known.append(now - scheduled)
            time.sleep(LOOK_S)


@contextmanager
def _connection(app: Flask) -> Iterator[Connection]:
    with app.app_context(), db.engine.connect() as connection:
        yield connection


def _results(connection: Connection, since: datetime) -> list[tuple[int, int, float]]:
    """Monitor and time of results, and when they were read, in ms since 1970."""
    rows = connection.execute(
        select(ResultRow.monitor_id, ResultRow.at).where(
            ResultRow.monitor_id <= WATCHED, ResultRow.at >= int(since.timestamp() * 1000)
        )
    ).all()
    connection.rollback()
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
    line = way.passed / (until - since).total_seconds()
    return Found(way.name, checks, cpu, _cuts(way.starts), _cuts(way.known), way.memory, line)


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
        f" known {one.known[0]:.0f} ms{added}, {one.known[1]:.0f} ms (99%);"
        f" {_memory(one)}; {one.line / 1000:.1f} KB/s over the line; {one.checks:,} checks"
    )


def _memory(one: Found) -> str:
    return ", ".join(f"{name} {megabytes:.0f} MB" for name, megabytes in one.memory.items())


def memory_of_all(pid: int) -> float:
    """That of a process and those that it has started. Pages that they share count for each."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return memory_of(pid) + sum(memory_of_all(int(child)) for child in children)


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
        "memory_mb": {name: round(megabytes) for name, megabytes in one.memory.items()},
        "line_bytes_a_second": round(one.line),
    }


if __name__ == "__main__":
    sys.exit(main())
