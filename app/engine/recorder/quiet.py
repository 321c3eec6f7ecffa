"""Which monitors are in maintenance, for a batch of results."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import or_, select

from app.db import AnySession
from app.db.tables import MaintenanceWindowRow
from app.db.tags import tags_of
from app.db.windows import own_window, with_monitors
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
        self._windows = with_monitors(session, rows)

    def covers(self, monitor: Any, at: datetime) -> bool:
        """``monitor`` has ``id``, ``tags``, ``maintenance_start_at`` and ``maintenance_end_at``."""
        tags = tags_of(monitor.tags) if self._windows else ()
        windows = [window for window in self._windows if applies_to(window, monitor.id, tags)]
        return in_maintenance(at, own_window(monitor), windows)
