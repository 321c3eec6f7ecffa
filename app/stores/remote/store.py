"""A store over another server's /api/v1: any server that speaks interface.md, and more where it is
a Wakeful.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from dataclasses import fields as dataclass_fields
from datetime import datetime
from typing import Any, TypeVar

from app.codec import Odd
from app.errors import Invalid, Unavailable, Unsupported, WakefulError
from app.forms import monitor
from app.records import (
    CertificateChain,
    Delivery,
    DeliveryQuery,
    Incident,
    IncidentQuery,
    IncidentSearchBy,
    MaintenanceWindow,
    Monitor,
    MonitorQuery,
    MonitorRef,
    Outcome,
    Page,
    Pair,
    Result,
    ResultQuery,
)
from app.rules import brackets
from app.stats import report
from app.stores.base import Feature, Fields, Store
from app.stores.remote import channels, reading, seen
from app.stores.remote.connection import CHECK_SECONDS, Answer, Connection
from app.stores.remote.meaning import refuse
from app.stores.waiting import until_tried

T = TypeVar("T")
R = TypeVar("R", Monitor, Incident, Delivery, MaintenanceWindow)

OWN_FIELDS = frozenset(monitor.OWN_FIELDS)
_DEFAULTS = {field.name: field.default for field in dataclass_fields(Monitor)}
# What every Wakeful offers over its API, and what it offers where ``me`` says so.
OF_WAKEFUL = frozenset(
    {
        Feature.CHECK, Feature.RESULTS, Feature.STATISTICS, Feature.DELIVERIES, Feature.WINDOWS,
        Feature.EXTRA_FIELDS,
    }
)  # fmt: skip
POLL_SECONDS = 0.5
OF_NEWER = frozenset(
    {
        Feature.OVERVIEW, Feature.HOURS, Feature.CLASSIFY, Feature.REPORTS, Feature.CERTIFICATES,
    }
)  # fmt: skip
ASKED_AGAIN_SECONDS = 300.0  # a server that was updated meanwhile offers more
NAMES_PAGE = 100
NAMES_PAGES = 5
NO_SUCH_FIELD = "This server has no place for it. Leave it as it was."
PASSWORD_NEEDED = "Type the password again: the server keeps it to itself."  # noqa: S105


class RemoteStore(Store):
    """``connection`` says where. Safe to use from several threads."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._offers: frozenset[Feature] | None = None
        self._missing: frozenset[Feature] = frozenset()
        self._asked_at = 0.0

    @property
    def name(self) -> str:
        """How people tell this server from others: host, port and path."""
        return self.connection.name

    @property
    def offers(self) -> frozenset[Feature]:  # type: ignore[override] # found out when first needed
        """What the server offers beyond interface.md, as it said last.

        While that is not known, raises what any read raises: taken for a bare one while it does not
        answer, a Wakeful would be sent a form without the fields of our own.
        """
        if self._offers is None or time.monotonic() - self._asked_at > ASKED_AGAIN_SECONDS:
            try:
                self._offers = self._ask_offers()
                self._missing = frozenset()
            except WakefulError:
                if self._offers is None:
                    raise
            self._asked_at = time.monotonic()
        return self._offers - self._missing

    def _ask_offers(self) -> frozenset[Feature]:
        answer = self.connection.read("/me")
        if answer.status == 200:
            return _offered(answer.body)
        if answer.status in (401, 429) or answer.status >= 500:
            refuse(self.connection, answer)
        # Only a Wakeful has ``me``, and /api/v1 only grows (decisions.md 8). But a proxy says 404
        # to everything while what is behind it restarts: then nothing is known.
        refuse(self.connection, self.connection.read("/monitors", [("per_page", "10")]))
        if self._offers:
            raise self.connection.unavailable("does not say what it offers just now.")
        return frozenset()

    def now(self) -> datetime:
        return self.connection.now()

    # monitors

    def monitors(self, query: MonitorQuery) -> Page[Monitor]:
        if (query.state or query.tag) and Feature.OVERVIEW not in self.offers:
            raise Unsupported(f"The server {self.name} does not filter by state or tag.")
        known = query.hours and Feature.HOURS in self.offers
        sent = _query(query, leave=("uptime",) if known else ("uptime", "hours"))
        return self._page("/monitors", sent, query.page, query.per_page, reading.monitor)

    def monitor(self, id: int) -> Monitor:
        answer = self._read(f"/monitors/{id}", kind="monitor", id=id)
        return self._same(id, self._record(answer, reading.monitor))

    def create_monitor(self, fields: Fields, *, secrets_from: int | None = None) -> Monitor:
        self._refuse_hidden_password(fields, secrets_from)
        answer = self._write("POST", "/monitors", self._monitor_fields(fields, new=True))
        if answer.body is not None:
            return self._record(answer, reading.monitor)
        return self._created_unseen(str(fields["name"]), str(fields["url"]))

    def update_monitor(self, id: int, fields: Fields) -> Monitor:
        known = self._monitor_fields(fields)
        if not known:
            return self.monitor(id)
        answer = self._write("PATCH", f"/monitors/{id}", known, kind="monitor", id=id)
        if answer.body is not None:
            return self._same(id, self._record(answer, reading.monitor))
        with _stored():
            return self.monitor(id)

    def delete_monitor(self, id: int) -> None:
        self._write("DELETE", f"/monitors/{id}", kind="monitor", id=id)

    def refs(
        self, *, ids: Sequence[int] | None = None, search: str | None = None, limit: int = 500
    ) -> Sequence[MonitorRef]:
        """From the first monitors by name: ``NAMES_PAGES`` requests at most."""
        found: list[MonitorRef] = []
        wanted = None if ids is None else set(ids)
        for number in range(1, NAMES_PAGES + 1):
            query = MonitorQuery(
                search=search, sort_by="name", sort="asc", per_page=NAMES_PAGE, page=number
            )
            page = self.monitors(query)
            found += [
                MonitorRef(one.id, one.name, one.url)
                for one in page.items
                if wanted is None or one.id in wanted
            ]
            enough = limit if wanted is None else min(limit, len(wanted))
            if len(found) >= enough or number >= page.last_number:
                break
        return found[:limit]

    # incidents

    def incidents(self, query: IncidentQuery) -> Page[Incident]:
        # Its default is none of the values that interface.md lists; unsaid, it is meant too.
        unsaid = ("search_by",) if query.search_by == IncidentSearchBy.URL else ()
        sent = _query(query, leave=("brief", *unsaid))
        page = self._page("/incidents", sent, query.page, query.per_page, self._read_incident)
        return replace(page, items=self._named(list(page.items)))

    def incident(self, id: int) -> Incident:
        answer = self._read(f"/incidents/{id}", kind="incident", id=id)
        return self._same(id, self._named([self._record(answer, self._read_incident)])[0])

    def create_incident(self, fields: Fields) -> Incident:
        known = {name: value for name, value in fields.items() if value is not None}
        answer = self._write("POST", "/incidents", known)
        if answer.body is not None:
            return self._told(answer)
        newest = IncidentQuery(monitor_id=fields["monitor_id"], sort_by="started_at")
        with _stored():
            same = [one for one in self.incidents(newest).items if _same(one, fields)]
        if not same:
            raise self.connection.unavailable("took the incident but does not list it.")
        return max(same, key=lambda one: one.id)

    def update_incident(
        self, id: int, fields: Fields, *, by: str | None = None, seen: Fields | None = None
    ) -> Incident:
        # ``by`` and ``seen`` have no place in interface.md: the server knows whose key it is.
        if not fields:
            return self.incident(id)
        answer = self._write("PATCH", f"/incidents/{id}", fields, kind="incident", id=id)
        if answer.body is not None:
            return self._same(id, self._told(answer))
        with _stored():
            return self.incident(id)

    def delete_incident(self, id: int) -> None:
        self._write("DELETE", f"/incidents/{id}", kind="incident", id=id)

    # beyond interface.md

    def check_now(self, id: int) -> Result:
        path = f"/monitors/{id}/check"
        answer = self._write("POST", path, of=(Feature.CHECK, id), seconds=CHECK_SECONDS)
        return self._record(answer, reading.result)

    def check_fields(self, fields: Fields, *, secrets_from: int | None = None) -> Outcome:
        self._refuse_hidden_password(fields, secrets_from)
        known = {name: value for name, value in fields.items() if value not in (None, ())}
        answer = self._write(
            "POST", "/checks", known, of=(Feature.CHECK, None), seconds=CHECK_SECONDS
        )
        return Outcome(self._record(answer, reading.result))

    def results(self, query: ResultQuery) -> Page[Result]:
        path = f"/monitors/{query.monitor_id}/results"
        sent = _query(query, leave=("monitor_id",))
        of = (Feature.RESULTS, query.monitor_id)
        return self._page(path, sent, query.page, query.per_page, reading.result, of=of)

    def certificates(self, monitor_id: int) -> CertificateChain:
        if Feature.CERTIFICATES not in self.offers:
            raise Unsupported(f"The server {self.name} does not show certificates.")
        path = f"/monitors/{monitor_id}/certificates"
        answer = self._read(path, of=(Feature.CERTIFICATES, monitor_id))
        return self._record(answer, reading.certificates)

    def statistics(self, monitor_id: int, range_: str) -> Mapping[str, Any]:
        path = f"/monitors/{monitor_id}/statistics"
        answer = self._read(path, [("range", range_)], of=(Feature.STATISTICS, monitor_id))
        return self._record(answer, lambda data: seen.statistics(data, range_))

    def report(
        self, monitor_ids: Sequence[int], start: datetime, end: datetime
    ) -> Mapping[int, Mapping[str, Any]]:
        if Feature.REPORTS not in self.offers:
            raise Unsupported(f"The server {self.name} has no figures for a month.")
        if not monitor_ids:  # it would take none for all
            return report.figures(0, 0, {}, {})
        asked = {"from": start, "to": end, "monitors": tuple(map(str, monitor_ids))}
        answer = self._read("/report", brackets.write(asked), of=(Feature.REPORTS, None))
        return self._record(answer, reading.report)

    def overview(self) -> Mapping[str, int]:
        if Feature.OVERVIEW not in self.offers:
            raise Unsupported(f"The server {self.name} does not count monitors by their state.")
        answer = self._read("/overview", of=(Feature.OVERVIEW, None))
        return self._record(answer, reading.overview)

    def test_alert(self, monitor_id: int) -> tuple[int, ...]:
        path = f"/monitors/{monitor_id}/test-alert"
        answer = self._write("POST", path, of=(Feature.DELIVERIES, monitor_id))
        return self._record(answer, _delivery_ids)

    def test_channels(
        self, alerts: Sequence[Pair], *, monitor_id: int | None = None
    ) -> tuple[int, ...]:
        fields: dict[str, Any] = {"alerts": tuple(alerts)}
        if monitor_id is not None:
            fields["monitor_id"] = monitor_id
        ids = self._record(self._write("POST", "/alerts/test", fields), _delivery_ids)
        if len(ids) != len(alerts):
            raise self._not_understood(Odd("deliveries"))
        return ids

    def answers(self, ids: Sequence[int], seconds: float) -> Sequence[Delivery]:
        return until_tried(self.delivery, ids, seconds, POLL_SECONDS)

    def deliveries(self, query: DeliveryQuery) -> Page[Delivery]:
        return self._page(
            "/deliveries",
            _query(query),
            query.page,
            query.per_page,
            reading.delivery,
            of=(Feature.DELIVERIES, None),
        )

    def delivery(self, id: int) -> Delivery:
        answer = self._read(f"/deliveries/{id}", kind="delivery", id=id)
        return self._same(id, self._record(answer, reading.delivery))

    def retry_delivery(self, id: int) -> Delivery:
        self._write("POST", f"/deliveries/{id}/retry", kind="delivery", id=id)
        with _stored():
            return self.delivery(id)

    def failed_channels(self) -> Sequence[Delivery]:
        return channels.failed_channels(self) if Feature.DELIVERIES in self.offers else ()

    def windows(self, *, page: int = 1, per_page: int = 100) -> Page[MaintenanceWindow]:
        return self._page(
            "/maintenance-windows",
            [("per_page", str(per_page)), *([("page", str(page))] if page > 1 else [])],
            page,
            per_page,
            reading.window,
            of=(Feature.WINDOWS, None),
        )

    def window(self, id: int) -> MaintenanceWindow:
        path = f"/maintenance-windows/{id}"
        answer = self._read(path, kind="maintenance window", id=id)
        return self._same(id, self._record(answer, reading.window))

    def create_window(self, fields: Fields) -> MaintenanceWindow:
        known = {name: value for name, value in fields.items() if value not in (None, ())}
        answer = self._write("POST", "/maintenance-windows", known, of=(Feature.WINDOWS, None))
        return self._record(answer, reading.window)

    def update_window(self, id: int, fields: Fields) -> MaintenanceWindow:
        if not fields:
            return self.window(id)
        path = f"/maintenance-windows/{id}"
        answer = self._write("PATCH", path, fields, kind="maintenance window", id=id)
        return self._same(id, self._record(answer, reading.window))

    def delete_window(self, id: int) -> None:
        path = f"/maintenance-windows/{id}"
        self._write("DELETE", path, kind="maintenance window", id=id)

    # the ways and means

    def _read(
        self,
        path: str,
        query: brackets.Pairs = (),
        *,
        kind: str | None = None,
        id: int | None = None,
        of: tuple[Feature, int | None] | None = None,
    ) -> Answer:
        try:
            answer = self.connection.read(path, query)
            self._refuse(answer, kind, id, of)
        except Unavailable as fault:
            fault.unsent = True
            raise
        return answer

    def _write(
        self,
        method: str,
        path: str,
        fields: Fields | None = None,
        *,
        kind: str | None = None,
        id: int | None = None,
        of: tuple[Feature, int | None] | None = None,
        seconds: float | None = None,
    ) -> Answer:
        pairs = brackets.write(fields or {})
        limit = {} if seconds is None else {"seconds": seconds}
        answer = self.connection.write(method, path, pairs, **limit)
        self._refuse(answer, kind, id, of)
        return answer

    def _refuse(
        self,
        answer: Answer,
        kind: str | None,
        id: int | None,
        of: tuple[Feature, int | None] | None,
    ) -> None:
        """``of``: the feature that was used, and the monitor it was used on.

        A 404 says that the feature is missing, or the monitor: the monitor itself tells which.
        """
        if of is not None and answer.status in (404, 405):
            feature, monitor_id = of
            if monitor_id is not None:
                self.monitor(monitor_id)
            if feature in self._ask_offers():  # a proxy's 404, while what is behind it restarts
                raise self.connection.unavailable(f"does not offer this just now: {feature}.")
            self._missing |= {feature}
            refuse(self.connection, answer, feature=feature.replace("_", " "))
        refuse(self.connection, answer, kind=kind, id=id)

    def _same(self, id: int, record: R) -> R:
        """``record`` is to have the id that stands in the address: with another one, what a person
        changes next would be changed on another record.
        """
        if record.id != id:
            raise self._not_understood(Odd("id"))
        return record

    def _record(self, answer: Answer, read: Callable[[Any], T]) -> T:
        try:
            return reading.record(answer.body, read)
        except Odd as odd:
            raise self._not_understood(odd) from None

    def _page(
        self,
        path: str,
        query: brackets.Pairs,
        number: int,
        per_page: int,
        read: Callable[[Any], T],
        *,
        of: tuple[Feature, int | None] | None = None,
    ) -> Page[T]:
        answer = self._read(path, query, of=of)
        try:
            items = reading.records(answer.body, read)
        except Odd as odd:
            raise self._not_understood(odd) from None
        total = reading.total(answer.body, number, per_page, len(items))
        if total is None:
            # It knows no pages: it sent what it has, or as many as were asked for.
            full = len(items) >= per_page
            return Page([] if number > 1 else items, number, per_page, len(items), more=full)
        return Page(items[:per_page], number, per_page, total)

    def _not_understood(self, odd: Odd) -> Unavailable:
        return self.connection.unavailable(f"sent an answer that makes no sense ({odd}).")

    def _read_incident(self, data: Any) -> Incident:
        return reading.incident(data, self.now())

    def _told(self, answer: Answer) -> Incident:
        """The incident that the answer to a write holds."""
        with _stored():
            return self._named([self._record(answer, self._read_incident)])[0]

    def _named(self, incidents: list[Incident]) -> list[Incident]:
        """Incidents with their monitors' names, which a bare server leaves us to look up."""
        if all(incident.monitor for incident in incidents):
            return incidents
        known = self.monitors(MonitorQuery(per_page=NAMES_PAGE)).items
        names = {one.id: MonitorRef(one.id, one.name, one.url) for one in known}
        return [
            incident
            if incident.monitor
            else replace(
                incident,
                monitor=names.get(
                    incident.monitor_id,
                    MonitorRef(incident.monitor_id, f"Monitor {incident.monitor_id}", ""),
                ),
            )
            for incident in incidents
        ]

    def _monitor_fields(self, fields: Fields, *, new: bool = False) -> dict[str, Any]:
        """What this server can take: a new monitor leaves out what is empty anyway."""
        own = OWN_FIELDS & fields.keys()
        unknown = own if own and Feature.EXTRA_FIELDS not in self.offers else frozenset()
        lost = {name: [NO_SUCH_FIELD] for name in unknown if _was_typed(name, fields[name])}
        if lost:
            raise Invalid(lost)
        return {
            name: value
            for name, value in fields.items()
            if name not in unknown and not (new and value in (None, ()))
        }

    def _created_unseen(self, name: str, url: str) -> Monitor:
        """The monitor that was just stored, from a server that did not send it back."""
        with _stored():
            listed = self.monitors(MonitorQuery(per_page=NAMES_PAGE)).items
        for one in listed:
            if (one.name, one.url) == (name, url):
                return one  # the list has the newest first
        raise self.connection.unavailable("took the monitor but does not list it.")

    def _refuse_hidden_password(self, fields: Fields, source: int | None) -> None:
        """A password that only the server knows cannot be taken over into another request."""
        if source is None or fields.get("request_auth_password"):
            return
        if fields.get("request_auth_username") and self.monitor(source).request_auth_password_set:
            raise Invalid({"request_auth_password": [PASSWORD_NEEDED]})


