"""The recipients of a monitor's alerts: its own channel values and those of its contacts, each
once, with all of its sources (decision 13).

A channel value with several sources gets a message if one of them alone would.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, bindparam, select

from app.db import AnySession
from app.db.cached import cached_for
from app.db.statements import as_stored
from app.db.tables import ContactRow, MonitorContactRow, MonitorRow
from app.db.types import Unreadable
from app.records import CONTACT, Event, IncidentSeverity, MinSeverity, MonitorRef
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
_CONTACTS = as_stored(ContactRow).where(ContactRow.id.in_(_IDS))
_MONITOR, _MEMBER = MonitorRow.__table__.c, MonitorContactRow.__table__.c
_WITHOUT_CONTACTS = select(_MONITOR.id, _MONITOR.alerts).where(
    _MONITOR.id.in_(_IDS),
    _MONITOR.id.not_in(select(_MEMBER.monitor_id).where(_MEMBER.monitor_id.in_(_IDS))),
)
CACHE_SECONDS = 60.0  # of the monitors with alerts that cannot be read
_AT_ONCE = 500  # rows in memory at a time
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
    """The channel values of a monitor in the order of its alerts. Its own alerts or the channels of
    a contact are left out if they cannot be read.
    """
    return targets_among(monitor, contacts_of(session, [monitor.id]).get(monitor.id, ()))


def targets_among(monitor: Any, contacts: Contacts) -> Targets:
    """The targets of a monitor with these ``alerts``, whose contacts are read already."""
    targets: dict[Target, list[Source]] = defaultdict(list)
    alerts = () if isinstance(monitor.alerts, Unreadable) else monitor.alerts or ()
    for entry in in_order([tuple(pair) for pair in alerts], contacts):
        if isinstance(entry, ContactRow):
            source = _source(entry)
            for target in channels_of(entry):
                targets[target].append(source)
        else:
            targets[entry].append(Source())
    return targets


def targets_of_defaults(session: AnySession) -> Targets:
    """The channel values of the default contacts, to be alerted."""
    targets: dict[Target, list[Source]] = defaultdict(list)
    chosen = select(ContactRow).where(ContactRow.default).order_by(ContactRow.id)
    for contact in session.scalars(chosen):
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


def in_order(alerts: Sequence[Any], contacts: Sequence[tuple[int, Any]]) -> list[Any]:
    """A monitor's own alerts with its contacts at their positions among them."""
    merged = list(alerts)
    for position, contact in contacts:  # ascending, so the list is filled up to each
        merged.insert(min(position, len(merged)), contact)
    return merged


def contact_positions(alerts: Sequence[Any]) -> list[int]:
    """Where the contacts are in a monitor's alerts, which are pairs of key and value."""
    return [position for position, pair in enumerate(alerts) if pair.key == CONTACT]


def channels_of(contact: ContactRow) -> list[Target]:
    """The channel values of a contact; none if they cannot be read."""
    if isinstance(contact.channels, Unreadable):
        return []
    return [(channel, value) for channel, value in contact.channels or ()]


def log_unreadable(contact: ContactRow) -> None:
    """Log that a contact is not alerted because its channels cannot be read."""
    if isinstance(contact.channels, Unreadable):
        log.error("%s", channels_unreadable(f'contact "{contact.name}"', contact.channels.why))


def _source(row: ContactRow) -> Source:
    return Source(row.id, hours_of(row), row.min_severity, row.acknowledgements)


def hours_of(row: Any) -> QuietHours | None:
    """The quiet hours of a monitor or of a contact."""
    return quiet_hours.of(row.quiet_start, row.quiet_end, row.quiet_zone)


# --- What cannot be read --------------------------------------------------------------------------


def unreadable_sources(session: AnySession, monitor: MonitorRow) -> list[str]:
    """The parts of a monitor's alerts that cannot be read, as sentences."""
    return _unreadable_among(monitor, contacts_of(session, [monitor.id]).get(monitor.id, ()))


def _unreadable_among(monitor: Any, contacts: Contacts) -> list[str]:
    faults = []
    if isinstance(monitor.alerts, Unreadable):
        faults.append(alerts_unreadable(f"monitor {monitor.id}", monitor.alerts.why))
    for _, contact in contacts:
        if isinstance(contact.channels, Unreadable):
            why = contact.channels.why
            faults.append(channels_unreadable(f'contact "{contact.name}"', why))
    return faults


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
    rows = session.execute(query.execution_options(yield_per=_AT_ONCE))
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
    """When a message that is due ``now`` may be sent; None for at once. It waits for the quiet
    hours of the monitor. It also waits while all sources have quiet hours, until the first of these
    end.
    """
    monitor_end = None if monitor is None else monitor.until(now)
    ends = [None if hours is None else hours.until(now) for hours in sources]
    first_end = None if None in ends else min(filter(None, ends), default=None)
    return max(filter(None, (monitor_end, first_end)), default=None)
