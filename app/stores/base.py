"""The interface of all stores, which views and API handlers use.

A store has a collection for each resource. Two stores implement it: ``local`` (SQLAlchemy) and
``remote`` (another server's /api/v1); ``LocalPosts`` and ``RemotePosts`` implement ``Posts``.

``fields`` are the validated values of a form, under the base API's names, without those that were
not sent: text as ``str``, times as aware ``datetime``, ``request_headers`` and ``alerts`` as tuples
of ``Pair``, ``tags`` as a tuple of ``str``, ``pause`` as ``bool``; ``None`` clears. Methods raise
the errors of ``app/errors.py``: ``NotFound`` for an unknown id, ``Invalid`` if only the stored data
shows the fault, ``Conflict`` with ``open_incident_id``, ``Unsupported`` for a feature that the
store lacks (see ``extent``), ``Unavailable`` if it cannot answer.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import IntEnum
from itertools import takewhile
from typing import Any, Generic, TypeVar

from app.errors import Invalid, NotFound, WakefulError
from app.i18n import N_
from app.records import (
    OPEN_STATUSES,
    PAGE_SIZES,
    CertificateChain,
    CheckedNow,
    Contact,
    Delivery,
    DeliveryQuery,
    DeliveryStatus,
    Incident,
    IncidentQuery,
    IncidentSortBy,
    MaintenanceWindow,
    Marker,
    MarkerQuery,
    Monitor,
    MonitorQuery,
    MonitorRef,
    MonitorSortBy,
    Outcome,
    Page,
    PageQuery,
    Pair,
    Ping,
    PingQuery,
    Place,
    PlaceSeen,
    Post,
    PostQuery,
    PostTemplate,
    ReportMail,
    Result,
    ResultQuery,
    SharedChannel,
    SlowAlerts,
    Sort,
    StatusPage,
    Subscriber,
    SubscriberQuery,
)
from app.slots import LONG_WAITS

Fields = Mapping[str, Any]
Record = TypeVar("Record")
Query = TypeVar("Query")
EVERY_MONITOR = MonitorQuery()
MAX_OVERLAPPING = 50  # pages of incidents that are read


class Extent(IntEnum):
    """The features of a store, the fewest first. Pages leave out the features that it lacks."""

    BARE = 1  # monitors and incidents, as the base API has them
    TAG = 2  # the monitors with the tag that the API key is bound to, and what belongs to them
    WHOLE = 3


# The level of /api/v1, which grows with it. A server whose ``me`` has a level and a scope is a
# Wakeful (decision 8).
API_LEVEL = 1


# --- The bases of resources -----------------------------------------------------------------------


class Listed(ABC, Generic[Record, Query]):
    """Records that are listed."""

    @abstractmethod
    def list(self, query: Query) -> Page[Record]: ...

    def every(self, query: Query, max_pages: int) -> Iterator[Record]:
        """The records of all pages, at most ``max_pages``: a remote server's total may be wrong."""
        for number in range(1, max_pages + 1):
            page = self.list(replace(query, page=number))  # type: ignore[type-var]
            yield from page.items
            if number >= page.last_number or not page.items:
                return


