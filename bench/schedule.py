"""``make bench-schedule``: how late checks start, and what a schedule costs, by number of monitors.

    python -m bench.schedule                            1,000 and 10,000 monitors, a minute each
    python -m bench.schedule --monitors 50000 --minutes 3
    python -m bench.schedule --json FILE --svg FILE

Monitors are checked every 60 seconds, against nginx on loopback, by ``wakeful checker`` in a
process of its own, on SQLite. The first two minutes are for warming up. A check is late by the time
from its slot to its start; a slot without a check is skipped. Memory is what the process holds at
the end.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flask import Flask
from sqlalchemy import select

from app.db import db
from app.db.tables import ResultRow
from app.engine.schedule import last_slot
from bench.beside import cpu_of, target
from bench.engine import all_good, as_if_checked, machine, prepare

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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--monitors", type=int, action="append", help="may be given several times")
    parser.add_argument("--minutes", type=int, default=1, help="after the first two; default 1")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    arguments = parser.parse_args()
    found = []
    with (
        tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder,
        target(Path(folder)) as (urls, _authority),
    ):
        for monitors in arguments.monitors or (1_000, 10_000):
            found.append(measure(Path(folder), urls["http"], monitors, arguments.minutes))
            print(sentence(found[-1]))
    if arguments.json:
        whole = {"machine": machine(), "schedules": [asdict(one) for one in found]}
        arguments.json.write_text(json.dumps(whole, indent=2) + "\n")
    if arguments.svg:
        arguments.svg.write_text(drawn(found))
    return 0


def measure(folder: Path, url: str, monitors: int, minutes: int) -> Figures:
    own = folder / f"of-{monitors}"
    own.mkdir()
    app, settings = prepare(own, url, monitors, INTERVAL)
    as_if_checked(app, INTERVAL)
    began = time.monotonic()
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("wakeful")), "checker"],
        env=os.environ
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
        time.sleep(minutes * 60)
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
    (kilobytes,) = (int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    return kilobytes / 1024


def late(
    app: Flask,
    monitors: int,
    since: datetime,
    until: datetime,
    cpu: float,
    memory: float,
    first: float,
) -> Figures:
    """The figures of the slots between two times. The last second of them may be on its way."""
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
        slot = last_slot(id, INTERVAL, checked)
        done.setdefault(id, set()).add(slot)
        delays.append((checked - slot).total_seconds() * 1000)
    skipped = 0
    for id in range(1, monitors + 1):
        slot = last_slot(id, INTERVAL, until - timedelta(seconds=5))
        while slot > since:
            skipped += slot not in done.get(id, ())
            slot -= timedelta(seconds=INTERVAL)
    cuts = statistics.quantiles(delays, n=100)
    figures = (cuts[49], cuts[98], max(delays), cpu, memory, first)
    return Figures(monitors, len(rows), skipped, *(round(figure, 3) for figure in figures))


def sentence(found: Figures) -> str:
    return (
        f"{found.monitors:,} monitors: {found.checks:,} checks, {found.skipped:,} slots skipped;"
        f" late by {found.median:.0f} ms (median), {found.p99:.0f} ms (99%), {found.most:.0f} ms"
        f" (most); {found.cpu * 100:.1f}% of one core, {found.memory:.0f} MB;"
        f" first check after {found.first_check:.1f} s"
    )


def drawn(found: Sequence[Figures]) -> str:
    """A bar for the median and the 99th percentile of each number of monitors."""
    widest = max(one.p99 for one in found) or 1.0
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {40 + 50 * len(found)}"'
        ' font-family="sans-serif" font-size="13">',
        "<title>How late checks start, by number of monitors</title>",
        '<text x="10" y="20">Start of checks after their slot: median and 99%</text>',
    ]
    for place, one in enumerate(found):
        y = 40 + 50 * place
        lines += [
            f'<text x="10" y="{y + 20}">{one.monitors:,}</text>',
            *_bar(y, one.median, one.median / widest, "#2f6f9f"),
            *_bar(y + 16, one.p99, one.p99 / widest, "#9fc3dd"),
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _bar(y: int, figure: float, share: float, colour: str) -> Sequence[str]:
    width = share * 420
    return (
        f'<rect x="90" y="{y}" height="14" width="{width:.1f}" fill="{colour}"/>',
        f'<text x="{95 + width:.0f}" y="{y + 12}">{figure:.0f} ms</text>',
    )


if __name__ == "__main__":
    sys.exit(main())
