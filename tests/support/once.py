"""Objects that take long to make are made once in a run: by the first worker that asks, for all of
them.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder ``name`` of this run, which ``make`` has filled; nothing in it may be changed."""
    top = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        top = top.parent  # which all workers share
    folder = top / name
    done = top / f"{name}.done"
    with (top / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            # What a `make` that failed in another worker left behind is filled again.
            folder.mkdir(exist_ok=True)
            make(folder)
            done.touch()
    return folder
