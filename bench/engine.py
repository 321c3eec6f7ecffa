"""``make bench-engine``: CPU and memory of all processes of ``wakeful serve``.

    python -m bench.engine                        at rest and with 100, 3,000 and 10,000 monitors,
                                                  HTTP and HTTPS, on SQLite; half an hour
    python -m bench.engine --monitors 100 --seconds 60 --scheme http
    python -m bench.engine --database postgres    on a PostgreSQL that it starts for this

Monitors that were up are checked every 60 seconds, against nginx on loopback. Web server, checker,
alert worker and supervisor count, with all that follows from a check; memory is their PSS, which
divides what they share. Measuring begins an interval and 15 s after the start.

Beside it stands blackbox_exporter (set BLACKBOX_EXPORTER if it is not on the path), asked as
Prometheus asks it over connections that are kept alive: at the same pace, and flat out. CPU a check
says little where others use the machine: ratios are printed only if its load before the start is
at most 0.5. ``--json FILE`` writes the figures, ``--svg FILE`` draws them.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flask import Flask
from sqlalchemy import func, insert, select, update

from app import create_core
from app.config import Settings
from app.db import db, latest, schema, writing
from app.db.tables import AssignmentRow, MonitorRow, MonitorStateRow, ResultRow
from app.db.types import to_ms
from app.engine.checker import Checker
from app.engine.schedule import last_scheduled
from app.records import Verdict
from app.rules.natural import natural_key
from bench import databases, figures
from bench.beside import (
    ADDRESS,
    Blackbox,
    cpu_of,
    environment,
    free_port,
    processes,
    pss_of,
    target,
)

INTERVAL = 60
SETTLES = 15.0  # seconds after the first interval
MONITORS = (0, 100, 3_000, 10_000)
MAX_LOAD = 0.5  # of the machine, for figures that may be compared
FLAT_OUT = 3_000  # probes


def main() -> int:
    parser = figures.parser(__doc__)
    parser.add_argument("--monitors", type=int, action="append", help="may be given several times")
    parser.add_argument("--seconds", type=int, default=120, help="of each run; default 120")
    parser.add_argument("--scheme", choices=("http", "https"), action="append")
    databases.add_option(parser, databases.SQLITE)
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    if not (quiet := load <= MAX_LOAD):
        print(f"The load is {load:.1f}, above {MAX_LOAD}: no ratios are printed.")
    runs: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder,
        target(Path(folder)) as (urls, authority),
    ):
        for scheme in arguments.scheme or urls:
            for monitors in arguments.monitors or MONITORS:
                if monitors or not any(run["monitors"] == 0 for run in runs):
                    own = Path(folder) / f"{scheme}-{monitors}"
                    run = one_run(own, urls[scheme], authority, monitors, arguments)
                    runs.append({"scheme": scheme, "monitors": monitors, **run})
                    print(sentence(runs[-1], quiet=quiet), flush=True)
    bars = [
        figures.Bars(f"{run['scheme']}, {run['monitors']:,}", [run["Wakeful"]], " ms", "")
        for run in runs
        if run["monitors"]
    ]
    found = {"load": load, "seconds": arguments.seconds, "runs": runs}
    figures.keep(arguments, found, "CPU ms of a check", bars)
    return 0


def one_run(
    folder: Path, url: str, authority: Path, monitors: int, wanted: argparse.Namespace
) -> dict[str, Any]:
    """CPU in milliseconds: a second of all processes, and a check. Memory in MB."""
    folder.mkdir()
    with databases.database(wanted.database, folder) as database:
        app, settings = prepare(folder, url, monitors, INTERVAL, authority, database)
        try:
            as_if_checked(app, INTERVAL)
            with serving(settings) as supervisor:
                time.sleep(INTERVAL + SETTLES)
                pids = processes(supervisor)
                before, used, began = recorded(app), sum(map(cpu_of, pids)), time.monotonic()
                time.sleep(wanted.seconds)
                spent, passed = sum(map(cpu_of, pids)) - used, time.monotonic() - began
                checks, memory = recorded(app) - before, sum(map(pss_of, pids))
            all_good(app)
        finally:
            empty(app)
    run = {"a second": spent / passed * 1000, "memory": memory, "checks": checks}
    if monitors:
        if checks < 0.9 * monitors * passed / INTERVAL:
            print(f"  The machine was too busy: {checks:,} checks of its schedule were made.")
        run |= {"Wakeful": spent / checks * 1000} | beside(folder, url, authority, monitors, passed)
    return {name: round(figure, 4) for name, figure in run.items()}


def beside(
    folder: Path, url: str, authority: Path, monitors: int, seconds: float
) -> dict[str, float]:
    """The CPU milliseconds that blackbox_exporter takes for a check."""
    program = Blackbox.program()
    if program is None:
        print("  blackbox_exporter is not installed, so it is left out.")
        return {}
    blackbox = Blackbox(program, folder, authority)
    try:
        blackbox.run(url, 100)
        checks = round(monitors * seconds / INTERVAL)
        return {
            "same pace": blackbox.run(url, checks, seconds) / checks * 1000,
            "flat out": blackbox.run(url, FLAT_OUT) / FLAT_OUT * 1000,
            "its memory": pss_of(blackbox.process.pid),
        }
    finally:
        blackbox.close()


def sentence(run: dict[str, Any], *, quiet: bool) -> str:
    whole = f"{run['a second']:.1f} ms of CPU a second, {run['memory']:.0f} MB"
    if not run["monitors"]:
        return f"no monitor: {whole}"
    line = f"{run['scheme'].upper()}, {run['monitors']:,} monitors: {whole}"
    line += f", {run['Wakeful']:.3f} ms a check"
    if "same pace" not in run:
        return line
    for name in ("same pace", "flat out"):
        line += f"; blackbox_exporter {name} {run[name]:.3f} ms"
        line += f" ({run['Wakeful'] / run[name]:.2f} times)" if quiet else ""
    return f"{line}, {run['its memory']:.0f} MB"


@contextmanager
def serving(settings: Settings) -> Iterator[int]:
    """``wakeful serve`` with all its processes, as the id of its supervisor."""
    service = subprocess.Popen(
        [str(Path(sys.executable).with_name("wakeful")), "serve"],
        env=environment()
        | {
            "WAKEFUL_BIND": f"{ADDRESS}:{free_port()}",
            "WAKEFUL_DATABASE_URL": settings.database_url or "",
            "WAKEFUL_INSTANCE": str(settings.instance),
            "WAKEFUL_SECRET_KEY": settings.secret_key or "",
            "WAKEFUL_ALLOW_NETWORKS": settings.allow_networks or "",
            "WAKEFUL_CANARIES": "",
            "WAKEFUL_CA_BUNDLE": settings.ca_bundle or "",
        },
        stdout=subprocess.DEVNULL,
    )
    try:
        yield service.pid
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(30)


def prepare(
    folder: Path,
    url: str,
    monitors: int,
    interval: int,
    authority: Path | None = None,
    database: str | None = None,
) -> tuple[Flask, Settings]:
    """A database with so many monitors, all of which are due."""
    settings = Settings(
        instance=folder,
        database_url=database or f"sqlite:///{folder / 'wakeful.db'}",
        secret_key="a key for benchmarks",  # noqa: S106 - of a database that is thrown away
        allow_networks="loopback",
        canaries="",
        ca_bundle=None if authority is None else str(authority),
    )
    app = create_core(settings)
    with app.app_context():
        schema.upgrade()
        add_monitors(url, range(monitors), interval)
    return app, settings


def add_monitors(url: str, numbers: range, interval: int = 60) -> None:
    """Store monitors that were never checked, all at once. Needs an application context."""
    if not numbers:
        return
    now = datetime.now(UTC)
    with writing() as session:
        last = session.scalar(select(func.max(MonitorRow.id))) or 0
        rows = [monitor(n, url, now) | {"interval": interval} for n in numbers]
        session.execute(insert(MonitorRow), rows)
        ids = session.scalars(select(MonitorRow.id).where(MonitorRow.id > last)).all()
        states = [{"monitor_id": id, "failures": 0, "domain": ""} for id in ids]
        session.execute(insert(MonitorStateRow), states)
        assignment = {"location_id": 1, "generation": 0, "blind": False}
        session.execute(insert(AssignmentRow), [{"monitor_id": id} | assignment for id in ids])


def monitor(number: int, url: str, now: datetime) -> dict[str, object]:
    name = f"Site {number}"
    return {
        "name": name, "name_folded": name.casefold(), "name_natural": natural_key(name), "url": url,
        "url_folded": url,
        "interval": 60, "alert_condition": "url_unavailable", "request_method": "GET",
        "cache_buster": 0, "timeout": 30, "accepted_statuses": "200-399", "follow_redirects": True,
        "verify_tls": True, "confirmations": 2, "tags": "", "paused": False, "created_at": now,
        "updated_at": now,
    }  # fmt: skip


def empty(app: Flask) -> None:
    """Leave the database as it was found: without monitors."""
    with app.app_context(), writing() as session:
        for table in (ResultRow, MonitorRow):
            session.execute(table.__table__.delete())


@contextmanager
def running(app: Flask, settings: Settings) -> Iterator[None]:
    stop, checker = threading.Event(), Checker(app, settings)
    thread = threading.Thread(target=checker.run, args=[stop])
    thread.start()
    try:
        yield
    finally:
        stop.set()
        checker.checks.wake()
        thread.join()


def recorded(app: Flask) -> int:
    with app.app_context():
        return db.session.scalar(select(func.count()).select_from(ResultRow)) or 0


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def all_good(app: Flask) -> None:
    with app.app_context():
        bad = select(func.count()).select_from(ResultRow).where(ResultRow.verdict != Verdict.UP)
        if failed := db.session.scalar(bad):
            raise SystemExit(f"{failed:,} checks were not up: the figures mean nothing.")


def as_if_checked(app: Flask, interval: int) -> None:
    """Let every monitor be up, and its last scheduled check be done, as after a restart: a schedule
    begins without a rush.
    """
    now = datetime.now(UTC)
    with app.app_context(), writing() as session:
        session.execute(update(MonitorStateRow).values(verdict=Verdict.UP, status_since=now))
        session.execute(update(AssignmentRow).values(verdict=Verdict.UP))
        rows = session.execute(select(AssignmentRow.monitor_id, AssignmentRow.generation)).all()
        scheduled = {id: to_ms(last_scheduled(id, interval, now)) for id, _generation in rows}
        latest.save(
            session,
            1,
            [(id, scheduled[id], None, scheduled[id], generation) for id, generation in rows],
        )


def paced(app: Flask, settings: Settings, warm_up: float, seconds: float) -> tuple[float, int]:
    """CPU seconds and checks of so many seconds of a checker on its schedule."""
    with running(app, settings):
        time.sleep(warm_up)
        before, used = recorded(app), cpu()
        time.sleep(seconds)
        return cpu() - used, recorded(app) - before


if __name__ == "__main__":
    sys.exit(main())
