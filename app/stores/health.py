"""The health of this installation, for ``/readyz``, ``/metrics`` and the heartbeat: which processes
run, and which checks and alerts are overdue. Every function needs an application context.

Checkers and alert workers write signs of life while they run. It is no fault that none runs while
there is nothing to do for it: a fresh installation is ready. A dashboard over remote servers has
neither, and is ready while one of its servers answers.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from flask import current_app
from sqlalchemy import BigInteger, ColumnElement, case, cast, exists, func, select, type_coerce
from sqlalchemy.exc import SQLAlchemyError

from app.db import db, faults, liveness, patience, places, schema, shards, unreadable
from app.db.cached import cached_for
from app.db.connections import file_of
from app.db.tables import AssignmentRow, DeliveryRow, MonitorRow, PlaceRow, ResultRow, ShardRow
from app.db.types import to_ms
from app.errors import Unavailable
from app.i18n import N_, _, _n
from app.records import Carrier, DeliveryStatus
from app.rules.clocks import believable
from app.stores import remote_servers

# Other checkers take over the shards of a stopped checker within this time.
SHARD_FREE_AFTER = timedelta(seconds=30)
# A check may be late by its time limit, a lease and a restart; their sum is less than this.
CHECKS_LATE_AFTER = timedelta(seconds=150)

ANSWER_SECONDS = 2.0  # clients of /readyz do not wait for long

COUNTED_EVERY = 60.0  # seconds between two counts of unreadable values
_CACHE = "wakeful.unreadable"

# If an alert has waited for this long, and no other was delivered meanwhile, alerts are stuck.
ALERTS_STUCK_AFTER = timedelta(minutes=15)
# A delivery is retried for less than this, unless by hand. The limit lets the query use an index:
# the table has a year of deliveries.
WRITTEN_WITHIN = timedelta(days=2)

CHECKER_SILENT = N_("No checker is running.")
WORKER_SILENT = N_("No alert worker is running, so no alerts are sent.")
CHECKS_LATE = N_("Checks are due, but no result has been recorded for a while.")


@dataclass(frozen=True, slots=True)
class Health:
    """``faults``: sentences; empty if there is no fault. Ages are in seconds, and None before the
    first check or sign of life. ``readable``: whether the database can be queried. ``left_alone``:
    the number of monitors without a checker for a while; a monitor counts once for each place.

    Two conditions are only warnings, because a restart or another instance would not help.
    ``unreadable``: the number of stored values of monitors, people and settings that cannot be
    read. ``idle``: sentences about places that bring no results, or only unknown ones, and about
    remote servers that do not answer while others do.
    """

    faults: tuple[str, ...]
    last_check_at: datetime | None = None
    last_check_age: float | None = None
    heartbeat_age: float | None = None
    readable: bool = True
    unreadable: int = 0
    left_alone: int = 0
    idle: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        count = self.unreadable
        if not count:
            return self.idle
        sentence = _n(
            "%(num)s stored value cannot be read. wakeful doctor names each and says what to do.",
            "%(num)s stored values cannot be read. wakeful doctor names each and says what to do.",
            count,
            num=f"{count:,}",
        )
        return (sentence, *self.idle)


def health(now: datetime, *, checks: bool = True, count_unreadable: bool = True) -> Health:
    """The health of this installation. If the database does not answer, this returns soon and does
    not raise. ``checks``: whether this installation runs checks; if not, old signs of life and
    results are ignored. ``count_unreadable``: count the stored values that cannot be read.
    """
    try:
        with patience(ANSWER_SECONDS):
            if sentence := schema.fault():
                return Health((sentence,), readable=False)
            signs = liveness.signs_of(liveness.CHECKER, now)
            workers = liveness.signs_of(liveness.WORKER, now)
            watched = checks and has_monitors()
            alerting = checks and has_monitors(MonitorRow.alerts.is_not(None))
            late = _are_late(signs.checked_at, now)
            uncovered = left_alone(now) if checks and signs.ever and not signs.silent else []
            idle = idle_places(now, uncovered) if checks else []
            unreadable_values = 0
            if checks and count_unreadable:  # the count reads all values, so it is cached
                unreadable_values = cached_for(COUNTED_EVERY, _CACHE, _count_unreadable)
            # The writers of results read none, so only this notices that the table is damaged.
            db.session.execute(select(ResultRow.at).limit(1)).all()
        stuck = [str(cause)] if (cause := cannot_write()) else []
    except SQLAlchemyError as fault:
        db.session.rollback()
        return Health((str(faults.public_cause(fault)),), readable=False)
    if not checks:
        # The app object itself, because threads have no current app.
        unreachable, idle_sentences = remote_servers.faults(current_app._get_current_object())  # type: ignore[attr-defined]
        return Health((*stuck, *unreachable), idle=idle_sentences)
    sentences = []
    # With monitors to check, it is also a fault if no checker has ever run, or if its last sign was
    # so old that it was deleted.
    if signs.silent and (signs.ever or watched):
        sentences.append(_(CHECKER_SILENT))
    if workers.silent and (workers.ever or alerting):
        sentences.append(_(WORKER_SILENT))
    sentences += [_(CHECKS_LATE)] if late else []
    sentences += [str(place) for place in uncovered]
    # While processes cannot write, their signs are old even if they run.
    if stuck or is_settling():
        sentences = stuck
    return Health(
        tuple(sentences),
        signs.checked_at,
        _age(now, signs.checked_at),
        _age(now, signs.at),
        unreadable=unreadable_values,
        left_alone=sum(place.monitors for place in uncovered),
        idle=tuple(idle),
    )


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A place with ``monitors`` that have had no checker for a while. ``no_checker``: whether these
    are all monitors of the place.
    """

    name: str
    monitors: int
    no_checker: bool

    def __str__(self) -> str:
        number, values = self.monitors, {"name": self.name, "num": f"{self.monitors:,}"}
        if self.no_checker:
            return _n(
                "No checker runs in the place %(name)s, from where %(num)s monitor should be"
                " checked. Start one with WAKEFUL_LOCATION=%(name)s, or remove the place from"
                " it.",
                "No checker runs in the place %(name)s, from where %(num)s monitors should be"
                " checked. Start one with WAKEFUL_LOCATION=%(name)s, or remove the place from"
                " them.",
                number, **values,
            )  # fmt: skip
        return _n(
            "In the place %(name)s, nobody has checked %(num)s monitor for 30 s or more.",
            "In the place %(name)s, nobody has checked %(num)s monitors for 30 s or more.",
            number, **values,
        )  # fmt: skip


