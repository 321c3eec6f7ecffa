"""The states of a delivery, and the decisions on it. Pure: the functions take rows, answers and
times.

A lane is the deliveries of one channel value, in the order of their ids. No library offers lanes: a
queue retries each message alone. It does not keep a recovery behind its outage, and does not make
one message of twenty.

 status     reason                 next_attempt_at  what happens
 pending    none                   its time         is sent at that time; leased while a worker
                                                     sends it
 pending    retried by hand        at once          is due; goes first in a lane that fails
 pending    flapping               10 min later     is deferred: its monitor has opened too often
 held       quiet hours            their end        is on hold: at their end, a digest covers it, or
                                                     it is sent, to a service of BY_INCIDENT
 held       quiet hours, burst     none             is covered by a message for several (covered_by)
 held       restored               none             waits for a person: it is from a restored backup
 held       flapping, settled,     none             is not sent: its incident has ended or is
            outage not delivered                    acknowledged, or its outage was given up
 delivered  none                   none             was taken by the service
 failed     the answer, or why     none             is not sent any more; a person may retry it

 from       to         when                                                          by
            pending    an event is written; an opening and a recovery wait 0.5 s     outbox
            held       the same in quiet hours                                       outbox
 held       pending    in that transaction: it is about a place, or the end of an    outbox
                       incident that is deleted
 pending    held       quiet hours have begun                                        digests
 pending    held       it is a recovery, and the digest covers it with its outage    digests
 held       held       a digest covers it, or its incident has ended: held for good  digests
 held       pending    quiet hours end, at a service of BY_INCIDENT                  digests
 pending    pending    it is deferred, for flapping or for the rest of a burst       decide_next
 pending    held       it is superseded, or part of a burst or of several that were  decide_next
                       acknowledged at once
 pending    delivered  the service took it                                           attempt_outcome
 pending    pending    the service may take it later: a growing pause, Retry-After   attempt_outcome
 pending    failed     it is refused for good, a bug stops it twice, a test failed,  attempt_outcome
                       a webhook did not confirm 3 times, 24 h are over
 pending    failed     it cannot be read or composed, or its outcome not stored      claims, worker
 pending, held  failed  nobody sent it in 24 h, or a person gives it up              chores, by_hand
 pending, held  held    a backup was restored: a person decides                      chores
 pending    pending    it is due at once: its channel works again, or the clock was  claims, chores
                       set back
 any but delivered  pending  a person retries it                                     by_hand
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

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

# An opening or a recovery waits this long for others of the same burst. The extra time is added if
# BURST_MAY_COME monitors have changed. The sum is the 2 s of decision 5.
BURST_WAIT = timedelta(seconds=0.5)
BURST_EXTRA_WAIT = timedelta(seconds=1.5)
BURST_MONITORS = 20
BURST_WINDOW = timedelta(seconds=60)
BURST_MAY_COME = 3  # monitors within BURST_WINDOW
FLAPPING_WINDOW = timedelta(minutes=10)
FLAPPING_OPENINGS = 4  # decision 5: "more than 3"
PROBE_EVERY = timedelta(seconds=60)  # how often a failing lane sends its next message
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
    """Why a row is deferred, on hold or held for good. The values are stored, so they never
    change. web/views/deliveries has their sentences.
    """

    BURST = N_("burst")
    FLAPPING = N_("flapping")
    OUTAGE_NOT_DELIVERED = N_("outage not delivered")
    QUIET_HOURS = QUIET_HOURS
    RESTORED = RESTORED
    SETTLED = N_("settled")  # its incident was acknowledged or has ended meanwhile
    BY_HAND = N_("retried by hand")  # pending again: neither deferred nor grouped
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

    @property
    def may_still_be_sent(self) -> bool:
        """Alone, or in the digest of the quiet hours."""
        on_hold = self.status == DeliveryStatus.HELD and self.reason == Reason.QUIET_HOURS
        return on_hold or self.status == DeliveryStatus.PENDING

    @property
    def hold_reason(self) -> Reason | None:
        """Why a recovery is not sent after it; None if the opening was delivered."""
        if self.status == DeliveryStatus.DELIVERED:
            return None
        if self.status == DeliveryStatus.HELD and self.reason in tuple(Reason):
            return Reason(self.reason or "")
        return Reason.OUTAGE_NOT_DELIVERED


class LaneChange(NamedTuple):
    """An opening or a recovery: when, of which monitor, and the severity of its incident now."""

    at: datetime
    monitor: int
    severity: str | None = None


Changes = Mapping[str, Sequence[LaneChange]]


@dataclass(frozen=True, slots=True)
class History:
    """The other rows of the lane that a decision needs.

    ``openings``: by incident. ``changes``: for each event of GROUPED, the times and monitors of its
    rows of any status from ``since`` on, oldest first.
    """

    openings: Mapping[int, OpeningDelivery]
    changes: Changes
    since: datetime | None = None

    def opening_of(self, recovery: PendingRow) -> OpeningDelivery | None:
        """The opening of the incident that has ended. None if only a reminder was sent, or if the
        opening was deleted because of its age.
        """
        return self.openings.get(recovery.incident_id or 0)


@dataclass(frozen=True, slots=True)
class LaneHealth:
    """The health of a lane's channel. ``works``: whether it worked at the last attempt, which was
    at ``last_at``. It counts as working after a permanent refusal of one message, and after a bug
    of Wakeful.

    ``closed_until``: the end of a pause that the service asked for (Retry-After). It applies to the
    whole lane.
    """

    works: bool = True
    last_at: datetime | None = None
    closed_until: datetime | None = None

    def is_closed(self, now: datetime) -> bool:
        """Whether the service's pause lasts. A pause that began after ``now`` is ignored: the clock
        was set back, and the pause would last longer than the service asked for.
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
class HoldForGood:
    """These rows are not sent. The lane decides again at once about the others."""

    ids: tuple[int, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Defer:
    """This row is sent later. The lane decides again at once about the others."""

    row: PendingRow
    until: datetime
    reason: Reason | None


LaneAction = Send | Combine | HoldForGood | Defer | None


def decide_next(
    rows: Sequence[PendingRow], history: History, health: LaneHealth, now: datetime
) -> LaneAction:
    """The next decision on a lane. ``rows``: its pending rows, in the order of their ids. Returns
    None if no row may be sent now.
    """
    if any(row.leased for row in rows):
        return None
    if health.is_closed(now):
        return _requested(rows, history, now)
    blocked: set[int | None] = set()
    for row in rows:
        # A test has no order to keep, and a person waits for its answer.
        if row.monitor_id is not None and row.monitor_id in blocked and row.event != Event.TEST:
            continue
        if row.reason == Reason.FLAPPING and row.incident_ended:
            return HoldForGood((row.id,), Reason.FLAPPING)
        if row.event == Event.INCIDENT_REMINDER and row.settled and row.reason != Reason.BY_HAND:
            return HoldForGood((row.id,), Reason.SETTLED)
        if row.next_attempt_at > now:
            blocked.add(row.monitor_id)
            # A failing message blocks the later ones, to keep the order, but only for PROBE_EVERY:
            # a message that the service cannot take must not close the channel for a day.
            may_probe = health.works or is_due(health.last_at, now, PROBE_EVERY)
            if row.attempts and not may_probe:
                return _requested(rows, history, now)
            continue
        decision = _due(row, rows, history, now)
        if decision is not None:
            return decision
        blocked.add(row.monitor_id)
    return None


def _requested(rows: Sequence[PendingRow], history: History, now: datetime) -> LaneAction:
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


def _due(
    row: PendingRow, rows: Sequence[PendingRow], history: History, now: datetime
) -> LaneAction:
    if row.event == Event.INCIDENT_RESOLVED:
        return _resolved(row, rows, history, now)
    if row.event == Event.INCIDENT_OPENED and row.reason != Reason.BY_HAND:
        return _opened(row, rows, history, now)
    if row.event == Event.INCIDENT_ACKNOWLEDGED and row.channel not in BY_INCIDENT:
        return _acknowledged(row, rows)
    return Send(row)


def _acknowledged(row: PendingRow, rows: Sequence[PendingRow]) -> LaneAction:
    """Incidents that a person acknowledged together were written with one time, and become one
    message.
    """
    members = tuple(
        other
        for other in _firsts(rows)
        if other.event == row.event and other.created_at == row.created_at and other.reason is None
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
) -> LaneAction:
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
) -> LaneAction:
    opening, by_hand = history.opening_of(row), row.reason == Reason.BY_HAND
    if opening is not None and opening.may_still_be_sent:
        if opening.reason == Reason.FLAPPING and not by_hand:
            return HoldForGood((opening.id, row.id), Reason.FLAPPING)
        return None  # even by hand, a recovery must not be sent before its outage
    if by_hand:
        return Send(row)
    if opening is not None and (reason := opening.hold_reason) is not None:
        return HoldForGood((row.id,), reason)
    return _single_or_group(row, rows, history, now)


