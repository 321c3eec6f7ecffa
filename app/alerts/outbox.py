"""The outbox: a row for each event and channel value, written in the transaction of the change that
caused it.

A crash after the commit cannot lose a message, because the row is there; a crash before it undoes
the change as well. The worker (``app/alerts/worker.py``) sends these rows.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Update, or_, select, update

from app.access.keyed_hash import keyed_hash
from app.alerts import held, recipients
from app.alerts.suspects import suspects
from app.alerts.targets import (
    Source,
    Target,
    Targets,
    channels_of,
    contact_hours,
    hours_of,
    quiet_until,
    source_ids,
    sources_text,
    targets_of,
    targets_of_defaults,
    unreadable_sources,
)
from app.db import AnySession, writing
from app.db.tables import ContactRow, DeliveryRow, IncidentRow, MonitorRow
from app.db.types import Unreadable
from app.errors import Conflict, Invalid, NotFound
from app.i18n import N_, _
from app.records import QUIET_HOURS, Channel, DeliveryStatus, Event
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
    SETTLED = N_("settled")  # a reminder whose incident was acknowledged or ended meanwhile
    BY_HAND = N_("retried by hand")  # while it is pending again; nothing holds it back
    GIVEN_UP = N_("given up by hand")


def enqueue(
    session: AnySession,
    event: Event,
    monitor: MonitorRow,
    incident: IncidentRow | None,
    now: datetime,
    extra: Mapping[str, Any] | None = None,
) -> list[DeliveryRow]:
    """Write one row for each channel value of ``monitor``, in the caller's transaction, and flush,
    so that they have ids. In quiet hours the rows are held. Alerts that cannot be read are left
    out: that must not keep an incident from opening.

    A recovery goes to those who were alerted to the incident, even if the alerts cannot be read.

    ``extra`` is JSON-ready and part of what the message says: ``expires_at`` (a time) and
    ``days_left`` (a number) for both expiries, with ``host`` for ``certificate.expiring`` and
    ``domain`` for ``domain.expiring``; ``resolved_by`` (a name or None) if a person resolved it.
    """
    if event in FOLLOW_UPS and incident is not None:
        found = _targets_of_follow_up(session, event, monitor, incident)
    else:
        if isinstance(monitor.alerts, Unreadable):
            sentence = alerts_unreadable(f"monitor {monitor.id}", monitor.alerts.why)
            log.error("Its own channels are not alerted: %s. %s", event, sentence)
        found = _wanted(targets_of(session, monitor), event)
    return _write(session, event, found, monitor, incident, now, extra)


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
    late = {"late": True}
    found = {
        target: sources
        for target, sources in targets_of(session, monitor).items()
        if lane(*target) in lanes
    }
    return _write(session, Event.INCIDENT_OPENED, found, monitor, incident, now, late)


def _targets_of_follow_up(
    session: AnySession, event: Event, monitor: MonitorRow, incident: IncidentRow
) -> Targets:
    """The channel values that were alerted to this incident; of an acknowledgement only those that
    the monitor still has and that want it.
    """
    known = recipients.lanes_alerted(session, incident.id)
    present = targets_of(session, monitor)
    still = {target: one for target, one in present.items() if lane(*target) in known}
    if event != Event.INCIDENT_RESOLVED:
        return _wanted(still, event)
    gone = _own([target for target in known.values() if target is not None])
    return {**gone, **_with_those_told(session, incident.id, still)}


def _with_those_told(session: AnySession, incident_id: int, found: Targets) -> Targets:
    """With the sources that told the outage, though the monitor may have lost them since: whoever
    was told at night is told of the recovery at night.
    """
    told = recipients.sources_told(session, incident_id)
    hours = contact_hours(session, told.values())
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
    incident: IncidentRow | None,
    now: datetime,
    extra: Mapping[str, Any] | None = None,
) -> list[DeliveryRow]:
    facts = snapshot(event, monitor, incident, now, extra)
    if found := suspects(session, event, monitor, incident):
        facts["incident"] |= found
    monitor_id = None if monitor is None else monitor.id
    incident_id = None if incident is None else incident.id
    hours = None if monitor is None else hours_of(monitor)
    follows = event in FOLLOW_UPS and incident is not None
    before = held.untold(session, incident.id) if follows and incident is not None else {}
    rows = []
    for (channel, value), sources in targets.items():
        row = new_row(
            event, channel, value, facts, now, monitor_id=monitor_id, incident_id=incident_id
        )
        row.sources = sources_text(sources)
        until = quiet_until(hours, [source.quiet for source in sources], now)
        if row.lane in before:  # one digest tells both
            row.sources, until = before[row.lane].sources, before[row.lane].until
        if until is not None and event not in NEVER_QUIET:
            row.status, row.reason = DeliveryStatus.HELD, Reason.QUIET_HOURS
            row.next_attempt_at = until
        rows.append(row)
    session.add_all(rows)
    session.flush()
    return rows


def new_row(
    event: str,
    channel: str,
    value: str,
    facts: Mapping[str, Any],
    now: datetime,
    *,
    monitor_id: int | None = None,
    incident_id: int | None = None,
) -> DeliveryRow:
    """A pending row with a message id of its own, due at once; not added to any session."""
    return DeliveryRow(
        message_id=f"msg_{secrets.token_hex(16)}",
        event=event,
        monitor_id=monitor_id,
        incident_id=incident_id,
        channel=channel,
        value=value,
        lane=lane(channel, value),
        facts=facts,
        status=DeliveryStatus.PENDING,
        attempts=[],
        created_at=now,
        next_attempt_at=now + BURST_HOLD if event in HELD_FOR_BURSTS else now,
    )


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
        return tuple(row.id for row in _write(session, Event.TEST, found, monitor, None, now))


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
        rows = _write(session, Event.TEST, _own(targets), monitor, None, now)
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
        return tuple(row.id for row in _write(session, Event.TEST, found, None, None, now))


def send_report(
    session: AnySession, contact: ContactRow, facts: Mapping[str, Any], now: datetime
) -> int:
    """Put a monthly report into the outbox for the email addresses of a contact, in the caller's
    transaction; how many there are.
    """
    source = Source(contact.id)
    addresses = [one for one in channels_of(contact) if one[0] == Channel.EMAIL]
    targets = dict.fromkeys(addresses, (source,))
    return len(_write(session, Event.REPORT_MONTHLY, targets, None, None, now, facts))


def tell_of_place(
    session: AnySession, event: Event, facts: Mapping[str, Any], now: datetime
) -> int:
    """Tell the default contacts of a place, in the caller's transaction; how many messages that is.
    In the quiet hours of a contact they wait for the end of these, each as it is: no digest is of
    anything but monitors.
    """
    rows = _write(session, event, targets_of_defaults(session), None, None, now, facts)
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
