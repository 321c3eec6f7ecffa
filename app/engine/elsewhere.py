"""Checks on request of monitors that this server does not check: their places make them.

A request is a time in the places' assignments, and the change feed names the monitor. A checker
reads it within a second, an agent within five, and the check counts like any other of the place.
Needs an application context.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import select

from app.db import db, journal, places, writing
from app.db.places import Signs
from app.db.tables import AssignmentRow, LocationRow, MonitorRow
from app.engine import recorder
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

SILENT = N_("Nothing was checked: its place %(place)s has been silent for %(time)s.")
NEVER_HEARD = N_("Nothing was checked: nobody has checked from its place %(place)s yet.")


@dataclass(frozen=True, slots=True)
class Place:
    """A place that makes a monitor's checks. ``seen_at``: when it was last heard."""

    id: int
    title: str
    seen_at: datetime | None


def places_of(monitor_id: int, own: str, now: datetime) -> Sequence[Place]:
    """The places that check a monitor, if the one named ``own`` does not; none if that does, or if
    nobody checks it, because it is paused or has no place.
    """
    rows = db.session.scalars(
        select(LocationRow)
        .join(AssignmentRow, AssignmentRow.location_id == LocationRow.id)
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .where(AssignmentRow.monitor_id == monitor_id, MonitorRow.paused.is_(False))
        .order_by(LocationRow.id)
    ).all()
    if any(row.name == own for row in rows):
        return ()
    signs = places.signs_of(rows, now) if rows else {}
    states = places.states_of(signs, now) if signs else {}
    found = [
        Place(row.id, row.label or row.name, _heard_at(row.carrier, signs[row.id], states[row.id]))
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


def check(spec: CheckSpec, asked: Sequence[Place], now: datetime) -> Result:
    """Ask these places, and wait for the first result. Raises Conflict if all are silent: then they
    are not asked. Raises Unavailable if no result comes in time, and NotFound.
    """
    monitor_id = spec.monitor_id or 0
    heard = [one for one in asked if one.seen_at is not None and now - one.seen_at <= HEARD]
    if not heard:
        raise Conflict(_why(asked, now))
    ids = [one.id for one in heard]
    seconds = spec.timeout + WAIT_SECONDS
    with writing() as session:
        since = recorder.ask(session, monitor_id, ids, now, timedelta(seconds=seconds))
    result = _first(monitor_id, ids, since, seconds)
    if result is None:
        raise Unavailable(_late(heard, seconds))
    return result


def _first(monitor_id: int, ids: Sequence[int], since: datetime, seconds: float) -> Result | None:
    until = time.monotonic() + seconds
    while (found := journal.first_since(monitor_id, ids, since, datetime.now(UTC))) is None:
        db.session.rollback()  # waiting must not hold a connection
        if time.monotonic() > until:
            return None
        time.sleep(LOOK_SECONDS)
    db.session.rollback()
    return found


def _why(asked: Sequence[Place], now: datetime) -> str:
    last = max(asked, key=lambda one: (one.seen_at is not None, one.seen_at or now))
    if last.seen_at is None:
        return _(NEVER_HEARD, place=last.title)
    silent = (now - last.seen_at).total_seconds()
    return _(SILENT, place=last.title, time=about(silent))


def _late(asked: Sequence[Place], seconds: float) -> str:
    return _n(
        "Its place %(names)s has brought no result within %(seconds)d s. If one comes later, it is"
        " among the monitor's checks. An agent older than this server ignores such requests.",
        "Its places %(names)s have brought no result within %(seconds)d s. If one comes later, it"
        " is among the monitor's checks. An agent older than this server ignores such requests.",
        len(asked),
        names=", ".join(one.title for one in asked),
        seconds=seconds,
    )