class Readable(Listed[Record, Query]):
    """Records that people can list and show, but not write."""

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
        """Store a monitor. Its first check is due at once. ``secrets_from``: for a clone without a
        password in ``fields``, the monitor from which the password is copied.
        """

    def create_many(self, several: Sequence[Fields]) -> Sequence[Monitor | Invalid]:
        """Store the valid monitors. Return the stored monitor or the fault of each. A local store
        stores them in one transaction.
        """
        answers: list[Monitor | Invalid] = []
        for fields in several:
            try:
                answers.append(self.create(fields))
            except Invalid as fault:
                answers.append(fault)
        return answers

    def notes(self, id: int) -> str:
        """The notes of a monitor; empty if it does not exist."""
        try:
            return self.get(id).notes or ""
        except NotFound:
            return ""

    def require(self, id: int) -> None:
        """Raise NotFound if there is no such monitor."""
        self.get(id)

    @abstractmethod
    def refs(
        self, *, ids: Sequence[int] | None = None, search: str | None = None, limit: int = 500
    ) -> Sequence[MonitorRef]:
        """Names and URLs, by name, for choices and links: at most ``limit`` of all monitors, of
        those with these ``ids``, or of those with ``search`` in the name or URL.
        """

    def children(self, id: int, per_page: int = 20) -> Page[MonitorRef]:
        """The first monitors, by name, that depend on this one directly."""
        query = MonitorQuery(
            depends_on=id,
            sort_by=MonitorSortBy.NATURAL,
            sort=Sort.ASC,
            per_page=PAGE_SIZES[-1],
            uptime=(),
            brief=True,
        )
        page = self.list(query)
        refs = [MonitorRef(child.id, child.name, child.url) for child in page.items[:per_page]]
        return Page(refs, 1, per_page, page.total)

    @abstractmethod
    def watching(self, url: str) -> Sequence[MonitorRef]:
        """The first monitors, by id, that check this address already."""

    @abstractmethod
    def tags(self, search: str, limit: int = 10) -> Sequence[str]:
        """The tags of monitors that contain ``search``, ignoring case, sorted. A store that cannot
        count them finds only the tag ``search`` itself.
        """

    @abstractmethod
    def tag_counts(self, query: MonitorQuery = EVERY_MONITOR) -> Mapping[str, int] | None:
        """How many of the monitors that match ``query``, without its ``tag``, have each tag. None
        if the store cannot count them.
        """

    @abstractmethod
    def count(self, tags: Sequence[str], ids: Sequence[int] = ()) -> int:
        """How many monitors have one of ``tags``, or one of ``ids``."""

    @abstractmethod
    def overview(self, query: MonitorQuery = EVERY_MONITOR) -> Mapping[str, int]:
        """How many of the monitors that match ``query``, without its ``state``, are in each
        ``MonitorStatus``.
        """

    def locations(self) -> Mapping[str, str]:
        """The label of each place that monitors can be checked from, by its name; empty if the
        store has no places.
        """
        return {}


def create_valid(
    several: Sequence[Fields | Invalid], monitors: Monitors
) -> list[Monitor | Invalid]:
    """Store the monitors that are not refused already. Return the answer for each, in order."""
    valid = [fields for fields in several if not isinstance(fields, Invalid)]
    answers = iter(monitors.create_many(valid) if valid else ())
    return [fields if isinstance(fields, Invalid) else next(answers) for fields in several]


HAS_ENDED = N_("This incident has ended.")


class Incidents(Collection[Incident, IncidentQuery]):
    """``get`` also reads the evidence of an incident."""

    @abstractmethod
    def update(
        self, id: int, fields: Fields, *, by: str | None = None, expected: Fields | None = None
    ) -> Incident:
        """``by``: the person or key, shown with an acknowledgement. ``expected``: stored values; if
        one differs, a local store raises Conflict and changes nothing. A remote store ignores both.
        """

    @abstractmethod
    def acknowledge(
        self, ids: Sequence[int], *, by: str | None = None
    ) -> Sequence[Incident | WakefulError]:
        """Acknowledge these incidents now. Return for each the incident, NotFound, or Conflict if
        it has ended. An incident that was acknowledged already is unchanged. A local store does
        this in one transaction, so people get one message.
        """

    def open(self, limit: int) -> Page[Incident]:
        """The open incidents as in a brief list, at least ``limit`` of them if there are as many,
        and their number. Unacknowledged incidents come first, and the newest of each kind first.
        """
        newest = IncidentQuery(sort_by=IncidentSortBy.STARTED_AT, per_page=limit, brief=True)
        pages = [self.list(replace(newest, status=status)) for status in OPEN_STATUSES]
        incidents = [incident for page in pages for incident in page.items]
        return Page(incidents, 1, max(limit, len(incidents)), sum(page.total for page in pages))

    def unacknowledged_in(self, delivery_id: int) -> Sequence[Incident]:
        """The open incidents of a grouped message that nobody has acknowledged, the oldest first,
        ``MAX_IN_BATCH`` at most; empty if the store cannot read them.
        """
        return ()

    def overlapping(
        self, start: datetime, end: datetime, monitor_id: int | None = None
    ) -> Sequence[Incident]:
        """The incidents of this time, of one monitor or of all, the newest first. The list has no
        such filter, so it is read in the order of the ends, open incidents first, until an incident
        ended before ``start``.
        """
        query = IncidentQuery(
            monitor_id=monitor_id, sort_by=IncidentSortBy.ENDED_AT, per_page=100, brief=True
        )
        recent = takewhile(
            lambda incident: incident.ended_at is None or incident.ended_at > start,
            self.every(query, MAX_OVERLAPPING),
        )
        incidents = [incident for incident in recent if incident.started_at < end]
        incidents.sort(key=lambda incident: (incident.started_at, incident.id), reverse=True)
        return incidents


