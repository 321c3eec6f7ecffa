"""The outbox: a row for each event and channel value, written in the transaction of the change that
caused it.

A crash after the commit cannot lose a message, because the row is there; a crash before it undoes
the change as well. The worker (``app/alerts/worker.py``) sends these rows.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Update, insert, or_, select, update

from app.access.keyed_hash import keyed_hash
from app.alerts import held, recipients
from app.alerts.suspects import deployed_before, suspects
from app.alerts.targets import (
    Hours,
    Source,
    Target,
    Targets,
    channels_of,
    contact_hours,
    contacts_of,
    hours_of,
    quiet_until,
    source_ids,
    sources_text,
    targets_among,
    targets_of,
    targets_of_defaults,
    unreadable_sources,
)
from app.db import AnySession, writing
from app.db.tables import ContactRow, DeliveryRow, IncidentRow, MarkerRow, MonitorRow
from app.db.types import Unreadable
from app.errors import Conflict, Invalid, NotFound
from app.i18n import N_, _
from app.records import QUIET_HOURS, RESTORED, Channel, DeliveryStatus, Event
from app.rules.time import iso
from app.rules.unreadable import alerts_unreadable, channels_unreadable

log = logging.getLogger(__name__)

# An opening or a recovery waits this long for others of the same burst, and the extra time only if
# there are others. Together they are the 2 s of decisions.md 5.
BURST_HOLD = timedelta(seconds=0.5)
BURST_EXTRA_HOLD = timedelta(seconds=1.5)
HELD_FOR_BURSTS = frozenset({Event.INCIDENT_OPENED, Event.INCIDENT_RESOLVED})

# A person waits for the result of a test, and a report is no alert: quiet hours hold neither.
NEVER_QUIET = frozenset({Event.TEST, Event.REPORT_MONTHLY})

_DELIVERIES: Any = DeliveryRow.__table__
# What an alert needs to know of its monitor.
TOLD_OF = (
    MonitorRow.id, MonitorRow.name, MonitorRow.url, MonitorRow.tags, MonitorRow.alerts,
    MonitorRow.quiet_start, MonitorRow.quiet_end, MonitorRow.quiet_zone,
)  # fmt: skip

# They go to those who were alerted to the incident.
FOLLOW_UPS = frozenset({Event.INCIDENT_ACKNOWLEDGED, Event.INCIDENT_RESOLVED})


# The columns of a row that is not going to be sent: delivered, failed, or covered by another.
AT_REST = {"next_attempt_at": None, "lease_until": None, "lease_token": None}


def unleased(now: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
    """SQL condition: no worker is sending the row, because its lease has ended or it has none."""
    return or_(DeliveryRow.lease_until.is_(None), DeliveryRow.lease_until <= now)


def update_deliveries() -> Update:
    """An UPDATE that does not synchronise loaded rows: none is kept across statements, and it is
    faster without.
    """
    return update(DeliveryRow).execution_options(synchronize_session=False)


class Reason(StrEnum):
    """Why a row is held back. The delivery log shows it, so that nothing is held back silently."""

    BURST = N_("burst")
    FLAPPING = N_("flapping")
    OUTAGE_NOT_DELIVERED = N_("outage not delivered")
    QUIET_HOURS = QUIET_HOURS
    RESTORED = RESTORED
    SETTLED = N_("settled")  # a reminder whose incident was acknowledged or ended meanwhile
    BY_HAND = N_("retried by hand")  # while it is pending again; nothing holds it back
    GIVEN_UP = N_("given up by hand")


@dataclass(frozen=True, slots=True)
class Alert:
    """An event of a monitor that people are to be told of. ``monitor`` has the columns ``TOLD_OF``.

    ``extra`` is JSON-ready and part of what the message says: ``expires_at`` (a time) and
    ``days_left`` (a number) for both expiries, with ``host`` for ``certificate.expiring`` and
    ``domain`` for ``domain.expiring``; ``resolved_by`` (a name or None) if a person resolved it;
    ``silent`` (titles) for the places whose silence ended it.
    """

    event: Event
    monitor: Any
    incident: IncidentRow | None = None
    extra: Mapping[str, Any] | None = None

    @property
    def follows(self) -> int | None:
        """The incident of which this goes to those who were alerted to it."""
        return self.incident.id if self.incident and self.event in FOLLOW_UPS else None


def enqueue(
    session: AnySession,
    event: Event,
    monitor: MonitorRow,
    incident: IncidentRow | None,
    now: datetime,
    extra: Mapping[str, Any] | None = None,
) -> list[DeliveryRow]:
    """As ``enqueue_all``, of one alert; its rows, with their ids."""
    return _store(session, _columns_of(session, [Alert(event, monitor, incident, extra)], now)[0])


def enqueue_all(session: AnySession, alerts: Sequence[Alert], now: datetime) -> list[int]:
    """Write one row for each alert and channel value of its monitor, in the caller's transaction;
    returns how many there are of each alert. In quiet hours the rows are held. Alerts that cannot
    be read are left out: that must not keep an incident from opening.

    A recovery goes to those who were alerted to the incident, even if the alerts cannot be read.
    """
    found = _columns_of(session, alerts, now)
    if rows := [row for rows in found for row in rows]:
        session.execute(insert(_DELIVERIES), rows)
    return [len(rows) for rows in found]


def _columns_of(
    session: AnySession, alerts: Sequence[Alert], now: datetime
) -> list[list[dict[str, Any]]]:
    """The columns of the rows of each alert."""
    contacts = contacts_of(session, {alert.monitor.id for alert in alerts})
    follows = [id for alert in alerts if (id := alert.follows) is not None]
    told = recipients.openings_written(session, follows)
    sources = (text for rows in told.values() for text in recipients.sources_told(rows).values())
    hours = contact_hours(session, set(sources))
    pairs = []
    for alert in alerts:
        present = targets_among(alert.monitor, contacts.get(alert.monitor.id, ()))
        if alert.follows is not None:
            found = _targets_of_follow_up(alert.event, present, told[alert.follows], hours)
        else:
            _log_unreadable(alert)
            found = _wanted(present, alert.event)
        pairs.append((alert, found))
    return _messages(session, pairs, now, told)


def _log_unreadable(alert: Alert) -> None:
    if isinstance(alert.monitor.alerts, Unreadable):
        sentence = alerts_unreadable(f"monitor {alert.monitor.id}", alert.monitor.alerts.why)
        log.error("Its own channels are not alerted: %s. %s", alert.event, sentence)


def enqueue_again(
    session: AnySession,
    monitor: MonitorRow,
    incident: IncidentRow,
    lanes: Collection[str],
    now: datetime,
) -> list[DeliveryRow]:
    """Write the opening of an incident again for these lanes, because the first message was given
    up unsent. Lanes that the monitor no longer has are left out.
    """
    found = {
        target: sources
        for target, sources in targets_of(session, monitor).items()
        if lane(*target) in lanes
    }
    alert = Alert(Event.INCIDENT_OPENED, monitor, incident, {"late": True})
    return _store(session, _messages(session, [(alert, found)], now)[0])


def _targets_of_follow_up(
    event: Event, present: Targets, written: Sequence[Any], hours: Hours
) -> Targets:
    """The channel values that were alerted to this incident; of an acknowledgement only those that
    the monitor still has and that want it. ``written``: the rows that told the outage. ``hours``:
    those of the contacts that they name.
    """
    known = recipients.lanes_alerted(written)
    still = {target: one for target, one in present.items() if lane(*target) in known}
    if event != Event.INCIDENT_RESOLVED:
        return _wanted(still, event)
    gone = _own([target for target in known.values() if target is not None])
    return {**gone, **_with_those_told(recipients.sources_told(written), hours, still)}


def _with_those_told(told: Mapping[str, str | None], hours: Hours, found: Targets) -> Targets:
    """With the sources that told the outage, though the monitor may have lost them since: whoever
    was told at night is told of the recovery at night.
    """
    wider = {}
    for target, sources in found.items():
        name = lane(*target)
        known = {source.id for source in sources}
        more = set(source_ids(told[name])) - known if name in told else set()
        wider[target] = [*sources, *(Source(id, hours.get(id)) for id in sorted(more))]
    return wider


def _wanted(found: Targets, event: Event) -> Targets:
    """The channel values that a source wants this event for, with those sources."""
    wanting = {target: [one for one in found[target] if one.wants(event)] for target in found}
    return {target: sources for target, sources in wanting.items() if sources}


def _own(chosen: Sequence[Target]) -> dict[Target, Sequence[Source]]:
    """Channel values that belong to no contact."""
    return dict.fromkeys(chosen, (Source(),))


def _write(
    session: AnySession,
    event: Event,
    targets: Targets,
    monitor: MonitorRow | None,
    now: datetime,
    extra: Mapping[str, Any] | None = None,
) -> list[DeliveryRow]:
    """The rows of a message that is about no incident."""
    pairs = [(Alert(event, monitor, None, extra), targets)]
    return _store(session, _messages(session, pairs, now)[0])


def _store(session: AnySession, found: Sequence[dict[str, Any]]) -> list[DeliveryRow]:
    """Write these rows and flush, so that they have ids."""
    rows = [DeliveryRow(**columns) for columns in found]
    session.add_all(rows)
    session.flush()
    return rows


def _messages(
    session: AnySession,
    pairs: Sequence[tuple[Alert, Targets]],
    now: datetime,
    told: Mapping[int, Sequence[Any]] = MappingProxyType({}),
) -> list[list[dict[str, Any]]]:
    """The columns of the rows of each alert. ``told``: what was written of the incidents that
    alerts follow.
    """
    deployed = deployed_before(session, [(one.event, one.incident) for one, _targets in pairs])
    return [
        _messages_of(alert, targets, deployed, told.get(alert.follows or 0, ()), now)
        for alert, targets in pairs
    ]


def _messages_of(
    alert: Alert,
    targets: Targets,
    deployed: Sequence[MarkerRow],
    told: Sequence[Any],
    now: datetime,
) -> list[dict[str, Any]]:
    event, monitor, incident = alert.event, alert.monitor, alert.incident
    facts = snapshot(event, monitor, incident, now, alert.extra)
    if found := suspects(deployed, event, monitor, incident):
        facts["incident"] |= found
    monitor_id = None if monitor is None else monitor.id
    incident_id = None if incident is None else incident.id
    hours = None if monitor is None else hours_of(monitor)
    before = held.untold(told)
    rows = []
    for (channel, value), sources in targets.items():
        row = _columns(event, channel, value, facts, now) | {
            "monitor_id": monitor_id,
            "incident_id": incident_id,
            "sources": sources_text(sources),
            "reason": None,
        }
        until = quiet_until(hours, [source.quiet for source in sources], now)
        if (waits := before.get(row["lane"])) is not None:  # one digest tells both
            row["sources"], until = waits.sources, waits.until
        if until is not None and event not in NEVER_QUIET:
            row["status"], row["reason"] = DeliveryStatus.HELD, Reason.QUIET_HOURS
            row["next_attempt_at"] = until
        rows.append(row)
    return rows


def new_row(
    event: str, channel: str, value: str, facts: Mapping[str, Any], now: datetime
) -> DeliveryRow:
    """A pending row with a message id of its own, due at once; not added to any session."""
    return DeliveryRow(**_columns(event, channel, value, facts, now))


def _columns(
    event: str, channel: str, value: str, facts: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    return {
        "message_id": f"msg_{secrets.token_hex(16)}",
        "event": event,
        "channel": channel,
        "value": value,
        "lane": lane(channel, value),
        "facts": facts,
        "status": DeliveryStatus.PENDING,
        "attempts": [],
        "created_at": now,
        "next_attempt_at": now + BURST_HOLD if event in HELD_FOR_BURSTS else now,
    }


def lane(channel: str, value: str) -> str:
    """The lane of a channel value: a keyed hash, so that a guessed address cannot be recognised in
    the database.
    """
    return keyed_hash("alert lane", channel, value)[:32]


def snapshot(
    event: str,
    monitor: MonitorRow | None,
    incident: IncidentRow | None,
    now: datetime,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The content of a message, stored with the row: a retry an hour later must not report another
    state.
    """
    facts: dict[str, Any] = {
        "event": str(event),
        "at": iso(now),
        "monitor": monitor and {"id": monitor.id, "name": monitor.name, "url": monitor.url},
    }
    if incident is not None:
        facts["incident"] = {
            "id": incident.id,
            "started_at": iso(incident.started_at),
            "acknowledged_at": incident.acknowledged_at and iso(incident.acknowledged_at),
            "acknowledged_by": incident.acknowledged_by,
            "ended_at": incident.ended_at and iso(incident.ended_at),
            "cause": incident.cause,
            "cause_code": incident.cause_code,
            "comment": incident.comment,
            "unwatched": incident.unwatched or [],
            "ending": incident.ending,
            "seen_by": incident.seen_by or [],
        }
    if extra:
        facts["extra"] = {
            name: iso(v) if isinstance(v, datetime) else v for name, v in extra.items()
        }
    return facts


