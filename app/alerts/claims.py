"""The rows of a lane in the database: read them, carry out the decisions of ``lanes.decide_next``,
lease the row to send, and store the outcome. Every function runs inside a transaction.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, String, bindparam, cast, exists, func, or_, select

from app.alerts import lanes
from app.alerts.lanes import ClaimedDelivery, History, LaneHealth, PendingRow, Reason
from app.alerts.messages import FIRST_NAMED, is_complete
from app.alerts.outbox import IS_ALERT, ON_HOLD, UNSCHEDULED, add_group, unleased
from app.alerts.snapshots import recompose
from app.db import AnySession
from app.db.faults import unavailable
from app.db.statements import is_among, rows_changed, select_fresh, updating
from app.db.tables import DeliveryRow, IncidentRow, SubscriberRow
from app.db.types import Unreadable, Why, record_of
from app.i18n import _
from app.records import NOT_SENT, Channel, DeliveryStatus, Event, IncidentSeverity

log = logging.getLogger(__name__)

SENT = "sent"  # the key of the sent text in the facts of a row
LEASE = timedelta(seconds=30)  # a crashed sender's row is free again after this
MAX_SKIPPED = 500  # lanes that a statement names
FIRST_PENDING = 50  # rows of one lane that are read first, in most cases enough to decide
MAX_PENDING = 5_000  # rows of one lane that are read
_LOOK_BACK = timedelta(minutes=30)
_CHANGES = (Event.INCIDENT_OPENED, Event.INCIDENT_RESOLVED)

# Built once: the worker runs them in each turn, and building them takes longer than running them on
# an empty outbox.
_DUE = (
    select(DeliveryRow.lane)
    .where(
        DeliveryRow.status == DeliveryStatus.PENDING,
        DeliveryRow.next_attempt_at <= bindparam("now"),
    )
    .group_by(DeliveryRow.lane)
    .order_by(func.min(DeliveryRow.id))
)
_ANY_WAITS = select(
    or_(exists().where(DeliveryRow.status == DeliveryStatus.PENDING), exists().where(ON_HOLD))
)
_NEXT_DUE = select(func.min(DeliveryRow.next_attempt_at)).where(
    DeliveryRow.status == DeliveryStatus.PENDING, DeliveryRow.next_attempt_at > bindparam("now")
)
DUE_ALERTS = _DUE.where(IS_ALERT)
_DUE_SUBSCRIBERS = (
    _DUE.join(SubscriberRow, SubscriberRow.id == DeliveryRow.subscriber_id)
    .where(DeliveryRow.lane.not_in(bindparam("skip", expanding=True)))
    .limit(FIRST_PENDING)
)
_BY_WEBHOOK = DeliveryRow.channel == Channel.WEBHOOK
DUE_BY_WEBHOOK, DUE_BY_MAIL = (_DUE_SUBSCRIBERS.where(by) for by in (_BY_WEBHOOK, ~_BY_WEBHOOK))
_PENDING = (
    select(
        DeliveryRow.id, DeliveryRow.event, DeliveryRow.monitor_id, DeliveryRow.incident_id,
        DeliveryRow.created_at, DeliveryRow.next_attempt_at, DeliveryRow.attempts,
        DeliveryRow.lease_until, DeliveryRow.reason, DeliveryRow.channel, IncidentRow.ended_at,
        IncidentRow.acknowledged_at, IncidentRow.severity,
    )
    .outerjoin(IncidentRow, IncidentRow.id == DeliveryRow.incident_id)
    .where(DeliveryRow.lane == bindparam("lane"), DeliveryRow.status == DeliveryStatus.PENDING)
    .order_by(DeliveryRow.id)
    .limit(bindparam("limit"))
)  # fmt: skip
# These statements name columns, not classes: the ORM would double the time of thousands of rows.
_ROWS: Any = DeliveryRow.__table__
_INCIDENTS: Any = IncidentRow.__table__
_SINCE = (
    select(_ROWS.c.event, _ROWS.c.created_at, _ROWS.c.monitor_id, _INCIDENTS.c.severity)
    .outerjoin(_INCIDENTS, _INCIDENTS.c.id == _ROWS.c.incident_id)
    .where(
        _ROWS.c.lane == bindparam("lane"),
        _ROWS.c.event.in_(_CHANGES),
        _ROWS.c.created_at >= bindparam("since", type_=_ROWS.c.created_at.type),
        _ROWS.c.monitor_id.is_not(None),
    )
    .order_by(_ROWS.c.created_at)
)


def due_lanes(
    query: Select[str], session: AnySession, now: datetime, skip: Collection[str]
) -> list[str]:
    """The lanes with a due row, the oldest first. ``query``: ``DUE_ALERTS``, ``DUE_BY_MAIL`` or
    ``DUE_BY_WEBHOOK``.
    """
    due = session.scalars(query, {"now": now, "skip": list(skip)[:MAX_SKIPPED]})
    return [lane for lane in due if lane not in skip]


def any_waits(session: AnySession) -> bool:
    """Whether a row waits to be sent, now or later."""
    return bool(session.scalar(_ANY_WAITS))


def next_due(session: AnySession, now: datetime) -> datetime | None:
    """When the next pending row becomes due."""
    return session.scalar(_NEXT_DUE, {"now": now})


# --- Decide, and carry it out ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LaneClaim:
    """The row that a lane sends in this turn, if any. ``must_wait``: a row of the lane is due, but
    may not be sent yet.
    """

    claim: ClaimedDelivery | None = None
    must_wait: bool = False


def claim_next(session: AnySession, lane: str, health: LaneHealth, now: datetime) -> LaneClaim:
    """Carry out the decisions on a lane until one claims a row or none is left to make."""
    rows = _pending(session, lane, now, FIRST_PENDING)
    history = _history(session, lane, rows)
    cut = len(rows) == FIRST_PENDING
    lane_claim = _carry_out(session, rows, history, health, now, cut=cut)
    if lane_claim is None:
        rows = _pending(session, lane, now, MAX_PENDING)
        history = _history(session, lane, rows, history)
        lane_claim = _carry_out(session, rows, history, health, now, cut=False)
    return lane_claim or LaneClaim()


def _carry_out(
    session: AnySession,
    rows: list[PendingRow],
    history: History,
    health: LaneHealth,
    now: datetime,
    *,
    cut: bool,
) -> LaneClaim | None:
    """Carry out the decisions on these rows of a lane. ``cut``: the lane may have more rows.
    Returns None if a decision needs them.
    """
    while rows:
        decision = lanes.decide_next(rows, history, health, now)
        to_send = [decision.row] if isinstance(decision, lanes.Send) else []
        if isinstance(decision, lanes.Combine):
            to_send = [*decision.rows[:FIRST_NAMED]]
        if unreadable := give_up_unreadable(session, [row.id for row in to_send]):
            rows = [row for row in rows if row.id not in unreadable]
            continue
        if isinstance(decision, lanes.Send):
            return LaneClaim(_lease(session, decision.row.id, now, decision.flapping))
        if isinstance(decision, lanes.HoldForGood):
            hold_for_good(session, decision.ids, decision.reason)
            rows = [row for row in rows if row.id not in decision.ids]
        elif isinstance(decision, lanes.Defer):
            session.execute(
                updating(DeliveryRow)
                .where(DeliveryRow.id == decision.row.id)
                .values(next_attempt_at=decision.until, reason=decision.reason)
            )
            # This turn also leaves out the later rows of its monitor, which must not be sent first.
            rows = [row for row in rows if row.monitor_id != decision.row.monitor_id]
        elif cut:
            return None
        elif isinstance(decision, lanes.Combine):
            return LaneClaim(_group(session, decision, now))
        else:
            return LaneClaim(must_wait=any(row.next_attempt_at <= now for row in rows))
    return None if cut else LaneClaim()


def hold_for_good(
    session: AnySession, ids: Collection[int], reason: Reason, covered_by: int | None = None
) -> None:
    """Mark these rows as held, without a time to send them. ``covered_by``: the message that covers
    them, if they are part of one.
    """
    session.execute(
        updating(DeliveryRow)
        .where(is_among(DeliveryRow.id, ids))
        .values(status=DeliveryStatus.HELD, reason=reason, covered_by=covered_by, **UNSCHEDULED)
    )


def _lease(
    session: AnySession, id: int, now: datetime, flapping: int | None = None
) -> ClaimedDelivery | None:
    """Lease a row with a guarded update. Returns None if it is leased or no longer pending."""
    token = secrets.token_hex(16)
    leasing = (
        updating(DeliveryRow)
        .where(DeliveryRow.id == id, DeliveryRow.status == DeliveryStatus.PENDING, unleased(now))
        .values(lease_until=now + LEASE, lease_token=token)
    )
    if rows_changed(session, leasing) != 1:
        return None
    row = session.execute(_fresh_rows([id])).scalar_one()
    if flapping is not None:
        row.facts = {**row.facts, "extra": {**(row.facts.get("extra") or {}), "flapping": flapping}}
    return record_of(ClaimedDelivery, row, token=token, attempts=tuple(row.attempts or ()))


def _group(session: AnySession, group: lanes.Combine, now: datetime) -> ClaimedDelivery | None:
    """Write the grouped message for these rows, set ``covered_by`` in them, and lease it."""
    ids = [row.id for row in group.rows]
    first = session.scalars(
        select(DeliveryRow).where(DeliveryRow.id.in_(ids[:FIRST_NAMED])).order_by(DeliveryRow.id)
    ).all()
    facts = {
        "count": len(ids),
        "degraded": sum(row.severity == IncidentSeverity.DEGRADED for row in group.rows),
        "incidents": [unsent_facts(row) for row in first],
        "deliveries": ids,
    }
    group_id = add_group(session, group.event, first[0], facts, now)
    hold_for_good(session, ids, Reason.BURST, group_id)
    return _lease(session, group_id, now)


def unsent_facts(row: DeliveryRow) -> dict[str, Any]:
    """The facts of a row for a message about several rows, without an earlier text."""
    return {name: part for name, part in row.facts.items() if name != SENT}


# --- What a decision needs ------------------------------------------------------------------------


def _pending(
    session: AnySession, lane: str, now: datetime, limit: int, only: int | None = None
) -> list[PendingRow]:
    """The first ``limit`` pending rows of a lane, or only the one with the id ``only``."""
    query = _PENDING if only is None else _PENDING.where(DeliveryRow.id == only)
    return [
        record_of(
            PendingRow,
            row,
            next_attempt_at=row.next_attempt_at or row.created_at,
            attempts=len(row.attempts or ()),
            leased=row.lease_until is not None and row.lease_until > now,
            incident_ended=row.ended_at is not None,
            settled=row.ended_at is not None or row.acknowledged_at is not None,
        )
        for row in session.execute(query, {"lane": lane, "limit": limit})
    ]


def _history(
    session: AnySession, lane: str, rows: Sequence[PendingRow], earlier: History | None = None
) -> History:
    """The history that a decision on these rows needs. ``earlier``: the history that this
    transaction has read for the first of them. Its changes, which may be thousands, are not read
    again if they begin at the same time.
    """
    incidents = {
        row.incident_id
        for row in rows
        if row.event == Event.INCIDENT_RESOLVED and row.incident_id is not None
    }
    since = None
    if any(row.event in _CHANGES for row in rows):
        since = min(row.created_at for row in rows) - _LOOK_BACK
    openings = _openings(session, lane, incidents) if incidents else {}
    if earlier is not None and earlier.since == since:
        return History(openings, earlier.changes, since)
    changes: dict[str, list[lanes.LaneChange]] = {event: [] for event in _CHANGES}
    if since is not None:
        for event, *change in session.execute(_SINCE, {"lane": lane, "since": since}):
            changes[event].append(lanes.LaneChange(*change))
    return History(openings, changes, since)


def _openings(
    session: AnySession, lane: str, incidents: Collection[int]
) -> dict[int, lanes.OpeningDelivery]:
    """The state of each incident's opening, or of the grouped message that covers it."""
    in_lane = DeliveryRow.lane == lane, DeliveryRow.incident_id.in_(list(incidents))
    reminded = session.scalars(
        select(DeliveryRow.incident_id).where(
            *in_lane,
            DeliveryRow.event == Event.INCIDENT_REMINDER,
            DeliveryRow.status == DeliveryStatus.DELIVERED,
        )
    ).all()
    rows = session.execute(
        select(
            DeliveryRow.incident_id, DeliveryRow.id, DeliveryRow.status, DeliveryRow.reason,
            DeliveryRow.covered_by,
        )
        .where(*in_lane, DeliveryRow.event == Event.INCIDENT_OPENED)
        .order_by(DeliveryRow.id)
    )  # fmt: skip
    newest = {row.incident_id or 0: row for row in rows}
    groups = {row.covered_by for row in newest.values() if row.covered_by is not None}
    states: dict[int, str] = {}
    if groups:
        query = select(DeliveryRow.id, DeliveryRow.status).where(DeliveryRow.id.in_(groups))
        states = {row.id: row.status for row in session.execute(query)}
    openings = {}
    for incident, row in newest.items():
        id, status, reason = row.id, row.status, row.reason
        if (group := row.covered_by) is not None:
            id, status, reason = group, states.get(group, DeliveryStatus.DELIVERED), None
        elif reason in (Reason.QUIET_HOURS, Reason.RESTORED) and incident in reminded:
            status = DeliveryStatus.DELIVERED  # people know of the outage by the reminder
        openings[incident] = lanes.OpeningDelivery(id, status, reason)
    return openings


