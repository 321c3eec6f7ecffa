"""The database of a measurement: SQLite in its folder, a PostgreSQL server of its own, or the one
that somebody names.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.postgres import find_binaries, own_server

SQLITE, POSTGRES = "sqlite", "postgres"


def add_option(parser: ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--database",
        default=default,
        help=f"{SQLITE}; {POSTGRES}, a server that is started for this and thrown away;\n"
        f"or the URL of an empty database. Default {default}",
    )


@contextmanager
def database(wanted: str, folder: Path) -> Iterator[str]:
    """The URL of an empty database."""
    if wanted == SQLITE:
        yield f"sqlite:///{folder / 'wakeful.db'}"
    elif wanted == POSTGRES:
        if find_binaries() is None:
            raise SystemExit("This measurement needs PostgreSQL: apt-get install postgresql.")
        with own_server() as server:
            yield server.url(server.create())
    else:
        yield wanted
