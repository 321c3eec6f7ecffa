"""``python -m bench.packing``: an hour of a monitor's results in one row, beside a row for each.

    python -m bench.packing                        on SQLite
    python -m bench.packing --database postgres    and the bytes on a PostgreSQL that it starts

A million good checks at 60 s (700 monitors, one day, one place) with all their phases: as Wakeful
keeps them; with all but the key in one blob; and packed. A packed row has the results of an hour as
columns of numbers of variable length, times as differences, and columns that repeat as runs. It is
an experiment: Wakeful does not pack. Not beside a reference; bytes do not depend on the
machine, and the times to read are a ratio of two reads in the same run.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from bench import databases

HOUR = 3_600_000  # ms
START = 1_790_000_000_000 // HOUR * HOUR
MONITORS, MINUTES = 700, 1440
COLUMNS = (
    "at", "verdict", "maintenance", "covers_s", "status_code", "response_time", "dns", "connect",
    "tls", "ttfb", "download", "context_id", "cause_code_id",
)  # fmt: skip
ROWS = f"""CREATE TABLE results (monitor_id INTEGER, location_id INTEGER,
    {", ".join(f"{name} INTEGER" for name in COLUMNS)}, cause TEXT,
    PRIMARY KEY (monitor_id, at, location_id)) WITHOUT ROWID"""
NARROW = """CREATE TABLE results (monitor_id INTEGER, location_id INTEGER, at INTEGER, rest BLOB,
    PRIMARY KEY (monitor_id, at, location_id)) WITHOUT ROWID"""
HOURS = """CREATE TABLE hours (monitor_id INTEGER, location_id INTEGER, start INTEGER, packed BLOB,
    PRIMARY KEY (monitor_id, start, location_id)) WITHOUT ROWID"""
HOURS_ON_POSTGRES = """CREATE TABLE hours (monitor_id BIGINT, location_id SMALLINT, start BIGINT,
    packed BYTEA, PRIMARY KEY (monitor_id, start, location_id))"""

Row = tuple[int | None, ...]  # the values of COLUMNS


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    databases.add_option(parser, databases.SQLITE)
    wanted = parser.parse_args().database
    dice = random.Random(1)  # noqa: S311 (not a secret)
    count = MONITORS * MINUTES
    with tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder:
        names = ("rows", "narrow", "plain", "deflated")
        files = [sqlite3.connect(Path(folder) / name) for name in names]
        rows, narrow, plain, deflated = files
        narrow.execute(NARROW)
        rows.execute(ROWS)
        for one in (plain, deflated):
            one.execute(HOURS)
        packing = 0.0
        for monitor in range(MONITORS):
            day = [result(minute, dice) for minute in range(MINUTES)]
            marks = ", ".join("?" * (2 + len(COLUMNS)))
            rows.executemany(
                f"INSERT INTO results VALUES ({marks}, NULL)",  # noqa: S608 (question marks)
                [(monitor, 1, *row) for row in day],
            )
            narrow.executemany(
                "INSERT INTO results VALUES (?, 1, ?, ?)",
                [(monitor, row[0], blob_of(row[1:])) for row in day],
            )
            began = time.process_time()
            hours = [(start, pack(list(part))) for start, part in groupby(day, hour_of)]
            packing += time.process_time() - began
            keep(plain, monitor, hours)
            keep(deflated, monitor, [(start, zlib.compress(blob)) for start, blob in hours])
        for one in files:
            one.commit()
        print(f"{count:,} results; packing took {packing / count * 1e6:.1f} us of CPU a result")
        for name, one, read in (
            ("a row each", rows, read_rows),
            ("a blob each", narrow, read_narrow),
            ("packed by hour", plain, read_packed),
            ("packed, zlib", deflated, read_deflated),
        ):
            used, taken = size(one) / count, cpu_of(read, one) * 1000
            print(f"  {name:<15} {used:6.1f} bytes a result, {taken:.2f} ms to read a day of one")
        for monitor in (0, MONITORS - 1):
            assert read_rows(rows, monitor) == read_narrow(narrow, monitor)  # noqa: S101
            assert read_rows(rows, monitor) == read_packed(plain, monitor)  # noqa: S101
            assert read_rows(rows, monitor) == read_deflated(deflated, monitor)  # noqa: S101
        if wanted != databases.SQLITE:
            with databases.database(wanted, Path(folder)) as url:
                for name, one in (("packed by hour", plain), ("packed, zlib", deflated)):
                    used = size_on_postgres(url, one) / count
                    print(f"  {name:<15} {used:6.1f} bytes a result on PostgreSQL, with the index")
    return 0


def result(minute: int, dice: random.Random) -> Row:
    """A good check; the place of its monitor in the minute shows as its first time."""
    parts = [dice.randint(0, 3), dice.randint(5, 60), dice.randint(5, 90), dice.randint(20, 300), 1]
    at = START + minute * 60_000 + 20_000 + dice.randint(0, 400)
    return (at, 0, 0, 150, 200, sum(parts), *parts, 1, None)


def hour_of(row: Row) -> int:
    return (row[0] or 0) // HOUR


def keep(file: sqlite3.Connection, monitor: int, hours: Iterable[tuple[int, bytes]]) -> None:
    rows = [(monitor, start, blob) for start, blob in hours]
    file.executemany("INSERT INTO hours VALUES (?, 1, ?, ?)", rows)


# --- One result as bytes: each value as a number, 0 for none


def blob_of(values: Iterable[int | None]) -> bytes:
    return b"".join(number(0 if value is None else value + 1) for value in values)


def values_of(blob: bytes) -> list[int | None]:
    return [value - 1 if value else None for value in numbers_of(blob)]


# --- One hour as bytes


def pack(rows: Sequence[Row]) -> bytes:
    """The number of rows, then each column: as runs, or each value, whichever is shorter."""
    out = bytearray(number(len(rows)))
    for place, column in enumerate(zip(*rows, strict=True)):
        values = differences(column) if place == 0 else [0 if v is None else v + 1 for v in column]
        runs = [(value, len(list(same))) for value, same in groupby(values)]
        each = b"".join(map(number, values))
        short = b"".join(number(value) + number(times) for value, times in runs)
        out += b"\1" + short if len(short) < len(each) else b"\0" + each
    return bytes(out)


def unpack(blob: bytes) -> list[Row]:
    numbers = numbers_of(blob)
    count = next(numbers)
    columns: list[Sequence[int | None]] = []
    for place in range(len(COLUMNS)):
        values: list[int] = []
        if next(numbers):
            while len(values) < count:
                value = next(numbers)
                values += [value] * next(numbers)
        else:
            values = [next(numbers) for _ in range(count)]
        columns.append(sums(values) if place == 0 else [v - 1 if v else None for v in values])
    return list(zip(*columns, strict=True))


def differences(column: Sequence[Any]) -> list[int]:
    return [column[0], *(b - a for a, b in pairwise(column))]


def sums(values: Iterable[int]) -> list[int | None]:
    found, total = [], 0
    for value in values:
        total += value
        found.append(total)
    return list(found)


def number(value: int) -> bytes:
    """Seven bits in each byte, the lowest first; the last byte is below 128."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def numbers_of(blob: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in blob:
        value |= (byte & 127) << shift
        if byte < 128:
            yield value
            value = shift = 0
        else:
            shift += 7


