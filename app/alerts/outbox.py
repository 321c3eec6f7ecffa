"""The outbox: a row for each event and channel value, written in the transaction of the change that
caused it.

A crash after the commit cannot lose a message, because the row is there; a crash before the commit
undoes the change as well. After a crash during the sending, the message is sent again, with the
same ``message_id``. ``app/alerts/worker.py`` sends these rows, as ``app/alerts/lanes.py`` decides;
the table in ``lanes.py`` says what each state of a row means.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, and_, insert, or_

from app.access.tokens import keyed_hash
from app.alerts.lanes import BURST_WAIT, GROUPED, Reason
from app.alerts.snapshots import deployed_before, facts_of_dependents, snapshot
from app.alerts.targets import (
    NOBODY,
    Hours,
    Recipients,
    Source,
    Target,
    Targets,
    channels_of,
    contact_hours,
    contacts_of,
    fault_of_alerts,
    hours_of,
    log_unreadable,
    quiet_until,
    recipients_of,
    source_ids,
    sources_text,
    targets_among,
    targets_of_defaults,
)
from app.db import AnySession, dependencies, liveness, wakeups
from app.db.tables import ContactRow, DeliveryRow, IncidentRow, MonitorRow
from app.db.types import readable
from app.records import BY_INCIDENT, Channel, DeliveryStatus, Event
from app.rules.time import iso

log = logging.getLogger(__name__)

# A person waits for the result of a test, and a report is no alert: quiet hours hold neither.
NEVER_QUIET = frozenset({Event.TEST, Event.REPORT_MONTHLY})

_DELIVERIES: Any = DeliveryRow.__table__
# The fields of its monitor that an alert needs.
MONITOR_COLUMNS = (
    MonitorRow.id, MonitorRow.name, MonitorRow.url, MonitorRow.tags, MonitorRow.alerts,
    MonitorRow.quiet_start, MonitorRow.quiet_end, MonitorRow.quiet_zone,
)  # fmt: skip

# These events go to the recipients who were alerted to the incident.
FOLLOW_UPS = frozenset({Event.INCIDENT_ACKNOWLEDGED, Event.INCIDENT_RESOLVED})

# The columns of a row that no worker will send: delivered, failed, or held for good.
UNSCHEDULED = {"next_attempt_at": None, "lease_until": None, "lease_token": None}

# SQL conditions: not a message to the subscriber of a status page; on hold until quiet hours end;
# pending or on hold.
IS_ALERT = DeliveryRow.subscriber_id.is_(None)
ON_HOLD = and_(DeliveryRow.status == DeliveryStatus.HELD, DeliveryRow.next_attempt_at.is_not(None))
WAITS = or_(DeliveryRow.status == DeliveryStatus.PENDING, ON_HOLD)


def unleased(now: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
    """SQL condition: the row has no lease, or its lease has ended, so no worker is sending it."""
    return or_(DeliveryRow.lease_until.is_(None), DeliveryRow.lease_until <= now)


@dataclass(frozen=True, slots=True)
class Alert:
    """An event that people are alerted to. ``monitor`` has the MONITOR_COLUMNS, or is None.

    ``extra`` has further facts for the message. For both expiries: ``expires_at`` (a time) and
    ``days_left`` (a number), with ``host`` for ``certificate.expiring`` and ``domain`` for
    ``domain.expiring``. For an opening: ``late``, if an earlier message about it was given up
    unsent. For a recovery: ``resolved_by`` (a name or None), if a person resolved the incident;
    ``silent``, the titles of the places whose silence ended it; ``slow``, if the monitor is up but
    slow. For a place and a report: all facts.
    """

    event: Event
    monitor: Any
    incident: IncidentRow | None = None
    extra: Mapping[str, Any] | None = None

    @property
    def follow_up_of(self) -> int | None:
        """The id of the incident, if this alert goes to the recipients who were alerted to it."""
        return self.incident.id if self.incident and self.event in FOLLOW_UPS else None


def enqueue(session: AnySession, alerts: Sequence[Alert], now: datetime) -> list[int]:
    """Write one row for each alert and channel value of its monitor, in the caller's transaction;
    returns the number of rows of each alert. In quiet hours the rows are on hold. Channels that
    cannot be read are left out and logged, so that they do not keep an incident from opening.

    A recovery goes to the recipients who were alerted to the incident, even if the monitor's
    channels cannot be read.
    """
    contacts = contacts_of(session, {alert.monitor.id for alert in alerts})
    incident_ids = [id for alert in alerts if (id := alert.follow_up_of) is not None]
    notified = recipients_of(session, incident_ids)
    columns_of_sources = (recipients.sources.values() for recipients in notified.values())
    hours = contact_hours(session, set(chain.from_iterable(columns_of_sources)))
    parts = []
    for alert in alerts:
        of_monitor = contacts.get(alert.monitor.id, ())
        targets = targets_among(alert.monitor, of_monitor)
        recipients = notified.get(alert.follow_up_of or 0, NOBODY)
        if alert.follow_up_of is not None:
            targets = _targets_of_follow_up(alert, targets, recipients, hours)
        else:
            for _position, contact in of_monitor:
                log_unreadable(contact)
            if fault := fault_of_alerts(alert.monitor):
                log.error("Its own channels are not alerted: %s. %s", alert.event, fault)
            targets = _wanting(targets, alert)
        parts.append((alert, targets, recipients))
    rows_of_alerts = _rows(session, parts, now)
    if rows := [*chain.from_iterable(rows_of_alerts)]:
        session.execute(insert(_DELIVERIES), rows)
    return [len(rows) for rows in rows_of_alerts]


def enqueue_for(
    session: AnySession, alert: Alert, targets: Targets, now: datetime
) -> list[DeliveryRow]:
    """Write the rows of an alert for these channel values; returns them, with their ids."""
    (columns_of_rows,) = _rows(session, [(alert, targets, NOBODY)], now)
    rows = [DeliveryRow(**row) for row in columns_of_rows]
    session.add_all(rows)
    session.flush()
    return rows


def enqueue_closing(
    session: AnySession, monitor: MonitorRow, incident: IncidentRow, now: datetime, *, deleted: bool
) -> None:
    """Close the alerts of an incident that was ended without a recovery, by a pause or a deletion,
    at services of BY_INCIDENT: they would stay open there for good. Nobody else gets a message.
    ``deleted``: the incident is about to be deleted, with its deliveries.
    """
    recipients = recipients_of(session, [incident.id])[incident.id]
    targets: dict[Target, Sequence[Source]] = {
        target: (Source(),)
        for name, target in recipients.targets.items()
        if target is not None and target[0] in BY_INCIDENT and name not in recipients.on_hold
    }
    rows = enqueue_for(session, Alert(Event.INCIDENT_RESOLVED, monitor, incident), targets, now)
    for row in rows if deleted else ():
        # Without these ids, the row is not deleted; but ``digests`` finds the end of quiet hours by
        # its monitor, so the row must not be on hold.
        row.monitor_id = row.incident_id = None
        row.status, row.reason, row.next_attempt_at = DeliveryStatus.PENDING, None, now
    session.flush()


def enqueue_report(
    session: AnySession, contact: ContactRow, facts: Mapping[str, Any], now: datetime
) -> int:
    """Write a monthly report for the email addresses of a contact, in the caller's transaction;
    returns the number of addresses.
    """
    log_unreadable(contact)
    addresses = [target for target in channels_of(contact) if target[0] == Channel.EMAIL]
    targets = dict.fromkeys(addresses, (Source(contact.id),))
    return len(enqueue_for(session, Alert(Event.REPORT_MONTHLY, None, extra=facts), targets, now))


def notify_of_place(
    session: AnySession, event: Event, facts: Mapping[str, Any], now: datetime
) -> int:
    """Notify the default contacts that a place is silent or back, in the caller's transaction;
    returns the number of messages. In the quiet hours of a contact, its messages stay pending until
    these end, because digests are about monitors only.
    """
    targets = targets_of_defaults(session)
    rows = enqueue_for(session, Alert(event, None, extra=facts), targets, now)
    for row in rows:
        if row.status == DeliveryStatus.HELD:
            row.status, row.reason = DeliveryStatus.PENDING, None
    session.flush()
    return len(rows)


# --- The recipients -------------------------------------------------------------------------------


def _targets_of_follow_up(
    alert: Alert, present: Targets, recipients: Recipients, hours: Hours
) -> Targets:
    """The channel values that were alerted to this incident. An acknowledgement goes only to those
    that the monitor still has and that want it. ``present``: the monitor's targets now. ``hours``:
    the quiet hours of the contacts in ``recipients``.
    """
    present_targets = {
        target: present[target] for target in present if lane_of(*target) in recipients.targets
    }
    if alert.event != Event.INCIDENT_RESOLVED:
        return _wanting(present_targets, alert)
    targets: dict[Target, Sequence[Source]] = {
        target: (Source(),) for target in recipients.targets.values() if target is not None
    }
    # The recovery also goes to sources that got the outage and that the monitor no longer has: a
    # contact without quiet hours, notified of the outage at night, is notified of its end at night.
    for target, sources in present_targets.items():
        name = lane_of(*target)
        notified = source_ids(recipients.sources[name]) if name in recipients.sources else ()
        removed = set(notified) - {source.id for source in sources}
        targets[target] = (*sources, *(Source(id, hours.get(id)) for id in sorted(removed)))
    return targets


def _wanting(targets: Targets, alert: Alert) -> Targets:
    """The channel values and their sources, without the sources that do not want this alert."""
    severity = None if alert.incident is None else alert.incident.severity
    wanting = {
        target: [source for source in sources if source.wants(alert.event, severity)]
        for target, sources in targets.items()
    }
    return {target: sources for target, sources in wanting.items() if sources}


# --- The rows -------------------------------------------------------------------------------------


def _rows(
    session: AnySession, parts: Sequence[tuple[Alert, Targets, Recipients]], now: datetime
) -> list[list[dict[str, Any]]]:
    """The columns of the rows of each alert. Each part has an alert, its targets, and the
    recipients who were alerted to its incident before.
    """
    of_incidents = [
        (alert.event, alert.incident) for alert, *_recipients in parts if alert.incident
    ]
    deployed = deployed_before(session, of_incidents)
    failed = dependencies.affected(session, [incident for _event, incident in of_incidents])
    opening = [incident for event, incident in of_incidents if event == Event.INCIDENT_OPENED]
    behind = {**failed, **dependencies.unreachable_at_opening(session, opening)}
    rows = []
    for alert, targets, recipients in parts:
        event, monitor, incident = alert.event, alert.monitor, alert.incident
        facts = snapshot(event, monitor, incident, now, alert.extra, deployed)
        if incident is not None:
            facts |= facts_of_dependents(facts, behind[incident.id], failed[incident.id])
        common = {
            "monitor_id": None if monitor is None else monitor.id,
            "incident_id": None if incident is None else incident.id,
            "reason": None,
        }
        hours = None if monitor is None else hours_of(monitor)
        alert_rows = []
        for (channel, value), sources in targets.items():
            row = columns(event, channel, value, facts, now) | common
            until = quiet_until(hours, [source.quiet for source in sources], now)
            row["sources"] = sources_text(sources)
            if on_hold := recipients.on_hold.get(row["lane"]):  # one digest covers both
                row["sources"], until = on_hold
            if until is not None and event not in NEVER_QUIET:
                row["status"], row["reason"] = DeliveryStatus.HELD, Reason.QUIET_HOURS
                row["next_attempt_at"] = until
            alert_rows.append(row)
        rows.append(alert_rows)
    if any(rows):
        wakeups.note(session, liveness.WORKER)
    return rows


def add_group(
    session: AnySession, event: Event, first: DeliveryRow, facts: Mapping[str, Any], now: datetime
) -> int:
    """Write a message that covers several rows, for the channel value of the ``first`` of them;
    returns the id of the message.
    """
    facts = {"event": str(event), "at": iso(now), "sources": first.sources, **facts}
    row = DeliveryRow(**columns(event, first.channel, readable(first.value) or "", facts, now))
    session.add(row)
    session.flush()
    return row.id


def columns(
    event: str, channel: str, value: str, facts: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """The columns of a pending row with a new message id, due at once, or after ``BURST_WAIT``."""
    return {
        "message_id": f"msg_{secrets.token_hex(16)}",
        "event": event,
        "channel": channel,
        "value": value,
        "lane": lane_of(channel, value),
        "facts": facts,
        "status": DeliveryStatus.PENDING,
        "attempts": [],
        "created_at": now,
        "next_attempt_at": now + BURST_WAIT if event in GROUPED else now,
    }


def lane_of(channel: str, value: str) -> str:
    """The lane of a channel value: a keyed hash, so that a guessed address cannot be recognised in
    the database.
    """
    return keyed_hash("alert lane", channel, value)[:32]


# --- The lanes of a monitor's own channels. A query can find these; the values are encrypted.

_SEPARATOR = "\n"


def lanes_text(alerts: Iterable[Sequence[str]]) -> str:
    """The column: the lanes of these channels, each between line breaks."""
    names = dict.fromkeys(lane_of(channel, value) for channel, value in alerts)
    return _SEPARATOR.join(["", *names, ""]) if names else ""


def has_own_channel(lane: str) -> ColumnElement[bool]:
    """SQL condition: the monitor itself has the channel of this lane, without its contacts."""
    return MonitorRow.alert_lanes.contains(f"{_SEPARATOR}{lane}{_SEPARATOR}")