def send_test(monitor_id: int, now: datetime) -> tuple[int, ...]:
    """Put ``test`` into the outbox for all channels of a monitor. Returns the delivery ids; none
    for a monitor without channels. Raises NotFound, and Conflict if some of its alerts cannot be
    read.
    """
    with writing() as session:
        monitor = session.get(MonitorRow, monitor_id)
        if monitor is None:
            raise NotFound("monitor", monitor_id)
        if faults := unreadable_sources(session, monitor):
            raise Conflict(faults[0])
        found = targets_of(session, monitor)
        return tuple(row.id for row in _write(session, Event.TEST, found, monitor, now))


def send_test_to(
    targets: Sequence[Target], now: datetime, *, monitor_id: int | None = None
) -> tuple[int, ...]:
    """Put ``test`` into the outbox for these channel values, which need not be stored anywhere.
    Returns the delivery ids, in their order. ``monitor_id``: the monitor they belong to, if any.

    Raises Invalid if there is no such monitor.
    """
    with writing() as session:
        monitor = None if monitor_id is None else session.get(MonitorRow, monitor_id)
        if monitor_id is not None and monitor is None:
            raise Invalid({"monitor_id": [_("There is no monitor with this id.")]})
        rows = _write(session, Event.TEST, _own(targets), monitor, now)
        return tuple(row.id for row in rows)


