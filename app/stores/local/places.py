"""Where monitors are checked from, and when next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select

from app.db import assignments, db
from app.db.tables import AssignmentRow, LocationRow, MonitorRow, MonitorStateRow
from app.engine.schedule import Standing, due
from app.errors import Invalid
from app.forms.lists import NO_SUCH_PLACE


@dataclass(frozen=True, slots=True)
class Seat:
    """A place of a monitor, and what it has done of the schedule."""

    name: str
    turn: int
    slot: datetime | None
    checked_at: datetime | None
    blind: bool


def names_of_places() -> list[str]:
    """The default place comes first, the others as they were made."""
    return list(db.session.scalars(select(LocationRow.name).order_by(LocationRow.id)))


def places_of(names: Sequence[str]) -> list[int]:
    """The row ids of these places. Raises Invalid for names that are not there."""
    found = assignments.places(names)
    unknown = {
        f"locations.{number}": [NO_SUCH_PLACE]
        for number, name in enumerate(names)
        if name not in found
    }
    if unknown:
        raise Invalid(unknown)
    return list(found.values())


def watched_from(monitor_ids: Collection[int]) -> dict[int, list[Seat]]:
    """The places of each of these monitors, in the order in which they were made."""
    found: dict[int, list[Seat]] = {id: [] for id in monitor_ids}
    rows = db.session.execute(
        select(
            AssignmentRow.monitor_id,
            LocationRow.name,
            AssignmentRow.turn,
            AssignmentRow.slot,
            AssignmentRow.checked_at,
            AssignmentRow.blind,
        )
        .join(LocationRow, LocationRow.id == AssignmentRow.location_id)
        .where(AssignmentRow.monitor_id.in_(monitor_ids))
        .order_by(LocationRow.id)
    )
    for row in rows:
        seat = Seat(row.name, row.turn, row.slot, row.checked_at, row.blind)
        found[row.monitor_id].append(seat)
    return found


def next_check_at(
    monitor: MonitorRow,
    state: MonitorStateRow,
    seats: Sequence[Seat],
    now: datetime,
    confirm: timedelta,
) -> datetime | None:
    """When the first of its places checks it next; None while it is paused. What is due at once is
    due since the change that made it so.
    """
    if monitor.paused:
        return None
    moments = [
        min(now, monitor.updated_at)
        if seat.slot is None
        else due(
            monitor.id,
            monitor.interval,
            Standing(seat.turn, seat.slot, seat.checked_at, state.unconfirmed_at, seat.blind),
            now,
            confirm,
            network=False,  # whether it works there, only the checkers know
        )
        for seat in seats
    ]
    return min(moments, default=None)
