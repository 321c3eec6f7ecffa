"""Read maintenance windows, and monitors' own windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, or_, select

from app.db import AnySession, cached, db
from app.db.tables import MaintenanceWindowMonitorRow, MaintenanceWindowRow, MonitorRow
from app.db.tags import tags_of
from app.db.types import EARLIEST, LATEST, record_of, unreadable_in
from app.records import MaintenanceWindow
from app.rules.recurrence import ONCE, applies_to, in_maintenance

_FIELDS = ("start_at", "end_at", "repeat_until", "repeat", "zone")
_MONITOR: Any = MonitorRow.__table__.c
_WINDOW: Any = MaintenanceWindowRow.__table__.c
_MEMBER: Any = MaintenanceWindowMonitorRow.__table__.c
# These statements select from tables, not from classes, and are built once: each list of monitors
# runs them. They leave out the ended windows that do not repeat, which are the majority.
_BETWEEN = select(MaintenanceWindowRow.__table__).where(
    _WINDOW.start_at <= bindparam("end"),
    or_(_WINDOW.repeat != ONCE, _WINDOW.end_at > bindparam("start")),
)
_MEMBERS = select(_MEMBER.window_id, _MEMBER.monitor_id).where(
    _MEMBER.window_id.in_(bindparam("windows", expanding=True))
)
# A page needs the windows of several times: now, the last hours, a day. The first statement reads
# those of a longer time, so that it serves the others too.
_MARGIN_BEFORE, _MARGIN_AFTER = timedelta(days=3), timedelta(minutes=1)


def between(start: datetime, end: datetime) -> Sequence[MaintenanceWindow]:
    """All windows that may have an occurrence between two times. The caller computes the
    occurrences; some windows have none.
    """
    cache = cached.of_transaction()
    if "windows" in cache:
        first, last, windows = cache["windows"]
        if first <= start and end <= last:
            return windows  # type: ignore[no-any-return]
    first, last = start - _MARGIN_BEFORE, end + _MARGIN_AFTER
    rows = db.session.execute(_BETWEEN, {"start": first, "end": last}).all()
    windows = with_monitors(db.session, rows)
    cache["windows"] = first, last, windows
    return windows


def with_monitors(session: AnySession, rows: Sequence[Any]) -> list[MaintenanceWindow]:
    """The records of these rows of ``maintenance_windows``."""
    monitors: dict[int, list[int]] = {row.id: [] for row in rows}
    for window_id, id in session.execute(_MEMBERS, {"windows": list(monitors)}) if rows else ():
        monitors[window_id].append(id)
    return [window_of(row, monitors[row.id]) for row in rows]


def window_of(row: Any, monitors: Iterable[int]) -> MaintenanceWindow:
    """The record of a row of ``maintenance_windows``. A window with ``unreadable`` fields does not
    apply.
    """
    return record_of(
        MaintenanceWindow,
        row,
        monitors=tuple(sorted(monitors)),
        tags=tags_of(row.tags),
        unreadable=tuple(unreadable_in(row, _FIELDS)),
    )


def own_window(monitor: Any) -> tuple[datetime | None, datetime | None]:
    """A monitor's own window; (None, None) if its start or end cannot be read."""
    if unreadable_in(monitor, ("maintenance_start_at", "maintenance_end_at")):
        return None, None
    return monitor.maintenance_start_at, monitor.maintenance_end_at


def in_own_window(start: Any, end: Any) -> ColumnElement[bool]:
    """The condition that a monitor's own window (``own_window``) overlaps the time from ``start``
    to ``end``.
    """
    return and_(
        _MONITOR.maintenance_start_at <= end,
        _MONITOR.maintenance_end_at > start,
        _MONITOR.maintenance_start_at >= EARLIEST,
        _MONITOR.maintenance_end_at <= LATEST,
    )


# A check may have started this long before it is recorded.
RECORDED_WITHIN = timedelta(minutes=5)


class MaintenanceTimes:
    """The maintenance windows, read once for a batch of results. Windows that have ended and do not
    repeat are left out; the others are few.
    """

    def __init__(self, session: AnySession, now: datetime) -> None:
        rows = session.scalars(
            select(MaintenanceWindowRow).where(
                or_(
                    MaintenanceWindowRow.repeat != ONCE,
                    MaintenanceWindowRow.end_at > now - RECORDED_WITHIN,
                )
            )
        ).all()
        self._windows = with_monitors(session, rows)

    def covers(self, monitor: Any, at: datetime) -> bool:
        """Whether a monitor is in maintenance at a time. ``monitor`` has ``id``, ``tags``,
        ``maintenance_start_at`` and ``maintenance_end_at``.
        """
        tags = tags_of(monitor.tags) if self._windows else ()
        windows = [window for window in self._windows if applies_to(window, monitor.id, tags)]
        return in_maintenance(at, own_window(monitor), windows)
