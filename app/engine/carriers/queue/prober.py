"""The prober's end of the queue: a Celery worker that makes the checks of a place.

A task only passes its batch to the prober of this process, which runs thousands of checks in
parallel. Outcomes are sent as they come, so a slow target delays no other. Tasks run one by one, in
Celery's main thread (``pool="solo"``): while one waits for room, no other batch is taken.
"""

from __future__ import annotations

import base64
import logging
import os
import secrets
import socket
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from celery import signals
from celery.exceptions import SecurityWarning
from redis.exceptions import RedisError

from app.checks.prober import Prober
from app.codec.packing import pack
from app.codec.sealing import BatchKey
from app.codec.specs import read_spec
from app.codec.values import MalformedData, record_id
from app.config import PREFIX, Settings
from app.engine.carriers import Finished
from app.engine.carriers.queue import broker
from app.engine.carriers.queue.broker import BROKER_FAULTS, MessageRefused, QueueFaults
from app.engine.checking import STOP_SECONDS, CheckLoop, make_prober, own_canaries, own_policy
from app.engine.schedule import Claim
from app.i18n import _
from app.records import CheckSpec, Outcome
from app.version import __version__

log = logging.getLogger(__name__)

SEND_SECONDS = 0.2  # how long an outcome waits for others, to be sent in one message
ALIVE_SECONDS = 1.0  # how often each checker gets the ids of its running batches
SIGN_SECONDS = 2.0  # how often all checkers of the place get a sign of life
MAX_RUNNING = 4_000  # checks; more batches wait in Redis, where another prober can take them
MAX_REPLY = 500
MAX_UNSENT = 20_000  # outcomes kept while Redis is away; the checks are repeated anyway


@dataclass(slots=True)
class _RunningBatch:
    """A batch, and its unfinished checks. ``to``: the checker that sent it."""

    to: str
    tickets: set[int]


