"""The tasks that the worker does every few seconds besides sending: give up messages that are too
old, send those that wait too long because the clock was set back, write the digests of quiet hours,
and delete the messages of deleted subscribers. ``hold_after_restore`` is for a restore. Every
function runs inside a transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, or_, select

from app.alerts import digests, subscribers
from app.alerts.claims import LEASE, MAX_PENDING, give_up
from app.alerts.lanes import GIVE_UP_AFTER, Reason, period_start, reason_after_24_hours
from app.alerts.outbox import UNSCHEDULED, WAITS, unleased
from app.alerts.words import count_of
from app.db import AnySession
from app.db.statements import is_among, rows_changed, updating
from app.db.tables import DeliveryRow
from app.db.types import Unreadable, readable
from app.records import DeliveryStatus
from app.rules.clocks import believable

log = logging.getLogger(__name__)

RESTORED_OLD = timedelta(hours=1)  # decision 16
# Built once, because almost every turn of the worker runs them.
_EXPIRED = select(DeliveryRow.id).where(
    WAITS,
    DeliveryRow.created_at < bindparam("expired"),
    unleased(bindparam("now", type_=DeliveryRow.lease_until.type)),
)
_FAR_OFF = (
    select(
        DeliveryRow.id, DeliveryRow.created_at, DeliveryRow.next_attempt_at,
        DeliveryRow.lease_until, DeliveryRow.reason, DeliveryRow.attempts,
    )
    .where(
        DeliveryRow.status == DeliveryStatus.PENDING,
        or_(
            DeliveryRow.next_attempt_at > bindparam("attempt"),
            DeliveryRow.lease_until > bindparam("lease"),
        ),
    )
    .limit(MAX_PENDING)
)  # fmt: skip


def expired(session: AnySession, now: datetime) -> list[int]:
    """The ids of rows, pending or on hold, that may have waited for more than 24 hours."""
    return list(session.scalars(_EXPIRED, {"now": now, "expired": now - GIVE_UP_AFTER}))


def give_up_expired(session: AnySession, ids: Sequence[int], now: datetime) -> None:
    """Give up rows whose 24 hours have passed, for example while no worker ran: an alert that is
    two days late would look new. If no attempt was made to send an opening and its outage still
    lasts, the next check that finds the outage sends a new alert.
    """
    table = DeliveryRow
    query = select(table.id, table.facts, table.created_at, table.attempts)
    rows = session.execute(query.where(is_among(table.id, ids))).all()
    unsent = 0
    for id, facts, created_at, attempts in rows:
        if readable(created_at) is None:
            continue  # the age of the row is unknown, so it is sent
        since = created_at if isinstance(facts, Unreadable) else period_start(facts, created_at)
        if now - since > GIVE_UP_AFTER:
            give_up(
                session, id, reason_after_24_hours(attempts[-1].get("answer") if attempts else None)
            )
            unsent += not attempts
    if unsent:
        log.error(
            "%s %s given up: it was not sent within 24 hours. See the delivery log.",
            count_of(unsent, "message"),
            "was" if unsent == 1 else "were",
        )


def hold_after_restore(session: AnySession, now: datetime) -> int:
    """Hold the messages of a restored backup that are older than RESTORED_OLD for good, unless a
    person retries them: their outages are over, or people know of them. Returns the number of
    messages.
    """
    return rows_changed(
        session,
        updating(DeliveryRow)
        .where(WAITS, DeliveryRow.created_at < now - RESTORED_OLD)
        .values(status=DeliveryStatus.HELD, reason=Reason.RESTORED, **UNSCHEDULED),
    )


def delayed_by_clock(session: AnySession, now: datetime) -> list[int]:
    """The ids of the pending rows that would wait too long because the clock was set back: leased
    for longer than a lease lasts, or in a pause that began in what is now the future. Pauses that
    began in the past are kept, among them those that a service asked for (Retry-After).
    """
    latest = {"attempt": believable(now), "lease": believable(now, LEASE)}
    return [row.id for row in session.execute(_FAR_OFF, latest) if _is_delayed(row, now)]


def _is_delayed(row: Any, now: datetime) -> bool:
    if row.lease_until is not None and row.lease_until > believable(now, LEASE):
        return True
    if row.next_attempt_at is None or row.next_attempt_at <= believable(now):
        return False
    attempts = row.attempts or ()
    since = datetime.fromisoformat(attempts[-1]["at"]) if attempts else row.created_at
    return (
        since > believable(now)
        or row.reason == Reason.BY_HAND  # a retry by hand has no pause
        or row.next_attempt_at > believable(now, GIVE_UP_AFTER)
    )


def make_due(session: AnySession, ids: Collection[int], now: datetime) -> None:
    """Make these rows due now, and end their leases."""
    log.warning("The clock was set back. %d delayed messages are sent now.", len(ids))
    rows = (DeliveryRow.id.in_(list(ids)), DeliveryRow.status == DeliveryStatus.PENDING)
    for column in (DeliveryRow.next_attempt_at, DeliveryRow.lease_until):
        session.execute(updating(DeliveryRow).where(*rows, column > now).values({column: now}))


Find = Callable[[AnySession, datetime], Collection[Any]]
Do = Callable[[AnySession, Any, datetime], object]
# The name of a task, the function that finds its work, and the one that does it in a transaction.
CHORES: tuple[tuple[str, Find, Do], ...] = (
    ("give up messages that are too old", expired, give_up_expired),
    ("make messages due that the clock delays", delayed_by_clock, make_due),
    ("write the digests of quiet hours", digests.due, digests.release),
    (
        "drop the messages of subscribers who are gone",
        subscribers.orphans,
        subscribers.delete_messages,
    ),
)
