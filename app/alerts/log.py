"""The delivery log: rows of the outbox as records for pages and the API, without secrets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, bindparam, exists, func, or_, select

from app.alerts.claims import unreadable_parts
from app.alerts.lanes import Reason
from app.alerts.outbox import lane_of
from app.alerts.targets import OPEN_EVENTS, channels_of, contact_names, source_ids, targets_of
from app.db import AnySession, db, writing
from app.db.statements import constant, deleting, grouped, rows_changed
from app.db.tables import ContactRow, DeliveryRow, IncidentRow, MonitorRow
from app.db.types import Moment, Unreadable, readable, record_of
from app.records import NOT_SENT, Attempt, Delivery, DeliveryStatus, Event, mask

LOST_SHOWN_FOR = timedelta(days=3)  # after the end of the incident
FIRST_ATTEMPT_WITHIN = timedelta(seconds=30)  # unless no worker runs, or its channel fails
MAX_LOST = 50

# The statements name the table, because the ORM would double their time.
_TABLE: Any = DeliveryRow.__table__
_DELIVERY = _TABLE.c
# ``IS_ALERT`` in a form for which SQLite cannot choose the index on subscriber_id: by that index,
# queries for few rows would read all alerts.
_IS_ALERT_UNINDEXED = func.coalesce(_DELIVERY.subscriber_id, constant(0)) == constant(0)
_REASON = func.coalesce(_DELIVERY.reason, "")
_NOT_TRIED = func.substr(_REASON, 1, len(NOT_SENT)) == NOT_SENT
_FAILED, _HELD = (
    _DELIVERY.status == constant(status) for status in (DeliveryStatus.FAILED, DeliveryStatus.HELD)
)
# ``Delivery.is_lost`` as a condition.
_IS_LOST = or_(_FAILED & _NOT_TRIED, _HELD & (constant(Reason.RESTORED) == _REASON))
# Given up by a person, so the channel is not at fault.
_GIVEN_UP = constant(Reason.GIVEN_UP) == _REASON


def to_record(
    row: DeliveryRow, covers: Sequence[int] = (), contacts: Mapping[int, str] | None = None
) -> Delivery:
    """The record of a row. ``covers``: the ids of the rows whose ``covered_by`` is this one (see
    ``covered_ids``). ``contacts``: the names of contacts by id.
    """
    names = contacts or {}
    return record_of(
        Delivery,
        row,
        target=mask(readable(row.value) or ""),
        attempts=tuple(_attempt(attempt) for attempt in row.attempts or ()),
        covers=tuple(covers),
        contacts=tuple(names[id] for id in source_ids(row.sources) if id in names),
        location=_location(row.facts),
        unreadable=tuple(name for name, _why in unreadable_parts(row)),
        message=None,
    )


def _location(facts: Any) -> str | None:
    """The name of the place that a message is about; None if it is about a monitor."""
    place = ((readable(facts) or {}).get("extra") or {}).get("location")
    name = place.get("name") if isinstance(place, dict) else None
    return name if isinstance(name, str) else None


def covered_ids(session: AnySession, ids: Sequence[int]) -> dict[int | None, list[int]]:
    """The ids of the deliveries that each of these deliveries covers."""
    query = select(DeliveryRow.covered_by, DeliveryRow.id).where(DeliveryRow.covered_by.in_(ids))
    return grouped(session.execute(query.order_by(DeliveryRow.id)))


def failed_channels(session: AnySession) -> list[Delivery]:
    """The newest failed delivery of each channel value that has delivered nothing since and that is
    still used, newest first. Messages given up without an attempt are not among them.
    """
    rows = _rows(session, session.scalars(_NEWEST_FAILED).all())
    failing = [row for row in rows if not _works_again(session, row) and _in_use(session, row)]
    names = contact_names(session, {row.sources for row in failing})
    return [to_record(row, contacts=names) for row in failing]


def _rows(session: AnySession, ids: Sequence[int]) -> Sequence[DeliveryRow]:
    """The rows with these ids, the newest first. Without ids, which is usual, it reads nothing."""
    if not ids:
        return ()
    statement = select(DeliveryRow).where(DeliveryRow.id.in_(ids))
    return session.scalars(statement.order_by(DeliveryRow.id.desc())).all()


def lost_messages(session: AnySession, now: datetime) -> list[Delivery]:
    """Messages that were not sent (``Delivery.is_lost``) and still matter, the newest first: the
    incident is open or ended within ``LOST_SHOWN_FOR``, and there is no later message of the same
    event. Messages without an incident are listed for the same time.
    """
    rows = _rows(session, session.scalars(_LOST, {"since": now - LOST_SHOWN_FOR}).all())
    covered = covered_ids(session, [row.id for row in rows]) if rows else {}
    return [to_record(row, covered.get(row.id, ())) for row in rows]


def _replaced(row: Any) -> ColumnElement[bool]:
    later = _TABLE.alias().c
    return exists().where(
        later.incident_id == row.incident_id,
        later.lane == row.lane,
        later.event == row.event,
        later.id > row.id,
    )


# Built once: the home page runs them each time, and building them takes longer than running them.
_NEWEST_FAILED = (
    select(func.max(_DELIVERY.id))
    .where(_FAILED, ~_NOT_TRIED, ~_GIVEN_UP, _IS_ALERT_UNINDEXED)
    .group_by(_DELIVERY.lane)
)
_SINCE = bindparam("since", type_=Moment)
_INCIDENT: Any = IncidentRow.__table__.c
_RECENT = select(_INCIDENT.id).where(
    or_(_INCIDENT.ended_at.is_(None), _INCIDENT.ended_at >= _SINCE)
)
_MEMBER = _TABLE.alias()
_OF_A_GROUP = _MEMBER.c.covered_by == _DELIVERY.id
_LOST = (
    select(_DELIVERY.id)
    .where(
        _IS_LOST,
        _IS_ALERT_UNINDEXED,
        _DELIVERY.event != constant(Event.TEST),
        ~_replaced(_DELIVERY),
        or_(~exists().where(_OF_A_GROUP), exists().where(_OF_A_GROUP, ~_replaced(_MEMBER.c))),
        or_(
            _DELIVERY.incident_id.in_(_RECENT),
            _DELIVERY.incident_id.is_(None) & (_DELIVERY.created_at >= _SINCE),
        ),
    )
    .order_by(_DELIVERY.id.desc())
    .limit(MAX_LOST)
)
_STATUS_COLUMNS = (
    _DELIVERY.id, _DELIVERY.incident_id, _DELIVERY.covered_by, _DELIVERY.status,
    _DELIVERY.reason, _DELIVERY.attempts, _DELIVERY.created_at,
)  # fmt: skip
_WRITTEN = (
    select(*_STATUS_COLUMNS)
    .where(
        _DELIVERY.incident_id.in_(bindparam("ids", expanding=True)),
        _DELIVERY.event.in_([*map(constant, OPEN_EVENTS)]),
    )
    .order_by(_DELIVERY.id)
)
_GROUPS = select(*_STATUS_COLUMNS).where(_DELIVERY.id.in_(bindparam("ids", expanding=True)))


def unreached(
    session: AnySession, incident_ids: Sequence[int], now: datetime
) -> dict[int, list[Delivery]]:
    """The overdue messages of each of these incidents, if nobody was notified of it."""
    written = session.execute(_WRITTEN, {"ids": list(incident_ids)}).all()
    groups = {row.covered_by for row in written if row.covered_by is not None}
    grouped = session.execute(_GROUPS, {"ids": list(groups)}) if groups else ()
    by_id: dict[int | None, Any] = {row.id: row for row in grouped}
    overdue: dict[int, list[int]] = defaultdict(list)
    for row in written:
        message = by_id.get(row.covered_by, row)
        if _is_overdue(message, now):
            overdue[row.incident_id or 0].append(message.id)
    for row in written:
        if by_id.get(row.covered_by, row).status == DeliveryStatus.DELIVERED:
            overdue.pop(row.incident_id or 0, None)
    ids = {id for messages in overdue.values() for id in messages}
    rows = session.scalars(select(DeliveryRow).where(DeliveryRow.id.in_(ids))) if ids else ()
    records = {row.id: to_record(row) for row in rows}
    return {
        incident_id: [records[id] for id in dict.fromkeys(messages) if id in records]
        for incident_id, messages in overdue.items()
    }


def _is_overdue(message: Any, now: datetime) -> bool:
    """Whether attempts to send this message failed, or none was made in time."""
    if message.status == DeliveryStatus.FAILED:
        return bool(message.attempts) and message.reason != Reason.GIVEN_UP
    if message.status != DeliveryStatus.PENDING or message.reason == Reason.FLAPPING:
        return False
    return bool(message.attempts) or message.created_at < now - FIRST_ATTEMPT_WITHIN


def _works_again(session: AnySession, failed: DeliveryRow) -> bool:
    at = max((attempt["at"] for attempt in failed.attempts or ()), default=None)
    since = failed.created_at if at is None else datetime.fromisoformat(at)
    later = select(DeliveryRow.id).where(
        DeliveryRow.lane == failed.lane,
        DeliveryRow.status == DeliveryStatus.DELIVERED,
        # Attempts are stored in whole seconds: within the same second, the higher id is later.
        or_(
            DeliveryRow.delivered_at >= since + timedelta(seconds=1),
            (DeliveryRow.delivered_at >= since) & (DeliveryRow.id > failed.id),
        ),
    )
    return session.scalar(later.limit(1)) is not None


def _in_use(session: AnySession, failed: DeliveryRow) -> bool:
    """Whether a monitor of this delivery still has its channel value: an address that was corrected
    needs no notice. If the delivery has no monitor, the contacts that it was sent for count. True
    if the monitor's channels cannot be read.
    """
    # Messages about a place, reports and tests of a contact have no monitor.
    if failed.monitor_id is None and failed.sources is not None:
        of_sources = ContactRow.id.in_(source_ids(failed.sources))
        contacts = session.scalars(select(ContactRow).where(of_sources)).all()
        return any(_is_of(target, failed) for row in contacts for target in channels_of(row))
    covered = select(DeliveryRow.monitor_id).where(DeliveryRow.covered_by == failed.id)
    ids = [failed.monitor_id] if failed.monitor_id else session.scalars(covered.limit(20)).all()
    monitors = session.scalars(select(MonitorRow).where(MonitorRow.id.in_(ids))).all()
    return any(
        isinstance(monitor.alerts, Unreadable)
        or any(_is_of(target, failed) for target in targets_of(session, monitor))
        for monitor in monitors
    )


def _is_of(target: tuple[str, str], failed: DeliveryRow) -> bool:
    if isinstance(failed.value, Unreadable):
        return lane_of(*target) == failed.lane
    return target == (failed.channel, failed.value)


def forget_deliveries(before: datetime, *, per_transaction: int = 1_000) -> int:
    """Delete the rows that were written before ``before`` and are not pending; returns how many.
    Rows of open incidents are kept, because their recipients get the recovery.

    A transaction deletes at most ``per_transaction`` rows: the worker must not wait until a year of
    rows is deleted.
    """
    old = (
        select(DeliveryRow.id)
        .outerjoin(IncidentRow, IncidentRow.id == DeliveryRow.incident_id)
        .where(
            DeliveryRow.created_at < before,
            DeliveryRow.status != DeliveryStatus.PENDING,
            or_(IncidentRow.id.is_(None), IncidentRow.ended_at.is_not(None)),
        )
        .order_by(DeliveryRow.created_at)
        .limit(per_transaction)
    )
    deleted = 0
    while ids := list(db.session.scalars(old)):
        with writing() as session:
            # Checks the status again: somebody may have pressed "Retry now" meanwhile.
            is_old = DeliveryRow.id.in_(ids), DeliveryRow.status != DeliveryStatus.PENDING
            deleted += rows_changed(session, deleting(DeliveryRow).where(*is_old))
    return deleted


def _attempt(stored: dict[str, Any]) -> Attempt:
    """The fields of a stored attempt that the API shows; the worker needs more."""
    return Attempt(at=stored.get("at"), ok=bool(stored.get("ok")), answer=stored.get("answer"))
