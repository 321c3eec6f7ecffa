"""The outbox worker: claims rows, sends them outside of any transaction, marks what became of them.

One thread, the dispatcher, talks to the database; each lane that has something to send gets a small
thread that only talks to the network. So a hanging service holds its own lane and nothing else, and
a crash at any step leaves the row pending, with a lease that ends within 30 s.
"""

from __future__ import annotations

import logging
import os
import queue
import random
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Flask

from app.access import Access, acknowledgements, webhook_secret
from app.alerts import claims, digests, messages, retries
from app.alerts.channels import SENDERS
from app.alerts.channels.answer import Answer, Verdict, permanent, retry
from app.alerts.channels.base import Outgoing, Sender, Tools
from app.alerts.claims import Claim, Mark
from app.alerts.outbox import moment
from app.alerts.restraint import Lane
from app.config import Settings
from app.db import db, faults, writing
from app.db.tables import HeartbeatRow
from app.errors import Conflict
from app.net.client import Network
from app.net.hosts import SystemNames, parse_servers
from app.net.policy import Policy
from app.records import Channel, DeliveryStatus
from app.rules.channel_values import CHANNELS

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25
MAX_LANES = 64  # threads at a time
MAX_CLAIMS = 16  # in one transaction, which holds SQLite's write lock meanwhile
MAX_FAILING = 32  # of them for lanes whose last attempt failed: hanging services leave room
LOOK_EVERY = timedelta(seconds=5)  # quiet hours end on a minute: nobody misses the seconds
SLEEP = timedelta(seconds=1)  # a lane that has to wait is looked at again after this
HEARTBEAT_SECONDS = 15.0
TROUBLE_SECONDS = 1.0  # pause after the database could not be used
STOP_SECONDS = 10.0  # how long a stop waits for messages on their way
ALLOW_NETWORKS = "allow_networks"


@dataclass
class _Job:
    claim: Claim
    outgoing: Outgoing = field(repr=False)
    tools: Tools = field(repr=False)


@dataclass
class _Done:
    job: _Job
    answer: Answer


