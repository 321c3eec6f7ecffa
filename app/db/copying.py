"""Copy the file of an SQLite database. Only its owner may read the copy.

``copy_in_use`` copies page by page, through SQLite, while others write. ``copy_locked`` copies the
files themselves, as fast as the disk can, if the caller keeps all others from writing.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from app.environment import for_program
from app.i18n import N_, _
from app.paths import new_private_file

MEGABYTE = 1_000_000
NO_ROOM = N_("it needs %(needed)s MB, and %(free)s MB are free")


def copy_in_use(file: str, copy: Path) -> None:
    """Copy a database that may be in use. Raises OSError and sqlite3.Error, and leaves no copy."""
    with (
        _placed(copy) as unfinished,
        closing(sqlite3.connect(file)) as source,
        closing(sqlite3.connect(unfinished)) as to,
    ):
        # Without it, each page is synced separately, which takes twice as long.
        to.execute("PRAGMA synchronous=OFF")
        source.backup(to)


def copy_locked(file: str, copy: Path) -> None:
    """Copy a database whose write lock the caller holds and which the caller has not changed yet.
    Raises OSError and sqlite3.Error; then there is no copy.

    A checkpoint may run at the same time: it moves the content of the write-ahead log into the
    file. Nobody can restart the log, so file and log together are always the whole database.
    """
    with _placed(copy) as unfinished:
        _clone_or_copy(Path(file), unfinished)
        if (log := Path(f"{file}-wal")).exists():
            copied_log = Path(f"{unfinished}-wal")
            new_private_file(copied_log).close()
            _clone_or_copy(log, copied_log)
        with closing(sqlite3.connect(unfinished)) as copied:
            copied.execute("PRAGMA journal_mode=DELETE")  # moves the log into the file


@contextmanager
def _placed(copy: Path) -> Iterator[Path]:
    """A new file that becomes ``copy`` once it is complete and on the disk: a complete copy or
    none, even if the process is killed or the power fails.
    """
    unfinished = copy.with_name(f"{copy.name}.part")
    _remove(unfinished)
    try:
        new_private_file(unfinished).close()
        yield unfinished
        _to_disk(unfinished)
        unfinished.replace(copy)
        _to_disk(copy.parent)
    finally:
        _remove(unfinished)


def _remove(unfinished: Path) -> None:
    """Delete an unfinished copy and its log, which would destroy the next copy."""
    for name in ("", "-wal", "-shm", "-journal"):
        Path(f"{unfinished}{name}").unlink(missing_ok=True)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _clone_or_copy(file: Path, copy: Path) -> None:
    """Clone the file if the file system can, which takes no time and no space; else copy it."""
    if _cp("always", file, copy):
        check_room(file.stat().st_size, copy.parent)
        if fault := _cp("never", file, copy):
            raise OSError(errno.EIO, fault)


def check_room(needed: int, folder: Path) -> None:
    """Raises OSError unless this many bytes are free."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            errno.ENOSPC, _(NO_ROOM, needed=-(-needed // MEGABYTE), free=free // MEGABYTE)
        )


def _cp(clone: str, file: Path, copy: Path) -> str:
    """Run ``cp``; returns its error message, or "".

    It is a separate process: if this process closed the file of the database, it would lose all
    locks that SQLite has on it.
    """
    process = subprocess.run(
        [shutil.which("cp") or "cp", f"--reflink={clone}", "--", str(file), str(copy)],
        env=for_program({"LC_ALL": "C"}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return process.stderr.strip().removeprefix("cp: ") or str(process.returncode or "")
