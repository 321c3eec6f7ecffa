"""The outbox worker: claims rows, sends them outside of transactions, and stores the outcome.

One thread, the dispatcher, uses the database. Each lane with a message to send gets a thread of its
own that uses only the network, so a service that hangs blocks only its own lane. A crash at any
step leaves the row pending, with a lease that ends within 30 s.
"""

from __future__ import annotations

import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from flask import Flask

from app.alerts import announcing, attempts, claims, digests, due_now, giving_up, moved, subscribers
from app.alerts.channels import SENDERS
from app.alerts.channels.answer import Answer
from app.alerts.channels.base import Sender
from app.alerts.claims import Claim
from app.alerts.jobs import Job, Jobs
from app.alerts.lanes import MAX_SUBSCRIBERS, MAX_WEBHOOKS, Lanes
from app.alerts.sending import send
from app.alerts.steps import Steps
from app.config import Settings
from app.db import AnySession, best_effort, db, faults, heartbeats, writing
from app.db.faults import unavailable
from app.i18n import _

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25
MAX_CLAIMS = 16  # in one transaction, which holds SQLite's write lock meanwhile
# Of subscribers fewer, and after each such turn a pause at least as long as it took: SQLite has one
# writer, and an outage is recorded before a post goes to thousands.
MAX_SUBSCRIBERS_CLAIMED, MAX_WEBHOOKS_CLAIMED = 4, 2
SHORTEST_REST = 0.02  # seconds
CHORES_EVERY = timedelta(seconds=5)  # quiet hours end on a minute, so this is soon enough
HEARTBEAT_SECONDS = 15.0
TROUBLE_SECONDS = 1.0  # pause after a turn that failed
STOP_SECONDS = 10.0  # how long a stop waits for messages that are being sent


# Lanes, what finds those of them that are due, and how many are claimed in one transaction.
Kind = tuple[Lanes, Callable[[AnySession, datetime, Collection[str]], list[str]], int]
_due_by_mail = partial(claims.due_subscribers, webhooks=False)
_due_by_webhook = partial(claims.due_subscribers, webhooks=True)


