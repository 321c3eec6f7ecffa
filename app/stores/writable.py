"""Whether the database accepts writes. Only a write shows that: a database that is locked, full or
read-only still answers queries. On a full disk, a small write may succeed when a batch of results
does not, so the free space is checked too. Needs an application context.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from flask import current_app
from sqlalchemy.exc import SQLAlchemyError

from app.db import db, faults, liveness, patience
from app.db.connections import file_of
from app.i18n import _

PROBE_EVERY = 5.0  # seconds between two attempts to write
PROBE_SECONDS = 2.0  # how long one may take
MIN_BYTES = 1 << 20  # a disk with less free space is full
# So long after a failed write, silent checkers and workers are not reported: they could not write
# either, and wait up to SQLite's busy timeout before the next attempt.
SETTLE_SECONDS = 15.0
_PROBE = "wakeful.probe"


@dataclass
class _Probe:
    trying: threading.Lock = field(default_factory=threading.Lock)
    tried_at: float = float("-inf")
    failed_at: float = float("-inf")
    sentence: str | None = None


def _probe() -> _Probe:
    probe: _Probe = current_app.extensions.setdefault(_PROBE, _Probe())
    return probe


def is_settling() -> bool:
    """Whether a write failed so recently that other processes may not have written again yet."""
    return time.monotonic() - _probe().failed_at < SETTLE_SECONDS


def cannot_write() -> str | None:
    """Why the database accepts no writes now; None if it does. One thread at a time tries, at most
    every PROBE_EVERY seconds; the others get the last result.
    """
    probe = _probe()
    if probe.trying.acquire(blocking=False):
        try:
            if time.monotonic() - probe.tried_at >= PROBE_EVERY:
                probe.sentence, probe.tried_at = _write(), time.monotonic()
                probe.failed_at = probe.tried_at if probe.sentence else probe.failed_at
        finally:
            probe.trying.release()
    return probe.sentence


def _write() -> str | None:
    try:
        with patience(PROBE_SECONDS):
            liveness.write(liveness.process_name(liveness.PROBE), datetime.now(UTC))
    except SQLAlchemyError as fault:
        return faults.short(fault)
    return _(faults.FULL) if _is_full() else None


def _is_full() -> bool:
    """Whether the disk of an SQLite file is full. The disk of a database server cannot be seen from
    here.
    """
    path = file_of(db.engine)
    if db.engine.dialect.name != "sqlite" or path is None:
        return False
    try:
        disk = os.statvfs(os.path.dirname(path))
    except OSError:
        return False  # the write has just shown the fault
    # Some file systems keep a part for root.
    blocks = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
    return blocks * disk.f_frsize < MIN_BYTES
