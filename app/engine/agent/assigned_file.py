"""The assigned monitors on disk, sealed as the server sent them: an agent that starts while the
server is out of reach checks these.
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from app.lasting import Lasting


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file, which only its owner can read; it is on disk when this returns. The caller is
    the only writer of the folder. Raises OSError.
    """
    fresh = path.with_name(f"{path.name}.new")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)  # part of it may fill the disk
        raise
    # The folder too: otherwise a loss of power may undo the replacement.
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


log = logging.getLogger(__name__)

MAX_ANSWERS = 50  # with more, the whole list is asked for again
RETRY_SECONDS = 10.0  # after a write that failed: the file may have 90 MB


class AssignedFile:
    """The server's last answer with the whole list, and all answers since."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "assigned"
        self._location = ""
        self._answers: list[str] = []
        self._write_at: float | None = None  # monotonic; None: it is written
        self._log = Lasting(log)

    @property
    def is_full(self) -> bool:
        return len(self._answers) > MAX_ANSWERS

    def add(self, location: str, sealed: str, *, whole: bool) -> None:
        """Add an answer in memory; ``write`` stores it."""
        self._location = location
        self._answers = [sealed] if whole else [*self._answers, sealed]
        self._write_at = time.monotonic()

    def write(self) -> None:
        """Write new answers to disk. After a failure, it is tried again RETRY_SECONDS later."""
        if self._write_at is None or time.monotonic() < self._write_at:
            return
        try:
            replace_file(self._path, "\n".join([self._location, *self._answers]).encode())
        except OSError as fault:
            self._write_at = time.monotonic() + RETRY_SECONDS
            self._log.error(
                "What to check cannot be written to %s (%s). The agent checks it all the same."
                " If it is restarted while the server is away, it checks what the file had.",
                self._path, fault.strerror, cause=True,
            )  # fmt: skip
            return
        self._write_at = None
        if self._log.end():
            log.warning("What to check is written to %s again.", self._path)

    def read(self) -> tuple[str, list[str]]:
        """The place, and the answers. Raises OSError, and ValueError for a damaged file."""
        location, *answers = self._path.read_text().splitlines()
        return location, answers
