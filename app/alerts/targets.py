"""The recipients of a monitor's alerts: its own channel values and those of its contacts, each
once, with all of its sources (decision 13); and the people who were alerted to an incident.

A channel value with several sources gets a message if one of them alone would.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, bindparam, func, or_, select
from sqlalchemy.orm import aliased

from app.alerts.lanes import Reason
from app.db import AnySession
from app.db.cached import cached_for
from app.db.statements import grouped, is_among, select_fresh
from app.db.tables import ContactRow, DeliveryRow, MonitorContactRow, MonitorRow
from app.db.types import Unreadable, readable
from app.records import CONTACT, DeliveryStatus, Event, IncidentSeverity, MinSeverity, MonitorRef
from app.rules import quiet_hours
from app.rules.quiet_hours import QuietHours
from app.rules.unreadable import alerts_unreadable, channels_unreadable

log = logging.getLogger(__name__)

Target = tuple[str, str]  # channel and value
Hours = Mapping[int, QuietHours | None]  # of contacts, by id
Contacts = Sequence[tuple[int, ContactRow]]  # of a monitor, with their positions among its alerts

OWN = 0  # in place of a contact's id: the monitor's own alerts
# Built once, because they are run for each incident. Few contacts belong to many monitors, so
# contacts are read apart.
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_MEMBERS = (
    select(MonitorContactRow.monitor_id, MonitorContactRow.position, MonitorContactRow.contact_id)
    .where(MonitorContactRow.monitor_id.in_(_IDS))
    .order_by(
        MonitorContactRow.monitor_id, MonitorContactRow.position, MonitorContactRow.contact_id
    )
)
_CONTACTS = select_fresh(ContactRow).where(ContactRow.id.in_(_IDS))
_MONITOR, _MEMBER = MonitorRow.__table__.c, MonitorContactRow.__table__.c
_WITHOUT_CONTACTS = select(_MONITOR.id, _MONITOR.alerts).where(
    _MONITOR.id.in_(_IDS),
    _MONITOR.id.not_in(select(_MEMBER.monitor_id).where(_MEMBER.monitor_id.in_(_IDS))),
)
CACHE_SECONDS = 60.0  # of the monitors with alerts that cannot be read
_ROWS_IN_MEMORY = 500
_CACHE = "wakeful.unreadable_alerts"
_EXPIRIES = frozenset({Event.CERTIFICATE_EXPIRING, Event.DOMAIN_EXPIRING})


@dataclass(frozen=True, slots=True)
class Source:
    """The contact that has a channel value, or the monitor itself, whose ``id`` is ``OWN``."""

    id: int = OWN
    quiet: QuietHours | None = None
    min_severity: str = MinSeverity.ALL
    acknowledgements: bool = True

    def wants(self, event: str, severity: str | None = None) -> bool:
        """Whether it gets this event. ``severity``: that of the incident, if there is one."""
        is_notice = event in _EXPIRIES or severity == IncidentSeverity.DEGRADED
        if is_notice and self.min_severity == MinSeverity.DOWN:
            return False
        return self.acknowledgements or event != Event.INCIDENT_ACKNOWLEDGED


Targets = Mapping[Target, Sequence[Source]]


def targets_of(session: AnySession, monitor: MonitorRow) -> Targets:
    """The channel values of a monitor, in the order of its alerts. Channels that cannot be read, of
    the monitor or of a contact, are left out.
    """
    return targets_among(monitor, contacts_of(session, [monitor.id]).get(monitor.id, ()))


def targets_among(monitor: Any, contacts: Contacts) -> Targets:
    """``targets_of`` for a monitor whose contacts are read already."""
    targets: dict[Target, list[Source]] = defaultdict(list)
    alerts = readable(monitor.alerts) or ()
    for entry in merge_contacts([tuple(pair) for pair in alerts], contacts):
        if isinstance(entry, ContactRow):
            source = _source(entry)
            for target in channels_of(entry):
                targets[target].append(source)
        else:
            targets[entry].append(Source())
    return targets


def targets_of_defaults(session: AnySession) -> Targets:
    """The channel values of the default contacts. Logs the contacts that cannot be read."""
    targets: dict[Target, list[Source]] = defaultdict(list)
    query = select(ContactRow).where(ContactRow.default).order_by(ContactRow.id)
    for contact in session.scalars(query):
        log_unreadable(contact)
        for target in channels_of(contact):
            targets[target].append(_source(contact))
    return targets


def contacts_of(session: AnySession, monitor_ids: Collection[int]) -> Mapping[int, Contacts]:
    """The contacts of each of these monitors, each with its position among the monitor's alerts."""
    members = session.execute(_MEMBERS, {"ids": list(monitor_ids)}).all()
    ids = {member.contact_id for member in members}
    rows = {row.id: row for row in session.scalars(_CONTACTS, {"ids": list(ids)})}
    contacts: dict[int, list[tuple[int, ContactRow]]] = defaultdict(list)
    for monitor_id, position, contact_id in members:
        if contact_id in rows:  # PostgreSQL: not deleted between the two statements
            contacts[monitor_id].append((position, rows[contact_id]))
    return contacts


