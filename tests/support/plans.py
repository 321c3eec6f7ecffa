"""No statement of the application reads all of a table that grows with time.

SQLite says how it would read: each statement is explained once in a process, when it is first sent.
Without this, a small table hides that an index is not used: with 260 million results, a check was
recorded in minutes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

GROWING = re.compile(r"\b(results|packed_hours|rollups)\b")
SCAN = re.compile(r"SCAN (results|packed_hours|rollups)\b")
READING = "SELECT", "WITH", "UPDATE", "DELETE", "INSERT"
ROOT = Path(__file__).parents[2]
APP, TESTS = f"{ROOT / 'app'}/", f"{ROOT / 'tests'}/"
MIGRATIONS = f"{APP}db/migrations/"

_explained: set[str] = set()
_scans: list[str] = []


def _explain(
    connection: Any, cursor: Any, statement: str, parameters: Any, _context: Any, many: bool
) -> None:
    if statement in _explained or connection.dialect.name != "sqlite":
        return
    _explained.add(statement)
    if not GROWING.search(statement) or not statement.startswith(READING):
        return
    if "WHERE" not in statement and statement.endswith("LIMIT ? OFFSET ?"):
        return  # reads no more than it returns
    own = cursor.connection.cursor()
    try:
        # Rows in one statement of many values come as one flat tuple.
        rows = many and isinstance(parameters[0], (tuple, dict))
        plan = own.execute(f"EXPLAIN QUERY PLAN {statement}", parameters[0] if rows else parameters)
        steps = [row[3] for row in plan.fetchall()]
    finally:
        own.close()
    sender = _sender()
    if any(map(SCAN.match, steps)) and sender.startswith(APP) and MIGRATIONS not in sender:
        _scans.append(f"{sender}: {statement} {steps}")


def _sender() -> str:
    """File and line of the application, or of the test, that sends the statement."""
    frame: Any = sys._getframe()
    while frame:
        name = frame.f_code.co_filename
        if name.startswith((APP, TESTS)) and name != __file__:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


@pytest.fixture(autouse=True)
def _no_scan() -> Iterator[None]:
    yield
    scans, _scans[:] = _scans[:], []
    assert not scans, "\n".join(scans)


event.listen(Engine, "before_cursor_execute", _explain)