def _fresh_rows(ids: Collection[int]) -> Any:
    """A query of rows as they are stored now, even if the session has loaded them."""
    return select_fresh(DeliveryRow).where(DeliveryRow.id.in_(ids))


# --- Outcomes -------------------------------------------------------------------------------------


def store_outcome(
    session: AnySession,
    claim: ClaimedDelivery,
    outcome: lanes.AttemptOutcome,
    now: datetime,
    text: str = "",
) -> None:
    """Store the outcome of an attempt. ``text``: the sent text, which is encrypted with the facts.

    A message that was delivered is stored as delivered even if another worker has leased it since.
    """
    where = [DeliveryRow.id == claim.id, DeliveryRow.status == DeliveryStatus.PENDING]
    delivered = outcome.status is DeliveryStatus.DELIVERED
    if not delivered:
        where.append(DeliveryRow.lease_token == claim.token)
    values: dict[str, Any] = UNSCHEDULED | {"next_attempt_at": outcome.next_at}
    if text:
        values["facts"] = {**claim.facts, SENT: text}
    session.execute(
        updating(DeliveryRow)
        .where(*where)
        .values(
            status=outcome.status,
            reason=outcome.reason,
            attempts=[*claim.attempts, outcome.attempt],
            delivered_at=now if delivered else None,
            **values,
        )
    )