def merge_contacts(alerts: Sequence[Any], contacts: Sequence[tuple[int, Any]]) -> list[Any]:
    """A monitor's own alerts with its contacts at their positions among them."""
    merged = list(alerts)
    for position, contact in contacts:  # in ascending order, so each insertion is at its position
        merged.insert(min(position, len(merged)), contact)
    return merged


def contact_positions(alerts: Sequence[Any]) -> list[int]:
    """The positions of the contacts among a monitor's alerts, which are pairs of key and value."""
    return [position for position, pair in enumerate(alerts) if pair.key == CONTACT]


def channels_of(contact: ContactRow) -> list[Target]:
    """The channel values of a contact; none if they cannot be read."""
    return [(channel, value) for channel, value in readable(contact.channels) or ()]


def log_unreadable(contact: ContactRow) -> None:
    """Log that a contact is not alerted because its channels cannot be read."""
    if fault := fault_of_contact(contact):
        log.error("%s", fault)


def _source(row: ContactRow) -> Source:
    return Source(row.id, hours_of(row), row.min_severity, row.acknowledgements)


def hours_of(row: Any) -> QuietHours | None:
    """The quiet hours of a monitor or of a contact."""
    return quiet_hours.from_fields(row.quiet_start, row.quiet_end, row.quiet_zone)


# --- What cannot be read --------------------------------------------------------------------------


def unreadable_sources(session: AnySession, monitor: MonitorRow) -> list[str]:
    """The parts of a monitor's alerts that cannot be read, as sentences."""
    return _unreadable_among(monitor, contacts_of(session, [monitor.id]).get(monitor.id, ()))


def _unreadable_among(monitor: Any, contacts: Contacts) -> list[str]:
    faults = (fault_of_contact(contact) for _position, contact in contacts)
    return [fault for fault in (fault_of_alerts(monitor), *faults) if fault]


def fault_of_alerts(monitor: Any) -> str:
    """Why a monitor's own alerts cannot be read, as a sentence; empty if they can."""
    stored = monitor.alerts
    if not isinstance(stored, Unreadable):
        return ""
    return alerts_unreadable(f"monitor {monitor.id}", stored.why)


def fault_of_contact(contact: ContactRow) -> str:
    """Why the channels of a contact cannot be read, as a sentence; empty if they can."""
    stored = contact.channels
    if not isinstance(stored, Unreadable):
        return ""
    return channels_unreadable(f'contact "{contact.name}"', stored.why)


def alerting_nobody(session: AnySession, monitors: Sequence[Any]) -> set[int]:
    """The ids of those monitors that alert nobody because their stored alerts cannot be read."""
    contacts = contacts_of(session, [monitor.id for monitor in monitors]) if monitors else {}
    pairs = [(monitor, contacts.get(monitor.id, ())) for monitor in monitors]
    return {
        monitor.id
        for monitor, of_monitor in pairs
        if _unreadable_among(monitor, of_monitor) and not targets_among(monitor, of_monitor)
    }


