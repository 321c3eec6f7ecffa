"""The checker's end of the queue: sends batches of checks, and takes the outcomes."""

from __future__ import annotations

import base64
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.codec.packing import moment, outcome_of, pack, was_made
from app.codec.sealing import BatchKey, Forged
from app.codec.values import Odd
from app.config import PREFIX, Settings
from app.engine.carriers import Done, RemoteNetwork, Report
from app.engine.carriers.queue.broker import (
    FRESH_SECONDS,
    TASK,
    about_checks,
    about_outcomes,
    make_celery,
    make_redis,
    needed,
    queue_of,
)
from app.records import CheckSpec

log = logging.getLogger(__name__)

LARGEST_BATCH = 500
ENOUGH = 100  # checks that are sent without waiting for more
GATHER_SECONDS = 0.2  # how long a check waits for others to be sent with
LOOK_SECONDS = 1.0  # how often lost batches are looked for
# A prober that does not name a batch among those that it has for so long has lost it.
LOST_SECONDS = 5.0
TROUBLE_SECONDS = 1.0  # pause after Redis could not be used
WAIT_SECONDS = 1  # for outcomes, in one command


@dataclass(slots=True)
class _Check:
    """A check that is under way. ``at``: when it was handed over; it cannot have begun before."""

    spec: CheckSpec
    done: Done
    at: datetime


@dataclass(slots=True)
class _Batch:
    """``heard``: when a prober last named it (monotonic); None if none has taken it."""

    tickets: set[int]
    sent: float
    heard: float | None = None


@dataclass(slots=True)
class _Prober:
    """A prober, as it last spoke. ``heard``: when (monotonic)."""

    report: Report
    network_down: bool
    heard: float


@dataclass(slots=True)
class _State:
    """All that the threads share, under ``lock``."""

    pending: deque[int] = field(default_factory=deque)
    checks: dict[int, _Check] = field(default_factory=dict)  # by ticket
    tickets: dict[int, int] = field(default_factory=dict)  # the newest, by monitor
    batches: dict[str, _Batch] = field(default_factory=dict)
    probers: dict[str, _Prober] = field(default_factory=dict)
    last_ticket: int = 0


