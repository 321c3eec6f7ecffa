"""A database of Uptime Kuma, in its tables and columns."""

from __future__ import annotations

import sqlite3
from pathlib import Path

SAMPLES = Path(__file__).parents[1] / "imports" / "samples"

TABLES = (SAMPLES / "kuma-tables.sql").read_text()  # of version 1.23
TABLES_2 = (SAMPLES / "kuma2-tables.sql").read_text()
ROWS = (SAMPLES / "kuma-rows.sql").read_text()


def kuma_db(path, script=TABLES + ROWS):
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path