def unreadable_alerts(session: AnySession) -> Sequence[MonitorRef]:
    """The monitors that would alert nobody, by name. Paused ones are left out, because they send no
    alerts. This reads the alerts of all monitors, and the home page shows it, so the result is
    cached for a minute; a monitor that is corrected meanwhile is left out at once.
    """
    ids = cached_for(CACHE_SECONDS, _CACHE, lambda: _with_unreadable(session))
    if not ids:
        return ()
    query = select(MonitorRow).where(MonitorRow.id.in_(ids), ~MonitorRow.paused)
    rows = session.scalars(query.order_by(MonitorRow.name_natural, MonitorRow.id)).all()
    unreadable = alerting_nobody(session, rows)
    return [MonitorRef(row.id, row.name, row.url) for row in rows if row.id in unreadable]


def unalerted(session: AnySession, ids: Collection[int]) -> Sequence[int]:
    """The monitors among these that have neither alerts nor contacts."""
    rows = session.execute(_WITHOUT_CONTACTS, {"ids": list(ids)})
    return [id for id, alerts in rows if not alerts]


def _with_unreadable(session: AnySession) -> list[int]:
    """The ids of monitors that have unreadable alerts, or a contact with unreadable channels."""
    query = select(MonitorRow.id, MonitorRow.alerts).where(MonitorRow.alerts.is_not(None))
    rows = session.execute(query.execution_options(yield_per=_ROWS_IN_MEMORY))
    monitor_ids = [id for id, alerts in rows if isinstance(alerts, Unreadable)]
    contacts = session.execute(select(ContactRow.id, ContactRow.channels)).all()
    unreadable = [id for id, channels in contacts if isinstance(channels, Unreadable)]
    member = MonitorContactRow
    users = select(member.monitor_id).where(member.contact_id.in_(unreadable))
    return [*monitor_ids, *(session.scalars(users) if unreadable else ())]


# --- The column with the sources of a delivery ----------------------------------------------------


def sources_text(sources: Sequence[Source]) -> str | None:
    ids = dict.fromkeys(source.id for source in sources)
    if list(ids) == [OWN]:
        return None
    return f",{','.join(map(str, ids))},"


def source_ids(text: str | None) -> tuple[int, ...]:
    return tuple(int(id) for id in (text or "").split(",") if id) or (OWN,)


def contact_hours(session: AnySession, texts: Collection[str | None]) -> Hours:
    """The present quiet hours of the contacts that these columns name."""
    rows = _of_contacts(
        session, texts, ContactRow.quiet_start, ContactRow.quiet_end, ContactRow.quiet_zone
    )
    return {row.id: hours_of(row) for row in rows}


def contact_zones(session: AnySession, texts: Collection[str | None]) -> Mapping[int, str]:
    """The time zones of the contacts that these columns name, if they have one."""
    rows = _of_contacts(session, texts, ContactRow.time_zone)
    return {row.id: row.time_zone for row in rows if row.time_zone is not None}


def contact_names(session: AnySession, texts: Collection[str | None]) -> Mapping[int, str]:
    """The names of the contacts that these columns name, without those that are deleted."""
    return {row.id: row.name for row in _of_contacts(session, texts, ContactRow.name)}


def _of_contacts(
    session: AnySession, texts: Collection[str | None], *columns: Any
) -> Sequence[Any]:
    """The id and these columns of the contacts that the texts name."""
    ids = {id for text in texts for id in source_ids(text)} - {OWN}
    if not ids:
        return ()
    return session.execute(select(ContactRow.id, *columns).where(ContactRow.id.in_(ids))).all()


def quiet_until(
    monitor: QuietHours | None, sources: Sequence[QuietHours | None], now: datetime
) -> datetime | None:
    """When a message that is due ``now`` may be sent; None for at once. It waits for the end of the
    monitor's quiet hours. It also waits while all of its sources have quiet hours, until the first
    of these end.
    """
    monitor_end = None if monitor is None else monitor.until(now)
    ends = [None if hours is None else hours.until(now) for hours in sources]
    first_end = None if None in ends else min(filter(None, ends), default=None)
    return max(filter(None, (monitor_end, first_end)), default=None)