class Results(ABC):
    """The results of checks, their figures, and certificates."""

    @abstractmethod
    def list(self, query: ResultQuery) -> Page[Result]: ...

    @abstractmethod
    def statistics(
        self, monitor_id: int, range_: str, *, response: bool = True
    ) -> Mapping[str, Any]:
        """The answer of the API's ``statistics``. ``range_``: a key of ``app.stats.RANGES``.
        ``response``: whether response times are needed, which are the slowest to read.
        """

    @abstractmethod
    def statistics_between(
        self, monitor_id: int, start: datetime, end: datetime
    ) -> Mapping[str, Any]:
        """``statistics`` of the time between ``start`` and ``end``, at most ``MAX_REPORT_DAYS``
        days. Its ``range`` is None; ``from`` and ``to`` are rounded to whole buckets. Raises
        Invalid for a time that has not begun.
        """

    @abstractmethod
    def report(
        self, monitor_ids: Sequence[int], start: datetime, end: datetime, *, days: bool = False
    ) -> Mapping[int, Mapping[str, Any]]:
        """The figures of ``app.stats.report`` for each of these monitors between two full hours,
        and under the key 0 for all. Unknown ids are left out. ``days``: add each monitor's days.
        """

    def slow_alerts(self, monitor_id: int, limit: int, minutes: int) -> SlowAlerts | None:
        """How often the monitor would have alerted in the last ``SLOW_ALERTS_DAYS``, if it alerted
        after ``minutes`` of answers above ``limit`` ms. This reads single results. None if the
        store cannot read them.
        """
        return None

    def by_place(
        self, monitor_id: int, start: datetime, count: int, seconds: int
    ) -> Mapping[str, Sequence[int | None]]:
        """The average response time of the good checks of each place, in each of ``count`` buckets
        of ``seconds`` from ``start`` on. This reads single results, so use it for a day or two.
        Empty if the store cannot read them.
        """
        return {}

    @abstractmethod
    def certificates(self, monitor_id: int) -> CertificateChain:
        """The certificates that the target of a monitor sent last, trusted or not."""


class Checks(ABC):
    """Checks on demand."""

    @abstractmethod
    def run(self, monitor_id: int) -> CheckedNow:
        """Check a stored monitor at once in all of its places and wait for the recorded results."""

    @abstractmethod
    def run_unsaved(self, fields: Fields, *, secrets_from: int | None = None) -> Outcome:
        """Check unsaved fields of a monitor, of which ``url`` is required. Nothing is stored."""


class Heartbeats(ABC):
    """Heartbeat monitors: their pings and their ping URLs."""

    @abstractmethod
    def list(self, query: PingQuery) -> Page[Ping]: ...

    @abstractmethod
    def get(self, monitor_id: int, id: int) -> Ping:
        """A ping with its stored body. NotFound also for a ping of another monitor."""

    @abstractmethod
    def new_token(self, monitor_id: int) -> Monitor:
        """The heartbeat with a new ping URL, which ends the old one. Raises Conflict for a monitor
        of another kind.
        """


