"""Read maintenance windows from their rows, and monitors' own windows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_

from app.db.tables import MonitorRow
from app.db.tags import tags_of
from app.db.types import EARLIEST, LATEST, OutOfRange
from app.records import MaintenanceWindow
from app.rules.recurrence import repeat_faults

_MOMENTS = ("start_at", "end_at", "repeat_until")
_MONITOR: Any = MonitorRow.__table__.c


def window_of(row: Any, monitors: Iterable[int]) -> MaintenanceWindow:
    """The record of a row of ``maintenance_windows``. One with fields in ``unreadable`` never
    applies.
    """
    lost = [name for name in _MOMENTS if isinstance(getattr(row, name), OutOfRange)]
    return MaintenanceWindow(
        id=row.id,
        name=row.name,
        start_at=row.start_at,
        end_at=row.end_at,
        monitors=tuple(sorted(monitors)),
        tags=tags_of(row.tags),
        repeat=row.repeat,
        repeat_until=row.repeat_until,
        zone=row.zone,
        created_at=row.created_at,
        updated_at=row.updated_at,
        unreadable=(*lost, *repeat_faults(row.repeat, row.zone)),
    )


def own_window(monitor: Any) -> tuple[datetime | None, datetime | None]:
    """A monitor's own window; (None, None) if its start or end cannot be read."""
    own = (monitor.maintenance_start_at, monitor.maintenance_end_at)
    return (None, None) if any(isinstance(moment, OutOfRange) for moment in own) else own


def in_own_window(start: Any, end: Any) -> ColumnElement[bool]:
    """SQL condition: a monitor's own window overlaps the time from ``start`` to ``end``. See
    ``own_window``.
    """
    return and_(
        _MONITOR.maintenance_start_at <= end,
        _MONITOR.maintenance_end_at > start,
        _MONITOR.maintenance_start_at >= EARLIEST,
        _MONITOR.maintenance_end_at <= LATEST,
    )
