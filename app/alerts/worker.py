"""The outbox worker: claims rows, sends them outside of any transaction, marks what became of them.

One thread, the dispatcher, talks to the database; each lane that has something to send gets a small
thread that only talks to the network. So a hanging service holds its own lane and nothing else, and
a crash at any step leaves the row pending, with a lease that ends within 30 s.
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

from app.alerts import announcing, claims, digests, earlier, giving_up, marks, subscribers
from app.alerts.channels import SENDERS
from app.alerts.channels.answer import Answer
from app.alerts.channels.base import Sender
from app.alerts.claims import Claim
from app.alerts.jobs import Job, Jobs
from app.alerts.lanes import MAX_SUBSCRIBERS, Lanes
from app.alerts.sending import send
from app.alerts.steps import Steps
from app.config import Settings
from app.db import AnySession, db, faults, heartbeats, writing
from app.db.faults import unavailable

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25
MAX_CLAIMS = 16  # in one transaction, which holds SQLite's write lock meanwhile
# Of subscribers fewer, and after each such turn a rest at least as long as it took: SQLite has one
# writer, and whoever writes down an outage must not wait for a post to thousands.
MAX_SUBSCRIBERS_CLAIMED = 4
SHORTEST_REST = 0.02
LOOK_EVERY = timedelta(seconds=5)  # quiet hours end on a minute: nobody misses the seconds
HEARTBEAT_SECONDS = 15.0
TROUBLE_SECONDS = 1.0  # pause after the database could not be used
STOP_SECONDS = 10.0  # how long a stop waits for messages on their way


# Lanes, what finds those of them that are due, and how many are claimed in one transaction.
Kind = tuple[Lanes, Callable[[AnySession, datetime, Collection[str]], list[str]], int]


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
        self.subscribers = Lanes(MAX_SUBSCRIBERS)
        self._jobs = Jobs(settings)
        self._steps = Steps()
        self._stuck = False  # the last lane that was worked on failed, for no row's sake
        self._done: queue.SimpleQueue[_Done | None] = queue.SimpleQueue()
        self._unmarked: list[_Done] = []
        self.turned: Callable[[], object] = lambda: None  # told at each turn of the loop
        self._more = False  # lanes were left for the next turn
        self._beat_at = float("-inf")
        self._rested_at = float("-inf")  # until then subscribers wait
        self._looked_at: datetime | None = None

    def run(self, stop: threading.Event) -> None:
        """Send until ``stop`` is set; then wait a little for what is on its way and mark it."""
        while not stop.is_set():
            try:
                with self._steps.whole("work on the outbox"):
                    self.step(POLL_SECONDS)
                    self.turned()
            except Exception as fault:
                # The database may be gone for a while; nothing is lost, so the worker goes on.
                # A restart would not bring it back, whereas it may mend anything else.
                if unavailable(fault):
                    self.turned()
                    faults.tell(log, "The outbox could not be worked on. Trying again.", fault)
                stop.wait(TROUBLE_SECONDS)
        self._finish()

    def wake(self) -> None:
        """Look at the outbox now. Safe from any thread."""
        self._done.put(None)

    def step(self, wait_seconds: float) -> int:
        """Mark what has come back, claim what is due, start sending. How many were started.

        Waits up to ``wait_seconds`` for something to come back first.
        """
        self._collect(0.0 if self._more else wait_seconds)
        with self.app.app_context():
            jobs = self._turn()
            if not self._stuck:
                self._beat()
        for job in jobs:
            threading.Thread(target=self._send, args=(job,), daemon=True, name="alert").start()
        return len(jobs)

    @property
    def idle(self) -> bool:
        """Nothing is on its way and nothing waits to be marked."""
        on_their_way = self.lanes.busy or self.subscribers.busy or self._unmarked
        return not on_their_way and self._rest_left == 0

    @property
    def _rest_left(self) -> float:
        return max(0.0, self._rested_at - time.monotonic())

    def _collect(self, wait_seconds: float) -> None:
        if rest := self._rest_left:
            wait_seconds = min(wait_seconds, rest)
        try:
            first = self._done.get(block=wait_seconds > 0, timeout=wait_seconds)
            self._unmarked += [first] if first is not None else []
            while True:
                more = self._done.get_nowait()
                self._unmarked += [more] if more is not None else []
        except queue.Empty:
            return

    def _turn(self) -> list[Job]:
        """A turn of alerts, and of subscribers too unless these rest."""
        if self._rest_left:
            return self._turn_of(self._kinds[:1])
        began = time.monotonic()
        busy = bool(self.subscribers.busy)
        jobs = self._turn_of(self._kinds)
        if self._announce() or busy or self.subscribers.busy:
            now = time.monotonic()
            self._rested_at = now + max(SHORTEST_REST, now - began)
        return jobs

    def _turn_of(self, kinds: Sequence[Kind]) -> list[Job]:
        now = self.clock()
        done = [
            one
            for one in self._unmarked
            if any(self._lanes_of(one.claim) is lanes for lanes, *_ in kinds)
        ]
        returning = {one.claim.lane for one in done}
        self._look_around(now)
        due = [
            (lanes, most, find(db.session, now, {*(lanes.busy - returning), *lanes.asleep(now)}))
            for lanes, find, most in kinds
        ]
        db.session.rollback()  # ends the read, which would otherwise pin an old snapshot
        if not done and not any(names for *_, names in due):
            self._more = False
            self._stuck = self._stuck and any(lanes.asleep(now) for lanes, *_ in due)
            return []
        tools = self._jobs.tools(now)
        with writing() as session:
            claims.lock(session)
            for one in done:
                self._mark(one, now)
            with self._steps.apart("hold for quiet hours", session):
                digests.hold(session, now)
            self._more, claimed = False, []
            for lanes, most, names in due:
                free = lanes.choose(_in_turn(names, returning & lanes.busy), returning)
                claimed += self._claim(lanes, free[:most], now)
                self._more = self._more or len(free) > most
            jobs = self._jobs.make(claimed, tools, now)
        # Only now: had the transaction failed, all of this would have to be done again.
        marked = set(map(id, done))
        self._unmarked = [one for one in self._unmarked if id(one) not in marked]
        for lanes, *_ in kinds:
            lanes.busy -= returning
        for job in jobs:
            self._lanes_of(job.claim).busy.add(job.claim.lane)
        return jobs

    @property
    def _kinds(self) -> tuple[Kind, ...]:
        """Alerts come first."""
        return (
            (self.lanes, claims.due_lanes, MAX_CLAIMS),
            (self.subscribers, claims.due_subscribers, MAX_SUBSCRIBERS_CLAIMED),
        )

    def _lanes_of(self, claim: Claim) -> Lanes:
        return self.lanes if claim.subscriber_id is None else self.subscribers

    def _claim(self, lanes: Lanes, names: list[str], now: datetime) -> list[Claim]:
        claimed: list[Claim] = []
        for lane in names:
            turn = claims.Turn(waits=True)  # a lane that fails is left alone for a moment
            with self._steps.apart(f"send in lane {lane}", db.session) as step:
                turn = claims.take_turn(db.session, lane, lanes.state(lane), now)
            self._stuck = step.failed and not giving_up.give_up_failing(
                db.session, lane, partial(claims.judge_alone, db.session, lane, now=now)
            )
            claimed += [turn.claim] if turn.claim is not None else []
            lanes.sleep(lane, now, waits=turn.waits)
        return claimed

    def _look_around(self, now: datetime) -> None:
        """Every few seconds, and before anything is sent: give up what is too old, write the
        digests of quiet hours that have ended, and let go what a clock that was set back holds up.
        """
        if self._looked_at is not None and abs(now - self._looked_at) < LOOK_EVERY:
            return
        for what, chore in (
            ("give up what is too old", self._give_up_outlived),
            ("let go what a clock that was set back holds up", self._free_after_step),
            ("write the digests of quiet hours", self._release),
            ("drop the messages of subscribers who are gone", self._drop_orphans),
        ):
            with self._steps.apart(what, None):
                chore(now)
        self._looked_at = now

    def _give_up_outlived(self, now: datetime) -> None:
        if giving_up.outlived(db.session, now):
            with writing() as session:
                claims.lock(session)
                giving_up.give_up_outlived(session, now)

    def _free_after_step(self, now: datetime) -> None:
        if stuck := earlier.free_after_step(db.session, now):
            log.warning("The clock was set back: %d messages go now.", len(stuck))
            with writing() as session:
                claims.lock(session)
                earlier.make_due(session, stuck, now)

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
            step = self._steps.apart(f"tell the subscribers of update {id}", None)
            with step, writing() as session:
                written += announcing.write(session, id, now)
        return written > 0

    def _send(self, job: Job) -> None:
        self._done.put(_Done(job.claim, send(job, self.senders)))

    def _mark(self, done: _Done, now: datetime) -> None:
        claim, answer = done.claim, done.answer
        lanes = self._lanes_of(claim)
        failed_before = not lanes.state(claim.lane).last_ok or claim.tries > 0
        lanes.note(claim.lane, answer, now)
        with self._steps.apart("write down what became of a message", db.session) as step:
            marks.mark(db.session, marks.mark_for(claim, answer, now, self.rng))
            if answer.ok and failed_before:
                earlier.hurry(db.session, claim.lane, now)
            subscribers.note(db.session, claim, answer, now)
        if step.failed:  # or it would be sent again and again
            reason = f"What became of it could not be written down. The answer: {answer.text}"
            giving_up.give_up(db.session, claim.id, reason)

    def _beat(self) -> None:
        """Tell that this process is alive; seldom, because SQLite has one writer."""
        if time.monotonic() - self._beat_at < HEARTBEAT_SECONDS:
            return
        heartbeats.beat(self.name, self.clock())
        self._beat_at = time.monotonic()

    def _finish(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        while not self.idle and time.monotonic() < deadline:
            self._collect(0.1)
            try:
                with self.app.app_context():
                    self._mark_all()
            except Exception as fault:
                what = "What was sent could not be marked. It may be sent once more."
                faults.tell(log, what, fault)
                return

    def _mark_all(self) -> None:
        done = list(self._unmarked)
        if not done:
            return
        with writing():
            for one in done:
                self._mark(one, self.clock())
        del self._unmarked[: len(done)]
        for one in done:
            self._lanes_of(one.claim).busy.discard(one.claim.lane)


def _in_turn(due: list[str], returning: set[str]) -> list[str]:
    """Lanes that have waited come before those that have just sent something."""
    return [*(lane for lane in due if lane not in returning), *returning]