# --- Who was alerted to an incident --------------------------------------------------------------
#
# A later message about an incident must not be sent while the message about the outage is on hold,
# nor besides the digest. That could happen if a contact was added, or its quiet hours changed,
# after the outage.

# The events that say that an incident is open.
OPEN_EVENTS = (Event.INCIDENT_OPENED, Event.INCIDENT_REMINDER)
# Built once, because it is run for each incident that ends.
_OPENINGS = (
    select(
        DeliveryRow.incident_id, DeliveryRow.lane, DeliveryRow.channel, DeliveryRow.value,
        DeliveryRow.sources, DeliveryRow.status, DeliveryRow.next_attempt_at,
    )
    .where(
        DeliveryRow.incident_id.in_(bindparam("ids", expanding=True)),
        DeliveryRow.event.in_(OPEN_EVENTS),
    )
    .order_by(DeliveryRow.id)
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recipients:
    """The recipients of one incident, by lane. ``targets``: the channel values that alerts were
    written for; None for one that cannot be read. ``sources``: the column of the same name, for
    lanes with an alert that is not on hold. ``on_hold``: the sources and the end of the quiet
    hours, for lanes whose alerts are all on hold.
    """

    targets: Mapping[str, Target | None]
    sources: Mapping[str, str | None]
    on_hold: Mapping[str, tuple[str | None, datetime]]


NOBODY = Recipients({}, {}, {})


def recipients_of(session: AnySession, incident_ids: Collection[int]) -> Mapping[int, Recipients]:
    """The recipients who were alerted that each of these incidents is open."""
    written: dict[int, list[Any]] = {id: [] for id in incident_ids}
    for row in session.execute(_OPENINGS, {"ids": list(written)}) if written else ():
        written[row.incident_id or 0].append(row)
    return {id: _recipients(rows) for id, rows in written.items()}


def _recipients(rows: Sequence[Any]) -> Recipients:
    targets: dict[str, Target | None] = {}
    sources: dict[str, str | None] = {}
    on_hold: dict[str, tuple[str | None, datetime]] = {}
    for row in rows:
        targets[row.lane] = None if isinstance(row.value, Unreadable) else (row.channel, row.value)
        if row.status == DeliveryStatus.HELD and row.next_attempt_at is not None:
            on_hold[row.lane] = row.sources, row.next_attempt_at
        else:
            sources[row.lane] = row.sources
    for lane in on_hold.keys() & sources:
        del on_hold[lane]
    return Recipients(targets, sources, on_hold)


def notified_lanes(
    session: AnySession, incident_ids: Collection[int]
) -> Mapping[str, frozenset[int]]:
    """For each lane, the incidents whose outage was delivered there, or is part of a message for
    several.
    """
    row = DeliveryRow
    query = select(row.lane, row.incident_id).where(
        is_among(row.incident_id, incident_ids),
        row.event.in_(OPEN_EVENTS),
        or_(row.status == DeliveryStatus.DELIVERED, row.reason == Reason.BURST),
    )
    return _sets(session.execute(query))


def unsent_openings(
    session: AnySession, incident_ids: Collection[int]
) -> Mapping[int, frozenset[str]]:
    """For each of these incidents, the lanes whose newest message about its opening was given up
    without an attempt, alone or as part of a message for several.
    """
    if not incident_ids:
        return {}
    group = aliased(DeliveryRow)
    openings = DeliveryRow.event == Event.INCIDENT_OPENED
    newest = (
        select(func.max(DeliveryRow.id))
        .where(openings, DeliveryRow.incident_id.in_(incident_ids))
        .group_by(DeliveryRow.incident_id, DeliveryRow.lane)
    )
    unsent = (
        (row.status == DeliveryStatus.FAILED) & (row.reason == Reason.EXPIRED)
        for row in (DeliveryRow, group)
    )
    query = (
        select(DeliveryRow.incident_id, DeliveryRow.lane)
        .outerjoin(group, group.id == DeliveryRow.covered_by)
        .where(DeliveryRow.id.in_(newest), or_(*unsent))
    )
    return _sets(session.execute(query))


def _sets(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, frozenset[Any]]:
    return {key: frozenset(values) for key, values in grouped(pairs).items()}