def idle_places(now: datetime, uncovered: Sequence[LeftAlone]) -> list[str]:
    """Sentences about the places that bring no results, or only unknown ones. ``uncovered`` places
    are left out, because the missing checker is the cause.
    """
    names = {place.name for place in uncovered}
    return [_idle_sentence(place) for place in places.idle_places(now) if place.name not in names]


def unable_places(now: datetime) -> list[str]:
    """Sentences about the places that run and can make none of their checks. A monitor that other
    places check too is still up, so nothing else shows this.
    """
    unable = [place for place in places.idle_places(now) if not place.silent]
    names = {place.name for place in left_alone(now)} if unable else set()
    return [_idle_sentence(place) for place in unable if place.name not in names]


def _idle_sentence(place: places.IdlePlace) -> str:
    number, values = place.monitors, {"name": place.name, "num": f"{place.monitors:,}"}
    if not place.silent:  # /readyz is public, so the cause, which has addresses, is left out
        return _n(
            "The place %(name)s cannot check its monitor. The list of places says why.",
            "The place %(name)s can check none of its %(num)s monitors. The list of places says"
            " why.",
            number, **values,
        )  # fmt: skip
    if place.ever:
        return _n(
            "The place %(name)s is silent: %(num)s monitor waits for its checks.",
            "The place %(name)s is silent: %(num)s monitors wait for their checks.",
            number, **values,
        )  # fmt: skip
    return _n(
        "Nobody has checked from the place %(name)s yet: %(num)s monitor waits for its checks.",
        "Nobody has checked from the place %(name)s yet: %(num)s monitors wait for their checks.",
        number, **values,
    )  # fmt: skip


def left_alone(now: datetime) -> list[LeftAlone]:
    """The places with monitors in shards that no checker owns; paused monitors do not count."""
    latest = believable(now, shards.LEASE + SHARD_FREE_AFTER)
    is_owned = ShardRow.until.between(now - SHARD_FREE_AFTER, latest)
    owned = select(ShardRow.location_id, ShardRow.number).where(is_owned).subquery()
    counts = db.session.execute(
        select(PlaceRow.name, func.count(), func.count(owned.c.number))
        .select_from(AssignmentRow)
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .join(PlaceRow, PlaceRow.id == AssignmentRow.location_id)
        .outerjoin(
            owned,
            (owned.c.location_id == AssignmentRow.location_id)
            & (owned.c.number == AssignmentRow.monitor_id % shards.count()),
        )
        .where(MonitorRow.paused.is_(False), PlaceRow.carrier != Carrier.AGENT)
        .group_by(PlaceRow.id, PlaceRow.name)
        .order_by(PlaceRow.id)
    )
    return [
        LeftAlone(name, watched - checked, checked == 0)
        for name, watched, checked in counts
        if checked < watched
    ]


def has_monitors(*conditions: ColumnElement[bool]) -> bool:
    """Whether a monitor that is not paused fits these conditions."""
    watched = exists().where(MonitorRow.paused.is_(False), *conditions)
    return bool(db.session.scalar(select(watched)))


def _are_late(checked: datetime | None, now: datetime) -> bool:
    """Whether a check is overdue by ``CHECKS_LATE_AFTER`` and none has finished in that time. If no
    check was due, it is no fault that none has finished.
    """
    if checked is None or now - checked <= CHECKS_LATE_AFTER:
        return False
    # An agent keeps its own schedule; when it is silent, ``idle_places`` reports its place.
    late = late_checks(now, PlaceRow.carrier != Carrier.AGENT)
    return max(late.values(), default=0.0) > CHECKS_LATE_AFTER.total_seconds()


