"""A store over another server's /api/v1: any server that speaks interface.md, and more where it is
a Wakeful.
"""

from __future__ import annotations

from datetime import datetime

from app.stores.base import Extent, Store
from app.stores.remote.channels import Channels
from app.stores.remote.checks import Checks
from app.stores.remote.connection import Connection
from app.stores.remote.contacts import Contacts
from app.stores.remote.deliveries import Deliveries
from app.stores.remote.incidents import Incidents
from app.stores.remote.locations import Locations
from app.stores.remote.markers import Markers
from app.stores.remote.me import Me
from app.stores.remote.monitors import Monitors
from app.stores.remote.post_templates import PostTemplates
from app.stores.remote.posts import Posts
from app.stores.remote.report_mails import ReportMails
from app.stores.remote.results import Results
from app.stores.remote.status_pages import StatusPages
from app.stores.remote.subscribers import Subscribers
from app.stores.remote.windows import Windows


class RemoteStore(Store):
    """``connection`` says where. Safe to use from several threads."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.me = Me(connection, lambda: monitors.read_names())
        here = self, connection, self.me
        self.monitors = monitors = Monitors(*here)
        self.incidents = Incidents(*here)
        self.windows = Windows(*here)
        self.markers = Markers(*here)
        self.results = Results(*here)
        self.checks = Checks(*here)
        self.deliveries = Deliveries(*here)
        self.channels = Channels(*here)
        self.contacts = Contacts(*here)
        self.locations = Locations(*here)
        self.status_pages = StatusPages(*here)
        self.posts = Posts(*here)
        self.post_templates = PostTemplates(*here)
        self.report_mails = ReportMails(*here)
        self.subscribers = Subscribers(*here)

    @property
    def name(self) -> str:
        """How people tell this server from others: host, port and path."""
        return self.connection.name

    @property
    def address(self) -> str:
        """Where people reach this server."""
        return self.connection.base.removesuffix("/api/v1")

    @property
    def extent(self) -> Extent:  # type: ignore[override] # found out when first needed
        """Raises while that is not known."""
        return self.me.extent

    def now(self) -> datetime:
        return self.connection.now()