@dataclass
class _Done:
    claim: Claim
    answer: Answer


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Worker:
    """Runs until it is told to stop. ``clock`` gives the time in UTC; tests pass a faster one."""

    def __init__(
        self,
        app: Flask,
        settings: Settings,
        *,
        clock: Callable[[], datetime] = _utc_now,
        senders: Mapping[str, Sender] = SENDERS,
        rng: random.Random | None = None,
    ) -> None:
        self.app = app
        self.settings = settings
        self.clock = clock
        self.senders = senders
        self.rng = rng or random.Random()  # noqa: S311  # jitter needs no secrecy
        self.name = heartbeats.process_name(heartbeats.WORKER)
        self.lanes = Lanes()
        # Apart from those of alerts, and after them: a post that goes to thousands delays none.
        self.subscribers, self.webhooks = Lanes(MAX_SUBSCRIBERS), Lanes(MAX_WEBHOOKS)
        self._jobs = Jobs(settings)
        self._steps = Steps()
        self._stuck = False  # the last lane failed, and not because of one of its rows
        self._done: queue.SimpleQueue[_Done | None] = queue.SimpleQueue()
        self._unstored: list[_Done] = []
        self.on_turn: Callable[[], object] = lambda: None  # called after each turn of the loop
        self._more = False  # some lanes were left for the next turn
        self._heartbeat_at = float("-inf")
        self._rested_at = float("-inf")  # until then subscribers wait
        self._chores_at: datetime | None = None

    def run(self, stop: threading.Event) -> None:
        """Send until ``stop`` is set; then wait up to STOP_SECONDS for messages being sent."""
        while not stop.is_set():
            try:
                with self._steps.required("work on the outbox"):
                    self.step(POLL_SECONDS)
                    self.on_turn()
            except Exception as fault:
                # If the database is unavailable, the worker waits: a restart would not help. After
                # other faults it does not call ``on_turn``: the watchdog restarts a stuck worker.
                if unavailable(fault):
                    self.on_turn()
                    faults.tell(log, "The outbox cannot be read or written. Trying again.", fault)
                stop.wait(TROUBLE_SECONDS)
        self._finish()
        self._note_end()

    def wake(self) -> None:
        """Look at the outbox now. Safe from any thread."""
        self._done.put(None)

    def step(self, wait_seconds: float) -> int:
        """Store the outcomes that came back, claim due rows and start sending; returns how many.

        Waits up to ``wait_seconds`` for an outcome first.
        """
        self._collect(0.0 if self._more else wait_seconds)
        with self.app.app_context():
            jobs = self._turn()
            if not self._stuck:
                self._write_heartbeat()
        for job in jobs:
            threading.Thread(target=self._send, args=(job,), daemon=True, name="alert").start()
        return len(jobs)

    @property
    def idle(self) -> bool:
        """No message is being sent, and no outcome waits to be stored."""
        busy = self.lanes.busy or self._tells_subscribers or self._unstored
        return not busy and self._rest_left == 0

    @property
    def _tells_subscribers(self) -> bool:
        return bool(self.subscribers.busy or self.webhooks.busy)

    @property
    def _rest_left(self) -> float:
        return max(0.0, self._rested_at - time.monotonic())

    def _collect(self, wait_seconds: float) -> None:
        if rest := self._rest_left:
            wait_seconds = min(wait_seconds, rest)
        try:
            first = self._done.get(block=wait_seconds > 0, timeout=wait_seconds)
            self._unstored += [first] if first is not None else []
            while True:
                more = self._done.get_nowait()
                self._unstored += [more] if more is not None else []
        except queue.Empty:
            return

    def _turn(self) -> list[Job]:
        """A turn of alerts, and of subscribers too unless these rest."""
        if self._rest_left:
            return self._turn_of(self._kinds[:1])
        began = time.monotonic()
        busy = self._tells_subscribers
        jobs = self._turn_of(self._kinds)
        if self._announce() or busy or self._tells_subscribers:
            now = time.monotonic()
            self._rested_at = now + max(SHORTEST_REST, now - began)
        return jobs

    def _turn_of(self, kinds: Sequence[Kind]) -> list[Job]:
        now = self.clock()
        done = [
            one
            for one in self._unstored
            if any(self._lanes_of(one.claim) is lanes for lanes, *_other in kinds)
        ]
        returning = {one.claim.lane for one in done}
        self._do_chores(now)
        due = [
            (lanes, most, find(db.session, now, {*(lanes.busy - returning), *lanes.asleep(now)}))
            for lanes, find, most in kinds
        ]
        db.session.rollback()  # ends the read transaction, which would keep an old snapshot
        if not done and not any(names for *_other, names in due):
            self._more = False
            self._stuck = self._stuck and any(lanes.asleep(now) for lanes, *_other in due)
            return []
        tools = self._jobs.tools(now)
        for one in done:
            self._store_move(one, now)
        with writing() as session:
            claims.lock(session)
            for one in done:
                self._store_outcome(one, now)
            with self._steps.isolated("hold for quiet hours", session):
                digests.hold(session, now)
            self._more, claimed = False, []
            for lanes, most, names in due:
                free = lanes.choose(_in_turn(names, returning & lanes.busy), returning)
                claimed += self._claim(lanes, free[:most], now)
                self._more = self._more or len(free) > most
            jobs = self._jobs.make(claimed, tools, now)
        # Only after the commit: a turn that fails is repeated with the same outcomes.
        stored = set(map(id, done))
        self._unstored = [one for one in self._unstored if id(one) not in stored]
        for lanes, *_other in kinds:
            lanes.busy -= returning
        for job in jobs:
            self._lanes_of(job.claim).busy.add(job.claim.lane)
        return jobs

    @property
    def _kinds(self) -> tuple[Kind, ...]:
        """Alerts come first."""
        return (
            (self.lanes, claims.due_lanes, MAX_CLAIMS),
            (self.subscribers, _due_by_mail, MAX_SUBSCRIBERS_CLAIMED),
            (self.webhooks, _due_by_webhook, MAX_WEBHOOKS_CLAIMED),
        )

    def _lanes_of(self, claim: Claim) -> Lanes:
        if claim.subscriber_id is None:
            return self.lanes
        return self.webhooks if claim.strangers_webhook else self.subscribers

    def _claim(self, lanes: Lanes, names: list[str], now: datetime) -> list[Claim]:
        claimed: list[Claim] = []
        for lane in names:
            turn = claims.Turn(waits=True)  # a lane that fails is skipped for a second
            with self._steps.isolated(f"send in lane {lane}", db.session) as step:
                turn = claims.take_turn(db.session, lane, lanes.state(lane), now)
            self._stuck = step.failed and not giving_up.give_up_failing(
                db.session, lane, partial(claims.judge_alone, db.session, lane, now=now)
            )
            claimed += [turn.claim] if turn.claim is not None else []
            lanes.sleep(lane, now, waits=turn.waits)
        return claimed

    def _do_chores(self, now: datetime) -> None:
        """Every few seconds, before anything is sent: give up rows that are too old, write the
        digests of quiet hours that have ended, and make rows due that a clock set back delays.
        """
        if self._chores_at is not None and abs(now - self._chores_at) < CHORES_EVERY:
            return
        for what, chore in (
            ("give up messages that are too old", self._give_up_outlived),
            ("make messages due that the clock delays", self._free_delayed),
            ("write the digests of quiet hours", self._release),
            ("drop the messages of subscribers who are gone", self._drop_orphans),
        ):
            with self._steps.isolated(what, None):
                chore(now)
        self._chores_at = now

    def _give_up_outlived(self, now: datetime) -> None:
        if giving_up.outlived(db.session, now):
            with writing() as session:
                claims.lock(session)
                giving_up.give_up_outlived(session, now)

    def _free_delayed(self, now: datetime) -> None:
        if stuck := due_now.delayed_by_clock(db.session, now):
            log.warning("The clock was set back. %d delayed messages are sent now.", len(stuck))
            with writing() as session:
                claims.lock(session)
                due_now.make_due(session, stuck, now)

    def _release(self, now: datetime) -> None:
        if digests.waiting(db.session, now):
            with writing() as session:
                claims.lock(session)
                digests.release(session, now)

    def _drop_orphans(self, now: datetime) -> None:
        if gone := subscribers.orphans(db.session):
            with writing() as session:
                subscribers.drop(session, gone)

    def _announce(self) -> bool:
        """Write the next messages to the subscribers of status pages, each post apart; whether
        there were any.
        """
        now, written = self.clock(), 0
        waiting = announcing.waiting(db.session, now)
        db.session.rollback()
        for id in waiting:
            step = self._steps.isolated(f"tell the subscribers of update {id}", None)
            with step, writing() as session:
                written += announcing.write(session, id, now)
        return written > 0

    def _send(self, job: Job) -> None:
        self._done.put(_Done(job.claim, send(job, self.senders)))

    def _store_outcome(self, done: _Done, now: datetime) -> None:
        claim, answer = done.claim, done.answer
        lanes = self._lanes_of(claim)
        failed_before = not lanes.state(claim.lane).last_ok or claim.tries > 0
        lanes.note(claim.lane, answer, now)
        with self._steps.isolated("store the outcome of a message", db.session) as step:
            attempts.store(db.session, attempts.outcome_of(claim, answer, now, self.rng))
            if answer.ok and failed_before:
                due_now.retry_soon(db.session, claim.lane, now)
            subscribers.note(db.session, claim, answer, now)
        if step.failed:  # otherwise it would be sent again and again
            reason = _("Its outcome could not be stored. The answer: %(text)s", text=answer.text)
            giving_up.give_up(db.session, claim.id, reason)

    def _store_move(self, done: _Done, now: datetime) -> None:
        if (to := done.answer.moved_to) is not None:
            with self._steps.isolated("store the new address of a channel", None):
                moved.store(done.claim.channel, done.claim.value, to, now)

    def _write_heartbeat(self) -> None:
        """Store that this process is alive; seldom, because SQLite has only one writer."""
        if time.monotonic() - self._heartbeat_at < HEARTBEAT_SECONDS:
            return
        heartbeats.write(self.name, self.clock())
        self._heartbeat_at = time.monotonic()

    def _finish(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        while not self.idle and time.monotonic() < deadline:
            self._collect(0.1)
            try:
                with self.app.app_context():
                    self._store_all()
            except Exception as fault:
                faults.tell(
                    log,
                    "The outcome of sent messages could not be stored. They may be sent again.",
                    fault,
                )
                return

    def _note_end(self) -> None:
        """Store that this process has ended. Otherwise a restore and a change of the secret key are
        refused until its heartbeat is old.
        """

        def note() -> None:
            heartbeats.note_end(self.name, self.clock())

        with self.app.app_context():
            best_effort("The end of the alert worker", note)

    def _store_all(self) -> None:
        done = list(self._unstored)
        if not done:
            return
        with writing():
            for one in done:
                self._store_outcome(one, self.clock())
        del self._unstored[: len(done)]
        for one in done:
            self._lanes_of(one.claim).busy.discard(one.claim.lane)


def _in_turn(due: list[str], returning: set[str]) -> list[str]:
    """Lanes that have waited come before those that have just sent something."""
    return [*(lane for lane in due if lane not in returning), *returning]
