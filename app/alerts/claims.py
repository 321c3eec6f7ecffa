"""What the worker asks the outbox and writes into it. Every function runs inside a transaction."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Update, func, or_, select, text, update

from app.alerts import restraint, retries
from app.alerts.messages import FIRST_NAMED, is_complete
from app.alerts.outbox import AnySession, Reason, new_row
from app.alerts.restraint import History, Lane, Told, Waiting
from app.db.clocks import SKEW
from app.db.tables import DeliveryRow, IncidentRow, MonitorRow
from app.db.types import Unreadable, Why, readable
from app.records import DeliveryStatus, Event
from app.rules.time import iso

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=30)  # a crashed sender's row is free again after this
MAX_PENDING = 5_000  # rows of one lane that are looked at
FIRST_PENDING = 50  # which mostly are enough to know what comes next
MAX_OTHERS = 200
_LOOK_BACK = timedelta(minutes=30)
_LOCK = 0x57414B45  # of the outbox among PostgreSQL's advisory locks
_CHANGES = (Event.INCIDENT_OPENED, Event.INCIDENT_RESOLVED)


@dataclass(frozen=True, slots=True)
class Claim:
    """A row that is ours until the lease ends."""

    id: int
    token: str
    lane: str
    message_id: str
    channel: str
    value: str = field(repr=False)
    facts: dict[str, Any] = field(repr=False)
    created_at: datetime
    attempts: tuple[dict[str, Any], ...]

    @property
    def began(self) -> datetime:
        """When its 24 hours began: when it was written, or retried by hand."""
        return _began(self.facts, self.created_at)

    @property
    def tries(self) -> int:
        """Failed attempts since then."""
        return len(self.attempts) - int(self.facts.get("earlier_attempts", 0))


def _began(facts: dict[str, Any], created_at: datetime) -> datetime:
    by_hand = facts.get("by_hand")
    return datetime.fromisoformat(by_hand) if by_hand else created_at


def _update() -> Update:
    """An update that does not look for loaded rows to change: none is kept across statements."""
    return update(DeliveryRow).execution_options(synchronize_session=False)


def due_lanes(session: AnySession, now: datetime, skip: Collection[str]) -> list[str]:
    """Lanes with a pending row whose time has come, the longest waiting first."""
    query = (
        select(DeliveryRow.lane)
        .where(DeliveryRow.status == DeliveryStatus.PENDING, DeliveryRow.next_attempt_at <= now)
        .group_by(DeliveryRow.lane)
        .order_by(func.min(DeliveryRow.id))
    )
    return [lane for lane in session.scalars(query) if lane not in skip]


def lock(session: AnySession) -> None:
    """One worker at a time decides. SQLite's write lock says so already."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})


def free_after_step(session: AnySession, now: datetime) -> list[int]:
    """The pending rows that a clock that was set back has put out of reach: leased for longer than
    a lease lasts, or waiting though the pause was begun in what is now the future. A pause that a
    service asked for (Retry-After) is kept, and so is every other that began in the past.
    """
    query = (
        select(
            DeliveryRow.id, DeliveryRow.created_at, DeliveryRow.next_attempt_at,
            DeliveryRow.lease_until, DeliveryRow.reason, DeliveryRow.attempts,
        )
        .where(
            DeliveryRow.status == DeliveryStatus.PENDING,
            or_(
                DeliveryRow.next_attempt_at > now + SKEW,
                DeliveryRow.lease_until > now + LEASE + SKEW,
            ),
        )
        .limit(MAX_PENDING)
    )  # fmt: skip
    return [row.id for row in session.execute(query) if _out_of_reach(row, now)]


def _out_of_reach(row: Any, now: datetime) -> bool:
    if row.lease_until is not None and row.lease_until > now + LEASE + SKEW:
        return True
    if row.next_attempt_at is None or row.next_attempt_at <= now + SKEW:
        return False
    attempts = row.attempts or ()
    began = datetime.fromisoformat(attempts[-1]["at"]) if attempts else row.created_at
    return (
        began > now + SKEW
        or row.reason == Reason.BY_HAND  # which never waits
        or row.next_attempt_at > now + retries.GIVE_UP_AFTER + SKEW
    )


