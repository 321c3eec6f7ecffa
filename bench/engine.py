"""``make bench-engine``: the whole engine, from what is due to the rows that it leaves.

    python -m bench.engine                      both parts, about four minutes
    python -m bench.engine --monitors 2000 --minutes 1

The target is nginx on loopback, a process of its own; the database is SQLite on this disk. Part one
takes monitors that are all due and runs as fast as it can: claim, check, judge, record. Its CPU is
this process's alone; beside it, in the same run, stands what the bare library uses to fetch the
same page (see bench/checks.py): the ratio tells more than milliseconds of a busy machine.
Part two lets a full schedule run at its own pace, and tells how late checks start, by the grid that
each monitor's place gives. Machines are noisy: look at several runs.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flask import Flask
from sqlalchemy import func, insert, select, text, update

from app import create_core
from app.config import Settings
from app.db import db, schema, writing
from app.db.tables import AssignmentRow, MonitorRow, MonitorStateRow, ResultRow
from app.engine.checker import Checker
from app.engine.schedule import last_slot, place
from bench.checks import BareCurl
from tests.support.nginx import Nginx

INTERVAL = 60


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--monitors", type=int, default=10_000, help="default 10000")
    parser.add_argument("--minutes", type=int, default=3, help="of the second part; default 3")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder:
        path = Path(folder)
        path.chmod(0o755)
        nginx = Nginx(path / "site", {"index.html": "<h1>Fine</h1>"})
        # The tests' nginx takes 256 connections; part one would measure its refusals.
        config = path / "site" / "nginx.conf"
        config.write_text(config.read_text().replace("connections 256", "connections 4096"))
        nginx.start()
        try:
            app, settings = prepare(path, nginx.url(), arguments.monitors)
            bare = BareCurl(nginx.url(), "").run(arguments.monitors) / arguments.monitors
            throughput(app, settings, arguments.monitors, bare)
            lag(app, settings, arguments.minutes)
        finally:
            nginx.stop()
    return 0


def prepare(folder: Path, url: str, monitors: int) -> tuple[Flask, Settings]:
    settings = Settings(
        instance=folder,
        database_url=f"sqlite:///{folder / 'wakeful.db'}",
        secret_key="a key for benchmarks",  # noqa: S106 - of a database that is thrown away
        allow_networks="loopback",
        canaries="",
    )
    app = create_core(settings)
    now = datetime.now(UTC)
    with app.app_context():
        schema.upgrade()
        with writing() as session:
            session.execute(insert(MonitorRow), [monitor(n, url, now) for n in range(monitors)])
            ids = session.scalars(select(MonitorRow.id)).all()
            session.execute(
                insert(MonitorStateRow),
                [{"monitor_id": id, "failures": 0} for id in ids],
            )
            assignment = {"location_id": 1, "turn": 0, "blind": False}
            session.execute(insert(AssignmentRow), [{"monitor_id": id} | assignment for id in ids])
    return app, settings


def monitor(number: int, url: str, now: datetime) -> dict[str, object]:
    name = f"Site {number}"
    return {
        "name": name, "name_folded": name.casefold(), "url": url, "url_folded": url,
        "interval": INTERVAL, "alert_condition": "url_unavailable", "request_method": "GET",
        "cache_buster": 0, "timeout": 30, "accepted_statuses": "200-399", "follow_redirects": True,
        "verify_tls": True, "confirmations": 2, "tags": "", "paused": False, "created_at": now,
        "updated_at": now,
    }  # fmt: skip


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


def throughput(app: Flask, settings: Settings, monitors: int, bare: float) -> None:
    """``bare``: CPU seconds that pycurl alone needs for a check."""
    began, used = time.monotonic(), cpu()
    with running(app, settings, paced=False):
        while recorded(app) < monitors:
            time.sleep(0.2)
        seconds, spent = time.monotonic() - began, cpu() - used
    # A monitor that came due again meanwhile counts too.
    done = recorded(app)
    with app.app_context():
        bad = select(func.count()).select_from(ResultRow).where(ResultRow.verdict != 0)
        if failed := db.session.scalar(bad):
            print(f"  {failed:,} of them were not up, which costs more: do not trust this run")
    print(f"As fast as it can: {done:,} checks in {seconds:.1f} s, {done / seconds:,.0f} a second")
    each = spent / done
    print(f"  CPU: {each * 1000:.2f} ms a check (check, judge, record): {1 / each:,.0f} a core")
    print(f"  pycurl alone: {bare * 1000:.2f} ms a check, {bare / each:.2f} x Wakeful")


def lag(app: Flask, settings: Settings, minutes: int) -> None:
    now = datetime.now(UTC)
    with app.app_context(), writing() as session:
        session.execute(text("DELETE FROM results"))
        soon = now + timedelta(seconds=2)
        for id in session.scalars(select(AssignmentRow.monitor_id)).all():
            session.execute(
                update(AssignmentRow)
                .where(AssignmentRow.monitor_id == id)
                .values(slot=last_slot(id, INTERVAL, soon))
            )
    began, used = time.monotonic(), cpu()
    with running(app, settings, paced=True):
        time.sleep(minutes * 60 + 5)
        seconds, spent = time.monotonic() - began, cpu() - used
    with app.app_context():
        rows = db.session.execute(select(ResultRow.monitor_id, ResultRow.at)).all()
        up = db.session.scalar(
            select(func.count()).select_from(ResultRow).where(ResultRow.verdict == 0)
        )
    late = sorted((at / 1000 - place(id, INTERVAL)) % INTERVAL * 1000 for id, at in rows)
    cuts = statistics.quantiles(late, n=100)
    print(f"On schedule: {len(rows):,} checks in {seconds:.0f} s, {up:,} of them up")
    print(f"  late by: median {cuts[49]:.0f} ms, 99% {cuts[98]:.0f} ms, most {late[-1]:.0f} ms")
    each = spent / len(rows) * 1000
    print(f"  CPU: {spent / seconds * 100:.0f}% of one core, {each:.2f} ms a check")


if __name__ == "__main__":
    sys.exit(main())
