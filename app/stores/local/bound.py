"""The local store as an API key sees it that is bound to a tag (decision 15).

It has the monitors with the tag, and what belongs to them: incidents, results, certificates,
places, deliveries, checks and test alerts. Everything else is denied, also what is added later: a
resource that is not named here raises Denied. What belongs to other monitors does not exist for the
key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NoReturn

from sqlalchemy import select

from app.access.keys import BOUND
from app.db import DbSession, db, writing
from app.db.tables import ContactRow, IncidentRow, MonitorContactRow, MonitorRow
from app.db.tags import tagged
from app.errors import Denied, Invalid, NotFound, WakefulError, no_such
from app.i18n import N_, _
from app.records import (
    CertificateChain,
    CheckedNow,
    Delivery,
    DeliveryQuery,
    Incident,
    IncidentQuery,
    Monitor,
    MonitorQuery,
    Page,
    Ping,
    PingQuery,
    PlaceSeen,
    Result,
    ResultQuery,
    SlowAlerts,
)
from app.stores import base
from app.stores.base import Extent, Fields, Store
from app.stores.local.search import fits

TAG_STAYS = N_("This API key is bound to the tag %(tag)s, so the tags must include it.")


NO_MONITOR = 0
BEHIND_OTHERS = N_("Unreachable: what it is reached through is down.")


class _Tag:
    """The tag of a key, and whether a monitor has it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def denied(self) -> Denied:
        return Denied(_(BOUND, tag=self.name))

    def has(self, monitor_id: int | None) -> bool:
        if monitor_id is None or not fits(monitor_id):
            return False
        monitor = select(MonitorRow.id).where(MonitorRow.id == monitor_id, tagged([self.name]))
        return db.session.scalar(monitor) is not None

    def among(self, ids: Collection[int]) -> set[int]:
        """The monitors, of these, with the tag."""
        if not ids:
            return set()
        monitors = select(MonitorRow.id).where(MonitorRow.id.in_(ids), tagged([self.name]))
        return set(db.session.scalars(monitors))

    def check(self, monitor_id: int) -> None:
        """Raises NotFound for a monitor without the tag."""
        if not self.has(monitor_id):
            raise NotFound("monitor", monitor_id)

    def hold(self, session: DbSession, monitor_id: int) -> None:
        """Like ``check``; until the transaction ends, nobody takes the tag off the monitor."""
        if not self.keeps(session, monitor_id):
            raise NotFound("monitor", monitor_id)

    def keeps(self, session: DbSession, monitor_id: int | None) -> bool:
        """Like ``has``; until the transaction ends, nobody takes the tag off the monitor."""
        if monitor_id is not None and fits(monitor_id):
            monitor = select(MonitorRow.id).where(MonitorRow.id == monitor_id)
            session.execute(monitor.with_for_update(key_share=True)).all()
        return self.has(monitor_id)

    def keep_among(self, session: DbSession, ids: Collection[int]) -> set[int]:
        """Like ``among`` and ``keeps``. The rows are locked in one order: two requests for the same
        monitors would wait for each other.
        """
        monitors = select(MonitorRow.id).where(MonitorRow.id.in_(ids)).order_by(MonitorRow.id)
        session.execute(monitors.with_for_update(key_share=True)).all()
        return self.among(ids)


class _Closed:
    """What a bound key may not use at all. Whatever is called raises Denied."""

    def __init__(self, tag: _Tag) -> None:
        self._tag = tag

    def __getattr__(self, name: str) -> NoReturn:
        raise self._tag.denied()


class BoundStore:
    """``inner``, the local store, for a key that is bound to ``tag``. Has the interface of
    ``Store``.
    """

    extent = Extent.TAG

    def __init__(self, inner: Store, tag: str) -> None:
        self._inner, self._tag = inner, _Tag(tag)
        self.monitors = _Monitors(inner, self._tag)
        self.incidents = _Incidents(inner, self._tag)
        self.results = _Results(inner, self._tag)
        self.checks = _Checks(inner, self._tag)
        self.heartbeats = _Heartbeats(inner, self._tag)
        self.deliveries = _Deliveries(inner, self._tag)
        self.channels = _Channels(inner, self._tag)
        self.contacts = _Contacts(inner, self._tag)
        self.locations = _Locations(inner, self._tag)

    def now(self) -> datetime:
        return self._inner.now()

    def __getattr__(self, name: str) -> _Closed:
        """A resource that is not named above."""
        return _Closed(self._tag)


class _BoundPart(_Closed):
    def __init__(self, inner: Store, tag: _Tag) -> None:
        super().__init__(tag)
        self._inner = inner