class Desk:
    """Takes batches, and sends outcomes. ``reply`` sends a sealed message to a checker's list, or
    raises. ``claim``: ``broker.claim`` for the id of a batch. ``listeners`` returns the names of
    the lists of the place's checkers.
    """

    def __init__(
        self,
        settings: Settings,
        prober: Prober,
        reply: Callable[[str, bytes], None],
        claim: Callable[[str], bool],
        works: Callable[[], bool] | None = None,
        listeners: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        _url, key = broker.broker_and_key(settings)
        self.name = f"prober:{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(3)}"
        self.location = settings.location
        self._key = BatchKey(key)
        about = broker.about_checks(self.location)
        self._receiver = broker.Receiver(self._key, about, dated="at", plural="Batches")
        self.taken = 0  # batches so far, with those that were refused
        self._prober = prober
        self._checks = CheckLoop(works, gather=SEND_SECONDS)
        self._checks.carrier = prober
        self._reply = reply
        self._claim = claim
        self._listeners = listeners
        self._lock = threading.Lock()
        # Under ``_lock``
        self._batches: dict[str, _RunningBatch] = {}
        self._claims: dict[int, tuple[str, int]] = {}  # batch and ticket
        self._unsent: dict[str, list[Any]] = defaultdict(list)
        self._last_claim = 0
        self._closing, self._ended = False, threading.Event()
        self._alive_at = self._sign_at = float("-inf")
        self._faults = QueueFaults("sending outcomes")
        self._thread = threading.Thread(target=self._run, name="outcomes", daemon=True)
        self._thread.start()

    def take(self, sealed: bytes) -> None:
        """Wait for room, and start the checks of a batch. Raises MessageRefused, and the errors of
        ``claim``.
        """
        self.taken += 1
        batch, ahead = self._receiver.open(sealed, datetime.now(UTC))
        age = max(0.0, -ahead.total_seconds())
        checks = [(ticket, _spec(packed)) for ticket, packed in batch["checks"]]
        if not self._claim(batch["id"]):
            raise MessageRefused("A batch came too late: its checks are made by another prober.")
        with self._lock:  # from now on, messages to the checker name the batch
            tickets = {ticket for ticket, _spec in checks}
            self._batches[batch["id"]] = _RunningBatch(batch["to"], tickets)
        self._wait_for_room(batch["id"], time.monotonic() + broker.FRESH_SECONDS - age)
        self._begin(batch["id"], checks)

    def _wait_for_room(self, batch_id: str, until: float) -> None:
        """Wait until there is room. Raises MessageRefused after ``until`` (monotonic); the checker
        then sends the checks again.
        """
        while not (self.has_room() or self._closing):
            if time.monotonic() >= until:
                with self._lock:
                    del self._batches[batch_id]
                raise MessageRefused(
                    "A batch is dropped: there was no room for its checks in"
                    f" {broker.FRESH_SECONDS:.0f} s. This prober has too much to do; start another"
                    " one."
                )
            time.sleep(SEND_SECONDS)

    def _begin(self, batch_id: str, checks: list[tuple[int, CheckSpec]]) -> None:
        claimed: list[tuple[CheckSpec, Claim]] = []
        with self._lock:
            for ticket, spec in checks:
                self._last_claim += 1
                self._claims[self._last_claim] = batch_id, ticket
                claimed.append((spec, Claim(spec.monitor_id or 0, generation=self._last_claim)))
        try:
            for spec, claim in claimed:
                self._checks.start(spec, claim)
        except RuntimeError:
            raise MessageRefused("A batch came while this prober was ending.") from None

    def has_room(self) -> bool:
        return self._prober.in_flight <= MAX_RUNNING

    def stop_waiting(self, **_signal: object) -> None:
        """End the wait for room of the present batch and of later ones."""
        self._closing = True

    def close(self, timeout: float) -> None:
        """Wait for running checks, and send their outcomes."""
        self.stop_waiting()
        self._prober.close(timeout)
        self._ended.set()
        self._checks.wake()
        self._thread.join(timeout)

    # --- outcomes

    def _run(self) -> None:
        self._checks.run(self._turn, self._keep, self._ended)
        self._send(to_all=False)

    def _turn(self) -> None:
        try:
            self._keep(self._checks.collect(ALIVE_SECONDS))
            now = time.monotonic()
            is_due = now - self._alive_at >= ALIVE_SECONDS
            self._send(to_all=is_due)
            if is_due:
                self._alive_at = now
            if now - self._sign_at >= SIGN_SECONDS:
                self._sign_at = now
                self._send_signs()
        except Exception as fault:
            self._faults.log_fault(fault)

    def _keep(self, finished: list[Finished]) -> None:
        """Keep outcomes until they are sent."""
        with self._lock:
            for claim, outcome in finished:
                batch_id, ticket = self._claims.pop(claim.generation)
                running = self._batches[batch_id]
                running.tickets.discard(ticket)
                self._unsent[running.to].append([ticket, self._packed(outcome)])
                if not running.tickets:
                    del self._batches[batch_id]

    def _packed(self, outcome: Outcome) -> Any:
        """The packed outcome; None if it cannot be packed. The checker logs that, and does not send
        the check again.
        """
        try:
            return pack(outcome)
        except Exception as fault:
            self._faults.log_fault(fault)
            return None

    def _send(self, *, to_all: bool) -> None:
        """Send outcomes to the checkers. With ``to_all``, checkers without an outcome get the ids
        of their running batches.
        """
        with self._lock:
            running: dict[str, list[str]] = defaultdict(list)
            for batch_id, batch in self._batches.items():
                running[batch.to].append(batch_id)
            unsent, self._unsent = self._unsent, defaultdict(list)
        for to in unsent.keys() | (running.keys() if to_all else set()):
            self._send_to(to, unsent.get(to, []), running.get(to, []))

    def _send_signs(self) -> None:
        """Send a sign of life to all checkers of the place: a prober may have nothing to do for an
        hour, and a dead one would look the same.
        """
        names = self._listeners()
        self._faults.end()
        for to in names:
            self._send_to(to, [], [])

    def _send_to(self, to: str, outcomes: list[Any], running: list[str]) -> None:
        for start in range(0, max(1, len(outcomes)), MAX_REPLY):
            part = outcomes[start : start + MAX_REPLY]
            message = {
                "prober": self.name,
                "version": __version__,
                "now": datetime.now(UTC).isoformat(),
                "network_down": self._checks.network.down,
                "running": running,
                "outcomes": part,
            }
            try:
                self._reply(to, self._key.seal(message, broker.about_outcomes(self.location, to)))
            except BROKER_FAULTS as fault:
                self._faults.log_fault(fault)
                with self._lock:
                    unsent = outcomes[start:] + self._unsent[to]
                    self._unsent[to] = unsent[-MAX_UNSENT:]
                return
            self._faults.end()


def make_desk(settings: Settings) -> Desk:
    """The desk of this process, which has threads."""
    broker_url, _key = broker.broker_and_key(settings)
    client = broker.make_redis(broker_url)

    def reply(to: str, sealed: bytes) -> None:
        with client.pipeline() as pipe:
            pipe.rpush(to, sealed)
            pipe.expire(to, broker.RETENTION_SECONDS)
            pipe.execute()

    prober = make_prober(settings, own_policy(settings, "this prober"))
    names = partial(broker.listeners, client, settings.location)
    return Desk(
        settings, prober, reply, partial(broker.claim, client), own_canaries(settings), names
    )


def end_if_silent(watch: Watch, end: Callable[[], None], stop: threading.Event) -> None:
    """Wait until the consumer is silent, and call ``end``; or until ``stop`` is set."""
    while not stop.wait(LOOK_SECONDS):
        if watch.is_silent(time.monotonic()):
            log.error(
                "Batches wait in the queue, and this prober has received none for %.0f s. It ends, "
                "so that its service manager starts it again.",
                SILENT_SECONDS,
            )
            end()
            return


def _spec(packed: Any) -> CheckSpec:
    """Read a check spec. If it is malformed, the spec has a ``fault``, which becomes its outcome:
    the other checks of the batch are made, and the monitor's page shows why this one is not.
    """
    try:
        return read_spec(packed)
    except MalformedData as field:
        id = record_id(packed.get("monitor_id")) if isinstance(packed, Mapping) else None
        why = _("Not checked: the prober cannot use what it was sent (%(field)s).", field=field)
        return CheckSpec(url="", monitor_id=id, fault=why)


def run(settings: Settings) -> int:
    """Work until SIGTERM or SIGINT; returns the exit code."""
    broker_url, _key = broker.broker_and_key(settings)
    own_queue = broker.queue_of(settings.location)
    log.info("Checking for the place %s: batches from the queue %s.", settings.location, own_queue)
    celery, client = broker.make_celery(broker_url), broker.make_redis(broker_url)
    desk, faults, stop = make_desk(settings), QueueFaults("taking a batch"), threading.Event()

    @celery.task(name=broker.TASK)  # type: ignore[untyped-decorator]  # Celery ships no types
    def checks(sealed: str) -> None:
        try:
            desk.take(base64.b64decode(sealed))
        except Exception as fault:
            faults.log_fault(fault)  # Celery would log the arguments
        else:
            faults.end()

    def end() -> None:
        """End the process without Celery, whose consumer hangs."""
        desk.close(STOP_SECONDS)
        os._exit(1)

    watch = Watch(
        settings.location,
        waiting=lambda: int(client.llen(own_queue)),
        taken=lambda: desk.taken,
        has_room=desk.has_room,
        started_at=time.monotonic(),
    )
    watching = threading.Thread(target=end_if_silent, args=[watch, end, stop], daemon=True)
    watching.start()
    signals.worker_shutting_down.connect(desk.stop_waiting)
    # A container often runs as root. Celery warns because of pickle, which is not accepted here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    worker = celery.Worker(
        queues=[own_queue],
        pool="solo",
        hostname=f"prober-{os.getpid()}@{socket.gethostname()}",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel=logging.WARNING,
        quiet=True,
    )
    worker.start()
    stop.set()
    desk.close(STOP_SECONDS)
    return int(worker.exitcode or 0)


