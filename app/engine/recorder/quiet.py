"""Which monitors are in maintenance, for a batch of results."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import or_, select

from app.db import AnySession
from app.db.tables import MaintenanceWindowMonitorRow, MaintenanceWindowRow
from app.db.tags import tags_of
from app.db.windows import own_window, window_of
from app.records import MaintenanceWindow
from app.rules.recurrence import ONCE, applies_to, in_maintenance

# A check may have begun this long before it is recorded.
RECORDED_WITHIN = timedelta(minutes=5)


class Quiet:
    """The maintenance windows as they are in this transaction. They are few, so all are read."""

    def __init__(self, session: AnySession, now: datetime) -> None:
        rows = session.scalars(
            select(MaintenanceWindowRow).where(
                or_(
                    MaintenanceWindowRow.repeat != ONCE,
                    MaintenanceWindowRow.end_at > now - RECORDED_WITHIN,
                )
            )
        ).all()
        self._windows = _records(session, rows) if rows else []

    def covers(self, monitor: Any, at: datetime) -> bool:
        """``monitor`` has ``id``, ``tags``, ``maintenance_start_at`` and ``maintenance_end_at``."""
        tags = tags_of(monitor.tags) if self._windows else ()
        windows = [window for window in self._windows if applies_to(window, monitor.id, tags)]
        return in_maintenance(at, own_window(monitor), windows)


def _records(session: AnySession, rows: Any) -> list[MaintenanceWindow]:
    monitors = defaultdict(list)
    pairs = select(MaintenanceWindowMonitorRow.window_id, MaintenanceWindowMonitorRow.monitor_id)
    for window_id, monitor_id in session.execute(
        pairs.where(MaintenanceWindowMonitorRow.window_id.in_([row.id for row in rows]))
    ):
        monitors[window_id].append(monitor_id)
    return [window_of(row, monitors[row.id]) for row in rows]
