"""The states of a delivery, and the decisions on it. Pure: takes rows, answers and times.

A lane is the deliveries of one channel value, in the order of their ids. No library offers lanes: a
queue retries each message by itself. It does not keep a recovery behind its outage, and does not
make one message of twenty.

 status     reason                 next_attempt_at  what happens
 pending    none                   its time         is sent then; leased while a worker sends it
 pending    retried by hand        at once          is due; goes first in a lane that fails
 pending    flapping               10 min later     is deferred: its monitor has opened too often
 held       quiet hours            their end        is on hold: a digest will cover it, or it is
                                                     sent then, to a service of BY_INCIDENT
 held       quiet hours, burst     none             is covered by a message for several (covered_by)
 held       restored               none             waits for a person: it is from a restored backup
 held       flapping, settled,     none             is not sent: its incident has ended or is
            outage not delivered                    acknowledged, or its outage was given up
 delivered  none                   none             was taken by the service
 failed     the answer, or why     none             is not sent any more; a person may retry it

 from       to         when                                                          by
            pending    an event is written; an opening and a recovery wait 0.5 s     outbox
            held       the same in quiet hours                                       outbox
 pending    held       quiet hours have begun; they end: a digest is pending         digests
 held       pending    quiet hours end, at a service of BY_INCIDENT                  digests
 pending    pending    it is deferred, for flapping or for the rest of a burst       decide
 pending    held       it is superseded, or part of a burst or of several that were  decide
                       acknowledged at once
 pending    delivered  the service took it                                           outcome_of
 pending    pending    the service may take it later: a growing pause, Retry-After   outcome_of
 pending    failed     it is refused for good, a bug stops it twice, 24 h are over   outcome_of
 pending    failed     it cannot be read or composed, or its answer not stored       claims, worker
 pending, held  failed  nobody sent it in 24 h, or a person gives it up              chores, by_hand
 pending, held  held    a backup was restored: a person decides                      chores
 pending    pending    it is due at once: its channel works again, or the clock was  claims, chores
                       set back
 any but delivered  pending  a person retries it                                     by_hand
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from app.alerts.answers import Acceptance, Answer
from app.i18n import N_, _
from app.records import (
    BY_INCIDENT,
    QUIET_HOURS,
    RESTORED,
    Channel,
    DeliveryStatus,
    Event,
    SubscriberEvent,
)
from app.rules.clocks import is_due
from app.rules.time import iso

# An opening or a recovery waits this long for others of the same burst, and the extra time only if
# there are others. Together they are the 2 s of decision 5.
BURST_WAIT = timedelta(seconds=0.5)
BURST_EXTRA_WAIT = timedelta(seconds=1.5)
BURST_MONITORS = 20
BURST_WINDOW = timedelta(seconds=60)
BURST_MAY_COME = 3  # monitors at once that may become a burst: wait the full 2 s for others
FLAPPING_WINDOW = timedelta(minutes=10)
FLAPPING_OPENINGS = 4  # decision 5: "more than 3"
PROBE_EVERY = timedelta(seconds=60)  # how often a failing lane tries its next message
SKIP = timedelta(seconds=1)  # a lane whose rows have to wait is read again after this
# Seconds before each retry; the last one repeats. With the jitter, the first retry comes within 5 s
# and the second within 15 s of the first attempt, and no pause exceeds 2 minutes (decision 5).
PAUSES = (3.0, 9.0, 30.0, 60.0, 100.0)
JITTER = 0.2
MIN_RETRY_AFTER = 1.0  # a service that asks for 0 s must not be retried without any pause
GIVE_UP_AFTER = timedelta(hours=24)
MAX_CONFIRMATIONS = 3  # attempts to ask a webhook whether it wants to be subscribed

GROUPED = {
    Event.INCIDENT_OPENED: Event.INCIDENTS_OPENED,
    Event.INCIDENT_RESOLVED: Event.INCIDENTS_RESOLVED,
}


class Reason(StrEnum):
    """Why a row waits, is on hold or is not sent any more. The values are stored, so they never
    change. web/views/deliveries has their sentences.
    """

    BURST = N_("burst")
    FLAPPING = N_("flapping")
    OUTAGE_NOT_DELIVERED = N_("outage not delivered")
    QUIET_HOURS = QUIET_HOURS
    RESTORED = RESTORED
    SETTLED = N_("settled")  # a reminder whose incident was acknowledged or ended meanwhile
    BY_HAND = N_("retried by hand")  # pending again: neither deferred nor put on hold
    GIVEN_UP = N_("given up by hand")
    EXPIRED = N_("Not sent: it could not be sent within 24 hours.")  # without an attempt


# --- What a lane does next ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PendingRow:
    """A pending row without its content. ``attempts``: the number of failed ones. ``settled``: the
    incident has ended or is acknowledged.
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
    channel: str = ""
    severity: str | None = None  # of its incident
    incident_ended: bool = False
    settled: bool = False