class _Monitors(_BoundPart):
    def list(self, query: MonitorQuery) -> Page[Monitor]:
        page = self._inner.monitors.list(self._bound(query))
        return replace(page, items=self._shown(page.items))

    def overview(self, query: MonitorQuery = base.EVERY_MONITOR) -> Mapping[str, int]:
        return self._inner.monitors.overview(self._bound(query))

    def _bound(self, query: MonitorQuery) -> MonitorQuery:
        """The query for monitors with the tag. What is reached through one without it is not said,
        as ``depends_on`` does not name it.
        """
        parent = query.depends_on
        if parent is not None and not self._tag.has(parent):
            query = replace(query, depends_on=NO_MONITOR)
        return replace(query, bound_tag=self._tag.name)

    def get(self, id: int) -> Monitor:
        self._tag.check(id)
        return self._shown([self._inner.monitors.get(id)])[0]

    def _shown(self, monitors: Sequence[Monitor]) -> Sequence[Monitor]:
        """The monitors without what they are reached through and the key must not see."""
        named = {id for monitor in monitors for id in (*monitor.depends_on, monitor.behind_id)}
        tagged_ids = self._tag.among({id for id in named if id is not None})
        return [
            monitor
            if tagged_ids.issuperset(filter(None, (*monitor.depends_on, monitor.behind_id)))
            else _without_others(monitor, tagged_ids)
            for monitor in monitors
        ]

    def require(self, id: int) -> None:
        self._tag.check(id)

    def locations(self) -> Mapping[str, str]:
        return self._inner.monitors.locations()

    def create(self, fields: Fields, *, secrets_from: int | None = None) -> Monitor:
        if fault := self._fault(fields):
            raise fault
        if secrets_from is not None:
            self._tag.check(secrets_from)
        return self._shown([self._inner.monitors.create(fields, secrets_from=secrets_from)])[0]

    def create_many(self, several: Sequence[Fields]) -> Sequence[Monitor | Invalid]:
        checked = [self._fault(fields) or fields for fields in several]
        answers = base.create_valid(checked, self._inner.monitors)
        return [
            answer if isinstance(answer, Invalid) else self._shown([answer])[0]
            for answer in answers
        ]

    def update(self, id: int, fields: Fields) -> Monitor:
        with writing() as session:
            self._tag.hold(session, id)
            if fault := self._fault({"tags": [self._tag.name], **fields}):
                raise fault
            return self._shown([self._inner.monitors.update(id, fields)])[0]

    def delete(self, id: int) -> None:
        with writing() as session:
            self._tag.hold(session, id)
            self._inner.monitors.delete(id)

    def _fault(self, fields: Fields) -> Invalid | None:
        """Why the key may not store this: without the tag, or behind monitors without it."""
        tags, parents = fields.get("tags"), fields.get("depends_on")
        if self._tag.name not in (tags or ()):
            return Invalid({"tags": [_(TAG_STAYS, tag=self._tag.name)]})
        for position, id in enumerate(parents or ()):
            if not self._tag.has(id):
                return Invalid({f"depends_on.{position}": [no_such("monitor", id)]})
        return None


def _without_others(monitor: Monitor, tagged_ids: Collection[int]) -> Monitor:
    shown = tuple(id for id in monitor.depends_on if id in tagged_ids)
    if monitor.behind_id in (None, *tagged_ids):
        return replace(monitor, depends_on=shown)
    return replace(monitor, depends_on=shown, behind_id=None, cause=_(BEHIND_OTHERS))


class _Incidents(_BoundPart):
    def list(self, query: IncidentQuery) -> Page[Incident]:
        page = self._inner.incidents.list(replace(query, bound_tag=self._tag.name))
        return replace(page, items=[self._shown(incident) for incident in page.items])

    def get(self, id: int) -> Incident:
        incident = self._inner.incidents.get(id)
        if incident.monitor is None or not self._tag.has(incident.monitor.id):
            raise NotFound("incident", id)
        return self._shown(incident)

    def _shown(self, incident: Incident) -> Incident:
        tagged_ids = self._tag.among(incident.affected)
        return replace(incident, affected=tuple(filter(tagged_ids.__contains__, incident.affected)))

    def create(self, fields: Fields) -> Incident:
        with writing() as session:
            if not self._tag.keeps(session, fields["monitor_id"]):
                raise Invalid({"monitor_id": [no_such("monitor", fields["monitor_id"])]})
            return self._shown(self._inner.incidents.create(fields))

    def update(
        self, id: int, fields: Fields, *, by: str | None = None, expected: Fields | None = None
    ) -> Incident:
        with writing() as session:
            self._hold(session, id)
            return self._shown(self._inner.incidents.update(id, fields, by=by, expected=expected))

    def acknowledge(
        self, ids: Sequence[int], *, by: str | None = None
    ) -> Sequence[Incident | WakefulError]:
        chosen = IncidentRow.id.in_([id for id in ids if fits(id)])
        with writing() as session:
            rows = session.execute(select(IncidentRow.id, IncidentRow.monitor_id).where(chosen))
            monitor_ids = {row.id: row.monitor_id for row in rows}
            kept = self._tag.keep_among(session, set(monitor_ids.values()))
            shown = [id for id in ids if monitor_ids.get(id) in kept]
            answers = dict(zip(shown, self._inner.incidents.acknowledge(shown, by=by), strict=True))
        return [
            self._shown(answer) if isinstance(answer, Incident) else answer
            for answer in (answers.get(id) or NotFound("incident", id) for id in ids)
        ]

    def delete(self, id: int) -> None:
        with writing() as session:
            self._hold(session, id)
            self._inner.incidents.delete(id)

    def _hold(self, session: DbSession, id: int) -> None:
        if not self._tag.keeps(session, self.get(id).monitor_id):
            raise NotFound("incident", id)


