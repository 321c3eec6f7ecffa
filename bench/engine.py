"""``make bench-engine``: the whole engine, from what is due to the rows that it leaves.

    python -m bench.engine                              HTTP and HTTPS on SQLite, about four minutes
    python -m bench.engine --monitors 1000 --seconds 20 --scheme http
    python -m bench.engine --database postgres          on a PostgreSQL that it starts for this

The target is nginx on loopback, a process of its own. Monitors are checked every 10 seconds, so
that a short run has enough checks. Wakeful's figures are the CPU of its process with all that
follows from a check: schedule, check, verdict, rows. Two parts:

    flat out      all monitors are due, and checks run as fast as they can
    on schedule   a full schedule at its own pace, after one interval of warming up

Beside them, in the same run, stand blackbox_exporter's probe (its process alone; set
BLACKBOX_EXPORTER if it is not on the path), the bare library, which keeps nothing of an answer, and
wrk, which is C and verifies nothing: the floor.
The ratios tell more than milliseconds of a busy machine. ``--json FILE`` writes the figures,
``--svg FILE`` draws them.
"""

from __future__ import annotations

import argparse
import resource
import shutil
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
from app.engine.schedule import last_slot
from app.records import Verdict
from bench import databases, figures
from bench.beside import Blackbox, target
from bench.checks import BareCurl, wrk

INTERVAL = 10


def main() -> int:
    parser = figures.parser(__doc__)
    parser.add_argument("--monitors", type=int, default=3_000, help="default 3000")
    parser.add_argument("--seconds", type=int, default=30, help="of the second part; default 30")
    parser.add_argument("--interval", type=int, default=INTERVAL, help="default 10")
    parser.add_argument("--scheme", choices=("http", "https"), action="append")
    databases.add_option(parser, databases.SQLITE)
    arguments = parser.parse_args()
    found: dict[str, Any] = {"monitors": arguments.monitors, "runs": []}
    with (
        tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder,
        target(Path(folder)) as (urls, authority),
    ):
        for scheme in arguments.scheme or urls:
            run = one_run(Path(folder) / scheme, urls[scheme], authority, arguments)
            found["runs"].append({"scheme": scheme, **run})
    figures.keep(
        arguments,
        found,
        f"CPU ms of a check, {arguments.monitors:,} monitors",
        [
            figures.Bars(f"{run['scheme']}, {name}", [figure], " ms", _ratios(run, name))
            for run in found["runs"]
            for name, figure in run.items()
            if name != "scheme"
        ],
    )
    return 0


def _ratios(run: dict[str, Any], name: str) -> str:
    """A figure in times of the references that stand beside it."""
    if name not in ("flat out", "on schedule"):
        return ""
    references = [other for other in ("blackbox_exporter", "bare pycurl") if other in run]
    return ", ".join(f"{run[name] / run[other]:.2f} x {other}" for other in references)


def one_run(folder: Path, url: str, authority: Path, wanted: argparse.Namespace) -> dict[str, Any]:
    folder.mkdir()
    print(f"{url.partition(':')[0].upper()}: {wanted.monitors:,} monitors, CPU a check")
    references = beside(folder, url, authority, wanted.monitors)
    with databases.database(wanted.database, folder) as database:
        app, settings = prepare(folder, url, wanted.monitors, wanted.interval, authority, database)
        try:
            flat = throughput(app, settings, wanted.monitors)
            paced = on_schedule(app, settings, wanted.monitors, wanted.interval, wanted.seconds)
        finally:
            empty(app)
    found = {**references, "flat out": flat, "on schedule": paced}
    for name, seconds in found.items():
        beside_it = ", ".join(
            f"{seconds / reference:.2f} x {other}"
            for other, reference in references.items()
            if other != name
        )
        print(f"  {name:<18} {seconds * 1000:7.3f} ms   {beside_it}")
    return {name: round(seconds * 1000, 4) for name, seconds in found.items()}


def beside(folder: Path, url: str, authority: Path, checks: int) -> dict[str, float]:
    """The CPU seconds that the references take for a check."""
    found = {"bare pycurl": BareCurl(url, str(authority)).run(checks) / checks}
    if program := Blackbox.program():
        blackbox = Blackbox(program, folder, authority)
        try:
            blackbox.run(url, 100)
            found["blackbox_exporter"] = blackbox.run(url, checks) / checks
        finally:
            blackbox.close()
    else:
        print("  blackbox_exporter is not installed, so it is left out.")
    if shutil.which("wrk"):
        found["wrk"] = wrk(url)
    else:
        print("  wrk is not installed, so it is left out.")
    return found


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
        assignment = {"location_id": 1, "turn": 0, "blind": False}
        session.execute(insert(AssignmentRow), [{"monitor_id": id} | assignment for id in ids])


def monitor(number: int, url: str, now: datetime) -> dict[str, object]:
    name = f"Site {number}"
    return {
        "name": name, "name_folded": name.casefold(), "url": url, "url_folded": url,
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
def running(app: Flask, settings: Settings, *, paced: bool) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=Checker(app, settings, paced=paced).run, args=[stop])
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def recorded(app: Flask) -> int:
    with app.app_context():
        return db.session.scalar(select(func.count()).select_from(ResultRow)) or 0


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def throughput(app: Flask, settings: Settings, monitors: int) -> float:
    """The CPU seconds of a check, of monitors that were never checked before."""
    used = cpu()
    with running(app, settings, paced=False):
        while recorded(app) < monitors:
            time.sleep(0.5)
        spent = cpu() - used
        done = recorded(app)  # a monitor that came due again meanwhile counts too
    all_good(app)
    return spent / done


def all_good(app: Flask) -> None:
    with app.app_context():
        bad = select(func.count()).select_from(ResultRow).where(ResultRow.verdict != Verdict.UP)
        if failed := db.session.scalar(bad):
            raise SystemExit(f"{failed:,} checks were not up: the figures mean nothing.")


def as_if_checked(app: Flask, interval: int) -> None:
    """Let every monitor be up, and its last slot be done, as after a restart: a schedule begins
    without a rush.
    """
    now = datetime.now(UTC)
    with app.app_context(), writing() as session:
        session.execute(update(MonitorStateRow).values(verdict=Verdict.UP, status_since=now))
        session.execute(update(AssignmentRow).values(verdict=Verdict.UP))
        rows = session.execute(select(AssignmentRow.monitor_id, AssignmentRow.turn)).all()
        slots = {id: to_ms(last_slot(id, interval, now)) for id, _turn in rows}
        latest.save(session, 1, [(id, slots[id], None, slots[id], turn) for id, turn in rows])


def on_schedule(
    app: Flask, settings: Settings, monitors: int, interval: int, seconds: int
) -> float:
    """The CPU seconds of a check on its schedule, once every monitor has been checked."""
    as_if_checked(app, interval)
    spent, done = paced(app, settings, interval + 5, seconds)
    all_good(app)
    if done < 0.9 * monitors * seconds / interval:
        print(f"  The machine was too busy: {done:,} checks of its schedule were made.")
    return spent / done


def paced(app: Flask, settings: Settings, warm_up: float, seconds: float) -> tuple[float, int]:
    """CPU seconds and checks of so many seconds of a checker on its schedule."""
    with running(app, settings, paced=True):
        time.sleep(warm_up)
        before, used = recorded(app), cpu()
        time.sleep(seconds)
        return cpu() - used, recorded(app) - before


if __name__ == "__main__":
    sys.exit(main())
