"""Decide what a lane does next: send, group, hold, defer or wait. Pure: takes rows and times.

The rules are those of decisions.md 5: messages of a lane are sent in order, a recovery after its
outage, a burst as one message, and flapping is reported once. Held rows stay in the log.

Ours, because a queue retries messages one by one: none holds a recovery for its outage, or makes
one message of twenty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from app.alerts.outbox import BURST_EXTRA_HOLD, BURST_HOLD, Reason
from app.records import DeliveryStatus, Event

BURST_MONITORS = 20
BURST_WINDOW = timedelta(seconds=60)
BURST_LOOMS = 3  # monitors at once that may become a burst: wait the full 2 s for others
FLAPPING_WINDOW = timedelta(minutes=10)
FLAPPING_OPENINGS = 4  # "more than 3"
PROBE_EVERY = timedelta(seconds=60)

GROUPED = {
    Event.INCIDENT_OPENED: Event.INCIDENTS_OPENED,
    Event.INCIDENT_RESOLVED: Event.INCIDENTS_RESOLVED,
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending row without its content. ``attempts`` counts the failed ones. ``over``: the
    incident has ended. ``settled``: the incident has ended or is acknowledged.
    """

    id: int
    event: str
    monitor_id: int | None
    incident_id: int | None
    created_at: datetime
    next_attempt_at: datetime
    attempts: int = 0
    leased: bool = False
    reason: str | None = None
    over: bool = False
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Opening:
    """The opening of an incident in this lane: its row, or the grouped message that covers it."""

    id: int
    status: str
    reason: str | None = None


Changes = Mapping[str, Sequence[tuple[datetime, int]]]


@dataclass(frozen=True, slots=True)
class History:
    """The lane's other rows, as far as a decision needs them.

    ``openings``: by incident. ``changes``: for each of the two events that are grouped, the times
    and monitors of rows of any status from ``since`` on, oldest first.
    """

    openings: Mapping[int, Opening]
    changes: Changes
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """The result of the lane's last attempt, and its time.

    ``closed_until``: the end of a pause that the service asked for (Retry-After). It applies to the
    whole lane.
    """

    last_ok: bool = True
    last_at: datetime | None = None
    closed_until: datetime | None = None

    def closed(self, now: datetime) -> bool:
        """Whether the pause lasts. If ``now`` is before the attempt that began it, the clock was
        set back, and the pause is ignored: it would last longer than the service asked for.
        """
        if self.closed_until is None or (self.last_at is not None and now < self.last_at):
            return False
        return now < self.closed_until


