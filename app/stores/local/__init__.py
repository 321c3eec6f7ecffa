"""The local store: everything in the database of this installation. One file for each resource."""

from __future__ import annotations

from datetime import UTC, datetime

from app.config import Settings
from app.db import tables
from app.records import resources
from app.stores.base import Extent, Store
from app.stores.local.channels import Channels
from app.stores.local.checks import Checks
from app.stores.local.contacts import Contacts
from app.stores.local.deliveries import Deliveries
from app.stores.local.incidents import Incidents
from app.stores.local.locations import Locations
from app.stores.local.markers import Markers
from app.stores.local.monitors import Monitors
from app.stores.local.post_templates import PostTemplates
from app.stores.local.posts import Posts
from app.stores.local.report_mails import ReportMails
from app.stores.local.results import Results
from app.stores.local.status_pages import StatusPages
from app.stores.local.subscribers import Subscribers
from app.stores.local.windows import Windows

__all__ = ["LocalStore"]


class LocalStore(Store):
    """Implements ``Store``. Needs an application context."""

    extent = Extent.WHOLE

    def __init__(self, settings: Settings) -> None:
        self.monitors = Monitors(self, settings.confirm_seconds)
        self.incidents = Incidents(self)
        self.windows = Windows(self)
        self.markers = Markers(self, resources.MARKERS, tables.MarkerRow)
        self.results = Results(self)
        self.checks = Checks(self)
        self.deliveries = Deliveries(self, resources.DELIVERIES, tables.DeliveryRow)
        self.channels = Channels(self)
        self.contacts = Contacts(self, resources.CONTACTS, tables.ContactRow)
        self.locations = Locations(self, resources.LOCATIONS, tables.LocationRow)
        self.status_pages = StatusPages(self, settings)
        self.posts = Posts(self)
        self.post_templates = PostTemplates(self, resources.POST_TEMPLATES, tables.PostTemplateRow)
        self.report_mails = ReportMails(self, resources.REPORT_MAILS, tables.ReportMailRow)
        self.subscribers = Subscribers(self)

    def now(self) -> datetime:
        return datetime.now(UTC)