def _single_or_group(
    row: PendingRow,
    rows: Sequence[PendingRow],
    history: History,
    now: datetime,
    flapping: int | None = None,
) -> LaneAction:
    if row.channel in BY_INCIDENT:
        return Send(row, flapping)
    event = Event(row.event)
    changes = history.changes[event]
    span = burst_span(changes, row.created_at)
    if span is not None:
        members = [other for other in _firsts(rows) if _joins(other, event, span, history)]
        if len(members) > 1:
            return Combine(GROUPED[event], tuple(members))
    until = row.created_at + BURST_WAIT + BURST_EXTRA_WAIT
    monitors = {
        change.monitor for change in changes if abs(change.at - row.created_at) <= BURST_WINDOW
    }
    may_wait = row.created_at <= now < until and not row.attempts
    if span is None and len(monitors) >= BURST_MAY_COME and may_wait:
        return Defer(row, until, None)
    return Send(row, flapping)


def _joins(
    row: PendingRow, event: Event, span: tuple[datetime, datetime], history: History
) -> bool:
    if row.event != event or row.reason is not None or not span[0] <= row.created_at <= span[1]:
        return False
    if row.attempts:  # it may have arrived: sent alone, it has the same webhook-id as before
        return False
    opening = history.opening_of(row) if event is Event.INCIDENT_RESOLVED else None
    return opening is None or opening.status == DeliveryStatus.DELIVERED


