"""The worker: claims deliveries, sends them outside of transactions, and stores the outcome.

From an event to the service:

1. ``outbox.enqueue`` writes a row for each channel value, pending or on hold for quiet hours, in
   the transaction of the change that people are alerted to.
2. ``_store_and_claim`` finds the lanes with a due row. ``claims.claim_next`` carries out what
   ``lanes.decide_next`` decides for each (send, combine, defer, hold for good), and leases the row
   to send.
3. ``composing`` makes the message of the row. ``_send`` calls the channel's sender (``channels/``)
   in a thread. The sender makes the payload; ``channels/base.post`` posts it and reads the answer.
   The senders of mail and Apprise have connections of other kinds.
4. ``_store_outcome`` stores what ``lanes.attempt_outcome`` makes of the answer: delivered, pending
   until the next attempt, or failed.

``lanes.py`` has the table of a row's states, and of who changes them.

One thread reads and writes the database. Each message is sent on another thread, without the
database, so a service that hangs blocks only its lane. A crash between these steps leaves
the row pending, with a lease that ends within 30 s. If the service had taken the message, it is
sent again, with the same ``message_id``.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from flask import Flask

from app.access import Access, webhook_secret
from app.access.settings import Policies, with_mail
from app.access.tokens import keyed_hash
from app.alerts import claims, digests, moved, subscribers
from app.alerts.answers import Answer, bug, permanent
from app.alerts.channels import SENDERS, text_of, webhook
from app.alerts.channels.base import Outgoing, Sender, Tools
from app.alerts.chores import CHORES
from app.alerts.composing import Composer
from app.alerts.lanes import ClaimedDelivery, Lanes, attempt_outcome
from app.config import Settings
from app.db import AnySession, best_effort, db, faults, liveness, wakeups, writing
from app.db.faults import passes, unavailable
from app.db.locks import Lock, take_lock
from app.errors import Conflict
from app.i18n import N_, _
from app.lasting import Lasting
from app.net.policy import Policy
from app.records import NOT_SENT
from app.rules.clocks import is_due
from app.rules.masking import frames_of, raised_at

log = logging.getLogger(__name__)

# The pause between two turns while messages wait, and on databases that cannot wake the worker. The
# worker is woken at most once in this time.
POLL_SECONDS = 0.25
SUBSCRIBER_NETWORKS = N_("in WAKEFUL_SUBSCRIBER_NETWORKS")
INSTALLATION_CHARACTERS = 8  # enough to tell apart the installations that share an account
MAX_LANES = 64  # threads at a time
MAX_CLAIMS = 16  # in one transaction, which holds SQLite's write lock meanwhile
MAX_SUBSCRIBERS = 16  # more threads, for mails to the subscribers of status pages
# Threads for webhooks of subscribers. Strangers choose their URLs, and hanging ones must delay no
# mail.
MAX_WEBHOOKS = 8
# SQLite has one writer, and a post to thousands must not delay the record of an outage. Therefore a
# transaction claims few messages to subscribers, and they rest for as long as their turn took.
MAX_SUBSCRIBERS_CLAIMED, MAX_WEBHOOKS_CLAIMED = 4, 2
MIN_REST = 0.02  # seconds
NO_REST = float("-inf")
CHORES_EVERY = timedelta(seconds=5)
SIGN_OF_LIFE_SECONDS = 15.0
RETRY_SECONDS = 1.0  # pause after a turn that failed
STOP_SECONDS = 10.0  # how long a stop waits for messages that are being sent
TURN = "work on the outbox"  # for the log


@dataclass
class _Attempt:
    """A message that was sent, and the answer to it."""

    claim: ClaimedDelivery
    answer: Answer
    text: str = ""  # the sent text, for the log


class Worker:
    """Runs until it is stopped. ``clock`` gives the time in UTC; tests pass a faster one."""

    def __init__(
        self,
        app: Flask,
        settings: Settings,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        senders: Mapping[str, Sender] = SENDERS,
    ) -> None:
        self.app = app
        self.settings = settings
        self.clock = clock
        self.senders = senders
        self.name = liveness.process_name(liveness.WORKER)
        # The lanes of subscribers have other threads than those of alerts, and come after them: a
        # post to thousands delays no alert.
        self._lane_sets = (
            Lanes(claims.DUE_ALERTS, MAX_LANES, MAX_CLAIMS),
            Lanes(claims.DUE_BY_MAIL, MAX_SUBSCRIBERS, MAX_SUBSCRIBERS_CLAIMED),
            Lanes(claims.DUE_BY_WEBHOOK, MAX_WEBHOOKS, MAX_WEBHOOKS_CLAIMED),
        )
        self.alert_lanes, self.mail_lanes, self.webhook_lanes = self._lane_sets
        self._jobs = Jobs(settings)
        self._log = Lasting(log)  # topics: the parts of a turn
        self._sent: queue.SimpleQueue[_Attempt | None] = queue.SimpleQueue()
        self._unstored: list[_Attempt] = []
        # Called after each turn, unless it failed by a fault of Wakeful.
        self.on_turn: Callable[[], object] = lambda: None
        self._any_waits = True  # whether a row waits to be sent, now or later
        self._has_more = False  # whether due lanes were left for the next turn
        # Whether a process that writes a message wakes this worker
        self._is_woken: Callable[[], bool] = lambda: False
        self._pause = POLL_SECONDS  # until the next turn
        self._sign_of_life_at = float("-inf")
        self._rests_until = NO_REST  # the lanes of subscribers rest until this time
        self._chores_at: datetime | None = None

    def run(self, stop: threading.Event) -> None:
        """Send until ``stop`` is set. Afterwards wait up to STOP_SECONDS for the messages that are
        being sent.
        """
        role, pause = liveness.WORKER, POLL_SECONDS
        with wakeups.listening(self.app, role, self.wake, pause) as self._is_woken:
            self._loop(stop)
        self._finish()

    def _loop(self, stop: threading.Event) -> None:
        pause = 0.0
        while not stop.is_set():
            try:
                self.take_turn(pause)
                pause = self._pause
                self.on_turn()
                self._log.end(TURN)
            except Exception as fault:
                # If the database is unavailable, the worker waits: a restart would not help. After
                # other faults it does not call ``on_turn``: the watchdog restarts a stuck worker.
                if unavailable(fault):
                    self.on_turn()
                    faults.log_fault(
                        log, "The outbox cannot be read or written. Trying again.", fault
                    )
                else:
                    self._log_failed(TURN, fault)
                stop.wait(RETRY_SECONDS)
                pause = 0.0

    def wake(self) -> None:
        """Start the next turn now. Safe from any thread."""
        self._sent.put(None)

    def take_turn(self, wait_seconds: float) -> int:
        """Wait up to ``wait_seconds`` for an answer. Store the outcomes of sent messages, claim due
        rows, and start to send them. Returns the number of messages that are started.
        """
        self._collect(0.0 if self._has_more else wait_seconds)
        any_answered = bool(self._unstored)
        with self.app.app_context():
            jobs = self._take_jobs()
            if not any(lanes.stuck for lanes in self._lane_sets):
                self._write_sign_of_life()
            # An outcome may have made other rows due.
            self._pause = POLL_SECONDS if jobs or any_answered else self._seconds_until_due()
        for job in jobs:
            threading.Thread(target=self._send, args=(job,), daemon=True, name="alert").start()
        return len(jobs)

    @property
    def idle(self) -> bool:
        """Whether no message is being sent, no outcome waits to be stored, and the lanes of
        subscribers do not rest. A rest ends with the next turn, which may find new messages.
        """
        return not self._is_sending and self._rests_until == NO_REST

    @property
    def _is_sending(self) -> bool:
        """Whether a message is being sent, or its outcome waits to be stored."""
        return bool(self._unstored) or any(lanes.busy for lanes in self._lane_sets)

    @property
    def _sends_to_subscribers(self) -> bool:
        return any(lanes.busy for lanes in self._lane_sets[1:])

    @property
    def _rest_seconds(self) -> float:
        return max(0.0, self._rests_until - time.monotonic())

    def _seconds_until_due(self) -> float:
        """The seconds until the next turn, unless the worker is woken before."""
        now = self.clock()
        waits = any(lanes.stuck or lanes.skipped(now) for lanes in self._lane_sets)
        if waits or not self._is_woken():
            return POLL_SECONDS
        due = claims.next_due(db.session, now) if self._any_waits else None
        db.session.rollback()
        seconds = wakeups.POLL_SECONDS if due is None else (due - now).total_seconds()
        return min(wakeups.POLL_SECONDS, seconds)

    def _collect(self, wait_seconds: float) -> None:
        if self._rests_until != NO_REST:
            wait_seconds = min(wait_seconds, self._rest_seconds)
        try:
            attempt = self._sent.get(block=wait_seconds > 0, timeout=wait_seconds)
            while True:
                self._unstored += [attempt] if attempt is not None else []
                attempt = self._sent.get_nowait()
        except queue.Empty:
            return

    # --- A turn

    def _take_jobs(self) -> list[SendJob]:
        """Work on the lanes of alerts, and on those of subscribers unless they rest. Returns the
        messages to send.
        """
        if self._rest_seconds:
            return self._store_and_claim(self._lane_sets[:1])
        self._rests_until = NO_REST
        began = time.monotonic()
        was_sending = self._sends_to_subscribers
        jobs = self._store_and_claim(self._lane_sets)
        if self._announce() or was_sending or self._sends_to_subscribers:
            now = time.monotonic()
            self._rests_until = now + max(MIN_REST, now - began)
        return jobs

    def _store_and_claim(self, lane_sets: Sequence[Lanes]) -> list[SendJob]:
        """Store the outcomes of these lanes, and claim their due rows."""
        now = self.clock()
        attempts = [
            attempt for attempt in self._unstored if self._lanes_of(attempt.claim) in lane_sets
        ]
        answered_lanes = {attempt.claim.lane for attempt in attempts}
        self._any_waits = claims.any_waits(db.session)
        if self._any_waits:
            self._do_chores(now)
        due: list[tuple[Lanes, list[str]]] = []
        for lanes in lane_sets:
            skipped = lanes.skipped(now)
            lanes.forget_idle(skipped)
            unavailable_lanes = (lanes.busy - answered_lanes) | skipped
            names = []
            if self._any_waits:
                names = claims.due_lanes(lanes.query, db.session, now, unavailable_lanes)
            lanes.stuck &= {*skipped, *names}
            due.append((lanes, names))
        db.session.rollback()  # ends the read transaction, which would keep an old snapshot
        if not attempts and not any(names for _lanes, names in due):
            self._has_more = False
            return []
        tools = self._jobs.tools(now)
        for attempt in attempts:
            if (to := attempt.answer.moved_to) is not None:
                with self._isolated("store the new address of a channel", None):
                    moved.store(attempt.claim.channel, attempt.claim.value, to, now)
        with writing() as session:
            take_lock(session, Lock.OUTBOX)
            for attempt in attempts:
                self._store_outcome(attempt, now)
            with self._isolated("put messages on hold for quiet hours", session):
                digests.put_on_hold(session, now)
            self._has_more, claimed = False, []
            for lanes, names in due:
                lane_names = lanes.choose(names, answered_lanes)
                claimed += self._claim(lanes, lane_names[: lanes.max_claims], now)
                self._has_more = self._has_more or len(lane_names) > lanes.max_claims
            jobs = self._jobs.make(claimed, tools, now)
        # After the commit, because a turn that fails is repeated with the same outcomes.
        self._drop_stored(attempts)
        for job in jobs:
            self._lanes_of(job.claim).busy.add(job.claim.lane)
        return jobs

    def _drop_stored(self, attempts: Sequence[_Attempt]) -> None:
        """Drop these attempts, whose outcomes are stored, and free their lanes."""
        ids = set(map(id, attempts))
        self._unstored = [attempt for attempt in self._unstored if id(attempt) not in ids]
        for attempt in attempts:
            self._lanes_of(attempt.claim).busy.discard(attempt.claim.lane)

    def _lanes_of(self, claim: ClaimedDelivery) -> Lanes:
        if claim.subscriber_id is None:
            return self.alert_lanes
        return self.webhook_lanes if claim.strangers_webhook else self.mail_lanes

    def _claim(self, lanes: Lanes, names: list[str], now: datetime) -> list[ClaimedDelivery]:
        claimed: list[ClaimedDelivery] = []
        for lane in names:
            # A lane whose decision raises is skipped for a second.
            lane_claim = claims.LaneClaim(must_wait=True)
            with self._isolated(f"send in lane {lane}", db.session) as raised:
                lane_claim = claims.claim_next(db.session, lane, lanes.health(lane), now)
            lanes.stuck.discard(lane)
            if raised and not claims.give_up_failing(db.session, lane, now):
                lanes.stuck.add(lane)
            claimed += [lane_claim.claim] if lane_claim.claim is not None else []
            if lane_claim.must_wait:
                lanes.skip(lane, now)
        return claimed

    def _do_chores(self, now: datetime) -> None:
        if not is_due(self._chores_at, now, CHORES_EVERY):
            return
        for task, find, do in CHORES:
            with self._isolated(task, None):
                if not find(db.session, now):
                    continue
                with writing() as session:
                    take_lock(session, Lock.OUTBOX)
                    # Another process may have done the work before this one had the lock.
                    if work := find(session, now):
                        do(session, work, now)
        self._chores_at = now

    def _announce(self) -> bool:
        """Write the next messages to the subscribers of status pages, one transaction for each
        update; returns whether there were any.
        """
        now, written = self.clock(), 0
        update_ids = subscribers.unannounced(db.session, now)
        db.session.rollback()
        for id in update_ids:
            isolated = self._isolated(f"notify the subscribers of update {id}", None)
            with isolated, writing() as session:
                written += subscribers.write_batch(session, id, now)
        return written > 0

    # --- Sending, and the outcomes

    def _send(self, job: SendJob) -> None:
        """Send one message, on a thread without database and application. Never raises."""
        claim = job.claim
        # A stranger's webhook gets no signature.
        name = webhook.SUBSCRIBER if claim.strangers_webhook else claim.channel
        try:
            if (sender := self.senders.get(name)) is None:
                answer = permanent(_("No channel is called %(channel)s.", channel=claim.channel))
            else:
                answer = sender(job.outgoing, job.tools)
        except Exception as fault:
            # The error's text and the values in its traceback may contain the channel's secrets.
            log.error("Sending delivery %d failed: %s", claim.id, frames_of(fault))
            answer = bug(raised_at(fault))
        self._sent.put(_Attempt(claim, answer, _text_of(job)))

    def _store_outcome(self, attempt: _Attempt, now: datetime) -> None:
        claim, answer = attempt.claim, attempt.answer
        lanes = self._lanes_of(claim)
        failed_before = not lanes.health(claim.lane).works or claim.failures > 0
        lanes.remember(claim.lane, answer, now)
        with self._isolated("store the outcome of a message", db.session) as raised:
            outcome = attempt_outcome(claim, answer, now)
            claims.store_outcome(db.session, claim, outcome, now, attempt.text)
            if answer.ok and failed_before:
                claims.retry_soon(db.session, claim.lane, now)
            subscribers.apply_answer(db.session, claim, answer, now)
        if raised:  # otherwise the message would be sent again and again
            reason = _("Its outcome could not be stored. The answer: %(text)s", text=answer.text)
            claims.give_up(db.session, claim.id, reason)

    @contextmanager
    def _isolated(self, task: str, session: AnySession | None) -> Iterator[list[Exception]]:
        """Log an exception of this part of a turn, so that it stops no other part, and add it to
        the list. Its writes in the transaction of ``session`` are rolled back; without a session,
        the part opens its transactions. An error of an unavailable database is raised, because it
        is no fault of this part.
        """
        raised: list[Exception] = []
        try:
            with nullcontext() if session is None else session.begin_nested():
                yield raised
            self._log.end(task)
        except Exception as fault:
            if session is None:
                db.session.rollback()
            if passes(fault):
                raise
            raised.append(fault)
            self._log_failed(task, fault)

    def _log_failed(self, task: str, fault: Exception) -> None:
        cause = f"{type(fault).__name__}: {fault}"
        self._log.error("The worker could not %s.", task, topic=task, cause=cause, exc_info=fault)

    # --- Signs of life, and the end

    def _write_sign_of_life(self) -> None:
        """Store that this process is alive; seldom, because SQLite has only one writer."""
        if time.monotonic() - self._sign_of_life_at >= SIGN_OF_LIFE_SECONDS:
            liveness.write(self.name, self.clock())
            self._sign_of_life_at = time.monotonic()

    def _finish(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        try:
            while self._is_sending and time.monotonic() < deadline:
                self._collect(0.1)
                if attempts := list(self._unstored):
                    with self.app.app_context(), writing():
                        for attempt in attempts:
                            self._store_outcome(attempt, self.clock())
                    self._drop_stored(attempts)
        except Exception as fault:
            faults.log_fault(
                log,
                "The outcome of sent messages could not be stored. They may be sent again.",
                fault,
            )
        # Without this, a restore and a change of the secret key are refused until the last sign of
        # life of this process is old.
        with self.app.app_context():
            best_effort(
                "The end of the alert worker", lambda: liveness.note_end(self.name, self.clock())
            )


def _text_of(job: SendJob) -> str:
    """The sent text, for the delivery log, which has no messages to subscribers. Never raises."""
    if job.claim.subscriber_id is not None:
        return ""
    try:
        return text_of(job.claim.channel, job.outgoing)
    except Exception as fault:
        log.error("Delivery %d has no text for the log: %s", job.claim.id, frames_of(fault))
        return ""


# --- The messages to send -------------------------------------------------------------------------


@dataclass
class SendJob:
    claim: ClaimedDelivery
    outgoing: Outgoing = field(repr=False)
    tools: Tools = field(repr=False)


class Jobs:
    """Makes jobs with the present settings. Needs an application context."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stored = Access().settings
        self._policies = Policies(settings)
        self._network = settings.network(self._policies.current())
        # Strangers choose the URLs of their webhooks, so these may not reach the networks that
        # monitors may reach.
        self._strangers_network = settings.network(
            Policy.parse(settings.subscriber_networks, SUBSCRIBER_NETWORKS)
        )

    def tools(self, now: datetime) -> Tools:
        """The tools of all senders. Call it before the transaction that claims rows."""
        self._policies.refresh()
        if self._policies.current() is not self._network.policy:
            self._network = self._settings.network(self._policies.current())
        try:
            secrets = webhook_secret.webhook_secrets(self._settings, self._stored, now)
        except Conflict:
            secrets = ()  # alerts by webhook wait, and the delivery log says why
        settings = with_mail(self._settings)
        installation = keyed_hash("installation")[:INSTALLATION_CHARACTERS]
        db.session.rollback()
        return Tools(settings, self._network, secrets, installation)

    def make(
        self, claimed: Sequence[ClaimedDelivery], tools: Tools, now: datetime
    ) -> list[SendJob]:
        """A job for each claim. A claim whose message cannot be composed is given up."""
        composer, jobs = Composer(db.session, self._settings, claimed), []
        for claim in claimed:
            try:
                outgoing = Outgoing(claim.message_id, claim.value, composer.message(claim), now)
                network = self._strangers_network if claim.strangers_webhook else tools.network
                jobs.append(SendJob(claim, outgoing, replace(tools, network=network)))
            except Exception as fault:
                # One message that cannot be composed must not stop the others.
                log.exception("Delivery %d could not be written.", claim.id)
                reason = _("Wakeful could not write it (%(fault)s).", fault=type(fault).__name__)
                claims.give_up(db.session, claim.id, NOT_SENT + reason)
        return jobs
