"""The contract of every store: a suite for each collection.

A subclass gives the fixture ``store``: of ``StoreContract`` over Wakeful, of ``BareContract`` over
a server that speaks only the base API. The second has the tests that are marked ``over_bare``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.records import MonitorQuery
from app.stores.base import Store
from tests.stores.contract.channels import ChannelsContract
from tests.stores.contract.checks import ChecksContract
from tests.stores.contract.contacts import ContactsContract
from tests.stores.contract.deliveries import DeliveriesContract
from tests.stores.contract.described import DescribedContract
from tests.stores.contract.heartbeats import HeartbeatsContract
from tests.stores.contract.importing import ImportingContract
from tests.stores.contract.incidents import IncidentsContract
from tests.stores.contract.locations import LocationsContract
from tests.stores.contract.making import over_bare
from tests.stores.contract.markers import MarkersContract
from tests.stores.contract.monitors import MonitorsContract
from tests.stores.contract.post_templates import PostTemplatesContract
from tests.stores.contract.posts import PostsContract
from tests.stores.contract.report_mails import ReportMailsContract
from tests.stores.contract.results import ResultsContract
from tests.stores.contract.status_pages import StatusPagesContract
from tests.stores.contract.subscribers import SubscribersContract
from tests.stores.contract.unknown import UnknownContract
from tests.stores.contract.windows import WindowsContract


class StoreContract(
    MonitorsContract,
    IncidentsContract,
    WindowsContract,
    MarkersContract,
    ResultsContract,
    ChecksContract,
    HeartbeatsContract,
    DeliveriesContract,
    DescribedContract,
    ChannelsContract,
    ContactsContract,
    ImportingContract,
    LocationsContract,
    StatusPagesContract,
    PostsContract,
    PostTemplatesContract,
    ReportMailsContract,
    SubscribersContract,
    UnknownContract,
):
    """Subclass with a fixture ``store`` on an empty store."""

    @over_bare
    def test_the_clock_is_in_utc(self, store: Store) -> None:
        store.monitors.list(MonitorQuery())
        assert store.now().tzinfo == UTC
        assert abs(store.now() - datetime.now(UTC)) < timedelta(seconds=30)


BareContract = type(
    "BareContract",
    (),
    {
        name: test
        for name, test in ((name, getattr(StoreContract, name)) for name in dir(StoreContract))
        if hasattr(test, "over_bare")
    },
)
