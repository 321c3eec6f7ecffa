"""How this installation is: for ``/readyz`` and ``/metrics``, which see no table themselves.

Checkers and alert workers write a heartbeat while they run. Before the first one, and where no
check was ever due, there is nothing to complain about: a fresh installation is ready.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from flask import current_app
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from app.db import db, patience, schema, unreadable, writing
from app.db.clocks import SKEW
from app.db.faults import AWAY, unavailable
from app.db.tables import HeartbeatRow, MonitorStateRow

# A checker beats every 5 s, a worker every 15; one that has not for so long is dead or stuck.
SILENT_AFTER = {"checker": timedelta(seconds=20), "worker": timedelta(seconds=45)}
# No monitor waits for longer than its time limit, a lease and a restart together.
CHECKS_LATE_AFTER = timedelta(seconds=150)

ANSWER_SECONDS = 2.0  # who asks whether we are ready does not wait for long

PROBE_EVERY = 5.0  # seconds between two attempts to write
PROBE_SECONDS = 2.0  # how long one may take
# For so long after a write has failed, silent parts are not told: they were kept from writing too,
# and wait up to SQLite's busy timeout before they try again.
SETTLE_SECONDS = 15.0
_PROBE = "wakeful.probe"

COUNTED_EVERY = 60.0  # seconds between two counts of what cannot be read
_KEPT = "wakeful.unreadable"

DATABASE_FAILED = "The database does not answer."
CHECKER_SILENT = "No checker is running."
WORKER_SILENT = "No alert worker is running, so nobody is told of anything."
CHECKS_LATE = "Checks are due, but none has finished for a while."


@dataclass(frozen=True, slots=True)
class Health:
    """``faults`` are sentences, none when all is well. Ages in seconds; None before the first.
    ``unreadable``: stored values of monitors and settings that cannot be read. The service does all
    the rest, so this is no fault that another instance would mend.

    ``readable``: whether the database can be asked for more.
    """

    faults: tuple[str, ...]
    last_check_at: datetime | None = None
    last_check_age: float | None = None
    heartbeat_age: float | None = None
    readable: bool = True
    unreadable: int = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        count = self.unreadable
        if not count:
            return ()
        values = "1 stored value" if count == 1 else f"{count:,} stored values"
        return (f"{values} cannot be read. wakeful doctor names each and says what to do.",)


def health(now: datetime, *, checks: bool = True) -> Health:
    """Needs an application context. Never raises for a database that does not answer, and does not
    wait for it long. ``checks``: whether this installation is to check anything; what it once did
    says nothing of now.
    """
    try:
        with patience(ANSWER_SECONDS):
            if sentence := schema.fault():
                return Health((sentence,), readable=False)
            signs, senders = last_signs(now), last_signs(now, "worker")
            due = db.session.scalar(select(func.min(MonitorStateRow.next_check_at)))
            broken = _unreadable() if checks else 0
        stuck = cannot_write()
    except SQLAlchemyError as fault:
        db.session.rollback()
        return Health((_why(fault),), readable=False)
    if not checks:
        return Health((stuck,) if stuck else ())
    faults = []
    if signs.ever and signs.silent:
        faults.append(CHECKER_SILENT)
    if senders.ever and senders.silent:
        faults.append(WORKER_SILENT)
    checked = signs.checked_at
    # A check can only be late when one is due; that nothing finished while nothing was due is fine.
    if due and checked and now - max(due, checked) > CHECKS_LATE_AFTER:
        faults.append(CHECKS_LATE)
    if stuck or _settling():  # who cannot write gives no sign of life, and may well live
        faults = [stuck] if stuck else []
    return Health(
        tuple(faults), checked, _age(now, checked), _age(now, signs.at), unreadable=broken
    )


def _why(fault: SQLAlchemyError) -> str:
    """For anybody who asks: of a server that is away, neither its name nor its address."""
    found = unavailable(fault)
    return DATABASE_FAILED if found is None or str(found) == AWAY else str(found)


def _unreadable() -> int:
    """How many values cannot be read. They are all read for it, so not for each question."""
    kept: tuple[float, int] | None = current_app.extensions.get(_KEPT)
    if kept is None or time.monotonic() - kept[0] >= COUNTED_EVERY:
        kept = time.monotonic(), sum(1 for _ in unreadable.scan(schema.IN_USE))
        current_app.extensions[_KEPT] = kept
    return kept[1]


@dataclass
class _Probe:
    trying: threading.Lock = field(default_factory=threading.Lock)
    at: float = float("-inf")
    failed_at: float = float("-inf")
    sentence: str | None = None


def _probe() -> _Probe:
    found: _Probe = current_app.extensions.setdefault(_PROBE, _Probe())
    return found


def _settling() -> bool:
    return time.monotonic() - _probe().failed_at < SETTLE_SECONDS


def cannot_write() -> str | None:
    """Why the database takes no writes now; None when it does. Only writing tells: one that is
    locked, full or read-only answers all questions. One thread at a time tries, and not each time;
    the others get what was found last.
    """
    probe = _probe()
    if probe.trying.acquire(blocking=False):
        try:
            if time.monotonic() - probe.at >= PROBE_EVERY:
                probe.sentence, probe.at = _write(), time.monotonic()
                probe.failed_at = probe.at if probe.sentence else probe.failed_at
        finally:
            probe.trying.release()
    return probe.sentence


def _write() -> str | None:
    name = f"probe:{socket.gethostname()}:{os.getpid()}"
    try:
        with patience(PROBE_SECONDS), writing() as session:
            session.merge(HeartbeatRow(name=name, at=datetime.now(UTC)))
    except SQLAlchemyError as fault:
        return _why(fault)
    return None


@dataclass(frozen=True, slots=True)
class Signs:
    """What the checkers, or the alert workers, left. ``silent``: none of them lives; ``ever``:
    there was one once.
    """

    ever: bool
    silent: bool
    at: datetime | None
    checked_at: datetime | None


def last_signs(now: datetime, part: str = "checker") -> Signs:
    """Signs of life from the future do not count. A clock that was set back left them, and whoever
    lives gives a new one soon; one that is dead would seem alive until the clock is there again.
    """
    soon = now + SKEW
    at, living, checked = (
        HeartbeatRow.at,
        HeartbeatRow.ended_at.is_(None),
        HeartbeatRow.last_check_at,
    )
    theirs = HeartbeatRow.name.startswith(f"{part}:")
    newest = select(func.max(at)).where(theirs, at <= soon)
    ever, last, last_living, checked_at = db.session.execute(
        select(
            select(func.count()).where(theirs).scalar_subquery(),
            newest.scalar_subquery(),
            newest.where(living).scalar_subquery(),
            select(func.max(checked)).where(checked <= soon).scalar_subquery(),
        )
    ).one()
    silent = last_living is None or now - last_living > SILENT_AFTER[part]
    return Signs(bool(ever), silent, last, checked_at)


def _age(now: datetime, moment: datetime | None) -> float | None:
    return None if moment is None else max(0.0, (now - moment).total_seconds())
