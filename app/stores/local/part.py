"""What the collections of the local store have in common."""

from __future__ import annotations

from datetime import datetime

from app.db import DbSession
from app.db.tables import MonitorRow
from app.errors import NotFound
from app.stores.base import Store
from app.stores.local.search import fits


class Part:
    """``store`` is the one that the collection belongs to: the clock is the store's."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def now(self) -> datetime:
        return self.store.now()


def found_monitor(session: DbSession, id: int) -> MonitorRow:
    """Raises NotFound."""
    row = session.get(MonitorRow, id) if fits(id) else None
    if row is None:
        raise NotFound("monitor", id)
    return row
