"""Replace a small file of the agent whole: a crash leaves the old one or the new one."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Readable by its owner alone, and on disk when this returns. One agent at a time works in a
    folder. Raises OSError.
    """
    fresh = path.with_name(f"{path.name}.new")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)  # on a full disk, what was written of it takes room
        raise
    _flush(path.parent)


def _flush(folder: Path) -> None:
    """Without this, a loss of power may undo the replacement."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
