"""``python -m bench.size``: the bytes that a result takes, single and packed, and its share of the
sums.

    python -m bench.size                        on SQLite
    python -m bench.size --database postgres    on a PostgreSQL that it starts for this

A week of good checks at 60 s of some monitors, written as the engine writes them: results by
minute, sums by hour and day, and hours packed once they are old enough. Not beside a reference:
bytes do not depend on the machine.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import func, select, text

from app.db import db, journal, packed, rollups, writing
from app.db.tables import ResultRow
from app.db.types import to_ms
from app.records import DEFAULT_PLACE_ID, Result, Timings, Verdict
from app.stats.tally import DAY_MS
from bench import databases
from bench.engine import prepare

MONITORS, DAYS = 50, 7


# By table: what it takes, and what of that is its index. SQLite's tables are their own index.
SIZES = {
    "sqlite": "SELECT name, SUM(pgsize), 0 FROM dbstat GROUP BY name",
    "postgresql": "SELECT relname, pg_total_relation_size(oid), pg_indexes_size(oid) FROM pg_class"
    " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    databases.add_option(parser, databases.SQLITE)
    wanted = parser.parse_args().database
    dice = random.Random(1)  # noqa: S311 (not a secret)
    with (
        tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder,
        databases.database(wanted, Path(folder)) as database,
    ):
        app, _settings = prepare(Path(folder), "http://127.0.0.1/", MONITORS, 60, database=database)
        now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        first = now - timedelta(days=DAYS)
        with app.app_context():
            logged, cpu = wal(), 0.0
            for minute in range(DAYS * 24 * 60):
                checked = first + timedelta(minutes=minute)
                if minute % 60 == 30:
                    rollups.roll(checked)
                    began = time.process_time()
                    packed.pack_old(checked, 600)
                    cpu += time.process_time() - began
                if minute % 1440 == 0:
                    vacuum()
                results = [result(id, checked, dice) for id in range(1, MONITORS + 1)]
                journal.assign_numbers(results)
                rows = [journal.row_of(one, DEFAULT_PLACE_ID, 150) for one in results]
                with writing():
                    journal.insert_results(rows)
            logged = wal() - logged
            rollups.roll(now + timedelta(minutes=30))
            singles = db.session.scalar(select(func.count()).select_from(ResultRow)) or 0
            sizes = text(SIZES[db.engine.dialect.name])
            used = {name: (all_, index) for name, all_, index in db.session.execute(sizes)}
            packed_day, single_day = (cpu_of_a_day(now - timedelta(days=days)) for days in (3, 1))
            db.session.remove()
            db.engine.dispose()
    count = MONITORS * DAYS * 24 * 60
    print(f"{count:,} results of {MONITORS} monitors in {DAYS} days")
    in_hours = count - singles
    for table, number in (("results", singles), ("packed_hours", in_hours), ("rollups", count)):
        all_, index = used[table]
        print(
            f"  {table:<12} {all_ / number:6.1f} bytes a result, {index / number:.1f} in its index"
        )
    print(
        f"  {singles:,} of them are single; to pack takes {cpu / in_hours * 1e6:.1f} us of CPU each"
    )
    print(f"  a day of one is read in {single_day:.1f} ms as rows, {packed_day:.1f} ms packed")
    if logged:
        print(f"  write-ahead log {logged / count:.0f} bytes a result, without whole pages")
    return 0


def cpu_of_a_day(start: datetime) -> float:
    """Milliseconds to read a day of a monitor, the median of all."""
    begin, times = to_ms(start), []
    for id in range(1, MONITORS + 1):
        began = time.process_time()
        rollups.checks([id], begin, begin + DAY_MS)
        times.append(time.process_time() - began)
    return statistics.median(times) * 1000


def vacuum() -> None:
    """What PostgreSQL does by itself in a day."""
    if db.engine.dialect.name == "postgresql":
        with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM results"))


def wal() -> int:
    """How much PostgreSQL has logged. It does not write whole pages here (``full_page_writes``)."""
    if db.engine.dialect.name != "postgresql":
        return 0
    return int(db.session.scalar(text("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")) or 0)


def result(id: int, checked: datetime, dice: random.Random) -> Result:
    parts = [dice.randint(0, 3), dice.randint(5, 60), dice.randint(5, 90), dice.randint(20, 300), 1]
    moment = checked + timedelta(milliseconds=dice.randint(0, 400), seconds=id % 60)
    return Result(
        moment, Verdict.UP, monitor_id=id, status_code=200, response_time=sum(parts),
        timings=Timings(*parts), ip="192.0.2.1", http_version="2",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
