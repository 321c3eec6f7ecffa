"""The local store: everything in the database of this installation. One file for each resource."""

from __future__ import annotations

from datetime import UTC, datetime

from app.config import Settings
from app.db import tables
from app.records import resources
from app.stores.base import Extent, Store
from app.stores.local.contacts import LocalContacts
from app.stores.local.deliveries import LocalChannels, LocalDeliveries
from app.stores.local.heartbeats import LocalHeartbeats
from app.stores.local.incidents import LocalIncidents
from app.stores.local.locations import LocalLocations
from app.stores.local.markers import Markers
from app.stores.local.monitors import LocalMonitors
from app.stores.local.posts import LocalPosts, PostTemplates
from app.stores.local.report_mails import ReportMails
from app.stores.local.results import LocalChecks, LocalResults
from app.stores.local.status_pages import LocalStatusPages
from app.stores.local.subscribers import LocalSubscribers
from app.stores.local.windows import LocalWindows

__all__ = ["LocalStore"]


class LocalStore(Store):
    """Implements ``Store``. Needs an application context."""

    extent = Extent.WHOLE

    def __init__(self, settings: Settings) -> None:
        self.monitors = LocalMonitors(self, settings)
        self.incidents = LocalIncidents(self)
        self.windows = LocalWindows(self, resources.WINDOWS, tables.MaintenanceWindowRow)
        self.markers = Markers(self, resources.MARKERS, tables.MarkerRow)
        self.results = LocalResults(self)
        self.checks = LocalChecks(self)
        self.heartbeats = LocalHeartbeats(self)
        self.deliveries = LocalDeliveries(self, resources.DELIVERIES, tables.DeliveryRow)
        self.channels = LocalChannels(self)
        self.contacts = LocalContacts(self, resources.CONTACTS, tables.ContactRow)
        self.locations = LocalLocations(self, resources.LOCATIONS, tables.PlaceRow)
        self.status_pages = LocalStatusPages(self, settings)
        self.posts = LocalPosts(self)
        self.post_templates = PostTemplates(self, resources.POST_TEMPLATES, tables.PostTemplateRow)
        self.report_mails = ReportMails(self, resources.REPORT_MAILS, tables.ReportMailRow)
        self.subscribers = LocalSubscribers(self, resources.SUBSCRIBERS, tables.SubscriberRow)

    def now(self) -> datetime:
        return datetime.now(UTC)