def make_due(session: AnySession, ids: Collection[int], now: datetime) -> None:
    """Let these rows go at once, whoever leased them."""
    rows = (DeliveryRow.id.in_(list(ids)), DeliveryRow.status == DeliveryStatus.PENDING)
    for moment_ in (DeliveryRow.next_attempt_at, DeliveryRow.lease_until):
        session.execute(_update().where(*rows, moment_ > now).values({moment_: now}))


@dataclass(frozen=True, slots=True)
class Turn:
    """A lane's turn: what it claimed. ``waits``: something is due there that may not go yet."""

    claim: Claim | None = None
    waits: bool = False


def take_turn(session: AnySession, lane: str, state: Lane, now: datetime) -> Turn:
    """Decide what the lane does next, write it down, and claim the row to send, if there is one."""
    turn = _decide(session, lane, state, now, FIRST_PENDING)
    return turn if turn is not None else _decide(session, lane, state, now, MAX_PENDING) or Turn()


def _decide(session: AnySession, lane: str, state: Lane, now: datetime, limit: int) -> Turn | None:
    """The turn, judged by the lane's first ``limit`` rows; None when that takes more of them."""
    rows = _pending(session, lane, now, limit)
    cut = len(rows) == limit and limit < MAX_PENDING
    history = _history(session, lane, rows)
    while rows:
        decision = restraint.decide(rows, history, state, now)
        if broken := give_up_unreadable(session, _read(decision)):
            rows = [row for row in rows if row.id not in broken]
            continue
        if isinstance(decision, restraint.Send):
            return Turn(_lease(session, decision.row.id, now, decision.flapping))
        if cut and not isinstance(decision, restraint.Hold | restraint.Defer):
            return None
        if isinstance(decision, restraint.Group):
            return Turn(_group(session, decision, now))
        if decision is None:
            return Turn(waits=any(row.next_attempt_at <= now for row in rows))
        rows = _apart(session, rows, decision)
    return None if cut else Turn()


def _read(decision: restraint.Decision) -> list[int]:
    """The rows whose content a decision takes to carry out."""
    if isinstance(decision, restraint.Send):
        return [decision.row.id]
    if isinstance(decision, restraint.Group):
        return [row.id for row in decision.rows[:FIRST_NAMED]]
    return []


def _apart(
    session: AnySession, rows: list[Waiting], decision: restraint.Hold | restraint.Defer
) -> list[Waiting]:
    """Write a hold or a deferral down; the rows that are left to decide about."""
    if isinstance(decision, restraint.Hold):
        _hold(session, decision.ids, decision.reason)
        return [row for row in rows if row.id not in decision.ids]
    session.execute(
        _update()
        .where(DeliveryRow.id == decision.id)
        .values(next_attempt_at=decision.until, reason=decision.reason)
    )
    # Its monitor's later rows wait with it, so both are left out of this round.
    monitor = next(row.monitor_id for row in rows if row.id == decision.id)
    return [row for row in rows if row.monitor_id != monitor]


def _hold(
    session: AnySession, ids: Iterable[int], reason: Reason, covered_by: int | None = None
) -> None:
    session.execute(
        _update()
        .where(DeliveryRow.id.in_(list(ids)))
        .values(
            status=DeliveryStatus.HELD,
            reason=reason,
            covered_by=covered_by,
            next_attempt_at=None,
            lease_until=None,
            lease_token=None,
        )
    )


def _pending(session: AnySession, lane: str, now: datetime, limit: int) -> list[Waiting]:
    row = DeliveryRow
    query = (
        select(
            row.id, row.event, row.monitor_id, row.incident_id, row.created_at,
            row.next_attempt_at, row.attempts, row.lease_until, row.reason, IncidentRow.ended_at,
            IncidentRow.acknowledged_at,
        )
        .outerjoin(IncidentRow, IncidentRow.id == row.incident_id)
        .where(row.lane == lane, row.status == DeliveryStatus.PENDING)
        .order_by(row.id)
        .limit(limit)
    )  # fmt: skip
    return [
        Waiting(
            id=found.id,
            event=found.event,
            monitor_id=found.monitor_id,
            incident_id=found.incident_id,
            created_at=found.created_at,
            next_attempt_at=found.next_attempt_at or found.created_at,
            attempts=len(found.attempts or ()),
            leased=found.lease_until is not None and found.lease_until > now,
            reason=found.reason,
            over=found.ended_at is not None,
            settled=found.ended_at is not None or found.acknowledged_at is not None,
        )
        for found in session.execute(query)
    ]


