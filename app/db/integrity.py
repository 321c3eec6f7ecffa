"""Check an SQLite file for damage."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from sqlalchemy import exc

from app.db import db
from app.db.connections import primary_code
from app.db.faults import is_damage

AT_MOST = 5  # faults that are named
STEPS = 10_000  # of SQLite's virtual machine between two checks of the time


def faults(seconds: float) -> list[str] | None:
    """The faults that ``PRAGMA quick_check`` finds; None if it takes longer than ``seconds``."""
    until = time.monotonic() + seconds
    connection = db.session.connection()
    driver: Any = connection.connection.driver_connection
    driver.set_progress_handler(lambda: time.monotonic() > until, STEPS)
    try:
        rows = connection.exec_driver_sql(f"PRAGMA quick_check({AT_MOST})").scalars().all()
    except exc.DBAPIError as fault:
        if primary_code(fault.orig) == sqlite3.SQLITE_INTERRUPT:
            return None
        if is_damage(fault):  # too damaged for quick_check to run
            return [str(fault.orig)]
        raise
    finally:
        driver.set_progress_handler(None, 0)
        db.session.rollback()
    return [line for row in rows for line in str(row).splitlines() if row != "ok"]
