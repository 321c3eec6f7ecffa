"""The checker's end of the queue: sends batches of checks, and takes the outcomes."""

from __future__ import annotations

import base64
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.codec.packing import pack, read_outcome
from app.codec.sealing import BatchKey
from app.codec.values import MalformedData
from app.config import PREFIX, Settings
from app.engine.carriers import Done, ProberReport, RemoteNetwork
from app.engine.carriers.queue import broker
from app.engine.carriers.queue.broker import BROKER_FAULTS, MessageRefused, QueueFaults
from app.records import CheckSpec
from app.rules.clocks import Offset

log = logging.getLogger(__name__)

MAX_BATCH = 500
ENOUGH = 100  # checks that are sent without waiting for more
GATHER_SECONDS = 0.2  # how long a check waits for others, to be sent in one batch
LOOK_SECONDS = 1.0  # how often lost batches are looked for
# A batch that a prober has taken is lost if the prober has not named it as running for this time.
LOST_SECONDS = 5.0
RETRY_SECONDS = 1.0  # the pause after a failure of Redis
WAIT_SECONDS = 1  # for outcomes, in one command


@dataclass(slots=True)
class _Check:
    """A running check. ``submitted_at``: it cannot have started earlier."""

    spec: CheckSpec
    done: Done
    submitted_at: datetime


@dataclass(slots=True)
class _SentBatch:
    """A batch whose checks are not all finished. Times are monotonic. ``named_at``: when a prober
    last named it as running; None if no prober has taken it.
    """

    tickets: set[int]
    sent_at: float
    named_at: float | None = None


@dataclass(slots=True)
class _Prober:
    """The last message of a prober. ``seen_at``: when it arrived (monotonic). ``reported``: whether
    ``reports`` has returned its report.
    """

    report: ProberReport
    network_down: bool
    seen_at: float
    clock: Offset
    reported: bool = False