SILENT_SECONDS = 45.0  # longer than Celery takes to connect again, and than a batch is valid
FIRST_SECONDS = 60.0
LOOK_SECONDS = 5.0


@dataclass(slots=True)
class Watch:
    """A prober's watch on its Celery consumer: whether it has fallen silent, and whether it has
    ever received a batch.

    Celery's consumer can lose Redis for a moment, log that it is connected again, and never take
    another task (celery/celery#10302). Its process looks alive, so no service manager restarts it:
    the prober must end itself. A prober that never gets a batch may have a misspelt place, which it
    cannot look up, because it has no database.

    ``waiting`` returns how many batches are in the queue, or raises RedisError. ``taken`` returns
    how many have been taken so far, ``has_room`` whether this process would take one now.
    ``started_at``: when the process started (monotonic).
    """

    location: str
    waiting: Callable[[], int]
    taken: Callable[[], int]
    has_room: Callable[[], bool]
    started_at: float
    _taken: int = field(init=False, default=-1)
    _since: float | None = field(init=False, default=None)
    _warned: bool = field(init=False, default=False)

    def is_silent(self, now: float) -> bool:
        """Whether batches have waited at each call for SILENT_SECONDS, and none was taken. Called
        every few seconds; ``now`` is monotonic.
        """
        try:
            waiting, taken = self.waiting(), self.taken()
        except RedisError:  # the consumer connects again
            self._since = None
            return False
        self._warn_of_none(now)
        if taken != self._taken or not waiting or not self.has_room():
            self._taken, self._since = taken, None
            return False
        if self._since is None:
            self._since = now
        return now - self._since >= SILENT_SECONDS

    def _warn_of_none(self, now: float) -> None:
        """Log once that no batch has come: the name of the place may be misspelt."""
        if self._warned or now - self.started_at < FIRST_SECONDS:
            return
        self._warned = True
        if not self.taken():
            log.warning(
                "No batch has come to this prober in its first minute. If monitors are checked "
                "from the place %s and no other prober takes its batches: is the name right, and "
                'does "%sLOCATION=%s wakeful checker --carrier queue" run with the same broker?',
                self.location,
                PREFIX,
                self.location,
            )