@contextmanager
def _stored() -> Iterator[None]:
    """For what is read after a write: that it fails says nothing of what was stored before."""
    try:
        yield
    except Unavailable as fault:
        fault.unsent = False
        raise


def _was_typed(name: str, value: Any) -> bool:
    """Whether a field says something else than a monitor has without it."""
    return name != "quiet_zone" and value != _DEFAULTS[name]


def _offered(body: Any) -> frozenset[Feature]:
    """What a Wakeful offers by what its ``me`` says."""
    data = body.get("data") if isinstance(body, Mapping) else None
    named = data.get("features") if isinstance(data, Mapping) else None
    words = named if isinstance(named, list) else []
    return OF_WAKEFUL | {feature for feature in OF_NEWER if feature.value in words}


def _query(query: Any, leave: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """A query's parameters. The first page goes without saying: interface.md knows no pages."""
    fields = {name.rstrip("_"): value for name, value in asdict(query).items() if name not in leave}
    if fields.get("page") == 1:
        del fields["page"]
    if not fields.get("search"):
        fields.pop("search_by", None)
    return brackets.write({name: value for name, value in fields.items() if value is not None})


def _same(incident: Incident, fields: Fields) -> bool:
    return bool(incident.started_at == fields["started_at"].replace(microsecond=0))


def _delivery_ids(data: Any) -> tuple[int, ...]:
    ids = data.get("deliveries") if isinstance(data, Mapping) else data
    if not isinstance(ids, list) or not all(isinstance(id, int) for id in ids):
        raise Odd("deliveries")
    return tuple(ids)
