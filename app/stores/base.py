"""What every store can do: the one interface that views and API handlers talk to.

A store has a collection for each resource. Two stores implement it: ``local`` (SQLAlchemy) and
``remote`` (another server's /api/v1), with a file of the same name for each resource.

``fields`` are the checked values that a form hands over, under interface.md's names, only those
that were sent: text as ``str``, times as aware ``datetime``, ``request_headers`` and ``alerts`` as
tuples of ``Pair``, ``tags`` as a tuple of ``str``, ``pause`` as ``bool``; ``None`` clears. Methods
raise what ``app/errors.py`` lists: ``NotFound`` for an unknown id, ``Invalid`` where only the
stored data shows the fault, ``Conflict`` with ``open_incident_id``, ``Unsupported`` for what this
store does not offer (``offers`` tells beforehand), ``Unavailable`` when it cannot answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar

from app.records import (
    CertificateChain,
    Delivery,
    DeliveryQuery,
    Incident,
    IncidentQuery,
    MaintenanceWindow,
    Monitor,
    MonitorQuery,
    MonitorRef,
    Outcome,
    Page,
    PageQuery,
    Pair,
    Result,
    ResultQuery,
)

Fields = Mapping[str, Any]
Record = TypeVar("Record")
Query = TypeVar("Query")


class Feature(StrEnum):
    """What a store may or may not offer beyond interface.md.

    Pages leave out what is not offered.
    """

    CHECK = "check"
    RESULTS = "results"
    STATISTICS = "statistics"
    DELIVERIES = "deliveries"
    WINDOWS = "windows"
    STATUS_PAGES = "status_pages"
    EXTRA_FIELDS = "extra_fields"  # timeout, tags and the other fields of our own
    OVERVIEW = "overview"  # counters, state and tag filters
    HOURS = "hours"  # the last hours: the bars of lists, the chart of three hours
    CLASSIFY = "classify"  # say afterwards what an incident was
    REPORTS = "reports"  # figures between any two times
    CERTIFICATES = "certificates"  # the chain that a monitor's target sent


# What came to /api/v1 after its first day: ``me`` names it, and other dashboards ask there first.
ADDED_TO_API = (
    Feature.OVERVIEW,
    Feature.HOURS,
    Feature.CLASSIFY,
    Feature.REPORTS,
    Feature.CERTIFICATES,
)


# --- What resources have in common ----------------------------------------------------------------


class Readable(ABC, Generic[Record, Query]):
    """Records that are listed and shown, and that people do not write."""

    @abstractmethod
    def list(self, query: Query) -> Page[Record]: ...

    @abstractmethod
    def get(self, id: int) -> Record: ...


class Collection(Readable[Record, Query]):
    """Records that people store, change and delete."""

    @abstractmethod
    def create(self, fields: Fields) -> Record: ...

    @abstractmethod
    def update(self, id: int, fields: Fields) -> Record: ...

    @abstractmethod
    def delete(self, id: int) -> None: ...


# --- The resources --------------------------------------------------------------------------------


class Monitors(Collection[Monitor, MonitorQuery]):
    @abstractmethod
    def create(self, fields: Fields, *, secrets_from: int | None = None) -> Monitor:
        """Store a monitor and let it be checked at once.

        ``secrets_from``: the monitor whose password is taken over where ``fields`` has none (a
        clone).
        """

    @abstractmethod
    def refs(
        self, *, ids: Sequence[int] | None = None, search: str | None = None, limit: int = 500
    ) -> Sequence[MonitorRef]:
        """Names and URLs alone, by name, for choosing and for links: at most ``limit`` of all
        monitors, of those with these ``ids``, or of those with ``search`` in the name or URL.
        """

    @abstractmethod
    def overview(self) -> Mapping[str, int]:
        """How many monitors there are in each ``MonitorStatus``."""

    def locations(self) -> Sequence[str]:
        """The names of the places that monitors can be checked from; none where a store cannot
        tell.
        """
        return ()


class Incidents(Collection[Incident, IncidentQuery]):
    """``get`` brings the evidence of an incident too."""

    @abstractmethod
    def update(
        self, id: int, fields: Fields, *, by: str | None = None, seen: Fields | None = None
    ) -> Incident:
        """``by``: who did it, shown beside an acknowledgement. ``seen``: values that it must still
        have, or Conflict is raised and nothing is changed; a remote server cannot promise that.
        """


class Results(ABC):
    """What checks have brought: results, the figures over them, certificates."""

    @abstractmethod
    def list(self, query: ResultQuery) -> Page[Result]: ...

    @abstractmethod
    def statistics(self, monitor_id: int, range_: str) -> Mapping[str, Any]:
        """``range_`` is a key of ``app.stats.RANGES``; the answer is what the API's ``statistics``
        shows.
        """

    @abstractmethod
    def report(
        self, monitor_ids: Sequence[int], start: datetime, end: datetime
    ) -> Mapping[int, Mapping[str, Any]]:
        """Figures of each of these monitors between two full hours, as ``app.stats.report`` gives
        them; under the key 0 those of all together. Unknown ids are left out.
        """

    @abstractmethod
    def certificates(self, monitor_id: int) -> CertificateChain:
        """What the target of a monitor sent last, also when it was not trusted."""


class Checks(ABC):
    """Checks on demand."""

    @abstractmethod
    def run(self, monitor_id: int) -> Result:
        """Check a stored monitor at once and wait for the recorded result."""

    @abstractmethod
    def run_unsaved(self, fields: Fields, *, secrets_from: int | None = None) -> Outcome:
        """Check monitor fields that are not stored; nothing is kept. ``url`` alone is required."""


class Deliveries(Readable[Delivery, DeliveryQuery]):
    """The delivery log: what was told to whom, and whether it arrived."""

    @abstractmethod
    def retry(self, id: int) -> Delivery: ...

    @abstractmethod
    def answers(self, ids: Sequence[int], seconds: float) -> Sequence[Delivery]:
        """These deliveries once each has been tried, or as they are after ``seconds``."""


class Channels(ABC):
    """Alert channels: whether what is sent through them arrives."""

    @abstractmethod
    def test(self, alerts: Sequence[Pair], *, monitor_id: int | None = None) -> tuple[int, ...]:
        """Send ``test`` to these channels, stored or not; the delivery ids.

        ``monitor_id``: whose alerts they are or will be, where there is one.
        """

    @abstractmethod
    def test_all(self, monitor_id: int) -> tuple[int, ...]:
        """Send ``test`` to all channels of a monitor; the delivery ids."""

    @abstractmethod
    def failed(self) -> Sequence[Delivery]:
        """The newest failure for good of each channel value that has delivered nothing since, the
        newest first; none where a store cannot tell.
        """


# --- The store ------------------------------------------------------------------------------------


class Store(ABC):
    """A place where monitors and incidents live."""

    offers: frozenset[Feature]

    monitors: Monitors
    incidents: Incidents
    windows: Collection[MaintenanceWindow, PageQuery]
    results: Results
    checks: Checks
    deliveries: Deliveries
    channels: Channels

    @abstractmethod
    def now(self) -> datetime:
        """The store's clock, in UTC."""