def send_test_to_contact(contact_id: int, now: datetime) -> tuple[int, ...]:
    """Put ``test`` into the outbox for all channels of a contact. Returns the delivery ids. Raises
    NotFound, and Conflict if its channels cannot be read.
    """
    with writing() as session:
        contact = session.get(ContactRow, contact_id)
        if contact is None:
            raise NotFound("contact", contact_id)
        if isinstance(contact.channels, Unreadable):
            why = contact.channels.why
            raise Conflict(channels_unreadable(f'contact "{contact.name}"', why))
        found = dict.fromkeys(channels_of(contact), (Source(contact.id),))
        return tuple(row.id for row in _write(session, Event.TEST, found, None, now))


def send_report(
    session: AnySession, contact: ContactRow, facts: Mapping[str, Any], now: datetime
) -> int:
    """Put a monthly report into the outbox for the email addresses of a contact, in the caller's
    transaction; how many there are.
    """
    source = Source(contact.id)
    addresses = [one for one in channels_of(contact) if one[0] == Channel.EMAIL]
    targets = dict.fromkeys(addresses, (source,))
    return len(_write(session, Event.REPORT_MONTHLY, targets, None, now, facts))


def tell_of_place(
    session: AnySession, event: Event, facts: Mapping[str, Any], now: datetime
) -> int:
    """Tell the default contacts of a place, in the caller's transaction; how many messages that is.
    In the quiet hours of a contact they wait for the end of these, each as it is: no digest is of
    anything but monitors.
    """
    rows = _write(session, event, targets_of_defaults(session), None, now, facts)
    for row in rows:
        if row.status == DeliveryStatus.HELD:
            row.status, row.reason = DeliveryStatus.PENDING, None
    session.flush()
    return len(rows)