class Deliveries(Readable[Delivery, DeliveryQuery]):
    """The delivery log: each message, its target, and whether it arrived."""

    @abstractmethod
    def retry(self, id: int) -> Delivery: ...

    @abstractmethod
    def give_up(self, id: int) -> Delivery:
        """Never send a message that is pending or on hold. Raises Conflict for any other."""

    @abstractmethod
    def answers(self, ids: Sequence[int], seconds: float) -> Sequence[Delivery]:
        """Wait until each delivery has been attempted, at most ``seconds``, and return them."""


class Channels(ABC):
    """Alert channels: tests of them, and messages that have not arrived."""

    @abstractmethod
    def test(self, alerts: Sequence[Pair], *, monitor_id: int | None = None) -> tuple[int, ...]:
        """Send ``test`` to these channels, which need not be stored, and return the delivery ids.
        ``monitor_id``: the monitor that has or will have these alerts, if there is one.
        """

    @abstractmethod
    def test_all(self, monitor_id: int) -> tuple[int, ...]:
        """Send ``test`` to all channels of a monitor, and return the delivery ids."""

    @abstractmethod
    def not_set_up(self) -> Mapping[str, str]:
        """The channels that cannot work on this installation, each with a sentence; empty if the
        store cannot read them.
        """

    @abstractmethod
    def failed(self) -> Sequence[Delivery]:
        """The newest delivery whose attempts failed, for each channel value in use that has
        delivered nothing since; the newest first. Without those that a person gave up. Empty if the
        store cannot read them.
        """

    @abstractmethod
    def lost(self) -> Sequence[Delivery]:
        """Recent messages that failed without an attempt or are on hold since a restore, the newest
        first; empty if the store cannot read them.
        """

    @abstractmethod
    def unreached(self, incident_ids: Sequence[int]) -> Mapping[int, Sequence[Delivery]]:
        """For each of these open incidents of which nobody was notified, the messages that failed
        or are overdue; empty if the store cannot read them.
        """

    @abstractmethod
    def unreadable_alerts(self) -> Sequence[MonitorRef]:
        """The monitors that would alert nobody, because their stored alerts cannot be read; empty
        if the store cannot find them.
        """

    @abstractmethod
    def unalerted(self, monitor_ids: Sequence[int]) -> Sequence[int]:
        """The monitors of ``monitor_ids`` without alerts; empty if the store cannot tell."""