class QueueCarrier:
    """A ``CheckCarrier`` that sends checks to probers through Redis."""

    def __init__(self, settings: Settings, network: RemoteNetwork | None = None) -> None:
        broker_url, key = broker.broker_and_key(settings)
        self.location = settings.location
        self.name = f"{broker.outcomes_of(settings.location)}{secrets.token_hex(8)}"
        self.network = network or RemoteNetwork()
        self.network.reports = self.reports
        self._key = BatchKey(key)
        self._celery = broker.make_celery(broker_url)
        self._redis = broker.make_redis(broker_url)
        # Shared by the threads, under ``_lock``
        self._pending: deque[int] = deque()
        self._checks: dict[int, _Check] = {}  # by ticket
        self._tickets: dict[int, int] = {}  # the newest, by monitor
        self._batches: dict[str, _SentBatch] = {}
        self._probers: dict[str, _Prober] = {}
        self._last_ticket = 0
        self._lock = threading.Lock()
        self._more = threading.Condition(self._lock)
        self._idle = threading.Condition(self._lock)
        self._closing = self._ended = False
        self._looked_at = time.monotonic()  # for lost batches
        self._listened_at = float("-inf")  # when this checker last noted that it listens
        self._away_at = float("-inf")  # when the broker last failed
        self._sending, self._taking = (
            QueueFaults("sending batches"),
            QueueFaults("taking outcomes"),
        )
        about = broker.about_outcomes(self.location, self.name)
        self._receiver = broker.Receiver(self._key, about, dated="now", plural="Outcomes")
        self._threads = [
            threading.Thread(target=self._run, args=(turn, faults), name=name, daemon=True)
            for turn, faults, name in (
                (self._send_turn, self._sending, "queue-send"),
                (self._take_turn, self._taking, "queue-take"),
            )
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, spec: CheckSpec, done: Done) -> None:
        with self._lock:
            if self._closing:
                raise RuntimeError("The queue is closed.")
            self._last_ticket += 1
            ticket = self._last_ticket
            self._checks[ticket] = _Check(spec, done, datetime.now(UTC))
            if spec.monitor_id is not None:
                # An earlier check of the same monitor counts as lost by now.
                self._checks.pop(self._tickets.get(spec.monitor_id, 0), None)
                self._tickets[spec.monitor_id] = ticket
            self._pending.append(ticket)
            if len(self._pending) in (1, ENOUGH):
                self._more.notify_all()

    def close(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        with self._lock:
            self._closing = True
            while self._checks and (remaining := deadline - time.monotonic()) > 0:
                self._idle.wait(remaining)
            self._ended = True
            self._checks.clear()
            self._more.notify_all()
        for thread in self._threads:
            thread.join(2 * WAIT_SECONDS)
        self._redis.close()
        self._celery.close()

    def reports(self) -> list[ProberReport]:
        """The reports of the probers since the last call. A prober without a new message is left
        out, because it may have ended.
        """
        with self._lock:
            probers = [prober for prober in self._probers.values() if not prober.reported]
            reports = [prober.report for prober in probers]
            for prober in probers:
                prober.report, prober.reported = replace(prober.report, checks=0), True
        return reports

    # --- the two threads

    def _run(self, turn: Callable[[], bool], faults: QueueFaults) -> None:
        """The loop of a thread. ``turn`` returns whether the broker was used."""
        while not self._ended:
            try:
                broker_used = turn()
            except Exception as fault:
                if not self._ended:
                    self._failed(faults, fault)
                    time.sleep(RETRY_SECONDS)
            else:
                if broker_used:
                    faults.end()

    def _failed(self, faults: QueueFaults, fault: Exception) -> None:
        faults.log_fault(fault)
        if not isinstance(fault, BROKER_FAULTS):
            return
        with self._lock:  # while the broker is away, no prober can name its batches
            self._away_at = time.monotonic()
            for batch in self._batches.values():
                batch.named_at = None if batch.named_at is None else self._away_at

    def _send_turn(self) -> bool:
        broker_used = self._send(self._gather())
        if time.monotonic() - self._listened_at >= broker.LISTEN_SECONDS:
            broker.note_listener(self._redis, self.location, self.name)
            self._listened_at = time.monotonic()
        if time.monotonic() - self._looked_at >= LOOK_SECONDS:
            broker_used |= self._resend_lost()
            self._looked_at = time.monotonic()
        return broker_used

    def _gather(self) -> list[int]:
        """Wait for checks, then a moment for more of them."""
        with self._lock:
            pending = self._pending
            if not pending:
                self._more.wait(LOOK_SECONDS)
            if pending and len(pending) < ENOUGH:
                self._more.wait_for(lambda: len(pending) >= ENOUGH or self._ended, GATHER_SECONDS)
            count = min(len(pending), MAX_BATCH)
            return [pending.popleft() for _ in range(count)]

    def _send(self, tickets: list[int]) -> bool:
        """Send these checks as one batch; returns whether there was something to send."""
        with self._lock:
            by_ticket = self._checks
            specs = [(ticket, by_ticket[ticket].spec) for ticket in tickets if ticket in by_ticket]
        checks = [[ticket, packed] for ticket, spec in specs if (packed := self._packed(spec))]
        if not checks:
            return False
        batch_id = secrets.token_hex(16)
        batch = {
            "id": batch_id,
            "to": self.name,
            "at": datetime.now(UTC).isoformat(),
            "checks": checks,
        }
        sealed = self._key.seal(batch, broker.about_checks(self.location))
        if len(sealed) > broker.MAX_SEALED and len(checks) > 1:
            return self._send_in_parts([ticket for ticket, _packed in checks])
        # Registered first, because its outcomes may arrive before ``send_task`` returns. If
        # ``send_task`` raises, Redis may have the batch: it is sent again when it counts as lost.
        with self._lock:
            ticket_set = {ticket for ticket, _packed in checks}
            self._batches[batch_id] = _SentBatch(ticket_set, time.monotonic())
        self._celery.send_task(
            broker.TASK,
            args=[base64.b64encode(sealed).decode()],
            queue=broker.queue_of(self.location),
            retry=False,
            argsrepr="(...)",  # Celery would put the arguments into the headers once more
        )
        return True

    def _send_in_parts(self, tickets: list[int]) -> bool:
        """Send the first half. The second half becomes the first of the pending checks."""
        half = len(tickets) // 2
        with self._lock:
            self._pending.extendleft(reversed(tickets[half:]))
        return self._send(tickets[:half])

    def _packed(self, spec: CheckSpec) -> Any:
        """The packed check; None if it cannot be packed. The others are sent without it."""
        try:
            return pack(spec)
        except Exception as fault:
            self._sending.log_fault(fault)
            return None

    def _resend_lost(self) -> bool:
        """Send the checks of lost batches again. Returns whether the broker was used."""
        now = time.monotonic()
        with self._lock:
            self._drop_finished()
            waiting = [batch for batch in self._batches.values() if batch.named_at is None]
            is_overdue = any(now - batch.sent_at > LOST_SECONDS for batch in waiting)
        # While the queue is not empty, a batch that no prober has taken may be in it.
        is_empty = is_overdue and self._redis.llen(broker.queue_of(self.location)) == 0
        with self._lock:
            lost = [
                (batch_id, batch)
                for batch_id, batch in self._batches.items()
                if self._is_lost(batch, now, is_empty)
            ]
        count = sum(self._resend(batch_id, batch) for batch_id, batch in lost)
        if count:
            self._log_lost(count)
        return is_overdue

    def _resend(self, batch_id: str, batch: _SentBatch) -> int:
        """Put the checks of a lost batch in front of the pending ones. Returns their number; 0 if a
        prober has just taken the batch.
        """
        if batch.named_at is None and not broker.claim(self._redis, batch_id):
            batch.named_at = time.monotonic()
            return 0
        with self._lock:
            self._batches.pop(batch_id, None)
            tickets = sorted(batch.tickets & self._checks.keys())
            self._pending.extendleft(reversed(tickets))
        return len(tickets)

    def _log_lost(self, count: int) -> None:
        number = "1 check was" if count == 1 else f"{count} checks were"
        log.warning("%s lost on the way, so sent again.", number)
        if not self._probers and time.monotonic() - self._away_at > broker.FRESH_SECONDS:
            log.warning(
                "No prober of %s was heard lately. Is one running, with the same %sBATCH_KEY?",
                self.location,
                PREFIX,
            )

    @staticmethod
    def _is_lost(batch: _SentBatch, now: float, is_empty: bool) -> bool:
        if batch.named_at is not None:
            return now - batch.named_at > LOST_SECONDS
        return now - batch.sent_at > (LOST_SECONDS if is_empty else broker.FRESH_SECONDS)

    def _drop_finished(self) -> None:
        """Remove finished batches, and probers without a recent message. Then set whether the
        network of all probers is down.
        """
        now = time.monotonic()
        for batch_id, batch in list(self._batches.items()):
            if batch.tickets.isdisjoint(self._checks):
                del self._batches[batch_id]
        for name, prober in list(self._probers.items()):
            if now - prober.seen_at > broker.FRESH_SECONDS:
                del self._probers[name]
        probers = self._probers.values()
        self.network.down = bool(probers) and all(prober.network_down for prober in probers)

    # --- outcomes

    def _take_turn(self) -> bool:
        answer = self._redis.blpop([self.name], timeout=WAIT_SECONDS)
        if answer is None:
            return True
        try:
            now = datetime.now(UTC)
            message, ahead = self._receiver.open(answer[1], now)
            self._take(message, ahead, now)
        except MessageRefused as fault:
            self._taking.log_fault(fault)
        return True

    def _take(self, message: dict[str, Any], ahead: timedelta, now: datetime) -> None:
        """Take the outcomes of a message. ``ahead``: by how much its time is ahead of our clock."""
        with self._lock:
            expected = [
                (check, outcome)
                for ticket, outcome in message["outcomes"]
                if (check := self._checks.pop(ticket, None)) is not None
            ]
            offset = self._note_prober(message, ahead, len(expected))
            if not self._checks:
                self._idle.notify_all()
        for check, outcome in expected:
            try:
                self._finish(check, outcome, offset, now)
            except Exception as fault:
                self._taking.log_fault(fault)  # the other outcomes are taken

    def _note_prober(self, message: dict[str, Any], ahead: timedelta, expected: int) -> timedelta:
        """Note that a prober lives, and which batches it runs. ``expected``: the number of outcomes
        in its message that this checker waited for. Returns by how much the prober's clock is
        ahead.
        """
        now, name = time.monotonic(), message["prober"]
        previous = self._probers.get(name)
        clock = previous.clock if previous else Offset()
        # The message was sent before it arrived, so the prober's clock is ahead by at least
        # ``ahead``.
        offset = timedelta(seconds=clock.add(ahead.total_seconds())[0])
        checks = expected + (previous.report.checks if previous else 0)
        report = ProberReport(name, message["version"], offset, checks)
        self._probers[name] = _Prober(report, message["network_down"], now, clock)
        for batch_id in message["running"]:
            if batch := self._batches.get(batch_id):
                batch.named_at = now
        return offset

    def _finish(self, check: _Check, packed: Any, offset: timedelta, now: datetime) -> None:
        try:
            outcome = read_outcome(packed)
        except MalformedData as fault:
            log.error("An outcome of monitor %s is wrong: %s", check.spec.monitor_id, fault)
            return
        result = outcome.result
        if result.monitor_id != check.spec.monitor_id:
            log.error("An outcome of monitor %s names another monitor.", check.spec.monitor_id)
            return
        # By the clock of this checker, the check started after it was submitted and before now,
        # whatever the prober's clock shows.
        at = min(max(result.checked_at - offset, check.submitted_at), now)
        dated = replace(result, checked_at=at, location=self.location)
        check.done(replace(outcome, result=dated))