def retry_soon(session: AnySession, lane: str, now: datetime) -> None:
    """Make the rows of a lane that wait for a retry due now: its channel works again. A row without
    an attempt waits for something else, such as the end of quiet hours.
    """
    soon, was_tried = now + timedelta(seconds=2), cast(DeliveryRow.attempts, String) != "[]"
    session.execute(
        updating(DeliveryRow)
        .where(
            DeliveryRow.lane == lane,
            DeliveryRow.status == DeliveryStatus.PENDING,
            DeliveryRow.next_attempt_at > soon,
            or_(DeliveryRow.reason.is_(None) & was_tried, DeliveryRow.reason == Reason.BY_HAND),
        )
        .values(next_attempt_at=now)
    )


def give_up(session: AnySession, id: int, reason: str) -> None:
    """Mark a row as failed, without another attempt."""
    session.execute(
        updating(DeliveryRow)
        .where(DeliveryRow.id == id)
        .values(status=DeliveryStatus.FAILED, reason=reason, **UNSCHEDULED)
    )


def give_up_unreadable(session: AnySession, ids: Sequence[int]) -> set[int]:
    """Give up those of these rows that are unreadable or incomplete; returns their ids. A message
    whose incident can be read is composed again instead.
    """
    faults = {}
    for row in session.scalars(_fresh_rows(ids)) if ids else ():
        reason = _fault(row)
        if reason is not None and not recompose(session, row):
            faults[row.id] = reason
    session.flush()
    for id, reason in faults.items():
        log.error("Delivery %d is given up: %s", id, reason.removeprefix(NOT_SENT))
        give_up(session, id, reason)
    return set(faults)