def _count_unreadable() -> int:
    return sum(1 for _field in unreadable.scan(schema.IN_USE))


# --- What is overdue ------------------------------------------------------------------------------


def late_checks(now: datetime, *conditions: ColumnElement[bool]) -> dict[str, float]:
    """For each place with monitors that fits ``conditions``, the seconds since its most overdue
    check was due; 0 if none is overdue. The times of checks are stored up to a minute late, so up
    to 60 s mean nothing.
    """
    # The next check is at most an interval after the last one; a new monitor is due at once.
    due = case(
        (AssignmentRow.scheduled_at.is_(None), type_coerce(MonitorRow.updated_at, BigInteger)),
        else_=type_coerce(AssignmentRow.scheduled_at, BigInteger)
        + cast(MonitorRow.interval, BigInteger) * 1000,
    )
    rows = db.session.execute(
        select(PlaceRow.name, func.min(due))
        .select_from(AssignmentRow)
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .join(PlaceRow, PlaceRow.id == AssignmentRow.location_id)
        .where(MonitorRow.paused.is_(False), *conditions)
        .group_by(PlaceRow.id, PlaceRow.name)
        .order_by(PlaceRow.id)
    )
    return {place: max(0.0, (to_ms(now) - first) / 1000) for place, first in rows}


def oldest_alert_age(now: datetime) -> float:
    """The seconds since the oldest pending alert was written; 0 if none is pending. Messages on
    hold in quiet hours and messages to subscribers do not count.
    """
    waiting = DeliveryRow.status == DeliveryStatus.PENDING, DeliveryRow.subscriber_id.is_(None)
    first = db.session.scalar(select(func.min(DeliveryRow.created_at)).where(*waiting))
    return 0.0 if first is None else max(0.0, (now - first).total_seconds())


def alerts_stuck(now: datetime) -> bool:
    """Whether an alert has waited for ``ALERTS_STUCK_AFTER`` with no other delivered since."""
    if oldest_alert_age(now) <= ALERTS_STUCK_AFTER.total_seconds():
        return False
    delivered = exists().where(
        DeliveryRow.created_at > now - WRITTEN_WITHIN,
        DeliveryRow.subscriber_id.is_(None),
        DeliveryRow.delivered_at > now - ALERTS_STUCK_AFTER,
    )
    return not db.session.scalar(select(delivered))


def _age(now: datetime, moment: datetime | None) -> float | None:
    return None if moment is None else max(0.0, (now - moment).total_seconds())


# --- Whether the database accepts writes ----------------------------------------------------------
#
# Only a write shows this: a database that is locked, full or read-only still answers queries. On a
# full disk, a small write may succeed although a batch of results fails, so the free space is read.

PROBE_EVERY = 5.0  # seconds between two attempts to write
PROBE_SECONDS = 2.0  # the time limit of an attempt
MIN_BYTES = 1 << 20  # a disk with less free space is full
# For this time after a failed write, silent checkers and workers are not reported: they could not
# write either, and wait up to SQLite's busy timeout before the next attempt.
SETTLE_SECONDS = 15.0
_PROBE = "wakeful.probe"


@dataclass
class _Probe:
    lock: threading.Lock = field(default_factory=threading.Lock)
    tried_at: float = float("-inf")
    failed_at: float = float("-inf")
    cause: Unavailable | None = None


def _probe() -> _Probe:
    probe: _Probe = current_app.extensions.setdefault(_PROBE, _Probe())
    return probe


def is_settling() -> bool:
    """Whether a write failed so recently that other processes may not have written again yet."""
    return time.monotonic() - _probe().failed_at < SETTLE_SECONDS


def cannot_write() -> Unavailable | None:
    """Why the database accepts no writes now; None if it accepts them. One thread at a time makes
    an attempt, at most every PROBE_EVERY seconds; the others get the last result.
    """
    probe = _probe()
    if probe.lock.acquire(blocking=False):
        try:
            if time.monotonic() - probe.tried_at >= PROBE_EVERY:
                probe.cause, probe.tried_at = _write(), time.monotonic()
                probe.failed_at = probe.tried_at if probe.cause else probe.failed_at
        finally:
            probe.lock.release()
    return probe.cause


def _write() -> Unavailable | None:
    try:
        with patience(PROBE_SECONDS):
            liveness.write(liveness.process_name(liveness.PROBE), datetime.now(UTC))
    except SQLAlchemyError as fault:
        return faults.public_cause(fault)
    return faults.DiskFault(_(faults.FULL)) if _is_full() else None


def _is_full() -> bool:
    """Whether the disk of an SQLite file is full. The disk of a database server is not visible from
    this machine.
    """
    path = file_of(db.engine)
    if db.engine.dialect.name != "sqlite" or path is None:
        return False
    try:
        disk = os.statvfs(os.path.dirname(path))
    except OSError:
        return False  # the write would have failed
    # Some file systems reserve blocks for root.
    blocks = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
    return blocks * disk.f_frsize < MIN_BYTES
