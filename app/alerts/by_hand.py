"""The actions of people on deliveries: test channels, retry a message, give it up. Each opens a
transaction, or joins the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.alerts import claims, targets
from app.alerts.lanes import Reason
from app.alerts.outbox import IS_ALERT, Alert, enqueue_for
from app.alerts.targets import Source, Target
from app.db import AnySession, liveness, wakeups, writing
from app.db.statements import locked
from app.db.tables import ContactRow, DeliveryRow, MonitorRow
from app.db.types import Unreadable
from app.errors import Conflict, Invalid, existing, no_such
from app.i18n import _
from app.records import DeliveryStatus, Event
from app.rules.time import iso


def send_test(monitor_id: int, now: datetime) -> tuple[int, ...]:
    """Put ``test`` into the outbox for all channels of a monitor. Returns the delivery ids; none
    for a monitor without channels. Raises NotFound, and Conflict if some of its alerts cannot be
    read.
    """
    with writing() as session:
        monitor = existing(session.get(MonitorRow, monitor_id), "monitor", monitor_id)
        if faults := targets.unreadable_sources(session, monitor):
            raise Conflict(faults[0])
        sources = targets.targets_of(session, monitor)
        rows = enqueue_for(session, Alert(Event.TEST, monitor), sources, now)
        return tuple(row.id for row in rows)


def send_test_to(
    values: Sequence[Target], now: datetime, *, monitor_id: int | None = None
) -> tuple[int, ...]:
    """Put ``test`` into the outbox for these channel values, which need not be stored anywhere.
    Returns the delivery ids, in the order of the values. ``monitor_id``: the monitor that the
    message names, if any. Raises Invalid if there is no such monitor.
    """
    with writing() as session:
        monitor = None if monitor_id is None else session.get(MonitorRow, monitor_id)
        if monitor_id is not None and monitor is None:
            raise Invalid({"monitor_id": [no_such("monitor", monitor_id)]})
        sources = dict.fromkeys(values, (Source(),))
        rows = enqueue_for(session, Alert(Event.TEST, monitor), sources, now)
        return tuple(row.id for row in rows)


def send_test_to_contact(contact_id: int, now: datetime) -> tuple[int, ...]:
    """Put ``test`` into the outbox for all channels of a contact. Returns the delivery ids. Raises
    NotFound, and Conflict if its channels cannot be read.
    """
    with writing() as session:
        contact = existing(session.get(ContactRow, contact_id), "contact", contact_id)
        if fault := targets.fault_of_contact(contact):
            raise Conflict(fault)
        sources = dict.fromkeys(targets.channels_of(contact), (Source(contact.id),))
        rows = enqueue_for(session, Alert(Event.TEST, None), sources, now)
        return tuple(row.id for row in rows)


def give_up(delivery_id: int, now: datetime) -> None:
    """Never send a delivery that is pending or on hold. Raises NotFound and Conflict."""
    with writing() as session:
        row = _alert(session, delivery_id)
        if row.status not in (DeliveryStatus.PENDING, DeliveryStatus.HELD):
            raise Conflict(_("This message is no longer pending, so it cannot be given up."))
        if row.lease_until is not None and row.lease_until > now:
            raise Conflict(_("This message is being sent at this moment. Try again in a minute."))
        claims.give_up(session, row.id, Reason.GIVEN_UP)


def retry(delivery_id: int, now: datetime) -> None:
    """Send a failed, pending or held delivery now. Its 24 hours begin again. Does nothing while it
    is being sent. Raises NotFound and Conflict.
    """
    with writing() as session:
        row = _alert(session, delivery_id)
        if row.status == DeliveryStatus.DELIVERED:
            raise Conflict(_("This message was delivered already, so it cannot be sent again."))
        if row.lease_until is not None and row.lease_until > now:
            return
        if isinstance(row.value, Unreadable):
            raise Conflict(_("This message's target cannot be read, so it cannot be sent again."))
        if isinstance(row.facts, Unreadable):
            raise Conflict(_("This message's text cannot be read, so it cannot be sent again."))
        row.status, row.reason = DeliveryStatus.PENDING, Reason.BY_HAND
        row.covered_by, row.next_attempt_at = None, now
        # A retry by hand is sent now: neither a burst nor flapping delays it, and earlier
        # attempts do not lengthen its pauses.
        row.facts = {**row.facts, "by_hand": iso(now), "earlier_attempts": len(row.attempts or ())}
        wakeups.note(session, liveness.WORKER)


def _alert(session: AnySession, delivery_id: int) -> DeliveryRow:
    """A delivery that is an alert. Raises NotFound."""
    row = session.scalar(locked(DeliveryRow).where(DeliveryRow.id == delivery_id, IS_ALERT))
    return existing(row, "delivery", delivery_id)
