"""The local store for an API key that is bound to a tag (decision 15).

It has the monitors with the tag, and their incidents, results, certificates, places, deliveries,
checks, pings and test alerts. Any other resource, also one that is added later, raises Denied. A
record of another monitor raises NotFound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import not_, select

from app.access.keys import BOUND
from app.db import DbSession, db, writing
from app.db.tables import ContactRow, HeartbeatStateRow, IncidentRow, MonitorContactRow, MonitorRow
from app.db.tags import tagged
from app.errors import Denied, Invalid, NotFound, WakefulError, no_such
from app.i18n import N_, _
from app.records import (
    Delivery,
    DeliveryQuery,
    Incident,
    IncidentQuery,
    Monitor,
    MonitorQuery,
    Page,
    is_heartbeat,
)
from app.rules import slugs
from app.rules.text import TAKEN
from app.stores import base
from app.stores.base import Extent, Fields, Store
from app.stores.local.part import fits

TAG_STAYS = N_("This API key is bound to the tag %(tag)s, so the tags must include it.")
NO_MONITOR = 0
BEHIND_OTHERS = N_("Unreachable: what it is reached through is down.")


class _Tag:
    """The tag of a key, and which monitors have it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def among(self, ids: Iterable[int | None]) -> set[int]:
        """The monitors of ``ids`` that have the tag."""
        valid_ids = [id for id in ids if id is not None and fits(id)]
        monitors = select(MonitorRow.id).where(MonitorRow.id.in_(valid_ids), tagged([self.name]))
        return set(db.session.scalars(monitors)) if valid_ids else set()

    def has(self, monitor_id: int | None) -> bool:
        return monitor_id in self.among([monitor_id])

    def check(self, monitor_id: int) -> None:
        """Raises NotFound for a monitor without the tag."""
        if not self.has(monitor_id):
            raise NotFound("monitor", monitor_id)

    def lock_among(self, session: DbSession, ids: Iterable[int | None]) -> set[int]:
        """``among`` with locks: nobody removes the tag before the transaction ends. The rows are
        locked in the order of their ids, so that two requests cannot wait for each other.
        """
        valid_ids = [id for id in ids if id is not None and fits(id)]
        monitors = select(MonitorRow.id).where(MonitorRow.id.in_(valid_ids)).order_by(MonitorRow.id)
        session.execute(monitors.with_for_update(key_share=True)).all()
        return self.among(valid_ids)

    def lock(self, session: DbSession, monitor_id: int | None, noun: str, id: int) -> None:
        """``lock_among`` for a record of one monitor. Raises NotFound for this noun and id."""
        if monitor_id not in self.lock_among(session, [monitor_id]):
            raise NotFound(noun, id)

    def is_slug_of_others(self, slug: str) -> bool:
        """Whether a heartbeat without the tag has this slug. If a second heartbeat had it, the slug
        would be ambiguous for other keys.
        """
        state = HeartbeatStateRow
        others = (
            select(state.monitor_id)
            .join(MonitorRow, MonitorRow.id == state.monitor_id)
            .where(state.slug == slug, not_(tagged([self.name])))
        )
        return db.session.scalar(others.limit(1)) is not None

    def limited(self, monitors: Sequence[Monitor]) -> Sequence[Monitor]:
        """The monitors without the parents that the key must not see."""
        parents = {id for monitor in monitors for id in (*monitor.depends_on, monitor.behind_id)}
        if not (parents - {None}):
            return monitors
        tagged_ids = self.among(parents)
        return [_without_others(monitor, tagged_ids) for monitor in monitors]


def _without_others(monitor: Monitor, tagged_ids: Collection[int]) -> Monitor:
    parents = tuple(id for id in monitor.depends_on if id in tagged_ids)
    if monitor.behind_id in (None, *tagged_ids):
        return replace(monitor, depends_on=parents)
    return replace(monitor, depends_on=parents, behind_id=None, cause=_(BEHIND_OTHERS))


class _Part:
    """One resource for a key. ``inner``: the resource of the unlimited store. ``of_monitor``: the
    methods of ``inner`` that the key may call; their first argument is the id of a monitor or a
    query with one. All methods but these and the methods of this class raise Denied.
    """

    def __init__(self, tag: _Tag, inner: Any = None, *of_monitor: str) -> None:
        self._tag, self._inner, self._of_monitor = tag, inner, of_monitor

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self._of_monitor:
            raise Denied(_(BOUND, tag=self._tag.name))
        return partial(self._with_tag, getattr(self._inner, name))

    def _with_tag(self, method: Callable[..., Any], of: Any, *others: Any, **more: Any) -> Any:
        self._tag.check(getattr(of, "monitor_id", of))
        return method(of, *others, **more)