@dataclass
class _State:
    """What the dispatcher remembers of a lane; lost with the process, and no harm done."""

    lane: Lane = field(default_factory=Lane)
    asleep_until: datetime | None = None


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
        self.name = f"worker:{socket.gethostname()}:{os.getpid()}"
        self._access = Access(settings)
        self._names = SystemNames(parse_servers(settings.dns_servers or ""))
        self._network = self._make_network(settings.allow_networks or "")
        self._done: queue.SimpleQueue[_Done | None] = queue.SimpleQueue()
        self._unmarked: list[_Done] = []
        self._busy: set[str] = set()
        self._states: dict[str, _State] = {}
        self.turned: Callable[[], object] = lambda: None  # told at each turn of the loop
        self._more = False  # lanes were left for the next turn
        self._beat_at = float("-inf")
        self._looked_at: datetime | None = None

    def run(self, stop: threading.Event) -> None:
        """Send until ``stop`` is set; then wait a little for what is on its way and mark it."""
        while not stop.is_set():
            self.turned()
            try:
                self.step(POLL_SECONDS)
            except Exception as fault:
                # The database may be gone for a while; nothing is lost, so the worker goes on.
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
            self._beat()
        for job in jobs:
            threading.Thread(target=self._send, args=(job,), daemon=True, name="alert").start()
        return len(jobs)

    @property
    def idle(self) -> bool:
        """Nothing is on its way and nothing waits to be marked."""
        return not self._busy and not self._unmarked

    def _collect(self, wait_seconds: float) -> None:
        try:
            first = self._done.get(block=wait_seconds > 0, timeout=wait_seconds)
            self._unmarked += [first] if first is not None else []
            while True:
                more = self._done.get_nowait()
                self._unmarked += [more] if more is not None else []
        except queue.Empty:
            return

    def _turn(self) -> list[_Job]:
        now = self.clock()
        done = list(self._unmarked)
        returning = {one.job.claim.lane for one in done}
        skip = {*(self._busy - returning), *self._asleep(now)}
        self._look_around(now)
        lanes = claims.due_lanes(db.session, now, skip)
        db.session.rollback()  # ends the read, which would otherwise pin an old snapshot
        if not done and not lanes:
            self._more = False
            return []
        tools = self._tools(now)
        claimed: list[Claim] = []
        with writing() as session:
            claims.lock(session)
            for one in done:
                self._mark(one, now)
            digests.hold(session, now)
            free = self._choose([*(lane for lane in lanes if lane not in returning), *returning])
            for lane in free[:MAX_CLAIMS]:
                turn = claims.take_turn(session, lane, self._state(lane).lane, now)
                claimed += [turn.claim] if turn.claim is not None else []
                self._state(lane).asleep_until = now + SLEEP if turn.waits else None
            jobs = self._jobs(claimed, tools, now)
        # Only now: had the transaction failed, all of this would have to be done again.
        self._more = len(free) > MAX_CLAIMS
        del self._unmarked[: len(done)]
        self._busy -= returning
        self._busy |= {job.claim.lane for job in jobs}
        return jobs

    def _look_around(self, now: datetime) -> None:
        """Every few seconds, and before anything is sent: give up what is too old, write the
        digests of quiet hours that have ended, and let go what a clock that was set back holds up.
        """
        if self._looked_at is not None and abs(now - self._looked_at) < LOOK_EVERY:
            return
        waits = claims.outlived(db.session, now) or digests.waiting(db.session, now)
        stuck = claims.free_after_step(db.session, now)
        if stuck:
            log.warning("The clock was set back: %d messages go now.", len(stuck))
        if waits or stuck:
            with writing() as session:
                claims.lock(session)
                claims.give_up_outlived(session, now)
                claims.make_due(session, stuck, now)
                digests.release(session, now)
        self._looked_at = now

    def _asleep(self, now: datetime) -> set[str]:
        asleep = set()
        for lane, state in list(self._states.items()):
            # Never longer than a moment, also where the clock was set back meanwhile.
            if state.asleep_until is not None and now < state.asleep_until <= now + SLEEP:
                asleep.add(lane)
            elif state.lane.last_ok and lane not in self._busy:
                del self._states[lane]  # nothing worth remembering: memory stays small
        return asleep

    def _state(self, lane: str) -> _State:
        return self._states.setdefault(lane, _State())

    def _choose(self, lanes: list[str]) -> list[str]:
        """As many lanes as there are threads for, those that work before those that fail."""
        returning = {one.job.claim.lane for one in self._unmarked}
        busy = self._busy - returning
        room = MAX_LANES - len(busy)
        failing = [lane for lane in lanes if not self._state(lane).lane.last_ok]
        working = [lane for lane in lanes if self._state(lane).lane.last_ok]
        failing_room = MAX_FAILING - sum(not self._state(lane).lane.last_ok for lane in busy)
        return [*working, *failing[: max(0, failing_room)]][: max(0, room)]

    def _jobs(self, claimed: list[Claim], tools: Tools, now: datetime) -> list[_Job]:
        others = claims.others_down(db.session) if claimed else {}
        jobs: list[_Job] = []
        for claim in claimed:
            try:
                jobs.append(self._job(claim, others, tools, now))
            except Exception as fault:
                # One message that cannot be written must not stop all the others.
                log.exception("Delivery %d could not be written.", claim.id)
                reason = f"Wakeful could not write this message ({type(fault).__name__})."
                claims.give_up(db.session, claim.id, reason)
        return jobs

    def _job(self, claim: Claim, others: Mapping[int, str], tools: Tools, now: datetime) -> _Job:
        via = _via(claim)
        context = messages.Context(
            base_url=messages.base_url(self.settings.public_url, self.settings.bind),
            acknowledge_token=lambda incident_id: acknowledgements.make_token(incident_id, via),
            others_down=others,
        )
        message = messages.compose(claim.facts, context)
        return _Job(claim, Outgoing(claim.message_id, claim.value, message, now), tools)

    def _tools(self, now: datetime) -> Tools:
        allowed = self.settings.allow_networks
        if allowed is None:
            allowed = self._access.setting(ALLOW_NETWORKS) or ""
        if allowed != self._allowed:
            self._network = self._make_network(allowed)
        try:
            secrets = webhook_secret.webhook_secrets(self.settings, self._access, now)
        except Conflict:
            secrets = ()  # webhooks then wait and say why; everything else is sent
        db.session.rollback()
        return Tools(self.settings, self._network, secrets)

    def _make_network(self, allowed: str) -> Network:
        self._allowed = allowed
        return Network(Policy.parse(allowed), self._names, self.settings.ca_bundle)

    def _send(self, job: _Job) -> None:
        """On a thread of its own: no database, no application, only the network."""
        try:
            sender = self.senders.get(job.claim.channel)
            found = (
                sender(job.outgoing, job.tools)
                if sender is not None
                else permanent(f"There is no channel {job.claim.channel}.")
            )
        except Exception as fault:
            # The fault's text and its trace's values may hold the channel's secrets.
            log.error("Sending delivery %d failed with %s.", job.claim.id, type(fault).__name__)
            found = retry(f"Sending failed inside Wakeful ({type(fault).__name__}).")
        self._done.put(_Done(job, found))

    def _mark(self, done: _Done, now: datetime) -> None:
        claim, found = done.job.claim, done.answer
        attempt = {"at": moment(now), "ok": found.ok, "answer": found.text}
        state = self._state(claim.lane)
        failed_before = not state.lane.last_ok or claim.tries > 0
        closed = None
        if found.retry_after is not None:
            closed = now + timedelta(seconds=min(found.retry_after, 86_400))
        # A refusal for good says nothing about the channel's health, so it closes no lane.
        healthy = found.verdict is not Verdict.RETRY
        state.lane = Lane(last_ok=healthy, last_at=now, closed_until=closed)
        state.asleep_until = None
        claims.mark(db.session, self._outcome(claim, found, attempt, now))
        if found.ok and failed_before:
            claims.hurry(db.session, claim.lane, now)

    def _outcome(self, claim: Claim, found: Answer, attempt: dict[str, Any], now: datetime) -> Mark:
        if found.ok:
            return Mark(claim, attempt, DeliveryStatus.DELIVERED, None, now)
        if found.verdict is Verdict.PERMANENT:
            return Mark(claim, attempt, DeliveryStatus.FAILED, found.text, now)
        at = retries.next_attempt(claim.began, claim.tries + 1, found.retry_after, now, self.rng)
        if at is None:
            reason = retries.given_up(found.text)
            return Mark(claim, attempt, DeliveryStatus.FAILED, reason, now)
        return Mark(claim, attempt, DeliveryStatus.PENDING, None, now, at)

    def _beat(self) -> None:
        """Tell that this process is alive; seldom, because SQLite has one writer."""
        if time.monotonic() - self._beat_at < HEARTBEAT_SECONDS:
            return
        with writing() as session:
            session.merge(HeartbeatRow(name=self.name, at=self.clock()))
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
        self._busy -= {one.job.claim.lane for one in done}


def _via(claim: Claim) -> str:
    """Who gets the acknowledge link, in words that hold no secret: an address is its reader's
    own.
    """
    if claim.channel == Channel.EMAIL:
        return f"email to {claim.value}"
    return f"{CHANNELS[Channel(claim.channel)].label} message"