class _Results(_BoundPart):
    def list(self, query: ResultQuery) -> Page[Result]:
        self._tag.check(query.monitor_id)
        return self._inner.results.list(query)

    def statistics(self, monitor_id: int, range_: str) -> Mapping[str, Any]:
        self._tag.check(monitor_id)
        return self._inner.results.statistics(monitor_id, range_)

    def statistics_between(
        self, monitor_id: int, start: datetime, end: datetime
    ) -> Mapping[str, Any]:
        self._tag.check(monitor_id)
        return self._inner.results.statistics_between(monitor_id, start, end)

    def slow_alerts(self, monitor_id: int, limit: int, minutes: int) -> SlowAlerts | None:
        self._tag.check(monitor_id)
        return self._inner.results.slow_alerts(monitor_id, limit, minutes)

    def certificates(self, monitor_id: int) -> CertificateChain:
        self._tag.check(monitor_id)
        return self._inner.results.certificates(monitor_id)


class _Checks(_BoundPart):
    def run(self, monitor_id: int) -> CheckedNow:
        self._tag.check(monitor_id)
        return self._inner.checks.run(monitor_id)


class _Heartbeats(_BoundPart):
    def list(self, query: PingQuery) -> Page[Ping]:
        self._tag.check(query.monitor_id)
        return self._inner.heartbeats.list(query)

    def get(self, monitor_id: int, id: int) -> Ping:
        self._tag.check(monitor_id)
        return self._inner.heartbeats.get(monitor_id, id)

    def new_token(self, monitor_id: int) -> Monitor:
        with writing() as session:
            self._tag.hold(session, monitor_id)
            return self._inner.heartbeats.new_token(monitor_id)


class _Deliveries(_BoundPart):
    def list(self, query: DeliveryQuery) -> Page[Delivery]:
        return self._inner.deliveries.list(replace(query, bound_tag=self._tag.name))

    def get(self, id: int) -> Delivery:
        delivery = self._inner.deliveries.get(id)
        if not self._tag.has(delivery.monitor_id):
            raise NotFound("delivery", id)
        return _without_message(delivery)

    def retry(self, id: int) -> Delivery:
        with writing() as session:
            self._hold(session, id)
            return _without_message(self._inner.deliveries.retry(id))

    def give_up(self, id: int) -> Delivery:
        with writing() as session:
            self._hold(session, id)
            return _without_message(self._inner.deliveries.give_up(id))

    def _hold(self, session: DbSession, id: int) -> None:
        if not self._tag.keeps(session, self.get(id).monitor_id):
            raise NotFound("delivery", id)


def _without_message(delivery: Delivery) -> Delivery:
    """The message names other monitors that are down."""
    return replace(delivery, message=None)


class _Channels(_BoundPart):
    def test_all(self, monitor_id: int) -> tuple[int, ...]:
        self._tag.check(monitor_id)
        return self._inner.channels.test_all(monitor_id)


class _Contacts(_BoundPart):
    def exists(self, value: str) -> bool:
        """Whether a monitor with the tag has this contact. By their numbers, a key could read the
        names of all others.
        """
        id = self._inner.contacts.id_of(value)
        if id is None:
            return False
        used = (
            select(ContactRow.id)
            .join(MonitorContactRow, MonitorContactRow.contact_id == ContactRow.id)
            .join(MonitorRow, MonitorRow.id == MonitorContactRow.monitor_id)
            .where(ContactRow.id == id, tagged([self._tag.name]))
            .limit(1)
        )
        return db.session.scalar(used) is not None


class _Locations(_BoundPart):
    def of_monitor(self, monitor_id: int) -> Sequence[PlaceSeen]:
        self._tag.check(monitor_id)
        return self._inner.locations.of_monitor(monitor_id)