class BoundStore:
    """The store ``inner`` for a key that is bound to ``tag``. It has the interface of ``Store``."""

    extent = Extent.TAG

    def __init__(self, inner: Store, tag: str) -> None:
        self._inner, self._tag = inner, _Tag(tag)
        self.monitors = _Monitors(self._tag, inner.monitors)
        self.incidents = _Incidents(self._tag, inner.incidents)
        self.results = _Part(
            self._tag, inner.results,
            "list", "statistics", "statistics_between", "slow_alerts", "certificates",
        )  # fmt: skip
        self.checks = _Part(self._tag, inner.checks, "run")
        self.heartbeats = _Heartbeats(self._tag, inner.heartbeats, "list", "get")
        self.deliveries = _Deliveries(self._tag, inner.deliveries)
        self.channels = _Part(self._tag, inner.channels, "test_all")
        self.contacts = _Contacts(self._tag, inner.contacts)
        self.locations = _Part(self._tag, inner.locations, "of_monitor")

    def now(self) -> datetime:
        return self._inner.now()

    def __getattr__(self, name: str) -> _Part:
        """A resource that is not named above."""
        return _Part(self._tag)


class _Monitors(_Part):
    _inner: base.Monitors

    def list(self, query: MonitorQuery) -> Page[Monitor]:
        page = self._inner.list(self._bound(query))
        return replace(page, items=self._tag.limited(page.items))

    def overview(self, query: MonitorQuery = base.EVERY_MONITOR) -> Mapping[str, int]:
        return self._inner.overview(self._bound(query))

    def _bound(self, query: MonitorQuery) -> MonitorQuery:
        """The query for monitors with the tag. A parent without the tag has no children here, as
        ``depends_on`` does not show it.
        """
        parent = query.depends_on
        if parent is not None and not self._tag.has(parent):
            query = replace(query, depends_on=NO_MONITOR)
        return replace(query, bound_tag=self._tag.name)

    def get(self, id: int) -> Monitor:
        self._tag.check(id)
        return self._tag.limited([self._inner.get(id)])[0]

    def require(self, id: int) -> None:
        self._tag.check(id)

    def locations(self) -> Mapping[str, str]:
        return self._inner.locations()

    def create(self, fields: Fields, *, secrets_from: int | None = None) -> Monitor:
        if fault := self._new_fault(fields):
            raise fault
        if secrets_from is not None:
            self._tag.check(secrets_from)
        return self._tag.limited([self._inner.create(fields, secrets_from=secrets_from)])[0]

    def create_many(self, several: Sequence[Fields]) -> Sequence[Monitor | Invalid]:
        answers = base.create_valid(
            [self._new_fault(fields) or fields for fields in several], self._inner
        )
        return [
            answer if isinstance(answer, Invalid) else self._tag.limited([answer])[0]
            for answer in answers
        ]

    def update(self, id: int, fields: Fields) -> Monitor:
        with writing() as session:
            self._tag.lock(session, id, "monitor", id)
            state, slug = HeartbeatStateRow, fields.get("slug")
            old_slug = session.scalar(select(state.slug).where(state.monitor_id == id))
            new_slug = None if slug == old_slug else slug
            if fault := self._fault({"tags": [self._tag.name], **fields}, new_slug):
                raise fault
            return self._tag.limited([self._inner.update(id, fields)])[0]

    def delete(self, id: int) -> None:
        with writing() as session:
            self._tag.lock(session, id, "monitor", id)
            self._inner.delete(id)

    def _new_fault(self, fields: Fields) -> Invalid | None:
        if not is_heartbeat(fields["url"]):
            return self._fault(fields, None)
        return self._fault(fields, fields.get("slug") or slugs.of_heartbeat(str(fields["name"])))

    def _fault(self, fields: Fields, new_slug: str | None) -> Invalid | None:
        """Why the key may not store a monitor with these fields: it lacks the tag, depends on a
        monitor without the tag, or has the slug of one.
        """
        tags, parents = fields.get("tags"), fields.get("depends_on")
        if self._tag.name not in (tags or ()):
            return Invalid({"tags": [_(TAG_STAYS, tag=self._tag.name)]})
        for position, id in enumerate(parents or ()):
            if not self._tag.has(id):
                return Invalid({f"depends_on.{position}": [no_such("monitor", id)]})
        if new_slug and self._tag.is_slug_of_others(new_slug):
            return Invalid({"slug": [_(TAKEN)]})
        return None


