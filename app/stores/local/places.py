"""The places of monitors, and when they are checked next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, select

from app.db import DbSession, db, latest
from app.db.tables import AssignmentRow, MonitorRow, PlaceRow
from app.engine.schedule import Standing, done_until, due
from app.errors import Invalid
from app.forms.lists import NO_SUCH_PLACE

_ASSIGNED, _PLACE = AssignmentRow.__table__.c, PlaceRow.__table__.c
# Built once, as in ``app.db.latest``.
_WATCHED = (
    select(
        _ASSIGNED.monitor_id,
        _PLACE.name,
        _ASSIGNED.turn.label("generation"),
        _ASSIGNED.slot.label("scheduled_at"),
        _ASSIGNED.checked_at,
        _ASSIGNED.blind,
        MonitorRow.__table__.c.interval,
        latest.newest("at", _ASSIGNED.monitor_id, latest.UNTIL, _ASSIGNED.location_id).label(
            "newest"
        ),
    )
    .select_from(AssignmentRow.__table__)
    .join(MonitorRow.__table__, MonitorRow.__table__.c.id == _ASSIGNED.monitor_id)
    .join(PlaceRow.__table__, _PLACE.id == _ASSIGNED.location_id)
    .where(_ASSIGNED.monitor_id.in_(bindparam("ids", expanding=True)))
    .order_by(_PLACE.id)
)
_TITLES = select(_PLACE.name, _PLACE.label).order_by(_PLACE.id)


def titles_of_places() -> dict[str, str]:
    """The label of each place, by its name: the default place first, then in order of creation."""
    return {name: label or name for name, label in db.session.execute(_TITLES)}


def names_of(session: DbSession, monitor_id: int) -> list[str]:
    """The names of the places that a monitor is checked from, in their order as text."""
    statement = (
        select(PlaceRow.name)
        .join(AssignmentRow, AssignmentRow.location_id == PlaceRow.id)
        .where(AssignmentRow.monitor_id == monitor_id)
    )
    return sorted(session.scalars(statement))


def places_of(names: Sequence[str], by_name: Mapping[str, int]) -> list[int]:
    """The row ids of these places. Raises Invalid for unknown names. ``by_name``: what
    ``assignments.places`` has read of these, and maybe of others, while writing.
    """
    unknown = {
        f"locations.{number}": [NO_SUCH_PLACE]
        for number, name in enumerate(names)
        if name not in by_name
    }
    if unknown:
        raise Invalid(unknown)
    return [by_name[name] for name in names]


def watched_from(monitor_ids: Collection[int], now: datetime) -> dict[int, dict[str, Standing]]:
    """The standing of each of these monitors in each of its places, by the place's name, in order
    of creation. ``unconfirmed_at`` is the monitor's and is missing here.
    """
    places: dict[int, dict[str, Standing]] = {id: {} for id in monitor_ids}
    rows = db.session.execute(
        _WATCHED, {"ids": list(monitor_ids), "until": latest.last_moment(now)}
    )
    for row in rows:
        checked_at = latest.later(row.checked_at, row.newest)
        scheduled_at = done_until(row.monitor_id, row.interval, row.scheduled_at, checked_at)
        standing = Standing(row.generation, scheduled_at, checked_at, None, row.blind)
        places[row.monitor_id][row.name] = standing
    return places


def next_check_at(
    monitor: Any, standings: Iterable[Standing], now: datetime, confirm: timedelta
) -> datetime | None:
    """When the first of its places checks it next; None while it is paused. If it is due at once,
    this is the time of the change that made it due. ``monitor`` is a row with the columns of the
    monitor and its state.
    """
    if monitor.paused:
        return None
    moments = [
        min(now, monitor.updated_at)
        if standing.scheduled_at is None
        else due(
            monitor.id,
            monitor.interval,
            replace(standing, unconfirmed_at=monitor.unconfirmed_at),
            now,
            confirm,
            network=False,  # only the checkers know whether their network works
        )
        for standing in standings
    ]
    return min(moments, default=None)
