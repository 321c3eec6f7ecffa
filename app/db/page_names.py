"""What status pages call their monitors."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import func, select

from app.db import AnySession
from app.db.tables import MonitorRow, StatusPageMonitorRow


def names_on_page(session: AnySession, page_id: int, monitor_ids: Collection[int]) -> list[str]:
    """The names that a page gives to these monitors, in its order; without those that it does not
    show.
    """
    shown = StatusPageMonitorRow
    query = (
        select(func.coalesce(shown.name, MonitorRow.name))
        .select_from(shown)
        .join(MonitorRow, MonitorRow.id == shown.monitor_id)
        .where(shown.status_page_id == page_id, shown.monitor_id.in_(monitor_ids))
        .order_by(shown.position)
    )
    return list(session.scalars(query))
