"""Choose the row of a lane that is sent next, and lease it to this worker. Every function runs
inside a transaction.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, func, select

from app.alerts import lane_rules, retries
from app.alerts.giving_up import give_up_unreadable
from app.alerts.lane_rows import MAX_PENDING, history_of, pending
from app.alerts.lane_rules import History, Lane, Waiting
from app.alerts.messages import FIRST_NAMED
from app.alerts.outbox import AT_REST, Reason, new_row, unleased, update_deliveries
from app.db import AnySession, turns
from app.db.tables import DeliveryRow, SubscriberRow
from app.db.types import Unreadable, readable
from app.records import Channel, DeliveryStatus
from app.rules.time import iso

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=30)  # a crashed sender's row is free again after this
FIRST_PENDING = 50  # mostly enough to decide what is sent next
MOST_SKIPPED = 500  # lanes that a statement names

# Built once: the worker asks for them four times a second, and to build them takes longer than to
# ask an empty outbox.
_DUE = (
    select(DeliveryRow.lane)
    .where(
        DeliveryRow.status == DeliveryStatus.PENDING,
        DeliveryRow.next_attempt_at <= bindparam("now"),
    )
    .group_by(DeliveryRow.lane)
    .order_by(func.min(DeliveryRow.id))
)
_DUE_ALERTS = _DUE.where(DeliveryRow.subscriber_id.is_(None))
_DUE_SUBSCRIBERS = (
    _DUE.join(SubscriberRow, SubscriberRow.id == DeliveryRow.subscriber_id)
    .where(DeliveryRow.lane.not_in(bindparam("skip", expanding=True)))
    .limit(FIRST_PENDING)
)
_BY_WEBHOOK = DeliveryRow.channel == Channel.WEBHOOK
_DUE_BY_WEBHOOK, _DUE_BY_MAIL = (_DUE_SUBSCRIBERS.where(one) for one in (_BY_WEBHOOK, ~_BY_WEBHOOK))


@dataclass(frozen=True, slots=True)
class Claim:
    """A row that this worker may send until the lease ends."""

    id: int
    token: str
    lane: str
    message_id: str
    channel: str
    value: str = field(repr=False)
    facts: dict[str, Any] = field(repr=False)
    created_at: datetime
    attempts: tuple[dict[str, Any], ...]
    subscriber_id: int | None = None  # None: it is an alert

    @property
    def strangers_webhook(self) -> bool:
        """Whether anybody may have chosen the URL, by subscribing to a status page."""
        return self.subscriber_id is not None and self.channel == Channel.WEBHOOK

    @property
    def began(self) -> datetime:
        """When its 24 hours began: when it was written, or last retried by hand."""
        return retries.began(self.facts, self.created_at)

    @property
    def tries(self) -> int:
        """Failed attempts since then."""
        return max(0, len(self.attempts) - int(self.facts.get("earlier_attempts", 0)))


def due_lanes(session: AnySession, now: datetime, skip: Collection[str]) -> list[str]:
    """Lanes of alerts with a pending row whose time has come, the longest waiting first."""
    return [lane for lane in session.scalars(_DUE_ALERTS, {"now": now}) if lane not in skip]


def due_subscribers(
    session: AnySession, now: datetime, skip: Collection[str], *, webhooks: bool
) -> list[str]:
    """The same of subscribers, by webhook or by mail, as many as may be of use."""
    query = _DUE_BY_WEBHOOK if webhooks else _DUE_BY_MAIL
    found = session.scalars(query, {"now": now, "skip": list(skip)[:MOST_SKIPPED]})
    return [lane for lane in found if lane not in skip]


def lock(session: AnySession) -> None:
    """Let one worker at a time decide. On SQLite, the write lock does that already."""
    turns.take_turn(session, turns.Turn.OUTBOX)


@dataclass(frozen=True, slots=True)
class Turn:
    """What a lane claimed. ``waits``: a row of the lane is due, but may not be sent yet."""

    claim: Claim | None = None
    waits: bool = False


def take_turn(session: AnySession, lane: str, state: Lane, now: datetime) -> Turn:
    """Decide what the lane does next, store the decision, and claim the row to send, if any."""
    rows = pending(session, lane, now, FIRST_PENDING)
    history = history_of(session, lane, rows)
    cut = len(rows) == FIRST_PENDING
    turn = _decide(session, rows, history, state, now, cut=cut)
    if turn is None:
        rows = pending(session, lane, now, MAX_PENDING)
        history = history_of(session, lane, rows, history)
        turn = _decide(session, rows, history, state, now, cut=False)
    return turn or Turn()


def judge_alone(session: AnySession, lane: str, id: int, *, now: datetime) -> None:
    """Read everything that a turn reads of one row, to find out whether that raises."""
    rows = pending(session, lane, now, 1, only=id)
    lane_rules.decide(rows, history_of(session, lane, rows), Lane(), now)
    row = session.scalars(
        select(DeliveryRow).where(DeliveryRow.id == id).execution_options(populate_existing=True)
    ).one()
    if not isinstance(row.facts, Unreadable):
        retries.began(row.facts, row.created_at)


def _decide(
    session: AnySession,
    rows: list[Waiting],
    history: History,
    state: Lane,
    now: datetime,
    *,
    cut: bool,
) -> Turn | None:
    """The turn, decided by these rows of the lane; None if it needs more of them. ``cut``: there
    may be more.
    """
    while rows:
        decision = lane_rules.decide(rows, history, state, now)
        if broken := give_up_unreadable(session, _ids_needed(decision)):
            rows = [row for row in rows if row.id not in broken]
            continue
        if isinstance(decision, lane_rules.Send):
            return Turn(_lease(session, decision.row.id, now, decision.flapping))
        if cut and not isinstance(decision, lane_rules.Hold | lane_rules.Defer):
            return None
        if isinstance(decision, lane_rules.Group):
            return Turn(_group(session, decision, now))
        if decision is None:
            return Turn(waits=any(row.next_attempt_at <= now for row in rows))
        rows = _apart(session, rows, decision)
    return None if cut else Turn()


def _ids_needed(decision: lane_rules.Decision) -> list[int]:
    """The rows whose content is needed to carry out a decision."""
    if isinstance(decision, lane_rules.Send):
        return [decision.row.id]
    if isinstance(decision, lane_rules.Group):
        return [row.id for row in decision.rows[:FIRST_NAMED]]
    return []


def _apart(
    session: AnySession, rows: list[Waiting], decision: lane_rules.Hold | lane_rules.Defer
) -> list[Waiting]:
    """Store a hold or a deferral. Returns the rows that are left to decide about."""
    if isinstance(decision, lane_rules.Hold):
        _hold(session, decision.ids, decision.reason)
        return [row for row in rows if row.id not in decision.ids]
    session.execute(
        update_deliveries()
        .where(DeliveryRow.id == decision.id)
        .values(next_attempt_at=decision.until, reason=decision.reason)
    )
    # Later rows of its monitor must not overtake it, so they are left out of this turn too.
    monitor = next(row.monitor_id for row in rows if row.id == decision.id)
    return [row for row in rows if row.monitor_id != monitor]


def _hold(
    session: AnySession, ids: Iterable[int], reason: Reason, covered_by: int | None = None
) -> None:
    session.execute(
        update_deliveries()
        .where(DeliveryRow.id.in_(list(ids)))
        .values(status=DeliveryStatus.HELD, reason=reason, covered_by=covered_by, **AT_REST)
    )


def _lease(
    session: AnySession, id: int, now: datetime, flapping: int | None = None
) -> Claim | None:
    """Lease a row with a guarded update; None if it is no longer free."""
    token = secrets.token_hex(16)
    done = session.execute(
        update_deliveries()
        .where(DeliveryRow.id == id, DeliveryRow.status == DeliveryStatus.PENDING, unleased(now))
        .values(lease_until=now + LEASE, lease_token=token)
    )
    if getattr(done, "rowcount", 0) != 1:
        return None
    again = select(DeliveryRow).where(DeliveryRow.id == id)
    row = session.execute(again.execution_options(populate_existing=True)).scalar_one()
    if isinstance(row.value, Unreadable):
        return None  # cannot happen: ``give_up_unreadable`` has given such rows up
    if flapping is not None:
        row.facts = {**row.facts, "extra": {**(row.facts.get("extra") or {}), "flapping": flapping}}
    return Claim(
        id=row.id,
        token=token,
        lane=row.lane,
        message_id=row.message_id,
        channel=row.channel,
        value=row.value,
        facts=row.facts,
        created_at=row.created_at,
        attempts=tuple(row.attempts or ()),
        subscriber_id=row.subscriber_id,
    )


def _group(session: AnySession, group: lane_rules.Group, now: datetime) -> Claim | None:
    """Write the grouped message for these rows, set ``covered_by`` in them, and lease it."""
    ids = [row.id for row in group.rows]
    first = session.scalars(
        select(DeliveryRow).where(DeliveryRow.id.in_(ids[:FIRST_NAMED])).order_by(DeliveryRow.id)
    ).all()
    facts = {
        "event": str(group.event),
        "at": iso(now),
        "count": len(ids),
        "incidents": [row.facts for row in first],
        "deliveries": ids,
    }
    made = new_row(group.event, first[0].channel, readable(first[0].value) or "", facts, now)
    session.add(made)
    session.flush()
    _hold(session, ids, Reason.BURST, made.id)
    return _lease(session, made.id, now)