def _fault(row: DeliveryRow) -> str | None:
    """Why a row cannot be sent, as a sentence; None if it can."""
    part, why = next(unreadable_parts(row), (None, Why.UNEXPECTED))
    if part is None and is_complete(row.facts):
        return None
    if part == "target":
        return NOT_SENT + _("its stored target cannot be read, because %(why)s.", why=_(why))
    return NOT_SENT + _("its stored message cannot be read, because %(why)s.", why=_(why))


def unreadable_parts(row: DeliveryRow) -> Iterator[tuple[str, str]]:
    """The unreadable parts of a row: the name that people see, and the fault."""
    for name, value in (("target", row.value), ("message", row.facts)):
        if isinstance(value, Unreadable):
            yield name, value.why


def give_up_failing(session: AnySession, lane: str, now: datetime) -> list[int]:
    """Give up the pending rows of a lane on which a decision fails; returns their ids.

    The cause is no stored value (``app.db.types``) but a fault of Wakeful, which must not stop the
    other rows of the lane.
    """
    pending = (DeliveryRow.lane == lane, DeliveryRow.status == DeliveryStatus.PENDING)
    ids = session.scalars(select(DeliveryRow.id).where(*pending).order_by(DeliveryRow.id)).all()
    failing = []
    for id in ids:
        try:
            with session.begin_nested():
                # Decide as a turn does, to meet the same error.
                rows = _pending(session, lane, now, 1, only=id)
                lanes.decide_next(rows, _history(session, lane, rows), LaneHealth(), now)
                row = session.scalars(_fresh_rows([id])).one()
                if not isinstance(row.facts, Unreadable):
                    lanes.period_start(row.facts, row.created_at)
        except Exception as fault:
            if unavailable(fault):
                raise
            log.exception("Delivery %d is given up.", id)
            reason = _("a fault in Wakeful (%(fault)s).", fault=type(fault).__name__)
            give_up(session, id, NOT_SENT + reason)
            failing.append(id)
    return failing
