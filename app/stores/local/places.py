"""The places of monitors, and when they are checked next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select

from app.db import DbSession, assignments, db, latest
from app.db.tables import AssignmentRow, LocationRow, MonitorRow, MonitorStateRow
from app.engine.schedule import Standing, done_until, due
from app.errors import Invalid
from app.forms.lists import NO_SUCH_PLACE


@dataclass(frozen=True, slots=True)
class PlaceAssignment:
    """A place of a monitor, with its last slot."""

    name: str
    turn: int
    slot: datetime | None
    checked_at: datetime | None
    blind: bool


def names_of_places() -> list[str]:
    """Orders places: the default place first, then by creation."""
    return list(db.session.scalars(select(LocationRow.name).order_by(LocationRow.id)))


def names_of(session: DbSession, monitor_id: int) -> list[str]:
    """The names of the places that a monitor is checked from, in their order as text."""
    found = (
        select(LocationRow.name)
        .join(AssignmentRow, AssignmentRow.location_id == LocationRow.id)
        .where(AssignmentRow.monitor_id == monitor_id)
    )
    return sorted(session.scalars(found))


def places_of(names: Sequence[str]) -> list[int]:
    """The row ids of these places. To be called while writing. Raises Invalid for unknown names."""
    found = assignments.places(names)
    unknown = {
        f"locations.{number}": [NO_SUCH_PLACE]
        for number, name in enumerate(names)
        if name not in found
    }
    if unknown:
        raise Invalid(unknown)
    return list(found.values())


def watched_from(monitor_ids: Collection[int], now: datetime) -> dict[int, list[PlaceAssignment]]:
    """The places of each of these monitors, in the order of their creation."""
    found: dict[int, list[PlaceAssignment]] = {id: [] for id in monitor_ids}
    rows = db.session.execute(
        select(
            AssignmentRow.monitor_id,
            LocationRow.name,
            AssignmentRow.turn,
            AssignmentRow.slot,
            AssignmentRow.checked_at,
            AssignmentRow.blind,
            MonitorRow.interval,
            latest.newest("at", AssignmentRow.monitor_id, now, AssignmentRow.location_id).label(
                "newest"
            ),
        )
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .join(LocationRow, LocationRow.id == AssignmentRow.location_id)
        .where(AssignmentRow.monitor_id.in_(monitor_ids))
        .order_by(LocationRow.id)
    )
    for row in rows:
        checked_at = latest.later(row.checked_at, row.newest)
        slot = done_until(row.monitor_id, row.interval, row.slot, checked_at)
        assignment = PlaceAssignment(row.name, row.turn, slot, checked_at, row.blind)
        found[row.monitor_id].append(assignment)
    return found


def next_check_at(
    monitor: MonitorRow,
    state: MonitorStateRow,
    assigned: Sequence[PlaceAssignment],
    now: datetime,
    confirm: timedelta,
) -> datetime | None:
    """When the first of its places checks it next; None while it is paused. If it is due at once,
    this is the time of the change that made it due.
    """
    if monitor.paused:
        return None
    moments = [
        min(now, monitor.updated_at)
        if assignment.slot is None
        else due(
            monitor.id,
            monitor.interval,
            Standing(
                assignment.turn,
                assignment.slot,
                assignment.checked_at,
                state.unconfirmed_at,
                assignment.blind,
            ),
            now,
            confirm,
            network=False,  # only the checkers know whether their network works
        )
        for assignment in assigned
    ]
    return min(moments, default=None)
