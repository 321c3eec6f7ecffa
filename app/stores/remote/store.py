"""A store over the /api/v1 of another server. Any server with the base API will do; a Wakeful has
more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

from app.codec import MalformedData, reader
from app.codec.values import each_in, text
from app.records import (
    MaintenanceWindow,
    MonitorQuery,
    MonitorRef,
    PageQuery,
    Place,
    PlaceSeen,
    Sort,
    resources,
)
from app.rules.recurrence import is_repeat
from app.rules.url import is_link
from app.stores import base
from app.stores.base import Extent, Store
from app.stores.remote.collection import RemoteCollection
from app.stores.remote.connection import RemoteConnection
from app.stores.remote.contacts import RemoteContacts
from app.stores.remote.deliveries import RemoteChannels, RemoteDeliveries
from app.stores.remote.incidents import RemoteIncidents
from app.stores.remote.monitors import RemoteMonitors
from app.stores.remote.part import Me, after_write
from app.stores.remote.results import RemoteChecks, RemoteHeartbeats, RemoteResults
from app.stores.remote.status_pages import RemotePosts, RemoteStatusPages, RemoteSubscribers


class RemoteWindows(RemoteCollection[MaintenanceWindow, PageQuery]):
    def read(self, data: Any) -> MaintenanceWindow:
        window = super().read(data)
        if window.end_at <= window.start_at:
            raise MalformedData("end_at")
        if not is_repeat(window.repeat):
            raise MalformedData("repeat")
        return window


def _link(value: Any) -> str | None:
    link = text(value)
    return link if link and is_link(link) else None


class RemoteStore(Store):
    """The store of the server of ``connection``. Safe to use from several threads."""

    def __init__(self, connection: RemoteConnection) -> None:
        self.connection = connection
        self.me = Me(connection, lambda: monitors.read_names())
        own = self, connection, self.me
        self.monitors = monitors = RemoteMonitors(resources.MONITORS, *own)
        self.incidents = RemoteIncidents(resources.INCIDENTS, *own)
        self.windows = RemoteWindows(resources.WINDOWS, *own)
        self.markers = RemoteCollection(resources.MARKERS, *own, link=_link)
        self.results = RemoteResults(*own)
        self.checks = RemoteChecks(*own)
        self.heartbeats = RemoteHeartbeats(*own)
        # A newer server may have events and channels that this version does not know.
        self.deliveries = RemoteDeliveries(resources.DELIVERIES, *own, event=text, channel=text)
        self.channels = RemoteChannels(*own)
        self.contacts = RemoteContacts(resources.CONTACTS, *own)
        self.locations = RemoteLocations(resources.LOCATIONS, *own)
        self.status_pages = RemoteStatusPages(resources.STATUS_PAGES, *own)
        self.posts = RemotePosts(*own)
        self.post_templates = RemoteCollection(resources.POST_TEMPLATES, *own)
        self.report_mails = RemoteCollection(resources.REPORT_MAILS, *own)
        self.subscribers = RemoteSubscribers(*own)

    @property
    def name(self) -> str:
        """The label of this server for people: host, port and path."""
        return self.connection.name

    @property
    def address(self) -> str:
        """The URL of this server for people."""
        return self.connection.base.removesuffix("/api/v1")

    @property
    def extent(self) -> Extent:  # type: ignore[override] # requested when first needed
        """The extent in the server's last answer. Raises before the first answer."""
        return self.me.extent

    def now(self) -> datetime:
        return self.connection.now()


MAX_PAGES, PAGE = 10, 100


class RemoteLocations(RemoteCollection[Place, PageQuery], base.Locations):
    def new_token(self, id: int) -> Place:
        answer = self._write("POST", f"{self._address(id)}/token", of=(self.noun, id))
        with after_write():
            return self._record_in(id, answer)

    def users(self, id: int, limit: int) -> Sequence[MonitorRef]:
        name = self.get(id).name
        query = MonitorQuery(location=name, sort=Sort.ASC, per_page=PAGE, uptime=(), brief=True)
        monitors = islice(self.store.monitors.every(query, MAX_PAGES), limit)
        return [MonitorRef(monitor.id, monitor.name, monitor.url) for monitor in monitors]

    def of_monitor(self, monitor_id: int) -> Sequence[PlaceSeen]:
        if self.me.extent == Extent.BARE:
            return ()
        return self._of_monitor(monitor_id, "locations", _places)


_places = partial(each_in, "locations", reader(PlaceSeen, "place"))