def _history(session: AnySession, lane: str, rows: Sequence[Waiting]) -> History:
    incidents = {
        row.incident_id
        for row in rows
        if row.event == Event.INCIDENT_RESOLVED and row.incident_id is not None
    }
    changes: dict[str, list[tuple[datetime, int]]] = {event: [] for event in _CHANGES}
    if any(row.event in _CHANGES for row in rows):
        since = min(row.created_at for row in rows) - _LOOK_BACK
        query = (
            select(DeliveryRow.event, DeliveryRow.created_at, DeliveryRow.monitor_id)
            .where(
                DeliveryRow.lane == lane,
                DeliveryRow.event.in_(_CHANGES),
                DeliveryRow.created_at >= since,
                DeliveryRow.monitor_id.is_not(None),
            )
            .order_by(DeliveryRow.created_at)
        )
        for event, at, monitor in session.execute(query):
            changes[event].append((at, monitor or 0))
    return History(openings=_openings(session, lane, incidents), changes=changes)


def _openings(session: AnySession, lane: str, incidents: Collection[int]) -> dict[int, Told]:
    """Where each incident's opening stands, read through the group that covers it."""
    found: dict[int, Told] = {}
    query = (
        select(
            DeliveryRow.incident_id,
            DeliveryRow.id,
            DeliveryRow.status,
            DeliveryRow.reason,
            DeliveryRow.covered_by,
        )
        .where(
            DeliveryRow.lane == lane,
            DeliveryRow.event == Event.INCIDENT_OPENED,
            DeliveryRow.incident_id.in_(list(incidents)),
        )
        .order_by(DeliveryRow.id)
    )
    covered: dict[int, int] = {}
    for known, id, status, reason, group in session.execute(query) if incidents else ():
        incident = known or 0
        found[incident] = Told(id, status, reason)
        covered.pop(incident, None)
        if group is not None:
            covered[incident] = group
    groups = select(DeliveryRow.id, DeliveryRow.status).where(
        DeliveryRow.id.in_(set(covered.values()))
    )
    states = {row.id: row.status for row in session.execute(groups)} if covered else {}
    for incident, group in covered.items():
        found[incident] = Told(group, states.get(group, DeliveryStatus.DELIVERED))
    return found


def _lease(
    session: AnySession, id: int, now: datetime, flapping: int | None = None
) -> Claim | None:
    """The guarded update that makes a row ours; None when it is not free any more."""
    token = secrets.token_hex(16)
    free: ColumnElement[bool] = or_(
        DeliveryRow.lease_until.is_(None), DeliveryRow.lease_until <= now
    )
    done = session.execute(
        _update()
        .where(DeliveryRow.id == id, DeliveryRow.status == DeliveryStatus.PENDING, free)
        .values(lease_until=now + LEASE, lease_token=token)
    )
    if getattr(done, "rowcount", 0) != 1:
        return None
    again = select(DeliveryRow).where(DeliveryRow.id == id)
    row = session.execute(again.execution_options(populate_existing=True)).scalar_one()
    if isinstance(row.value, Unreadable):
        return None  # it was given up before; see ``give_up_unreadable``
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
    )


def _group(session: AnySession, group: restraint.Group, now: datetime) -> Claim | None:
    """Write the one message for these rows, and let them say that it covers them."""
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


def others_down(session: AnySession) -> dict[int, str]:
    """The monitors that are down now, by id, the longest first."""
    query = (
        select(MonitorRow.id, MonitorRow.name)
        .join(IncidentRow, IncidentRow.monitor_id == MonitorRow.id)
        .where(IncidentRow.ended_at.is_(None))
        .order_by(IncidentRow.started_at)
        .limit(MAX_OTHERS)
    )
    return {row.id: row.name for row in session.execute(query)}


@dataclass(frozen=True, slots=True)
class Mark:
    """What became of a claim. ``next_at``: when it is tried again; None after the last word."""

    claim: Claim
    attempt: dict[str, Any]
    status: DeliveryStatus
    reason: str | None
    now: datetime
    next_at: datetime | None = None