class Contacts(Collection[Contact, PageQuery]):
    """Named sets of channels. A monitor's alerts name them."""

    @abstractmethod
    def remove(self, id: int, *, replace_with: str | None = None, force: bool = False) -> None:
        """Delete a contact. If monitors use it, raises Conflict with their ids in ``monitors``,
        unless another contact replaces it (``replace_with``: a name or an id) or ``force``.
        """

    @abstractmethod
    def test(self, id: int) -> tuple[int, ...]:
        """Send ``test`` to all channels of a contact, and return the delivery ids."""

    @abstractmethod
    def shared(self, monitor_id: int) -> Sequence[SharedChannel]:
        """The channels of the monitor, without contacts, that several monitors have; empty if the
        store cannot find them.
        """

    @abstractmethod
    def from_channel(self, name: str, monitor_id: int, mark: str) -> Contact:
        """Create a contact with a channel (``SharedChannel.mark``), and replace the channel with it
        in every monitor, in one transaction. Raises Invalid if the channel was changed meanwhile.
        """

    @abstractmethod
    def id_of(self, value: str) -> int | None:
        """The id of the contact of this name, ignoring case, or else with this id."""

    def exists(self, value: str) -> bool:
        """Whether this contact exists. A store that leaves the answer to the server says True."""
        return self.id_of(value) is not None

    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names of all contacts, for choosing, by name; empty if the store has no contacts."""

    @abstractmethod
    def defaults(self) -> Sequence[str]:
        """The names of the contacts that new monitors of the dashboard start with."""


DEFAULT_STAYS = N_(
    "The place default cannot be deleted: checkers without a LOCATION check from it."
)
PLACE_IN_USE = N_("Monitors are checked from this place. Remove it from them first.")


class Locations(Collection[Place, PageQuery]):
    """The places that checks run from. Only the record of a new place with an agent has
    ``token``.
    """

    def users(self, id: int, limit: int) -> Sequence[MonitorRef]:
        """The first monitors that are checked from a place; empty if the store cannot find them."""
        return ()

    @abstractmethod
    def new_token(self, id: int) -> Place:
        """The place with a new token, which ends the old one. Raises Conflict if it has no
        agent.
        """

    @abstractmethod
    def of_monitor(self, monitor_id: int) -> Sequence[PlaceSeen]:
        """The places that a monitor is checked from, with the newest result of each; empty if the
        store has no places.
        """


class StatusPages(Collection[StatusPage, PageQuery]):
    """``password`` is written and never read: a page says ``password_set``."""

    @abstractmethod
    def of_monitor(self, monitor_id: int) -> Sequence[StatusPage]:
        """The pages that show this monitor, by name; empty if the store has no pages."""


class Posts(ABC):
    """The posts of a status page. Methods raise NotFound also for a post of another page."""

    @abstractmethod
    def list(self, query: PostQuery) -> Page[Post]: ...

    @abstractmethod
    def get(self, page_id: int, id: int) -> Post: ...

    @abstractmethod
    def create(self, page_id: int, fields: Fields) -> Post:
        """Store a post with its first update, and notify the page's subscribers."""

    @abstractmethod
    def update(self, page_id: int, id: int, fields: Fields) -> Post:
        """Correct a post. ``body`` corrects its first update, ``state`` its last one."""

    @abstractmethod
    def delete(self, page_id: int, id: int) -> None: ...

    @abstractmethod
    def add_update(self, page_id: int, id: int, fields: Fields) -> Post:
        """Add ``state`` and ``body`` as the post's newest update, and notify the subscribers."""

    @abstractmethod
    def correct_update(self, page_id: int, id: int, update_id: int, fields: Fields) -> Post:
        """Correct an update, and store the time of the correction. Raises NotFound also for an
        update of another post.
        """

    @abstractmethod
    def draft(self, page_id: int, incident_id: int) -> Fields:
        """The fields of a new post about this incident: title, state, body, monitors. The cause is
        a sentence for the public.
        """


class Subscribers(Listed[Subscriber, SubscriberQuery]):
    """The confirmed subscribers of a page's posts. People subscribe and confirm on the page."""

    @abstractmethod
    def clear(self, page_id: int) -> int:
        """Delete all subscribers of a page, also unconfirmed ones, and return how many."""


# --- The store ------------------------------------------------------------------------------------


class Store(ABC):
    """Monitors, incidents and what belongs to them, in one database or on one server."""

    extent: Extent

    monitors: Monitors
    incidents: Incidents
    windows: Collection[MaintenanceWindow, PageQuery]
    markers: Collection[Marker, MarkerQuery]
    results: Results
    checks: Checks
    heartbeats: Heartbeats
    deliveries: Deliveries
    channels: Channels
    contacts: Contacts
    locations: Locations
    status_pages: StatusPages
    posts: Posts
    post_templates: Collection[PostTemplate, PageQuery]
    report_mails: Collection[ReportMail, PageQuery]
    subscribers: Subscribers

    @abstractmethod
    def now(self) -> datetime:
        """The store's clock, in UTC."""


def until_attempted(
    read: Callable[[int], Delivery], ids: Sequence[int], seconds: float, pause: float
) -> list[Delivery]:
    """Wait until each delivery has been attempted, at most ``seconds``, and return them. If too
    many requests wait already, return at once. ``read`` is called every ``pause`` seconds.
    """
    deliveries: dict[int, Delivery] = {}
    waiting = list(ids)
    with LONG_WAITS.taken() as free:
        deadline = time.monotonic() + (seconds if free else 0.0)
        while True:
            deliveries |= {id: read(id) for id in waiting}
            waiting = [id for id in waiting if _is_untried(deliveries[id])]
            if not waiting or time.monotonic() >= deadline:
                return list(deliveries.values())
            time.sleep(pause)


def _is_untried(delivery: Delivery) -> bool:
    return not delivery.attempts and delivery.status == DeliveryStatus.PENDING
