"""The places that checks run from, and the reports of their processes. Needs an application
context.

A checker writes a sign of life every few seconds (``app/engine/own_shards.py``); the signs of a
prober or an agent are written by the process that gets its results (``store_sign``). Each process
has a separate row, so that several processes of one place do not wait for each other. The signs of
a place are computed from these rows when it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, or_, select

from app.db import AnySession, db, liveness, writing
from app.db.assignments import IDS_PER_STATEMENT
from app.db.latest import lock_states
from app.db.statements import inserting, newest_time, pieces, updating
from app.db.tables import AssignmentRow, MonitorRow, PlaceRow, ResultRow, SignOfLifeRow
from app.records import DEFAULT_PLACE_ID, Carrier, PlaceState, Verdict
from app.rules.clocks import believable
from app.rules.text import one_line

# A place is silent if no result came from it for two of its shortest intervals, or for this time if
# that is longer.
MIN_SILENCE = timedelta(minutes=3)
SILENT_INTERVALS = 2
# A process whose sign of life is older does not count among the processes of its place.
ALIVE = timedelta(seconds=90)
MAX_VERSION = 32
# All places but the server's default place. Built once, because the home page runs it.
_PLACE = PlaceRow.__table__
_OTHERS = (
    select(_PLACE)
    .where(or_(_PLACE.c.carrier != Carrier.LOCAL, _PLACE.c.id != DEFAULT_PLACE_ID))
    .order_by(_PLACE.c.id)
)
MAX_COMPARED = 500  # monitors whose causes are compared to find a fault of their place


def store_sign(
    location: str, now: datetime, *, process: str, version: str | None = None, **reported: Any
) -> None:
    """Store a sign of life of ``process``, which checks for the place of this name, and its report
    (``reported``: arguments of ``liveness.write``). Joins the caller's transaction, if there is
    one.

    ``process``: a name that is unique among all processes, such as ``agent:oslo`` or
    ``prober:HOST:PID`` (see ``liveness.process_name``). ``version`` may be any text, because the
    process has sent it. ``last_check_at``: when a result of the process was recorded; None if there
    was none since its last report. Without results, the place becomes silent.
    """
    first_line = one_line(version or "", MAX_VERSION) or None
    liveness.write(process, now, location=location, version=first_line, **reported)


def add(location: str, carrier: str, now: datetime) -> None:
    """Add the place of this name, unless there is one."""
    row = {"name": location, "carrier": carrier, "created_at": now}
    with writing() as session:
        session.execute(inserting(PlaceRow).values(row).on_conflict_do_nothing())


def carrier_of(location: str) -> str | None:
    """The carrier of the place with this name; None if there is no such place."""
    return db.session.scalar(select(PlaceRow.carrier).where(PlaceRow.name == location))


def drop_unknown(session: AnySession, place: int) -> None:
    """Drop the ``unknown`` verdicts of a place, because another process makes its checks now and
    may reach more targets. ``unknown`` is no vote, so no monitor's verdict changes.
    """
    unknown = (AssignmentRow.location_id == place, AssignmentRow.verdict == Verdict.UNKNOWN)
    ids = sorted(session.scalars(select(AssignmentRow.monitor_id).where(*unknown)))
    lock_states(session, ids)  # which protects the assignments of a monitor too
    for part in pieces(ids, IDS_PER_STATEMENT):
        of_part = updating(AssignmentRow).where(AssignmentRow.monitor_id.in_(part), *unknown)
        session.execute(of_part.values(verdict=None))


@dataclass(frozen=True, slots=True)
class PlaceSigns:
    """The signs of life of a place, and the reports of its processes. ``seen_at``: the last sign of
    a process that makes its checks. ``alive_at``: the last sign of any of its processes, with the
    checker that sends the checks of a queue. ``result_at``: when its last check was recorded.
    ``silent_at``: when people were notified of its silence; None again after they were notified of
    its return. ``silent_since``: when the last check before that silence was recorded.
    """

    seen_at: datetime | None = None
    alive_at: datetime | None = None
    result_at: datetime | None = None
    version: str | None = None
    clock_offset_ms: int | None = None
    checks_per_minute: int | None = None
    silent_at: datetime | None = None
    silent_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """The monitors that a place has to check. ``interval``: their shortest interval. ``since``: the
    earliest of their last changes; a check has been due since then. ``monitors``: their number.
    """

    interval: timedelta
    since: datetime
    monitors: int


def signs_of(rows: Collection[Any], now: datetime) -> dict[int, PlaceSigns]:
    """The signs of each of these places, by row id. Signs from the future do not count: they were
    written before the clock was set back.
    """
    processes_of: dict[str | None, list[Any]] = {row.name: [] for row in rows}
    rows_of_processes = db.session.execute(
        select(SignOfLifeRow.__table__)
        .where(SignOfLifeRow.location.in_(processes_of), SignOfLifeRow.at <= believable(now))
        .order_by(SignOfLifeRow.at.desc())
    )
    for process in rows_of_processes:
        processes_of[process.location].append(process)
    return {row.id: _signs(row, processes_of[row.name], now) for row in rows}


def _signs(place: Any, rows: Sequence[Any], now: datetime) -> PlaceSigns:
    """The signs of a place. ``rows``: the rows of its processes, the newest first. The signs of a
    queue's checker do not count as signs of its probers.
    """
    of_checks = rows
    if place.carrier == Carrier.QUEUE:
        of_checks = [row for row in rows if not row.name.startswith(f"{liveness.CHECKER}:")]
    alive = [row for row in rows if row.ended_at is None and now - row.at <= ALIVE]
    rates = [row.checks_per_minute for row in alive if row.checks_per_minute is not None]
    offsets = [row.clock_offset_ms for row in alive if row.clock_offset_ms is not None]
    return PlaceSigns(
        seen_at=_newest(now, place.seen_at, *(row.at for row in of_checks)),
        alive_at=_newest(now, place.seen_at, *(row.at for row in rows)),
        result_at=_newest(now, place.result_at, *(row.last_check_at for row in rows)),
        version=of_checks[0].version if of_checks else None,
        clock_offset_ms=offsets[0] if offsets else None,
        checks_per_minute=sum(rates) if rates else None,
        silent_at=place.silent_at,
        silent_since=place.silent_since,
    )


def _newest(now: datetime, *moments: datetime | None) -> datetime | None:
    return max((at for at in moments if at is not None and at <= believable(now)), default=None)


def work_of(ids: Collection[int]) -> Mapping[int, Work]:
    """The work of each of these places; places without a watched monitor are left out."""
    rows = db.session.execute(
        select(
            AssignmentRow.location_id,
            func.min(MonitorRow.interval),
            func.min(MonitorRow.updated_at),
            func.count(),
        )
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .where(AssignmentRow.location_id.in_(ids), MonitorRow.paused.is_(False))
        .group_by(AssignmentRow.location_id)
    )
    return {
        id: Work(timedelta(seconds=interval), since, monitors)
        for id, interval, since, monitors in rows
    }


@dataclass(frozen=True, slots=True)
class IdlePlace:
    """A place that brings no results (``silent``), or only unknown ones. ``ever``: whether a
    process that makes its checks has ever given a sign.
    """

    name: str
    monitors: int
    ever: bool
    silent: bool


def idle_places(now: datetime) -> list[IdlePlace]:
    """The places that bring no results, or only unknown ones. The server's default place is left
    out, because its monitors show its failure. Other places of checkers are left out if they bring
    no results, because their shards show more (``stores/health``).
    """
    rows = db.session.execute(_OTHERS).all()
    signs = signs_of(rows, now) if rows else {}
    states = states_of(signs, now)
    local = {row.id for row in rows if row.carrier == Carrier.LOCAL}
    not_online = {id for id, state in states.items() if state is not PlaceState.ONLINE} - local
    work = work_of(not_online) if not_online else {}
    waiting = {id: due.monitors for id, due in work.items()}
    online = states.keys() - not_online
    unable = only_unknown(online) if online else {}
    counts = unable | waiting
    return [
        IdlePlace(row.name, counts[row.id], signs[row.id].seen_at is not None, row.id in waiting)
        for row in rows
        if row.id in counts
    ]


def only_unknown(ids: Collection[int]) -> dict[int, int]:
    """The places among these whose newest checks are all unknown, with the number of monitors."""
    rows = db.session.execute(
        select(AssignmentRow.location_id, func.count())
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .where(
            AssignmentRow.location_id.in_(ids),
            AssignmentRow.verdict.is_not(None),
            MonitorRow.paused.is_(False),
        )
        .group_by(AssignmentRow.location_id)
        .having(func.min(AssignmentRow.verdict) == Verdict.UNKNOWN)
    )
    return {row[0]: row[1] for row in rows}


def commonest_cause(place: int) -> str | None:
    """The most common cause of the newest checks from a place, among ``MAX_COMPARED`` monitors."""
    last = (
        select(ResultRow.cause)
        .where(
            ResultRow.monitor_id == AssignmentRow.monitor_id,
            ResultRow.location_id == AssignmentRow.location_id,
        )
        .order_by(ResultRow.at.desc())
        .limit(1)
        .scalar_subquery()
    )
    causes = (
        select(last.label("cause"))
        .select_from(AssignmentRow)
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .where(
            AssignmentRow.location_id == place,
            AssignmentRow.verdict.is_not(None),
            MonitorRow.paused.is_(False),
        )
        .limit(MAX_COMPARED)
        .subquery()
    )
    return db.session.scalar(
        select(causes.c.cause)
        .where(causes.c.cause.is_not(None))
        .group_by(causes.c.cause)
        .order_by(func.count().desc(), causes.c.cause)
        .limit(1)
    )


def work_without_results(signs: Mapping[int, PlaceSigns], now: datetime) -> Mapping[int, Work]:
    """The work of those places that bring no results."""
    without_results = [
        id for id, of_place in signs.items() if not _is_fresh(of_place.result_at, now, MIN_SILENCE)
    ]
    return work_of(without_results) if without_results else {}


def states_of(
    signs: Mapping[int, PlaceSigns],
    now: datetime,
    watching_since: datetime | None = None,
    work: Mapping[int, Work] | None = None,
) -> dict[int, PlaceState]:
    """The state of each place. ``watching_since``: when this process began to watch; silence counts
    from then at the earliest, because a server that has just started has no signs. ``work``: the
    ``work_without_results``, if the caller has read it.
    """
    if work is None:
        work = work_without_results(signs, now)
    return {
        id: _state(of_place, work.get(id), now, watching_since) for id, of_place in signs.items()
    }


def _state(
    signs: PlaceSigns, work: Work | None, now: datetime, watching_since: datetime | None
) -> PlaceState:
    if signs.alive_at is None:
        return PlaceState.NEVER_SEEN
    if _is_fresh(signs.result_at, now, MIN_SILENCE):
        return PlaceState.ONLINE
    is_alive = _is_fresh(signs.alive_at, now, MIN_SILENCE)
    if work is None:  # it has nothing to check, so a sign of life is enough
        return PlaceState.ONLINE if is_alive else PlaceState.SILENT
    if signs.silent_at is not None and (not signs.result_at or signs.result_at <= signs.silent_at):
        return PlaceState.SILENT  # people were notified of it
    waited = max(MIN_SILENCE, SILENT_INTERVALS * work.interval)
    starts = [signs.result_at, watching_since]
    if is_alive:
        starts.append(work.since)  # it may not have finished its first check yet
    last = max((at for at in starts if at is not None), default=None)
    return PlaceState.ONLINE if _is_fresh(last, now, waited) else PlaceState.SILENT


def _is_fresh(at: datetime | None, now: datetime, within: timedelta) -> bool:
    return at is not None and now - at <= within


def store_signs(now: datetime) -> None:
    """Store the last signs of each place in its row, because the rows of its processes are deleted
    some time after their end. Several checkers may do so at the same time.
    """
    with writing() as session:
        rows = session.scalars(select(PlaceRow)).all()
        for id, signs in signs_of(rows, now).items():
            session.execute(
                updating(PlaceRow)
                .where(PlaceRow.id == id)
                .values(
                    seen_at=newest_time(PlaceRow.seen_at, signs.seen_at, now),
                    result_at=newest_time(PlaceRow.result_at, signs.result_at, now),
                )
            )
