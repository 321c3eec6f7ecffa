"""Uptime Kuma's SQLite file (kuma.db) of versions 1 and 2.

The file may be hostile, and the schema of a database can run code. The file is opened read-only,
and only its plain tables are read. Views, virtual tables, triggers, functions and attached files
are refused, and time, row count and the size of values have limits.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.i18n import N_, _
from app.imports import kuma
from app.imports.candidates import MAX_CANDIDATES, NotReadable, Reading
from app.imports.values import number, string

HEADER = b"SQLite format 3\0"
_VERSION_BYTES = slice(18, 20)  # the versions of the file format for writing and for reading
SECONDS = 20.0
MAX_ROWS = 10 * MAX_CANDIDATES
MAX_VALUE_BYTES = 1024 * 1024
MAX_TEXT = 64 * 1024 * 1024  # characters in all
MONITOR_TABLE = "monitor"
TABLES = (
    MONITOR_TABLE, "tag", "monitor_tag", "notification", "monitor_notification",
    "monitor_maintenance",
)  # fmt: skip
NOT_KUMA = N_("This SQLite file is not an Uptime Kuma database: it has no table of monitors.")
DAMAGED = N_("The SQLite file is damaged and cannot be read.")
NEWER_IN_LOG = N_(
    "The newest changes are still in the file that ends in -wal and are not imported. Stop Uptime"
    " Kuma, then import again."
)
TOO_MUCH = N_("The SQLite file is larger than Wakeful reads.")
# SQLite parses the whole schema, also the tables and views that Wakeful does not read.
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 20,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 2,
}

Row = Mapping[str, Any]


def read(data: bytes) -> Reading:
    """Read an uploaded file in memory. It has passwords, so it is not written to the disk."""
    # Version 2 in these bytes needs a write-ahead log, which a database in memory cannot have.
    whole = data[: _VERSION_BYTES.start] + b"\1\1" + data[_VERSION_BYTES.stop :]
    with _reading(), closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(whole)
        return _reading_of(_read_tables(connection))


def read_path(path: Path) -> Reading:
    """Read the file from the disk. It is not changed, and no file is made beside it."""
    # immutable: SQLite takes no lock and opens no write-ahead log.
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with _reading(), closing(sqlite3.connect(uri, uri=True)) as connection:
        reading = _reading_of(_read_tables(connection))
    log = path.with_name(f"{path.name}-wal")
    if log.is_file() and log.stat().st_size:
        return replace(reading, remarks=(*reading.remarks, _(NEWER_IN_LOG)))
    return reading


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as fault:
        interrupted = "interrupted" in str(fault) or "too big" in str(fault)
        raise NotReadable(TOO_MUCH if interrupted else DAMAGED) from None


def _reading_of(tables: Mapping[str, list[Row]]) -> Reading:
    return kuma.reading_of(_monitors(tables), tables.get("notification", ()))


def _read_tables(connection: sqlite3.Connection) -> dict[str, list[Row]]:
    _guard(connection)
    return {name: list(_rows(connection, name)) for name in _tables(connection)}


def _guard(connection: sqlite3.Connection) -> None:
    for category, limit in LIMITS.items():
        connection.setlimit(category, limit)
    deadline = time.monotonic() + SECONDS
    connection.set_progress_handler(lambda: int(time.monotonic() > deadline), 10_000)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.set_authorizer(_authorize)


def _authorize(action: int, first: str | None, second: str | None, *_rest: str | None) -> int:
    """Allow reading the columns of ``TABLES``, and nothing else: no function, no view."""
    if action == sqlite3.SQLITE_SELECT:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ and first in ("sqlite_master", *TABLES):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first == "table_xinfo" and second in TABLES:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _tables(connection: sqlite3.Connection) -> list[str]:
    """The plain tables of ``TABLES``: a view or a virtual table can run code of the file."""
    tables = connection.execute("SELECT name, rootpage FROM sqlite_master WHERE type = 'table'")
    plain = {name for name, root in tables if isinstance(root, int) and root > 0}
    if MONITOR_TABLE not in plain:
        raise NotReadable(NOT_KUMA)
    return [name for name in TABLES if name in plain]


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[Row]:
    # All columns are read, so that settings that Wakeful does not have get a remark. table_xinfo
    # marks generated columns (hidden 2 or 3), which would run code.
    schema = connection.execute(f"PRAGMA table_xinfo({table})")
    columns = [row[1] for row in schema if row[6] == 0 and row[1].isidentifier()]
    if table == MONITOR_TABLE and "id" not in columns:
        raise NotReadable(NOT_KUMA)
    if not columns:
        return
    names = ", ".join(f'"{name}"' for name in columns)
    rows = connection.execute(f'SELECT {names} FROM "{table}" LIMIT {MAX_ROWS + 1}')  # noqa: S608
    size = 0
    for index, values in enumerate(rows):
        size += sum(len(value) for value in values if isinstance(value, str | bytes))
        if index >= MAX_ROWS or size > MAX_TEXT:
            raise NotReadable(TOO_MUCH)
        yield dict(zip(columns, values, strict=True))


def _monitors(tables: Mapping[str, list[Row]]) -> list[dict[str, Any]]:
    """The monitors, with the fields of the backup."""
    names = {row.get("id"): row.get("name") for row in tables.get("tag", ())}
    tags: dict[Any, list[Row]] = {}
    for link in tables.get("monitor_tag", ()):
        name = names.get(link.get("tag_id"))
        tags.setdefault(link.get("monitor_id"), []).append(
            {"name": name, "value": link.get("value")}
        )
    alerts: dict[Any, dict[str, bool]] = {}
    for link in tables.get("monitor_notification", ()):
        alerts.setdefault(link.get("monitor_id"), {})[string(link.get("notification_id"))] = True
    in_maintenance = {link.get("monitor_id") for link in tables.get("monitor_maintenance", ())}
    ordered = sorted(tables[MONITOR_TABLE], key=lambda row: number(row["id"]) or 0)
    return [
        {
            **row,
            "tags": tags.get(row["id"], []),
            "notificationIDList": alerts.get(row["id"], {}),
            "maintenance": row["id"] in in_maintenance,
        }
        for row in ordered
    ]
