"""How this installation is: for ``/readyz`` and ``/metrics``, which see no table themselves.

Checkers and alert workers write a heartbeat while they run. Before the first one, and where no
check was ever due, there is nothing to complain about: a fresh installation is ready.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from flask import current_app
from sqlalchemy import BigInteger, case, cast, func, select, type_coerce
from sqlalchemy.exc import SQLAlchemyError

from app.db import db, faults, heartbeats, patience, schema, shards, unreadable
from app.db.clocks import SKEW
from app.db.tables import AssignmentRow, LocationRow, MonitorRow, ResultRow, ShardRow
from app.db.types import to_ms
from app.stores.writable import cannot_write, is_settling

# Whoever lives takes a shard that has lost its checker within this time.
SHARD_FREE_AFTER = timedelta(seconds=30)
# No monitor waits for longer than its time limit, a lease and a restart together.
CHECKS_LATE_AFTER = timedelta(seconds=150)

ANSWER_SECONDS = 2.0  # who asks whether we are ready does not wait for long

COUNTED_EVERY = 60.0  # seconds between two counts of what cannot be read
_KEPT = "wakeful.unreadable"

CHECKER_SILENT = "No checker is running."
WORKER_SILENT = "No alert worker is running, so nobody is told of anything."
CHECKS_LATE = "Checks are due, but no result has been recorded for a while."


@dataclass(frozen=True, slots=True)
class Health:
    """``faults`` are sentences, none when all is well. Ages in seconds; None before the first.
    ``unreadable``: stored values of monitors, people and settings that cannot be read. The service
    does all the rest, so this is no fault that another instance would mend. ``left_alone``: watched
    monitors that have had no checker for a while, counted in each place.

    ``readable``: whether the database can be asked for more.
    """

    faults: tuple[str, ...]
    last_check_at: datetime | None = None
    last_check_age: float | None = None
    heartbeat_age: float | None = None
    readable: bool = True
    unreadable: int = 0
    left_alone: int = 0

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
            signs = heartbeats.signs_of(heartbeats.CHECKER, now)
            senders = heartbeats.signs_of(heartbeats.WORKER, now)
            late = _are_late(signs.checked_at, now)
            alone = left_alone(now) if checks and signs.ever and not signs.silent else []
            broken = _unreadable() if checks else 0
            # Results are written blindly: their table may be damaged while all else is whole.
            db.session.execute(select(ResultRow.at).limit(1)).all()
        stuck = cannot_write()
    except SQLAlchemyError as fault:
        db.session.rollback()
        return Health((faults.short(fault),), readable=False)
    if not checks:
        return Health((stuck,) if stuck else ())
    found = []
    if signs.ever and signs.silent:
        found.append(CHECKER_SILENT)
    if senders.ever and senders.silent:
        found.append(WORKER_SILENT)
    checked = signs.checked_at
    if late:
        found.append(CHECKS_LATE)
    found += [str(place) for place in alone]
    if stuck or is_settling():  # who cannot write gives no sign of life, and may well live
        found = [stuck] if stuck else []
    return Health(
        tuple(found),
        checked,
        _age(now, checked),
        _age(now, signs.at),
        unreadable=broken,
        left_alone=sum(place.monitors for place in alone),
    )


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A place in which nobody has checked some or all monitors for a while."""

    name: str
    monitors: int
    all: bool

    def __str__(self) -> str:
        count = "1 monitor" if self.monitors == 1 else f"{self.monitors:,} monitors"
        if self.all:
            return (
                f"No checker runs in the place {self.name}, from where {count} should be checked."
                f" Start one with WAKEFUL_LOCATION={self.name}, or take the place off them."
            )
        return f"In the place {self.name}, nobody has checked {count} for 30 s or more."


def left_alone(now: datetime) -> list[LeftAlone]:
    """The places that have watched monitors in shards without an owner."""
    held = (
        select(ShardRow.location_id, ShardRow.number)
        .where(
            ShardRow.until.between(
                now - SHARD_FREE_AFTER, now + shards.LEASE + SKEW + SHARD_FREE_AFTER
            )
        )
        .subquery()
    )
    counted = db.session.execute(
        select(
            LocationRow.name,
            func.count().label("watched"),
            func.count(held.c.number).label("held"),
        )
        .select_from(AssignmentRow)
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .join(LocationRow, LocationRow.id == AssignmentRow.location_id)
        .outerjoin(
            held,
            (held.c.location_id == AssignmentRow.location_id)
            & (held.c.number == AssignmentRow.monitor_id % shards.count()),
        )
        .where(MonitorRow.paused.is_(False))
        .group_by(LocationRow.id, LocationRow.name)
        .order_by(LocationRow.id)
    )
    return [
        LeftAlone(row.name, row.watched - row.held, row.held == 0)
        for row in counted
        if row.held < row.watched
    ]


def _are_late(checked: datetime | None, now: datetime) -> bool:
    """Whether a check has been due for long, and none has finished for as long: that nothing
    finished while nothing was due is fine.
    """
    if checked is None or now - checked <= CHECKS_LATE_AFTER:
        return False
    # A slot is done, at the latest, an interval after the one before; a new monitor at once.
    since = case(
        (AssignmentRow.slot.is_(None), type_coerce(MonitorRow.updated_at, BigInteger)),
        else_=type_coerce(AssignmentRow.slot, BigInteger)
        + cast(MonitorRow.interval, BigInteger) * 1000,
    )
    found = db.session.scalar(
        select(func.min(since))
        .select_from(AssignmentRow)
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .where(MonitorRow.paused.is_(False))
    )
    return found is not None and found < to_ms(now - CHECKS_LATE_AFTER)


def _unreadable() -> int:
    """How many values cannot be read. They are all read for it, so not for each question."""
    kept: tuple[float, int] | None = current_app.extensions.get(_KEPT)
    if kept is None or time.monotonic() - kept[0] >= COUNTED_EVERY:
        kept = time.monotonic(), sum(1 for _ in unreadable.scan(schema.IN_USE))
        current_app.extensions[_KEPT] = kept
    return kept[1]


def _age(now: datetime, moment: datetime | None) -> float | None:
    return None if moment is None else max(0.0, (now - moment).total_seconds())
