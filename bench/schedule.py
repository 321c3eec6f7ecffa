"""``make bench-schedule``: how late checks start, and what a schedule costs, by number of monitors.

    python -m bench.schedule                            1,000 and 10,000 monitors, a minute each
    python -m bench.schedule --monitors 50000 --minutes 3
    python -m bench.schedule --new                      monitors that were never checked before
    python -m bench.schedule --json FILE --svg FILE

Monitors that were up are checked every 60 seconds, against nginx on loopback, by ``wakeful
checker`` in a process of its own, on SQLite. The first two minutes are for warming up. A check is
late by the time from its scheduled time to its start; a scheduled time without a check is skipped.
Memory is what the process holds at the end.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flask import Flask
from sqlalchemy import select

from app.db import db
from app.db.tables import ResultRow
from app.engine.schedule import last_scheduled
from bench import figures
from bench.beside import cpu_of, environment, target
from bench.engine import all_good, as_if_checked, prepare

INTERVAL = 60
WARM_UP = 2 * INTERVAL  # on a busy machine, a late start is made up for in the first
STARTED_WITHIN = 120.0  # seconds until the first check


@dataclass
class Figures:
    """Times in milliseconds; ``cpu`` is the share of one core, ``memory`` in MB."""

    monitors: int
    checks: int
    skipped: int
    median: float
    p99: float
    most: float
    cpu: float
    memory: float
    first_check: float  # seconds from the start of the process


def main() -> int:
    parser = figures.parser(__doc__)
    parser.add_argument("--monitors", type=int, action="append", help="may be given several times")
    parser.add_argument("--minutes", type=int, default=1, help="after the first two; default 1")
    parser.add_argument("--new", action="store_true", help="they were never checked before")
    arguments = parser.parse_args()
    found = []
    with (
        tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder,
        target(Path(folder)) as (urls, _authority),
    ):
        for monitors in arguments.monitors or (1_000, 10_000):
            found.append(measure(Path(folder), urls["http"], monitors, arguments))
            print(sentence(found[-1]))
    figures.keep(
        arguments,
        {"schedules": [asdict(one) for one in found]},
        "Start of checks after their scheduled time",
        [figures.Bars(f"{one.monitors:,} monitors", [one.median, one.p99], " ms") for one in found],
        ["median", "99%"],
    )
    return 0


def measure(folder: Path, url: str, monitors: int, wanted: argparse.Namespace) -> Figures:
    own = folder / f"of-{monitors}"
    own.mkdir()
    app, settings = prepare(own, url, monitors, INTERVAL)
    if not wanted.new:
        as_if_checked(app, INTERVAL)
    began = time.monotonic()
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("wakeful")), "checker"],
        env=environment()
        | {
            "WAKEFUL_DATABASE_URL": settings.database_url or "",
            "WAKEFUL_INSTANCE": str(own),
            "WAKEFUL_SECRET_KEY": settings.secret_key or "",
            "WAKEFUL_ALLOW_NETWORKS": "loopback",
            "WAKEFUL_CANARIES": "",
        },
    )
    try:
        first = first_check(app, began)
        time.sleep(WARM_UP)
        since, used, clock = datetime.now(UTC), cpu_of(process.pid), time.monotonic()
        time.sleep(wanted.minutes * 60)
        until = datetime.now(UTC)
        spent = (cpu_of(process.pid) - used) / (time.monotonic() - clock)
        memory = memory_of(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    all_good(app)
    return late(app, monitors, since, until, spent, memory, first)


def first_check(app: Flask, began: float) -> float:
    with app.app_context():
        while db.session.scalar(select(ResultRow.at).limit(1)) is None:
            db.session.rollback()
            if time.monotonic() - began > STARTED_WITHIN:
                raise SystemExit("The checker made no check.")
            time.sleep(0.1)
    return time.monotonic() - began


def memory_of(pid: int) -> float:
    """What the process holds of its own and shared memory, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = [int(line.split()[1]) for line in lines if line.startswith("VmRSS:")]
    if not found:
        raise SystemExit(f"Process {pid} has ended: the figures mean nothing.")
    return found[0] / 1024


def late(
    app: Flask,
    monitors: int,
    since: datetime,
    until: datetime,
    cpu: float,
    memory: float,
    first: float,
) -> Figures:
    """The figures of the scheduled checks between two times. The last second of them may be on its
    way.
    """
    begin, end = (int(moment.timestamp() * 1000) for moment in (since, until))
    with app.app_context():
        rows = db.session.execute(
            select(ResultRow.monitor_id, ResultRow.at).where(
                ResultRow.at >= begin, ResultRow.at < end
            )
        ).all()
    done: dict[int, set[datetime]] = {}
    delays = []
    for id, at in rows:
        checked = datetime.fromtimestamp(at / 1000, UTC)
        scheduled = last_scheduled(id, INTERVAL, checked)
        done.setdefault(id, set()).add(scheduled)
        delays.append((checked - scheduled).total_seconds() * 1000)
    skipped = 0
    for id in range(1, monitors + 1):
        scheduled = last_scheduled(id, INTERVAL, until - timedelta(seconds=5))
        while scheduled > since:
            skipped += scheduled not in done.get(id, ())
            scheduled -= timedelta(seconds=INTERVAL)
    cuts = statistics.quantiles(delays, n=100)
    found = (cuts[49], cuts[98], max(delays), cpu, memory, first)
    return Figures(monitors, len(rows), skipped, *(round(figure, 3) for figure in found))


def sentence(found: Figures) -> str:
    return (
        f"{found.monitors:,} monitors: {found.checks:,} checks, {found.skipped:,} skipped;"
        f" late by {found.median:.0f} ms (median), {found.p99:.0f} ms (99%), {found.most:.0f} ms"
        f" (most); {found.cpu * 100:.1f}% of one core, {found.memory:.0f} MB;"
        f" first check after {found.first_check:.1f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
