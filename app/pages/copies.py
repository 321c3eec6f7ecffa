"""Copies of status pages in the instance folder, for a start while the database does not answer.

The files are encrypted with a key that is derived from the secret key, because some pages have a
password, and only their owner can read them. Copies of another version of Wakeful are not read.
"""

from __future__ import annotations

import logging
import os
import pickle
import time
import zlib
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from cryptography.fernet import InvalidToken

from app import records
from app.paths import new_private_file
from app.secret_keys import cipher
from app.version import __version__

log = logging.getLogger(__name__)

PAGE, MONTH, IMAGE = "page-", "month-", "image-"
FOLDER = "status-pages"
# Seconds between two copies of a page that changes, and of one in which only ``made_at`` changes.
CHANGED_AFTER, SAME_AFTER = 5.0, 60.0
MONTHS = 100  # of the history of all pages together: those that were read last
MAX_BYTES = 1_000_000  # of one copy; a page of 500 monitors takes far less
_CLASSES = (
    records.PageAddress, records.Brand, records.StatusPage, records.Group, records.PublicPage,
    records.Component, records.PublicDay, records.Post, records.PostUpdate, records.PublicWindow,
    records.PublicMonth, records.PublicIncident, records.MonitorImpact,
)  # fmt: skip
_SHAPE = (__version__, *(tuple(field.name for field in fields(cls)) for cls in _CLASSES))


class Copies:
    def __init__(
        self, instance: Path, keys: Sequence[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = instance / FOLDER
        self._fernet = cipher(b"wakeful status page copies v1", keys)
        self._clock = clock
        self._written: dict[Hashable, float] = {}

    def write(self, name: str, value: Any, *, changed: bool) -> None:
        """Write a copy, unless one was written just now. A full disk or another fault is
        logged.
        """
        age = self._clock() - self._written.get(name, float("-inf"))
        if age < (CHANGED_AFTER if changed else SAME_AFTER):
            return
        is_new = name not in self._written
        self._written[name] = self._clock()
        data = self._fernet.encrypt(zlib.compress(pickle.dumps((_SHAPE, value)), 1))
        if len(data) > MAX_BYTES:
            return
        try:
            self._write(name, data)
        except OSError as fault:
            log.warning(
                "The copy of a status page could not be written to %s: %s",
                self._folder, fault.strerror
            )  # fmt: skip
        if is_new and name.startswith(MONTH):
            # There may be many months: those that were not read for longest are deleted.
            months = [copy for copy in self.names() if copy.startswith(MONTH)]
            for unused in sorted(months, key=self._written_at, reverse=True)[MONTHS:]:
                self.delete(unused)

    def _written_at(self, name: str) -> float:
        """When a copy was written; 0 for one that another process has deleted."""
        with suppress(OSError):
            return (self._folder / name).stat().st_mtime
        return 0.0

    def _write(self, name: str, data: bytes) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        temporary = self._folder / f".{name}.{os.getpid()}"
        # A process with the same id may have ended while it wrote the file.
        temporary.unlink(missing_ok=True)
        with new_private_file(temporary) as file:
            file.write(data)
        temporary.replace(self._folder / name)

    def read(self, name: str) -> Any | None:
        try:
            data = (self._folder / name).read_bytes()
            shape, value = pickle.loads(zlib.decompress(self._fernet.decrypt(data)))  # noqa: S301 - authenticated
        except (OSError, InvalidToken, ValueError, zlib.error, AttributeError, ImportError):
            return None
        return value if shape == _SHAPE else None

    def delete(self, name: str) -> None:

        self._written.pop(name, None)
        with suppress(OSError):
            (self._folder / name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        with suppress(OSError):
            return [path.name for path in self._folder.iterdir()]
        return []


def month_name(page_id: int, year: int, month: int) -> str:
    return f"{MONTH}{page_id}-{year:04}-{month:02}"


def page_name(page_id: int) -> str:
    return f"{PAGE}{page_id}"


def image_name(page_id: int, image: str) -> str:
    return f"{IMAGE}{page_id}-{image}"


def page_of(name: str) -> int | None:
    """The id of the page whose copy has this name; None for other names."""
    for prefix in (PAGE, MONTH, IMAGE):
        number = name.removeprefix(prefix).partition("-")[0]
        if name.startswith(prefix) and number.isdecimal():
            return int(number)
    return None
