"""Give up messages that cannot be sent, or have waited for more than 24 hours. Every function runs
inside a transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from sqlalchemy import bindparam, or_, select

from app.alerts import retries
from app.alerts.outbox import AT_REST, Reason, unleased, update_deliveries
from app.alerts.recompose import has_message, recompose
from app.alerts.words import count_of
from app.db import AnySession
from app.db.faults import unavailable
from app.db.tables import DeliveryRow
from app.db.types import Unreadable, Why, readable
from app.i18n import _
from app.records import NOT_SENT, DeliveryStatus

log = logging.getLogger(__name__)

RESTORED_OLD = timedelta(hours=1)  # decisions.md 16
# Built once: asked in almost every turn of the worker.
_OUTLIVED = select(DeliveryRow.id).where(
    or_(
        DeliveryRow.status == DeliveryStatus.PENDING,
        (DeliveryRow.status == DeliveryStatus.HELD) & DeliveryRow.next_attempt_at.is_not(None),
    ),
    DeliveryRow.created_at < bindparam("outlived"),
    unleased(bindparam("now", type_=DeliveryRow.lease_until.type)),
)


def give_up(session: AnySession, id: int, reason: str) -> None:
    """Mark a row as failed without an attempt."""
    session.execute(
        update_deliveries()
        .where(DeliveryRow.id == id)
        .values(status=DeliveryStatus.FAILED, reason=reason, **AT_REST)
    )


def give_up_unreadable(session: AnySession, ids: Sequence[int]) -> set[int]:
    """Give up those of these rows that cannot be read, or lack what a message needs; their ids. A
    message whose incident can still be read is composed again instead.

    The delivery log shows the reason for each. All other rows are sent as usual.
    """
    rows = session.scalars(
        select(DeliveryRow).where(DeliveryRow.id.in_(ids)).execution_options(populate_existing=True)
    )
    broken = {}
    for row in rows if ids else ():
        reason = _fault(row)
        if reason is not None and not recompose(session, row):
            broken[row.id] = reason
    session.flush()
    for id, reason in broken.items():
        log.error("Delivery %d is given up: %s", id, reason.removeprefix(NOT_SENT))
        give_up(session, id, reason)
    return set(broken)


def _fault(row: DeliveryRow) -> str | None:
    """Why a row cannot be sent, as a sentence; None if it can."""
    name, why = next(unreadable_parts(row), ("message", Why.ODD))
    if not isinstance(row.value, Unreadable) and has_message(row):
        return None
    if name == "target":
        said = _("its stored target cannot be read, because %(why)s.", why=_(why))
    else:
        said = _("its stored message cannot be read, because %(why)s.", why=_(why))
    return NOT_SENT + said


def unreadable_parts(row: DeliveryRow) -> Iterator[tuple[str, str]]:
    """The name for people, and the fault, of each part of a row that cannot be read."""
    for name, value in (("target", row.value), ("message", row.facts)):
        if isinstance(value, Unreadable):
            yield name, value.why


def outlived(session: AnySession, now: datetime) -> list[int]:
    """The ids of rows, pending or in quiet hours, that may have waited for more than 24 hours."""
    return list(session.scalars(_OUTLIVED, _at(now)))


def _at(now: datetime) -> dict[str, datetime]:
    return {"now": now, "outlived": now - retries.GIVE_UP_AFTER}


def give_up_outlived(session: AnySession, now: datetime) -> None:
    """Give up rows whose 24 hours passed while no worker ran, as after the restore of an old
    backup: an alert that is two days late would look new. If the outage still lasts, the next
    check that finds it sends a new alert.
    """
    row = DeliveryRow
    query = _OUTLIVED.with_only_columns(row.id, row.facts, row.created_at, row.attempts)
    given_up = 0
    for id, facts, created_at, attempts in session.execute(query, _at(now)).all():
        if readable(created_at) is None:
            continue  # its age is unknown, so it is sent
        began = created_at if isinstance(facts, Unreadable) else retries.began(facts, created_at)
        if now - began > retries.GIVE_UP_AFTER:
            give_up(session, id, retries.given_up(attempts[-1].get("answer") if attempts else None))
            given_up += not attempts
    if given_up:
        log.error(
            "%s %s given up: it was not sent within 24 hours. See the delivery log.",
            count_of(given_up, "message"),
            "was" if given_up == 1 else "were",
        )


def hold_after_restore(session: AnySession, now: datetime) -> int:
    """Hold the messages of a restored backup that are older than RESTORED_OLD, until a person
    retries them or gives them up: the outages that they are about are over, or have been told.
    Returns how many.
    """
    waits = or_(
        DeliveryRow.status == DeliveryStatus.PENDING,
        (DeliveryRow.status == DeliveryStatus.HELD) & DeliveryRow.next_attempt_at.is_not(None),
    )
    done = session.execute(
        update_deliveries()
        .where(waits, DeliveryRow.created_at < now - RESTORED_OLD)
        .values(status=DeliveryStatus.HELD, reason=Reason.RESTORED, **AT_REST)
    )
    return int(done.rowcount)  # type: ignore[attr-defined]


def give_up_failing(session: AnySession, lane: str, judge: Callable[[int], object]) -> list[int]:
    """Give up the pending rows of a lane for which ``judge`` raises; their ids.

    Catches every fault in a row that no other check finds, so that its lane can continue.
    """
    pending = (DeliveryRow.lane == lane, DeliveryRow.status == DeliveryStatus.PENDING)
    ids = session.scalars(select(DeliveryRow.id).where(*pending).order_by(DeliveryRow.id)).all()
    failing = []
    for id in ids:
        try:
            with session.begin_nested():
                judge(id)
        except Exception as fault:
            if unavailable(fault):
                raise
            log.exception("Delivery %d is given up.", id)
            said = _("it cannot be read (%(fault)s).", fault=type(fault).__name__)
            give_up(session, id, NOT_SENT + said)
            failing.append(id)
    return failing
