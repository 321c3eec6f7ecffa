"""``python -m bench.size``: the bytes that a result takes on SQLite, with its share of the sums.

A week of good checks at 60 s of some monitors, written as the engine writes them: results by
minute, then sums by hour and day. Not beside a reference: bytes do not depend on the machine.
"""

from __future__ import annotations

import random
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import text

from app.db import db, journal, rollups, writing
from app.records import Location, Result, Timings, Verdict
from bench.engine import prepare

MONITORS, DAYS = 50, 7


def main() -> int:
    dice = random.Random(1)  # noqa: S311 (not a secret)
    with tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder:
        app, _settings = prepare(Path(folder), "http://127.0.0.1/", MONITORS, 60)
        now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        first = now - timedelta(days=DAYS)
        with app.app_context():
            for minute in range(DAYS * 24 * 60):
                checked = first + timedelta(minutes=minute)
                results = [result(id, checked, dice) for id in range(1, MONITORS + 1)]
                journal.known_numbers(results)
                rows = [journal.row_of(one, Location.DEFAULT, 150) for one in results]
                with writing():
                    journal.keep(rows)
            rollups.roll(now + timedelta(minutes=30))
            sizes = text("SELECT name, SUM(pgsize) FROM dbstat GROUP BY name")
            used = dict(map(tuple, db.session.execute(sizes)))
    count = MONITORS * DAYS * 24 * 60
    print(f"{count:,} results of {MONITORS} monitors in {DAYS} days")
    for table in ("results", "rollups"):
        print(f"  {table:<8} {used[table] / count:6.1f} bytes a result")
    print(f"  together {(used['results'] + used['rollups']) / count:6.1f}")
    return 0


def result(id: int, checked: datetime, dice: random.Random) -> Result:
    parts = [dice.randint(0, 3), dice.randint(5, 60), dice.randint(5, 90), dice.randint(20, 300), 1]
    moment = checked + timedelta(milliseconds=dice.randint(0, 400), seconds=id % 60)
    return Result(
        moment, Verdict.UP, monitor_id=id, status_code=200, response_time=sum(parts),
        timings=Timings(*parts), ip="192.0.2.1", http_version="2",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
