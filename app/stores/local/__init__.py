"""The local store: everything in the database of this installation. One file for each resource."""

from __future__ import annotations

from app.config import Settings
from app.stores.base import Feature, Store
from app.stores.local.deliveries import Deliveries
from app.stores.local.history import History
from app.stores.local.incidents import Incidents
from app.stores.local.monitors import Monitors
from app.stores.local.windows import Windows

__all__ = ["LocalStore"]


class LocalStore(Monitors, Incidents, History, Deliveries, Windows, Store):
    """All that ``Store`` asks for. Needs an application context."""

    offers = frozenset(Feature) - {Feature.STATUS_PAGES}  # not built yet; only the filter is

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