@dataclass(frozen=True, slots=True)
class Send:
    """Send this row. ``flapping``: the openings in 10 minutes, if the message reports flapping."""

    row: Waiting
    flapping: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    event: Event
    rows: tuple[Waiting, ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """These rows are not sent. The lane decides again at once about the others."""

    ids: tuple[int, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Defer:
    """This row is sent later. The lane decides again at once about the others."""

    id: int
    until: datetime
    reason: Reason | None


Decision = Send | Group | Hold | Defer | None


def decide(rows: Sequence[Waiting], history: History, lane: Lane, now: datetime) -> Decision:
    """What to do with a lane's pending rows, in the order of their ids; None means wait."""
    if any(row.leased for row in rows) or lane.closed(now):
        return None if any(row.leased for row in rows) else _by_hand(rows, history, now)
    passing = lane.last_ok or lane.last_at is None or abs(now - lane.last_at) >= PROBE_EVERY
    blocked: set[int | None] = set()
    for row in rows:
        # A test has no order to keep, and a person waits for its answer.
        if row.monitor_id is not None and row.monitor_id in blocked and row.event != Event.TEST:
            continue
        if row.reason == Reason.FLAPPING and row.over:
            return Hold((row.id,), Reason.FLAPPING)
        if row.event == Event.INCIDENT_REMINDER and row.settled and row.reason != Reason.BY_HAND:
            return Hold((row.id,), Reason.SETTLED)
        if row.next_attempt_at > now:
            blocked.add(row.monitor_id)
            # A failing message blocks the later ones, so that the order is kept, but only until
            # PROBE_EVERY: one that the service cannot take must not close the channel for a day.
            if row.attempts and not passing:
                return _by_hand(rows, history, now)
            continue
        found = _for_row(row, rows, history, now)
        if found is not None:
            return found
        blocked.add(row.monitor_id)
    return None


def _by_hand(rows: Sequence[Waiting], history: History, now: datetime) -> Decision:
    """Somebody pressed "Retry now" or "Send test alert" and waits for the result: send it even if
    the lane is failing or paused.
    """
    for row in rows:
        pressed = row.reason == Reason.BY_HAND or (row.event == Event.TEST and not row.attempts)
        if pressed and row.next_attempt_at <= now:
            return _for_row(row, rows, history, now)
    return None


def _for_row(row: Waiting, rows: Sequence[Waiting], history: History, now: datetime) -> Decision:
    if row.reason == Reason.BY_HAND:
        # Even by hand, a recovery must not overtake an outage that is still being sent.
        waits = row.event == Event.INCIDENT_RESOLVED and not may_follow(
            history.openings.get(row.incident_id or 0)
        )
        return None if waits else Send(row)
    if row.event == Event.INCIDENT_RESOLVED:
        return _resolved(row, rows, history, now)
    if row.event == Event.INCIDENT_OPENED:
        return _opened(row, rows, history, now)
    return Send(row)


def _opened(row: Waiting, rows: Sequence[Waiting], history: History, now: datetime) -> Decision:
    flapping = None
    if row.reason != Reason.FLAPPING and not row.attempts:
        times = [at for at, monitor in history.changes[row.event] if monitor == row.monitor_id]
        count, again = flaps(times, row.created_at)
        if again:
            return Defer(row.id, row.created_at + FLAPPING_WINDOW, Reason.FLAPPING)
        flapping = count
    return _single_or_group(row, rows, history, now, flapping)


def _resolved(row: Waiting, rows: Sequence[Waiting], history: History, now: datetime) -> Decision:
    opening = history.openings.get(row.incident_id or 0)
    verdict = may_follow(opening)
    if opening is not None and _flapped(opening):
        ids = (opening.id, row.id) if opening.status == DeliveryStatus.PENDING else (row.id,)
        return Hold(ids, Reason.FLAPPING)
    if verdict is None:
        return None
    return (
        _single_or_group(row, rows, history, now) if verdict is True else Hold((row.id,), verdict)
    )


def may_follow(opening: Opening | None) -> Literal[True] | Reason | None:
    """Whether a recovery may be sent: True, a reason to hold it, or None for not yet."""
    if opening is None or opening.status == DeliveryStatus.DELIVERED:
        return True  # None: only a reminder was sent, or the opening was deleted because of its age
    waits = opening.status == DeliveryStatus.HELD and opening.reason == Reason.QUIET_HOURS
    if waits or opening.status == DeliveryStatus.PENDING:
        return None  # it is being sent, or the digest of the quiet hours will include it
    if opening.status == DeliveryStatus.HELD and opening.reason in tuple(Reason):
        return Reason(opening.reason or "")
    return Reason.OUTAGE_NOT_DELIVERED


def _flapped(opening: Opening) -> bool:
    waiting = (DeliveryStatus.PENDING, DeliveryStatus.HELD)
    return opening.reason == Reason.FLAPPING and opening.status in waiting


def _single_or_group(
    row: Waiting,
    rows: Sequence[Waiting],
    history: History,
    now: datetime,
    flapping: int | None = None,
) -> Decision:
    event = Event(row.event)
    changes = history.changes[event]
    span = burst(changes, row.created_at)
    if span is not None:
        members = [other for other in _firsts(rows) if _joins(other, event, span, history)]
        if len(members) > 1:
            return Group(GROUPED[event], tuple(members))
    until = row.created_at + BURST_HOLD + BURST_EXTRA_HOLD
    close = [m for at, m in changes if abs(at - row.created_at) <= BURST_WINDOW]
    waits = row.created_at <= now < until
    if span is None and len(set(close)) >= BURST_LOOMS and waits and not row.attempts:
        return Defer(row.id, until, None)
    return Send(row, flapping)


def _firsts(rows: Sequence[Waiting]) -> list[Waiting]:
    """Each monitor's first pending row: a group must not overtake an earlier row of a member."""
    first: dict[int | None, Waiting] = {}
    for row in rows:
        first.setdefault(row.monitor_id, row)
    return list(first.values())


def _joins(row: Waiting, event: Event, span: tuple[datetime, datetime], history: History) -> bool:
    if row.event != event or row.reason is not None or not span[0] <= row.created_at <= span[1]:
        return False
    if event is Event.INCIDENT_OPENED:
        return True
    return may_follow(history.openings.get(row.incident_id or 0)) is True


def burst(
    changes: Sequence[tuple[datetime, int]], at: datetime
) -> tuple[datetime, datetime] | None:
    """The times of the first and the last change of the burst that includes the one at ``at``; None
    if no 60 s around it have changes of 20 monitors.
    """
    near = sorted(change for change in changes if abs(change[0] - at) <= BURST_WINDOW)
    first: datetime | None = None
    last = at
    counts: dict[int, int] = {}
    end = 0
    for start_at, monitor in near:
        while end < len(near) and near[end][0] <= start_at + BURST_WINDOW:
            counts[near[end][1]] = counts.get(near[end][1], 0) + 1
            end += 1
        covers = start_at <= at <= start_at + BURST_WINDOW
        if covers and len(counts) >= BURST_MONITORS:
            first = first or start_at
            last = near[end - 1][0]
        counts[monitor] -= 1
        if not counts[monitor]:
            del counts[monitor]
    return None if first is None else (first, last)


def flaps(times: Sequence[datetime], at: datetime) -> tuple[int | None, bool]:
    """For the opening at ``at`` among a monitor's openings: how many there were in 10 minutes, None
    if that is not flapping, and whether an earlier message has reported the flapping already.
    """

    def count(moment: datetime) -> int:
        return sum(1 for time in times if moment - FLAPPING_WINDOW < time <= moment)

    here = count(at)
    if here < FLAPPING_OPENINGS:
        return None, False
    earlier = [time for time in times if time < at]
    again = bool(earlier) and count(max(earlier)) >= FLAPPING_OPENINGS
    return here, again