class QueueCarrier:
    """A ``Carrier``."""

    def __init__(self, settings: Settings, network: RemoteNetwork | None = None) -> None:
        broker_url, key = needed(settings)
        self.location = settings.location
        self.name = f"outcomes.{settings.location}.{secrets.token_hex(8)}"
        self.network = network or RemoteNetwork()
        self.network.reports = self.reports
        self._key = BatchKey(key)
        self._celery = make_celery(broker_url)
        self._redis = make_redis(broker_url)
        self._state = _State()
        self._lock = threading.Lock()
        self._more = threading.Condition(self._lock)
        self._idle = threading.Condition(self._lock)
        self._closing = self._ended = False
        self._looked = time.monotonic()
        self._told: dict[str, bool] = {}  # troubles that the log knows, by thread
        self._threads = [
            threading.Thread(target=self._run, args=(turn, name), name=name, daemon=True)
            for turn, name in ((self._send_turn, "queue-send"), (self._take_turn, "queue-take"))
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, spec: CheckSpec, done: Done) -> None:
        with self._lock:
            if self._closing:
                raise RuntimeError("The queue is closed.")
            state = self._state
            state.last_ticket += 1
            ticket = state.last_ticket
            state.checks[ticket] = _Check(spec, done, datetime.now(UTC))
            if spec.monitor_id is not None:
                # The checker has given up an earlier check of the same monitor.
                state.checks.pop(state.tickets.get(spec.monitor_id, 0), None)
                state.tickets[spec.monitor_id] = ticket
            state.pending.append(ticket)
            if len(state.pending) in (1, ENOUGH):
                self._more.notify_all()

    def close(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        with self._lock:
            self._closing = True
            while self._state.checks and (left := deadline - time.monotonic()) > 0:
                self._idle.wait(left)
            self._ended = True
            self._state.checks.clear()
            self._more.notify_all()
        for thread in self._threads:
            thread.join(2 * WAIT_SECONDS)
        self._redis.close()
        self._celery.close()

    def reports(self) -> list[Report]:
        """What the probers said of themselves since the last call."""
        with self._lock:
            probers = self._state.probers.values()
            told = [one.report for one in probers]
            for one in probers:
                one.report = replace(one.report, checks=0, made=0)
        return told

    # --- the two threads

    def _run(self, turn: Callable[[], None], name: str) -> None:
        while not self._ended:
            try:
                turn()
            except Exception as fault:
                if not self._ended:
                    self._trouble(name, fault)
                    time.sleep(TROUBLE_SECONDS)
            else:
                if self._told.pop(name, False):
                    log.warning("The broker works again.")

    def _trouble(self, name: str, fault: Exception) -> None:
        """Log a fault of the broker once: it may be away for hours."""
        if not self._told.get(name):
            self._told[name] = True
            log.error("The broker cannot be used (%s). Trying again.", type(fault).__name__)
            log.debug("The fault was:", exc_info=fault)
        with self._lock:  # while it is away, no prober can be heard
            for batch in self._state.batches.values():
                batch.heard = None if batch.heard is None else time.monotonic()

    def _send_turn(self) -> None:
        tickets = self._gather()
        if tickets:
            try:
                self._send(tickets)
            except Exception:
                with self._lock:
                    self._state.pending.extendleft(reversed(tickets))
                raise
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._look_after()
            self._looked = time.monotonic()

    def _gather(self) -> list[int]:
        """Wait for checks, then a moment for more of them."""
        with self._lock:
            pending = self._state.pending
            if not pending:
                self._more.wait(LOOK_SECONDS)
            if pending and len(pending) < ENOUGH:
                self._more.wait_for(lambda: len(pending) >= ENOUGH or self._ended, GATHER_SECONDS)
            count = min(len(pending), LARGEST_BATCH)
            return [pending.popleft() for _ in range(count)]

    def _send(self, tickets: list[int]) -> None:
        batch_id = secrets.token_hex(16)
        with self._lock:
            known = self._state.checks
            checks = [(ticket, known[ticket].spec) for ticket in tickets if ticket in known]
        if not checks:
            return
        batch = {
            "id": batch_id,
            "to": self.name,
            "at": datetime.now(UTC).isoformat(),
            "checks": [[ticket, pack(spec)] for ticket, spec in checks],
        }
        sealed = self._key.seal(batch, about_checks(self.location))
        # Registered first: its outcomes may be here before ``send_task`` returns.
        with self._lock:
            now = time.monotonic()
            self._state.batches[batch_id] = _Batch({ticket for ticket, _ in checks}, now)
        try:
            self._celery.send_task(
                TASK,
                args=[base64.b64encode(sealed).decode()],
                queue=queue_of(self.location),
                expires=FRESH_SECONDS,
                retry=False,
                argsrepr="(...)",  # Celery would put the arguments into the headers once more
            )
        except Exception:
            with self._lock:
                self._state.batches.pop(batch_id, None)
            raise

    def _look_after(self) -> None:
        """Send the checks of lost batches again."""
        now = time.monotonic()
        with self._lock:
            self._forget()
            waiting = [one for one in self._state.batches.values() if one.heard is None]
            old = any(now - one.sent > LOST_SECONDS for one in waiting)
        # A batch that nobody has taken may be waiting behind others; then there is no hurry.
        is_empty = old and self._redis.llen(queue_of(self.location)) == 0
        with self._lock:
            lost = [
                batch_id
                for batch_id, batch in self._state.batches.items()
                if self._is_lost(batch, now, is_empty)
            ]
            again = sorted(
                ticket for one in lost for ticket in self._state.batches.pop(one).tickets
            )
            again = [ticket for ticket in again if ticket in self._state.checks]
            self._state.pending.extendleft(reversed(again))
        if again:
            self._log_lost(len(again))

    def _log_lost(self, count: int) -> None:
        number = "1 check was" if count == 1 else f"{count} checks were"
        log.warning("%s lost on the way, so sent again.", number)
        if not self._state.probers:
            log.warning(
                "No prober of %s was heard lately. Is one running, with the same %sBATCH_KEY?",
                self.location,
                PREFIX,
            )

    @staticmethod
    def _is_lost(batch: _Batch, now: float, is_empty: bool) -> bool:
        if batch.heard is not None:
            return now - batch.heard > LOST_SECONDS
        return now - batch.sent > (LOST_SECONDS if is_empty else FRESH_SECONDS)

    def _forget(self) -> None:
        """Remove finished batches, and probers that are gone."""
        state, now = self._state, time.monotonic()
        for batch_id, batch in list(state.batches.items()):
            if batch.tickets.isdisjoint(state.checks):
                del state.batches[batch_id]
        for name, prober in list(state.probers.items()):
            if now - prober.heard > FRESH_SECONDS:
                del state.probers[name]
        probers = state.probers.values()
        self.network.down = bool(probers) and all(one.network_down for one in probers)

    # --- what comes back

    def _take_turn(self) -> None:
        found = self._redis.blpop([self.name], timeout=WAIT_SECONDS)
        if found is None:
            return
        try:
            told = self._key.open(found[1], about_outcomes(self.location, self.name))
        except Forged:
            log.error("Outcomes on the queue were not made with our key, and are dropped.")
            return
        self._take(told, datetime.now(UTC))

    def _take(self, told: dict[str, Any], now: datetime) -> None:
        said_at = moment(told["now"]) or now
        offset = said_at - now
        with self._lock:
            taken = [
                (check, outcome)
                for ticket, outcome in told["outcomes"]
                if (check := self._state.checks.pop(ticket, None)) is not None
            ]
            self._heard(told, offset, len(taken))
            if not self._state.checks:
                self._idle.notify_all()
        for check, outcome in taken:
            self._finish(check, outcome, offset, now)

    def _heard(self, told: dict[str, Any], offset: timedelta, taken: int) -> None:
        now = time.monotonic()
        name = told["prober"]
        before = self._state.probers.get(name)
        checks, made = (before.report.checks, before.report.made) if before else (0, 0)
        checks += taken
        made += sum(was_made(packed) for _ticket, packed in told["outcomes"])
        report = Report(name, told["version"], offset, checks, made)
        self._state.probers[name] = _Prober(report, told["network_down"], now)
        for batch_id in told["running"]:
            if batch := self._state.batches.get(batch_id):
                batch.heard = now

    def _finish(self, check: _Check, packed: Any, offset: timedelta, now: datetime) -> None:
        try:
            outcome = outcome_of(packed)
        except Odd as fault:
            log.error("An outcome of monitor %s is wrong: %s", check.spec.monitor_id, fault)
            return
        result = outcome.result
        if result.monitor_id != check.spec.monitor_id:
            log.error("An outcome of monitor %s names another monitor.", check.spec.monitor_id)
            return
        # By our clock; it began after it was handed over and before now, whatever a clock says.
        at = min(max(result.checked_at - offset, check.at), now)
        placed = replace(result, checked_at=at, location=self.location)
        check.done(replace(outcome, result=placed))