def burst_span(changes: Sequence[LaneChange], at: datetime) -> tuple[datetime, datetime] | None:
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
    the 10 minutes up to it, itself among them (None if that is not flapping), and whether an
    earlier message has reported the flapping.
    """

    def count(moment: datetime) -> int:
        return sum(1 for time in times if moment - FLAPPING_WINDOW < time <= moment)

    openings = count(at)
    if openings < FLAPPING_OPENINGS:
        return None, False
    earlier = [time for time in times if time < at]
    return openings, bool(earlier) and count(max(earlier)) >= FLAPPING_OPENINGS


class Lanes:
    """Lanes that share threads, and the health of each, in memory only. After a restart every lane
    counts as working and open: its later messages do not wait for the end of a pause (Retry-After)
    that the service asked for before.

    ``busy``: lanes with a message that is being sent, at most ``max_busy``. At most half of them
    are lanes whose last attempt failed, so that hanging services leave threads free. ``stuck``:
    lanes on which no turn can decide, though a decision on each row alone succeeds. While a lane is
    stuck, the worker gives no sign of life.

    ``query``: that of ``claims.due_lanes``, by which the worker finds those with a due row.
    ``max_claims``: the lanes from which one transaction claims a row.
    """

    def __init__(self, query: Any, max_busy: int, max_claims: int) -> None:
        self.query, self.max_busy, self.max_claims = query, max_busy, max_claims
        self.busy: set[str] = set()
        self.stuck: set[str] = set()
        self._health: dict[str, LaneHealth] = {}
        self._skipped: dict[str, datetime] = {}  # until when, by lane

    def health(self, name: str) -> LaneHealth:
        return self._health.get(name, LaneHealth())

    def skip(self, name: str, now: datetime) -> None:
        """Read the lane again after ``SKIP``: one of its rows has to wait."""
        self._skipped[name] = now + SKIP

    def skipped(self, now: datetime) -> set[str]:
        """The lanes to skip now."""
        # The upper bound is for a clock that was set back: no lane is skipped for longer than SKIP.
        return {name for name, until in self._skipped.items() if now < until <= now + SKIP}

    def forget_idle(self, skipped: Collection[str]) -> None:
        """Forget the lanes that work, are idle and are not ``skipped``: memory stays small."""
        self._skipped = {name: self._skipped[name] for name in skipped}
        self._health = {
            name: health
            for name, health in self._health.items()
            if not health.works or name in self.busy or name in skipped
        }

    def choose(self, due: Iterable[str], answered: Collection[str]) -> list[str]:
        """The lanes that get a thread: working lanes before failing ones. In each group, the busy
        lanes in ``answered``, whose message has its answer now, come last.
        """
        answered_busy = self.busy.intersection(answered)
        names = [*(name for name in due if name not in answered_busy), *answered_busy]
        busy = self.busy - answered_busy
        failing = [name for name in names if not self.health(name).works]
        working = [name for name in names if self.health(name).works]
        failing_room = self.max_busy // 2 - sum(not self.health(name).works for name in busy)
        room = self.max_busy - len(busy)
        return [*working, *failing[: max(0, failing_room)]][: max(0, room)]

    def remember(self, name: str, answer: Answer, now: datetime) -> None:
        """Remember the result of the lane's last attempt."""
        closed_until = None
        if answer.retry_after is not None:
            closed_until = now + timedelta(seconds=answer.retry_after)
        works = answer.acceptance is not Acceptance.RETRY or answer.bug
        self._health[name] = LaneHealth(works, now, closed_until)
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
    def failures(self) -> int:
        """The number of failed attempts since it was written, or last retried by hand."""
        return max(0, len(self.attempts) - int(self.facts.get("earlier_attempts", 0)))


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """The outcome of an attempt. ``next_at``: the time of the next one; None if there is none."""

    attempt: dict[str, Any]
    status: DeliveryStatus
    reason: str | None = None
    next_at: datetime | None = None