class _Incidents(_Part):
    _inner: base.Incidents

    def list(self, query: IncidentQuery) -> Page[Incident]:
        page = self._inner.list(replace(query, bound_tag=self._tag.name))
        return replace(page, items=[self._limited(incident) for incident in page.items])

    def get(self, id: int) -> Incident:
        incident = self._inner.get(id)
        if incident.monitor is None or not self._tag.has(incident.monitor.id):
            raise NotFound("incident", id)
        return self._limited(incident)

    def _limited(self, incident: Incident) -> Incident:
        tagged_ids = self._tag.among(incident.affected)
        return replace(incident, affected=tuple(filter(tagged_ids.__contains__, incident.affected)))

    def create(self, fields: Fields) -> Incident:
        with writing() as session:
            if not self._tag.lock_among(session, [fields["monitor_id"]]):
                raise Invalid({"monitor_id": [no_such("monitor", fields["monitor_id"])]})
            return self._limited(self._inner.create(fields))

    def update(
        self, id: int, fields: Fields, *, by: str | None = None, expected: Fields | None = None
    ) -> Incident:
        with writing() as session:
            self._lock(session, id)
            return self._limited(self._inner.update(id, fields, by=by, expected=expected))

    def acknowledge(
        self, ids: Sequence[int], *, by: str | None = None
    ) -> Sequence[Incident | WakefulError]:
        statement = select(IncidentRow.id, IncidentRow.monitor_id)
        statement = statement.where(IncidentRow.id.in_([id for id in ids if fits(id)]))
        with writing() as session:
            monitor_ids = {row.id: row.monitor_id for row in session.execute(statement)}
            tagged_ids = self._tag.lock_among(session, monitor_ids.values())
            visible = [id for id in ids if monitor_ids.get(id) in tagged_ids]
            answers = dict(zip(visible, self._inner.acknowledge(visible, by=by), strict=True))
        return [
            self._limited(answer) if isinstance(answer, Incident) else answer
            for answer in (answers.get(id) or NotFound("incident", id) for id in ids)
        ]

    def delete(self, id: int) -> None:
        with writing() as session:
            self._lock(session, id)
            self._inner.delete(id)

    def _lock(self, session: DbSession, id: int) -> None:
        self._tag.lock(session, self.get(id).monitor_id, "incident", id)


class _Heartbeats(_Part):
    _inner: base.Heartbeats

    def new_token(self, monitor_id: int) -> Monitor:
        with writing() as session:
            self._tag.lock(session, monitor_id, "monitor", monitor_id)
            return self._tag.limited([self._inner.new_token(monitor_id)])[0]


class _Deliveries(_Part):
    _inner: base.Deliveries

    def list(self, query: DeliveryQuery) -> Page[Delivery]:
        return self._inner.list(replace(query, bound_tag=self._tag.name))

    def get(self, id: int) -> Delivery:
        delivery = self._inner.get(id)
        if not self._tag.has(delivery.monitor_id):
            raise NotFound("delivery", id)
        return _without_message(delivery)

    def retry(self, id: int) -> Delivery:
        return self._act(self._inner.retry, id)

    def give_up(self, id: int) -> Delivery:
        return self._act(self._inner.give_up, id)

    def _act(self, act: Callable[[int], Delivery], id: int) -> Delivery:
        with writing() as session:
            self._tag.lock(session, self.get(id).monitor_id, "delivery", id)
            return _without_message(act(id))


def _without_message(delivery: Delivery) -> Delivery:
    """The delivery without its message, which may name other monitors."""
    return replace(delivery, message=None)


class _Contacts(_Part):
    _inner: base.Contacts

    def defaults(self) -> Sequence[str]:
        return [name for name in self._inner.defaults() if self.exists(name)]

    def exists(self, value: str) -> bool:
        """Whether a monitor with the tag has this contact. For any contact, a key could find out
        the names of all contacts.
        """
        id = self._inner.id_of(value)
        if id is None:
            return False
        statement = (
            select(ContactRow.id)
            .join(MonitorContactRow, MonitorContactRow.contact_id == ContactRow.id)
            .join(MonitorRow, MonitorRow.id == MonitorContactRow.monitor_id)
            .where(ContactRow.id == id, tagged([self._tag.name]))
            .limit(1)
        )
        return db.session.scalar(statement) is not None