def give_up(delivery_id: int, now: datetime) -> None:
    """Never send a delivery that waits or is held. Raises NotFound and Conflict."""
    with writing() as session:
        row = _alert(session, delivery_id)
        if row.status not in (DeliveryStatus.PENDING, DeliveryStatus.HELD):
            raise Conflict(_("This message is no longer pending, so it cannot be given up."))
        if row.lease_until is not None and row.lease_until > now:
            raise Conflict(_("This message is being sent at this moment. Try again in a minute."))
        row.status, row.reason = DeliveryStatus.FAILED, Reason.GIVEN_UP
        for name, value in AT_REST.items():
            setattr(row, name, value)


def _alert(session: AnySession, delivery_id: int) -> DeliveryRow:
    """A delivery that is an alert. Raises NotFound."""
    row = session.scalar(
        select(DeliveryRow)
        .where(DeliveryRow.id == delivery_id, DeliveryRow.subscriber_id.is_(None))
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    if row is None:
        raise NotFound("delivery", delivery_id)
    return row


def retry(delivery_id: int, now: datetime) -> None:
    """Send a failed, held or waiting delivery now; its 24 hours begin again. Raises NotFound and
    Conflict.
    """
    with writing() as session:
        row = _alert(session, delivery_id)
        if row.status == DeliveryStatus.DELIVERED:
            raise Conflict(_("This message was delivered already, so it cannot be sent again."))
        if row.lease_until is not None and row.lease_until > now:
            return  # it is being sent at this moment
        if isinstance(row.value, Unreadable):
            raise Conflict(_("This message's target cannot be read, so it cannot be sent again."))
        if isinstance(row.facts, Unreadable):
            raise Conflict(_("This message's text cannot be read, so it cannot be sent again."))
        row.status = DeliveryStatus.PENDING
        row.reason = Reason.BY_HAND
        row.covered_by = None
        row.next_attempt_at = now
        # A retry by hand is sent now: neither a burst nor flapping holds it, and earlier attempts
        # do not lengthen its pauses.
        row.facts = {
            **row.facts,
            "by_hand": iso(now),
            "earlier_attempts": len(row.attempts or ()),
        }


# --- The lanes of a monitor's own channels: its values are encrypted, each with a salt of its own -

_AROUND = "\n"


def lanes_text(alerts: Iterable[Sequence[str]]) -> str:
    """The column: the lanes of these channels, each between line breaks."""
    names = dict.fromkeys(lane(channel, value) for channel, value in alerts)
    return _AROUND.join(["", *names, ""]) if names else ""


def own_channel(name: str) -> ColumnElement[bool]:
    """Whether a monitor has the channel of this lane as its own."""
    return MonitorRow.alert_lanes.contains(f"{_AROUND}{name}{_AROUND}")
