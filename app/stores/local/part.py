"""What the parts of the local store have in common."""

from __future__ import annotations

from datetime import UTC, datetime

from app.config import Settings
from app.db import DbSession
from app.db.tables import MonitorRow
from app.errors import NotFound
from app.stores.local.search import fits


class Part:
    settings: Settings

    def now(self) -> datetime:
        """The store's clock, in UTC."""
        return datetime.now(UTC)


def found_monitor(session: DbSession, id: int) -> MonitorRow:
    """Raises NotFound."""
    row = session.get(MonitorRow, id) if fits(id) else None
    if row is None:
        raise NotFound("monitor", id)
    return row