def mark(session: AnySession, done: Mark) -> None:
    """Write an attempt's outcome down.

    A delivered message is marked even when the lease has passed to somebody else: it did arrive.
    """
    claimed = done.claim
    where = [DeliveryRow.id == claimed.id, DeliveryRow.status == DeliveryStatus.PENDING]
    if done.status is not DeliveryStatus.DELIVERED:
        where.append(DeliveryRow.lease_token == claimed.token)
    delivered = done.status is DeliveryStatus.DELIVERED
    session.execute(
        _update()
        .where(*where)
        .values(
            status=done.status,
            reason=done.reason,
            attempts=[*claimed.attempts, done.attempt],
            next_attempt_at=done.next_at,
            delivered_at=done.now if delivered else None,
            lease_until=None,
            lease_token=None,
        )
    )


def give_up(session: AnySession, id: int, reason: str) -> None:
    """A row that cannot even be tried."""
    session.execute(
        _update()
        .where(DeliveryRow.id == id)
        .values(
            status=DeliveryStatus.FAILED,
            reason=reason,
            next_attempt_at=None,
            lease_until=None,
            lease_token=None,
        )
    )


def give_up_unreadable(session: AnySession, ids: Sequence[int]) -> set[int]:
    """Give up those of these rows that cannot be read, or say too little for a message; their ids.

    Each says so in the log of deliveries. Whatever else is due goes on.
    """
    rows = session.scalars(
        select(DeliveryRow).where(DeliveryRow.id.in_(ids)).execution_options(populate_existing=True)
    )
    broken = {row.id: reason for row in rows if (reason := _fault(row))} if ids else {}
    for id, reason in broken.items():
        log.error("Delivery %d is given up: %s", id, reason)
        give_up(session, id, reason)
    return set(broken)


def _fault(row: DeliveryRow) -> str | None:
    """Why a row cannot be sent, as a sentence; None where it can."""
    for name, value in (("target", row.value), ("message", row.facts)):
        if isinstance(value, Unreadable):
            return f"Not sent: its stored {name} cannot be read, because {value.why}."
    if not is_complete(row.facts):
        return f"Not sent: its stored message cannot be read, because {Why.ODD}."
    return None


def outlived(session: AnySession, now: datetime) -> list[int]:
    """What may have waited for longer than its 24 hours: pending, or held for quiet hours."""
    waits = or_(
        DeliveryRow.status == DeliveryStatus.PENDING,
        (DeliveryRow.status == DeliveryStatus.HELD) & DeliveryRow.next_attempt_at.is_not(None),
    )
    free = or_(DeliveryRow.lease_until.is_(None), DeliveryRow.lease_until <= now)
    old = DeliveryRow.created_at < now - retries.GIVE_UP_AFTER
    return list(session.scalars(select(DeliveryRow.id).where(waits, old, free)))


def give_up_outlived(session: AnySession, now: datetime) -> None:
    """Give up what its 24 hours have passed over while nobody sent anything, as after the restore
    of an old copy: news of two days ago would pass for today's.
    """
    for id in outlived(session, now):
        row = DeliveryRow
        query = select(row.facts, row.created_at, row.attempts).where(row.id == id)
        facts, created_at, attempts = session.execute(query).one()
        if isinstance(facts, Unreadable) or not is_complete(facts):
            continue  # given up, with the reason, when its turn comes
        if now - _began(facts, created_at) > retries.GIVE_UP_AFTER:
            give_up(session, id, retries.given_up(attempts[-1].get("answer") if attempts else None))


def hurry(session: AnySession, lane: str, now: datetime) -> None:
    """The channel works again: what waits for a retry there is tried now, not in two minutes."""
    soon = now + timedelta(seconds=2)
    session.execute(
        _update()
        .where(
            DeliveryRow.lane == lane,
            DeliveryRow.status == DeliveryStatus.PENDING,
            DeliveryRow.next_attempt_at > soon,
            or_(DeliveryRow.reason.is_(None), DeliveryRow.reason == Reason.BY_HAND),
        )
        .values(next_attempt_at=now)
    )
