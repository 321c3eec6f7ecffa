"""``make bench-kills``: two checkers are killed at random. Is anything checked late or twice?

    python -m bench.kills                      on a PostgreSQL that it starts for this
    python -m bench.kills --database sqlite    where one checker works and the other stands by
    python -m bench.kills --minutes 10 --monitors 500

Monitors are checked every 10 to 30 s, far more often than anybody may ask for. A tenth of them fail
for a minute or two. Every few seconds a checker is killed by SIGKILL and started again a moment
later. At the end the results say:

    late      the longest time between two results of a monitor, less its interval: 30 s at most
    twice     scheduled checks with two results, of monitors that never failed: none
    incidents one for each outage, and never two at once
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from flask import Flask
from sqlalchemy import select

from app import create_core
from app.config import Settings
from app.db import db, schema, writing
from app.db.tables import IncidentRow, MonitorRow, ResultRow
from app.db.types import from_ms
from app.engine import recorder
from app.engine.schedule import last_scheduled
from app.records import DEFAULT_PLACE_ID
from bench import databases
from bench.beside import environment
from bench.engine import monitor

KEY = "a key for benchmarks"
LATE_SECONDS = 30.0
FAILING_EVERY = 10  # each tenth monitor has an outage
OUTAGES = ((40.0, 100.0), (70.0, 190.0), (120.0, 200.0))  # seconds after the begin: from, to


class Target:
    """Answers 200, or 503 to a monitor in its outage. On a thread of its own."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()
        self.ready.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        )
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            number = int(head.split()[1].strip(b"/"))
            status = "503 Down" if self.fails(number) else "200 OK"
            answer = f"HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
            writer.write(answer.encode())
            await writer.drain()
        except (OSError, EOFError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def fails(self, number: int) -> bool:
        since = time.monotonic() - self.began
        return any(start <= since < end for start, end in outages(number))


def outages(number: int) -> tuple[tuple[float, float], ...]:
    if number % FAILING_EVERY:
        return ()
    return (OUTAGES[number // FAILING_EVERY % len(OUTAGES)],)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    databases.add_option(parser, databases.POSTGRES)
    parser.add_argument("--minutes", type=float, default=4.0, help="default 4")
    parser.add_argument("--monitors", type=int, default=100, help="default 100")
    parser.add_argument("--seed", type=int, default=1, help="of the random kills; default 1")
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)  # noqa: S311 (not a secret)
    with (
        tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder,
        databases.database(arguments.database, Path(folder)) as database,
    ):
        settings = Settings(
            instance=Path(folder), database_url=database, secret_key=KEY, canaries=""
        )
        app = create_core(settings)
        target = Target()
        intervals = prepare(app, target, arguments.monitors, dice)
        target.began = time.monotonic()
        kills = harass(database, folder, arguments.minutes * 60, dice)
        with app.app_context():
            return report(intervals, kills)


def prepare(app: Flask, target: Target, monitors: int, dice: random.Random) -> dict[int, int]:
    now = datetime.now(UTC)
    with app.app_context():
        schema.upgrade()
        for number in range(monitors):
            url = f"http://127.0.0.1:{target.port}/{number}"
            fields = {"interval": dice.randint(10, 30), "confirmations": 2, "timeout": 5}
            with writing() as session:
                row = MonitorRow(**{**monitor(number, url, now), **fields})
                recorder.add_monitors(session, [(row, [DEFAULT_PLACE_ID])], now)
        rows = db.session.execute(select(MonitorRow.id, MonitorRow.interval)).all()
        db.session.remove()
        return dict(map(tuple, rows))


def harass(database: str, folder: str, seconds: float, dice: random.Random) -> int:
    """Run two checkers and kill them at random; how often."""
    environ = environment() | {
        "WAKEFUL_DATABASE_URL": database, "WAKEFUL_SECRET_KEY": KEY, "WAKEFUL_CANARIES": "",
        "WAKEFUL_ALLOW_NETWORKS": "loopback", "WAKEFUL_INSTANCE": folder,
        "WAKEFUL_CONFIRM_SECONDS": "3",
    }  # fmt: skip
    log = Path(folder, "log").open("ab")  # noqa: SIM115 (closed below)

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", "from app.commands import cli; cli.main()", "checker"]
        return subprocess.Popen(command, env=environ, stdout=log, stderr=log)

    running = [start(), start()]
    kills, until = 0, time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            time.sleep(min(dice.uniform(3, 15), max(0.0, until - time.monotonic())))
            number = dice.randrange(2)
            running[number].send_signal(signal.SIGKILL)
            running[number].wait()
            kills += 1
            time.sleep(dice.uniform(0, 4))
            running[number] = start()
    finally:
        ended = sum(process.poll() is not None for process in running)
        print(f"{ended} of the 2 checkers had ended by themselves")
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
        log.close()
        told = Path(folder, "log").read_text()
        print(told[-2000:] if "Traceback" in told else "The checkers logged no fault.")
    return kills


def report(intervals: dict[int, int], kills: int) -> int:
    found: defaultdict[int, list[datetime]] = defaultdict(list)
    for id, at in db.session.execute(
        select(ResultRow.monitor_id, ResultRow.at).order_by(ResultRow.at)
    ):
        found[id].append(from_ms(at))
    last = max(times[-1] for times in found.values())
    late, twice = [], 0
    for number, (id, interval) in enumerate(sorted(intervals.items())):
        times = [*found[id], last]
        gaps = [(b - a).total_seconds() - interval for a, b in pairwise(times)]
        late.append(max(gaps, default=float("inf")))
        if not outages(number):
            scheduled = Counter(last_scheduled(id, interval, at) for at in found[id])
            twice += sum(count - 1 for count in scheduled.values())
    incidents = db.session.execute(
        select(IncidentRow.monitor_id, IncidentRow.started_at, IncidentRow.ended_at)
    ).all()
    counted = Counter(row.monitor_id for row in incidents)
    wanted = [id for number, id in enumerate(sorted(intervals)) if outages(number)]
    wrong = [id for id in intervals if counted[id] != (1 if id in wanted else 0)]
    late.sort()
    print(f"{sum(map(len, found.values())):,} results of {len(found)} monitors, {kills} kills")
    print(f"late: at most {late[-1]:.1f} s over the interval, half of them under "
          f"{late[len(late) // 2]:.1f} s")  # fmt: skip
    print(f"twice: {twice} scheduled checks")
    still = sum(row.ended_at is None for row in incidents)
    print(f"incidents: {len(incidents)} of {len(wanted)} outages, {still} of them open, "
          f"{len(wrong)} monitors with another number than theirs")  # fmt: skip
    per = Counter(int(at.timestamp()) // 10 for times in found.values() for at in times)
    print("results each 10 s:", *(per[ten] for ten in range(min(per), max(per) + 1)))
    good = late[-1] <= LATE_SECONDS and not twice and not wrong and len(found) == len(intervals)
    print("All is as it should be." if good else "NOT as it should be.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