# --- Reading a day of one monitor


def read_rows(file: sqlite3.Connection, monitor: int) -> list[Row]:
    names = ", ".join(COLUMNS)
    return file.execute(
        f"SELECT {names} FROM results WHERE monitor_id = ? ORDER BY at",  # noqa: S608
        [monitor],
    ).fetchall()


def read_narrow(file: sqlite3.Connection, monitor: int) -> list[Row]:
    rows = file.execute("SELECT at, rest FROM results WHERE monitor_id = ? ORDER BY at", [monitor])
    return [(at, *values_of(rest)) for at, rest in rows]


def blobs(file: sqlite3.Connection, monitor: int) -> Iterator[bytes]:
    rows = file.execute("SELECT packed FROM hours WHERE monitor_id = ? ORDER BY start", [monitor])
    return (blob for (blob,) in rows)


def read_packed(file: sqlite3.Connection, monitor: int) -> list[Row]:
    return [row for blob in blobs(file, monitor) for row in unpack(blob)]


def read_deflated(file: sqlite3.Connection, monitor: int) -> list[Row]:
    return [row for blob in blobs(file, monitor) for row in unpack(zlib.decompress(blob))]


def cpu_of(read: Callable[[sqlite3.Connection, int], list[Row]], file: sqlite3.Connection) -> float:
    def once(monitor: int) -> float:
        began = time.process_time()
        read(file, monitor)
        return time.process_time() - began

    return statistics.median(once(monitor) for monitor in range(0, MONITORS, 7))


def size(file: sqlite3.Connection) -> int:
    (pages,), (bytes_,) = (
        file.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size")
    )
    return int(pages * bytes_)


def size_on_postgres(url: str, file: sqlite3.Connection) -> int:
    """The bytes that the packed hours of ``file`` take there, written hour by hour."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS hours"))
        connection.execute(text(HOURS_ON_POSTGRES))
        hours = file.execute("SELECT * FROM hours ORDER BY start, monitor_id")
        names = ("monitor_id", "location_id", "start", "packed")
        connection.execute(
            text("INSERT INTO hours VALUES (:monitor_id, :location_id, :start, :packed)"),
            [dict(zip(names, hour, strict=True)) for hour in hours],
        )
    with engine.connect() as connection:
        found = connection.scalar(text("SELECT pg_total_relation_size('hours')"))
    engine.dispose()
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