def attempt_outcome(claim: ClaimedDelivery, answer: Answer, now: datetime) -> AttemptOutcome:
    """The outcome that follows from a service's answer."""
    attempt = {"at": iso(now), "ok": answer.ok, "answer": answer.text}
    if answer.bug:
        attempt["bug"] = True
    if answer.ok:
        return AttemptOutcome(attempt, DeliveryStatus.DELIVERED)
    failures = claim.failures + 1
    # A test has one attempt, because a person waits for its answer (decision 5).
    is_final = answer.acceptance is Acceptance.PERMANENT or claim.facts.get("event") == Event.TEST
    # A bug of Wakeful that stops the message a second time would stay unnoticed for a day.
    earlier = claim.attempts[len(claim.attempts) - claim.failures :]
    is_bug_again = answer.bug and any(attempt.get("bug") for attempt in earlier)
    if is_final or is_bug_again or (claim.asks_webhook and failures >= MAX_CONFIRMATIONS):
        return AttemptOutcome(attempt, DeliveryStatus.FAILED, answer.text)
    end = period_start(claim.facts, claim.created_at) + GIVE_UP_AFTER
    if now >= end:
        return AttemptOutcome(attempt, DeliveryStatus.FAILED, reason_after_24_hours(answer.text))
    pause = timedelta(seconds=retry_pause(failures, answer.retry_after))
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


def retry_pause(failures: int, retry_after: float | None) -> float:
    """Seconds until the next attempt after ``failures`` failed ones. ``retry_after``, the pause
    that the service asks for, replaces that of PAUSES. After more failures than PAUSES has entries,
    it can only lengthen the pause: otherwise a service that always asks for one second would get
    86,400 attempts.
    """
    jitter = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  # it needs no secrecy
    base = PAUSES[min(failures, len(PAUSES)) - 1] * jitter
    if retry_after is None:
        return base
    return max(retry_after, MIN_RETRY_AFTER if failures <= len(PAUSES) else base)
