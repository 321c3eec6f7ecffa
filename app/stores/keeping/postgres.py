"""Dump and load a PostgreSQL database with its own programs, pg_dump and pg_restore."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from psycopg.conninfo import make_conninfo
from sqlalchemy import URL

from app.environment import for_program
from app.errors import WakefulError
from app.i18n import N_, _

NO_PROGRAM = N_(
    "%(program)s was not found. Install PostgreSQL's client programs, in a version that is not"
    " older than the server's."
)
# The user of this installation owns a restored database, not the owner of the original.
OURS = ("--no-owner", "--no-privileges")


def dump(url: URL, path: Path) -> None:
    """Write the database, as it is at one moment, to ``path`` in pg_dump's own format."""
    # Without pg_dump's compression, because the archive compresses everything.
    _run("pg_dump", ["--format=custom", "--compress=0", *OURS, f"--file={path}"], url)


def load(url: URL, path: Path) -> None:
    """Load a dump into an empty database, whole or not at all."""
    _run("pg_restore", ["--single-transaction", "--exit-on-error", *OURS, str(path)], url)


def check(path: Path) -> None:
    """Raise WakefulError unless pg_restore can read the dump's list of contents."""
    _run("pg_restore", ["--list", str(path)], None)


def _run(program: str, options: Sequence[str], url: URL | None) -> None:
    path = shutil.which(program)
    if path is None:
        raise WakefulError(_(NO_PROGRAM, program=program))
    target, password = _target(url) if url is not None else ([], {})
    result = subprocess.run(
        [path, *target, *options],
        env=for_program(password, prefix="PG"),  # libpq reads these
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if result.returncode != 0:
        output = " ".join(result.stderr.split()) or str(result.returncode)
        sentence = _("%(program)s failed: %(output)s", program=program, output=output[:500])
        raise WakefulError(sentence)


def _target(url: URL) -> tuple[list[str], dict[str, str]]:
    """The option with the name of the database, and the variable with the password, which must not
    be an argument: everybody on the machine can read the arguments of a program.
    """
    words = url.translate_connect_args(username="user", database="dbname") | dict(url.query)
    password = words.pop("password", None)
    variables = {} if password is None else {"PGPASSWORD": str(password)}
    return [f"--dbname={make_conninfo('', **words)}"], variables