@dataclass(frozen=True, slots=True)
class OpeningDelivery:
    """The opening of an incident in this lane: its row, or the grouped message that covers it."""

    id: int
    status: str
    reason: str | None = None


class LaneChange(NamedTuple):
    """An opening or a recovery: when, of which monitor, and the severity of its incident now."""

    at: datetime
    monitor: int
    severity: str | None = None


Changes = Mapping[str, Sequence[LaneChange]]


@dataclass(frozen=True, slots=True)
class History:
    """The other rows of the lane that a decision needs.

    ``openings``: by incident. ``changes``: for each event that may be grouped, the times and
    monitors of its rows of any status from ``since`` on, oldest first.
    """

    openings: Mapping[int, OpeningDelivery]
    changes: Changes
    since: datetime | None = None

    def may_follow(self, recovery: PendingRow) -> Literal[True] | Reason | None:
        """Whether a recovery may be sent: True, a reason to put it on hold, or None for not yet."""
        opening = self.openings.get(recovery.incident_id or 0)
        if opening is None or opening.status == DeliveryStatus.DELIVERED:
            # Without an opening row, only a reminder was sent, or it was deleted because of age.
            return True
        waits = opening.status == DeliveryStatus.HELD and opening.reason == Reason.QUIET_HOURS
        if waits or opening.status == DeliveryStatus.PENDING:
            return None  # it is being sent, or the digest of the quiet hours will include it
        if opening.status == DeliveryStatus.HELD and opening.reason in tuple(Reason):
            return Reason(opening.reason or "")
        return Reason.OUTAGE_NOT_DELIVERED


@dataclass(frozen=True, slots=True)
class LaneHealth:
    """Whether the lane's channel worked at the last attempt, and its time. A permanent refusal of
    one message, and a fault of ours, say nothing against the channel.

    ``closed_until``: the end of a pause that the service asked for (Retry-After). It applies to the
    whole lane.
    """

    last_ok: bool = True
    last_at: datetime | None = None
    closed_until: datetime | None = None

    def closed(self, now: datetime) -> bool:
        """Whether the pause lasts. A pause that began after ``now`` is ignored: the clock was set
        back, and the pause would last longer than the service asked for.
        """
        if self.closed_until is None or (self.last_at is not None and now < self.last_at):
            return False
        return now < self.closed_until


@dataclass(frozen=True, slots=True)
class Send:
    """Send this row. ``flapping``: the openings in 10 minutes, if the message reports flapping."""

    row: PendingRow
    flapping: int | None = None


