"""Checks on request that this server does not make itself: the monitor's other places make them.

A request is a time in the places' assignments, and the change feed names the monitor. A checker
reads it within a second, an agent within five, and the check counts like any other of the place.
Needs an application context.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import select

from app.db import db, journal, places, writing
from app.db.places import Signs
from app.db.tables import AssignmentRow, LocationRow, MonitorRow
from app.engine import recorder
from app.engine.schedule import is_fresh
from app.errors import Conflict, Unavailable
from app.i18n import N_, _, _n
from app.records import Carrier, CheckSpec, PlaceState, Result
from app.rules.figures import about

# Besides the check's own time limit: until an agent has asked, and has brought its result.
WAIT_SECONDS = 10.0
LOOK_SECONDS = 0.25  # how often it is looked whether a result has come
# A place of which nothing was heard for longer is not asked. Agents speak every 5 s, or every 15 s
# after a fault; what probers say is stored every 10 s. After a 429, an agent is silent for as long
# as the server said, up to 60 s: it would not hear of the request in time.
HEARD = timedelta(seconds=30)

SILENT = N_("Nothing was checked: its place %(place)s was last heard %(time)s ago.")
NEVER_HEARD = N_("Nothing was checked: nobody has checked from its place %(place)s yet.")
LEFT_OUT = N_("%(place)s was last heard %(time)s ago and was not asked.")
LEFT_OUT_NEW = N_("Nobody has checked from %(place)s yet, so it was not asked.")
LATE = N_("No result from %(place)s within %(seconds)d s.")


@dataclass(frozen=True, slots=True)
class Place:
    """A place that makes a monitor's checks. ``seen_at``: when it was last heard."""

    id: int
    name: str
    label: str | None
    seen_at: datetime | None

    @property
    def title(self) -> str:
        return self.label or self.name

    def is_heard(self, now: datetime) -> bool:
        return self.seen_at is not None and now - self.seen_at <= HEARD


def places_of(monitor_id: int, now: datetime) -> Sequence[Place]:
    """The places that check a monitor; none if nobody does, because it is paused."""
    rows = db.session.scalars(
        select(LocationRow)
        .join(AssignmentRow, AssignmentRow.location_id == LocationRow.id)
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .where(AssignmentRow.monitor_id == monitor_id, MonitorRow.paused.is_(False))
        .order_by(LocationRow.id)
    ).all()
    signs = places.signs_of(rows, now) if rows else {}
    states = places.states_of(signs, now) if signs else {}
    found = [
        Place(row.id, row.name, row.label, _heard_at(row.carrier, signs[row.id], states[row.id]))
        for row in rows
    ]
    db.session.rollback()
    return found


def _heard_at(carrier: str, signs: Signs, state: PlaceState) -> datetime | None:
    """When those were last heard who would make a check. Probers say nothing without checks: while
    their results come as they should, the checker that sends the checks speaks for them.
    """
    is_working = carrier == Carrier.QUEUE and state is PlaceState.ONLINE
    return signs.alive_at if is_working else signs.seen_at


def seconds_of(spec: CheckSpec) -> float:
    """How long the places are waited for."""
    return spec.timeout + WAIT_SECONDS


@dataclass(frozen=True, slots=True)
class Request:
    """Places were asked at ``since`` for a check. ``until``: when to wait no more (monotonic)."""

    monitor_id: int
    places: frozenset[int]
    patience: timedelta
    since: datetime
    until: float


def ask(spec: CheckSpec, heard: Sequence[Place], now: datetime) -> Request:
    """Ask these places. Raises NotFound."""
    places, patience = frozenset(one.id for one in heard), timedelta(seconds=seconds_of(spec))
    since = _asked(spec.monitor_id or 0, places, now, patience)
    until = time.monotonic() + seconds_of(spec)
    return Request(spec.monitor_id or 0, places, patience, since, until)


def _asked(monitor_id: int, ids: frozenset[int], now: datetime, patience: timedelta) -> datetime:
    with writing() as session:
        return recorder.ask(session, monitor_id, ids, now, patience)


def wait(request: Request) -> dict[int, Result]:
    """The result of each place, by its id, without those that brought none in time.

    If the clock is set while this waits, the places take the request for an old one, or for one
    of the future. So they are asked again.
    """
    found: dict[int, Result] = {}
    since, missing = request.since, request.places
    while True:
        now = datetime.now(UTC)
        if not is_fresh(since, now):
            since = _asked(request.monitor_id, missing, now, request.patience)
        found |= journal.first_since(request.monitor_id, missing, since, now)
        db.session.rollback()  # waiting must not hold a connection
        missing = request.places - found.keys()
        if not missing or time.monotonic() > request.until:
            return found
        time.sleep(LOOK_SECONDS)


def require_heard(asked: Sequence[Place], now: datetime) -> None:
    """Raise Conflict if all of these places are silent."""
    if any(one.is_heard(now) for one in asked):
        return
    last = max(asked, key=lambda one: (one.seen_at is not None, one.seen_at or now))
    if last.seen_at is None:
        raise Conflict(_(NEVER_HEARD, place=last.title))
    raise Conflict(_(SILENT, place=last.title, time=_ago(last.seen_at, now)))


def require_some(found: Mapping[str, object], asked: Sequence[Place], seconds: float) -> None:
    """Raise Unavailable if none of these places, which were asked, has brought a result."""
    if found:
        return
    raise Unavailable(
        _n(
            "Its place %(names)s has brought no result within %(seconds)d s. If one comes later, it"
            " is among the monitor's checks. An agent older than this server ignores such"
            " requests.",
            "Its places %(names)s have brought no result within %(seconds)d s. If one comes later,"
            " it is among the monitor's checks. An agent older than this server ignores such"
            " requests.",
            len(asked),
            names=", ".join(one.title for one in asked),
            seconds=seconds,
        )
    )


def why_none(place: Place, now: datetime, seconds: float) -> str:
    """Why there is no result of a place, if others have brought some."""
    if place.is_heard(now):
        return _(LATE, place=place.title, seconds=seconds)
    if place.seen_at is None:
        return _(LEFT_OUT_NEW, place=place.title)
    return _(LEFT_OUT, place=place.title, time=_ago(place.seen_at, now))


def _ago(seen_at: datetime, now: datetime) -> str:
    """How long ago, such as "45 seconds"."""
    return about((now - seen_at).total_seconds())
