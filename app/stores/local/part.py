"""The base class of the local store's collections."""

from __future__ import annotations

from datetime import datetime

from app.db import DbSession
from app.db.tables import MonitorRow
from app.errors import NotFound
from app.stores.base import Store
from app.stores.local.search import fits


class Part:
    """``store``: the store that the collection belongs to, whose clock it uses."""

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