@dataclass(frozen=True, slots=True)
class Combine:
    """Send these rows as one message of ``event``."""

    event: Event
    rows: tuple[PendingRow, ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """These rows are not sent. The lane decides again at once about the others."""

    ids: tuple[int, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Defer:
    """This row is sent later. The lane decides again at once about the others."""

    row: PendingRow
    until: datetime
    reason: Reason | None


Decision = Send | Combine | Hold | Defer | None


def decide(
    rows: Sequence[PendingRow], history: History, lane: LaneHealth, now: datetime
) -> Decision:
    """The decision on a lane's pending rows, in the order of their ids; None means wait."""
    if any(row.leased for row in rows):
        return None
    if lane.closed(now):
        return _requested(rows, history, now)
    blocked: set[int | None] = set()
    for row in rows:
        # A test has no order to keep, and a person waits for its answer.
        if row.monitor_id is not None and row.monitor_id in blocked and row.event != Event.TEST:
            continue
        if row.reason == Reason.FLAPPING and row.incident_ended:
            return Hold((row.id,), Reason.FLAPPING)
        if row.event == Event.INCIDENT_REMINDER and row.settled and row.reason != Reason.BY_HAND:
            return Hold((row.id,), Reason.SETTLED)
        if row.next_attempt_at > now:
            blocked.add(row.monitor_id)
            # A failing message blocks the later ones, so that the order is kept, but only until
            # PROBE_EVERY: one that the service cannot take must not close the channel for a day.
            may_probe = lane.last_ok or is_due(lane.last_at, now, PROBE_EVERY)
            if row.attempts and not may_probe:
                return _requested(rows, history, now)
            continue
        decision = _due(row, rows, history, now)
        if decision is not None:
            return decision
        blocked.add(row.monitor_id)
    return None


def _requested(rows: Sequence[PendingRow], history: History, now: datetime) -> Decision:
    """The decision on a row that a person has requested by "Retry now" or "Send test alert". It is
    sent even if the lane is failing or paused, because the person waits for the result.
    """
    for row in rows:
        is_requested = row.reason == Reason.BY_HAND or (
            row.event == Event.TEST and not row.attempts
        )
        if is_requested and row.next_attempt_at <= now:
            return _due(row, rows, history, now)
    return None


def _due(row: PendingRow, rows: Sequence[PendingRow], history: History, now: datetime) -> Decision:
    if row.event == Event.INCIDENT_RESOLVED:
        return _resolved(row, rows, history, now)
    if row.event == Event.INCIDENT_OPENED and row.reason != Reason.BY_HAND:
        return _opened(row, rows, history, now)
    if row.event == Event.INCIDENT_ACKNOWLEDGED and row.channel not in BY_INCIDENT:
        return _acknowledged(row, rows)
    return Send(row)


def _acknowledged(row: PendingRow, rows: Sequence[PendingRow]) -> Decision:
    """Incidents that a person acknowledged together were written with one time, and become one
    message.
    """
    members = tuple(
        first
        for first in _firsts(rows)
        if first.event == row.event and first.created_at == row.created_at and first.reason is None
    )
    several = row in members and len(members) > 1
    return Combine(Event.INCIDENTS_ACKNOWLEDGED, members) if several else Send(row)


def _firsts(rows: Sequence[PendingRow]) -> Iterable[PendingRow]:
    """Each monitor's first pending row: no group may be sent before an earlier row of a member."""
    firsts: dict[int | None, PendingRow] = {}
    for row in rows:
        firsts.setdefault(row.monitor_id, row)
    return firsts.values()


def _opened(
    row: PendingRow, rows: Sequence[PendingRow], history: History, now: datetime
) -> Decision:
    flapping = None
    if row.reason != Reason.FLAPPING and not row.attempts:
        # An outage is not deferred because the monitor was slow several times before.
        times = [
            change.at
            for change in history.changes[row.event]
            if change.monitor == row.monitor_id and change.severity == row.severity
        ]
        flapping, is_reported = flapping_at(times, row.created_at)
        if is_reported:
            return Defer(row, row.created_at + FLAPPING_WINDOW, Reason.FLAPPING)
    return _single_or_group(row, rows, history, now, flapping)


def _resolved(
    row: PendingRow, rows: Sequence[PendingRow], history: History, now: datetime
) -> Decision:
    follows = history.may_follow(row)
    if row.reason == Reason.BY_HAND:
        # Even by hand, a recovery must not be sent before its outage.
        return Send(row) if follows else None
    opening = history.openings.get(row.incident_id or 0)
    if opening is not None and opening.reason == Reason.FLAPPING:
        if opening.status == DeliveryStatus.PENDING:
            return Hold((opening.id, row.id), Reason.FLAPPING)
        if opening.status == DeliveryStatus.HELD:
            return Hold((row.id,), Reason.FLAPPING)
    if follows is True:
        return _single_or_group(row, rows, history, now)
    return None if follows is None else Hold((row.id,), follows)


def _single_or_group(
    row: PendingRow,
    rows: Sequence[PendingRow],
    history: History,
    now: datetime,
    flapping: int | None = None,
) -> Decision:
    if row.channel in BY_INCIDENT:
        return Send(row, flapping)
    event = Event(row.event)
    changes = history.changes[event]
    span = burst(changes, row.created_at)
    if span is not None:
        members = [other for other in _firsts(rows) if _joins(other, event, span, history)]
        if len(members) > 1:
            return Combine(GROUPED[event], tuple(members))
    until = row.created_at + BURST_WAIT + BURST_EXTRA_WAIT
    close = {
        change.monitor for change in changes if abs(change.at - row.created_at) <= BURST_WINDOW
    }
    may_join = row.created_at <= now < until
    if span is None and len(close) >= BURST_MAY_COME and may_join and not row.attempts:
        return Defer(row, until, None)
    return Send(row, flapping)


def _joins(
    row: PendingRow, event: Event, span: tuple[datetime, datetime], history: History
) -> bool:
    if row.event != event or row.reason is not None or not span[0] <= row.created_at <= span[1]:
        return False
    if row.attempts:  # it may have arrived: sent again by itself, it has the same webhook-id
        return False
    return event is Event.INCIDENT_OPENED or history.may_follow(row) is True


def burst(changes: Sequence[LaneChange], at: datetime) -> tuple[datetime, datetime] | None:
    """The times of the first and the last change of the burst around ``at``; None if no 60 s that
    include ``at`` have changes of 20 monitors.
    """
    near = sorted(change[:2] for change in changes if abs(change.at - at) <= BURST_WINDOW)
    first: datetime | None = None
    last = at
    counts: Counter[int] = Counter()
    end = 0
    for start_at, monitor in near:
        while end < len(near) and near[end][0] <= start_at + BURST_WINDOW:
            counts[near[end][1]] += 1
            end += 1
        covers = start_at <= at <= start_at + BURST_WINDOW
        if covers and len(counts) >= BURST_MONITORS:
            first = first or start_at
            last = near[end - 1][0]
        counts[monitor] -= 1
        if not counts[monitor]:
            del counts[monitor]
    return None if first is None else (first, last)


def flapping_at(times: Sequence[datetime], at: datetime) -> tuple[int | None, bool]:
    """``times``: the openings of a monitor; ``at``: one of them. Returns the number of openings in
    the 10 minutes before it, None if that is not flapping, and whether an earlier message has
    reported the flapping.
    """

    def count(moment: datetime) -> int:
        return sum(1 for time in times if moment - FLAPPING_WINDOW < time <= moment)

    openings = count(at)
    if openings < FLAPPING_OPENINGS:
        return None, False
    earlier = [time for time in times if time < at]
    return openings, bool(earlier) and count(max(earlier)) >= FLAPPING_OPENINGS


FindLanes = Callable[[Any, datetime, Collection[str]], list[str]]  # Any: the session


class Lanes:
    """Lanes that share threads, and the health of each, in memory only. After a restart every lane
    counts as working, which does no harm.

    ``busy``: lanes with a message that is being sent, at most ``max_busy``. At most half of them
    are lanes whose last attempt failed, so that hanging services leave threads free. ``stuck``:
    lanes on which no turn can decide, though each of their rows can be read. While there are any,
    the worker gives no sign of life.

    ``find`` returns the lanes with a due row, without the given lanes; ``max_claims``: the lanes
    from which one transaction claims a row.
    """

    def __init__(self, max_busy: int, find: FindLanes, max_claims: int) -> None:
        self.max_busy, self.find, self.max_claims = max_busy, find, max_claims
        self.busy: set[str] = set()
        self.stuck: set[str] = set()
        self._health: dict[str, LaneHealth] = {}
        self._skipped: dict[str, datetime] = {}  # until when, by lane

    def health(self, name: str) -> LaneHealth:
        return self._health.get(name, LaneHealth())

    def skip(self, name: str, now: datetime) -> None:
        """Read the lane again after ``SKIP``: one of its rows has to wait."""
        self._skipped[name] = now + SKIP

    def skipped(self, now: datetime) -> Collection[str]:
        """The lanes to skip now. Forgets the lanes that work and are idle: memory stays small."""
        # The upper bound is for a clock that was set back: no lane is skipped for longer.
        self._skipped = {
            name: until for name, until in self._skipped.items() if now < until <= now + SKIP
        }
        self._health = {
            name: lane
            for name, lane in self._health.items()
            if not lane.last_ok or name in self.busy or name in self._skipped
        }
        return self._skipped.keys()

    def choose(self, due: Iterable[str], answered: Collection[str]) -> list[str]:
        """The lanes that get a thread: first working lanes, then failing ones. Among both, lanes in
        ``answered`` come last. Those were busy and have their answer now.
        """
        answered_busy = self.busy.intersection(answered)
        names = [*(name for name in due if name not in answered_busy), *answered_busy]
        busy = self.busy - answered_busy
        failing = [name for name in names if not self.health(name).last_ok]
        working = [name for name in names if self.health(name).last_ok]
        failing_room = self.max_busy // 2 - sum(not self.health(name).last_ok for name in busy)
        room = self.max_busy - len(busy)
        return [*working, *failing[: max(0, failing_room)]][: max(0, room)]

    def remember(self, name: str, answer: Answer, now: datetime) -> None:
        """Remember the result of the lane's last attempt."""
        closed = None
        if answer.retry_after is not None:
            closed = now + timedelta(seconds=answer.retry_after)
        # A permanent refusal and a bug of Wakeful are about one message: the lane still counts as
        # working, and its next message may be sent.
        healthy = answer.acceptance is not Acceptance.RETRY or answer.bug
        self._health[name] = LaneHealth(last_ok=healthy, last_at=now, closed_until=closed)
        self._skipped.pop(name, None)


# --- The outcome of an attempt --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A row that a worker may send until its lease ends."""

    id: int
    token: str
    lane: str
    message_id: str
    channel: str
    value: str = field(repr=False)
    facts: dict[str, Any] = field(repr=False)
    created_at: datetime
    attempts: tuple[dict[str, Any], ...]
    subscriber_id: int | None = None  # None for an alert
    sources: str | None = None  # in the format of the column

    @property
    def strangers_webhook(self) -> bool:
        """Whether anybody may have chosen the URL, by subscribing to a status page."""
        return self.subscriber_id is not None and self.channel == Channel.WEBHOOK

    @property
    def asks_webhook(self) -> bool:
        """Whether this asks a webhook to confirm: such a message is not retried for a day."""
        asks = self.facts.get("event") == SubscriberEvent.CONFIRM
        return asks and self.channel == Channel.WEBHOOK

    @property
    def tries(self) -> int:
        """The number of failed attempts since it was written, or last retried by hand."""
        return max(0, len(self.attempts) - int(self.facts.get("earlier_attempts", 0)))


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """The outcome of an attempt. ``next_at``: the time of the next one; None if there is none."""

    attempt: dict[str, Any]
    status: DeliveryStatus
    reason: str | None = None
    next_at: datetime | None = None


def outcome_of(claim: ClaimedDelivery, answer: Answer, now: datetime) -> AttemptOutcome:
    """The outcome that follows from a service's answer."""
    attempt = {"at": iso(now), "ok": answer.ok, "answer": answer.text}
    if answer.bug:
        attempt["bug"] = True
    if answer.ok:
        return AttemptOutcome(attempt, DeliveryStatus.DELIVERED)
    tries = claim.tries + 1
    # A person waits for the answer to a test, and looks at it: it is tried once (decision 5).
    is_final = answer.acceptance is Acceptance.PERMANENT or claim.facts.get("event") == Event.TEST
    # A bug of Wakeful that stops the message a second time would stay unnoticed for a day.
    earlier = claim.attempts[len(claim.attempts) - claim.tries :]
    is_bug_again = answer.bug and any(attempt.get("bug") for attempt in earlier)
    if is_final or is_bug_again or (claim.asks_webhook and tries >= MAX_CONFIRMATIONS):
        return AttemptOutcome(attempt, DeliveryStatus.FAILED, answer.text)
    end = period_start(claim.facts, claim.created_at) + GIVE_UP_AFTER
    if now >= end:
        return AttemptOutcome(attempt, DeliveryStatus.FAILED, reason_after_24_hours(answer.text))
    pause = timedelta(seconds=retry_pause(tries, answer.retry_after))
    return AttemptOutcome(attempt, DeliveryStatus.PENDING, next_at=min(now + pause, end))


def period_start(facts: Mapping[str, Any], created_at: datetime) -> datetime:
    """When a message's 24 hours began: when it was written, or last retried by hand."""
    by_hand = facts.get("by_hand")
    return datetime.fromisoformat(by_hand) if by_hand else created_at


def reason_after_24_hours(answer: str | None) -> str:
    """Why a message failed after 24 hours. ``answer``: the last one; None without an attempt."""
    if answer is None:
        return Reason.EXPIRED
    return _("Given up after 24 hours. The last answer: %(answer)s", answer=answer)


def retry_pause(tries: int, retry_after: float | None) -> float:
    """Seconds until the next attempt after ``tries`` failed ones. ``retry_after``, the pause that
    the service asks for, replaces that of the table. After as many attempts as there are PAUSES it
    can only lengthen the pause: otherwise a service that always asks for one second would get
    86,400 attempts.
    """
    jitter = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  # it needs no secrecy
    base = PAUSES[min(tries, len(PAUSES)) - 1] * jitter
    if retry_after is None:
        return base
    return max(retry_after, MIN_RETRY_AFTER if tries <= len(PAUSES) else base)
