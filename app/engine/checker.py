"""The loop that checks: takes what is due, hands it to the prober, records what comes back.

One thread talks to the database, one (the prober's) to the network, and housekeeping has its own.
The database says what is due, so a crash loses at most the checks that were on their way: their
leases end and somebody takes them again.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from flask import Flask
from sqlalchemy.exc import SQLAlchemyError

from app.access.networks import Policies
from app.checks.prober import Prober
from app.config import Settings
from app.db import db, heartbeats, leases
from app.db.faults import unavailable
from app.db.settings import keep_setting, noticed
from app.engine import owner, recorder, schedule
from app.engine.canaries import Canaries
from app.engine.housekeeping import Housekeeper
from app.engine.network import Finished, Network
from app.engine.probing import make_prober
from app.records import Cause, CheckSpec, Notice, Outcome
from app.rules.time import iso

log = logging.getLogger(__name__)

BATCH = 200  # results in one transaction
BATCH_SECONDS = 0.05  # how long a result waits for others to be recorded with
CLAIM = 200  # monitors in one claim
LOOK_SECONDS = 0.5  # how soon a new or resumed monitor is noticed
LEAST_LOOK_SECONDS = 0.1
HEARTBEAT_SECONDS = 5.0
PACE_SECONDS = 10.0  # how often the pace follows the number of monitors
POLICY_SECONDS = 2.0
TROUBLE_SECONDS = 1.0  # pause after the database could not be used
STOP_SECONDS = 7.0  # how long a stop waits for checks on their way
CHORES_SECONDS = 1.0  # and then for a chore that is being done
KEPT_AT_MOST = 10_000  # results kept while the database is away

# The setting that the dashboard shows as a notice; its value is since when.
NOTICE_NETWORK = Notice.NETWORK_DOWN


def _now() -> datetime:
    return datetime.now(UTC)


def _was_ours(outcome: Outcome) -> bool:
    return outcome.result.cause_code == Cause.NETWORK_DOWN


class Checker:
    """Runs until it is told to stop. ``paced`` False starts all that is due at once (benchmark)."""

    def __init__(
        self,
        app: Flask,
        settings: Settings,
        *,
        works: Callable[[], bool] | None = None,
        paced: bool = True,
    ) -> None:
        self.app = app
        self.settings = settings
        self.name = heartbeats.process_name(heartbeats.CHECKER)
        self.token = owner.make_token()
        self._paced = paced
        self._policies = Policies(settings)
        self._canaries = Canaries(settings)
        ask = self._canaries.works if self._canaries.named else None
        self._network = Network(works or ask, self.wake)
        self._back: queue.SimpleQueue[Finished | None] = queue.SimpleQueue()
        self._unrecorded: list[Finished] = []
        self._busy: set[int] = set()  # on their way, or not yet recorded
        self._last_check: datetime | None = None
        self._was_down = False
        self.turned: Callable[[], object] = lambda: None  # told at each turn of the loop
        self._due_at = self._beat_at = self._pace_at = self._policy_at = float("-inf")
        self._bucket = schedule.Bucket(schedule.MINIMUM_PACE, time.monotonic())

    def wake(self) -> None:
        """Look at once. Safe from any thread."""
        self._back.put(None)

    def run(self, stop: threading.Event) -> None:
        """Check until ``stop`` is set, then finish or give back what is on its way, within 10 s."""
        with self.app.app_context():
            self._was_down = self._network.down = self._noticed()
            self._canaries.recall()
        prober = make_prober(self.settings, self._policies)
        keeper = Housekeeper(self.app, self.settings, self._policies, self._canaries)
        chores = keeper.start(stop)
        try:
            while not stop.is_set():
                self.turned()
                try:
                    with self.app.app_context():
                        self._turn(prober)
                except Exception:
                    # The database may be away for a while. Nothing is lost: what is due stays due.
                    log.exception("Checks could not be taken or recorded. Trying again.")
                    stop.wait(TROUBLE_SECONDS)
        finally:
            self._finish(prober)
            for chore in chores:
                chore.join(CHORES_SECONDS)

    # --- one turn

    def _turn(self, prober: Prober) -> None:
        now = time.monotonic()
        self._keep_up(now)
        if now >= self._due_at:
            self._start_due(prober, now)
        self._collect(self._due_at - time.monotonic())
        self._record()

    def _keep_up(self, now: float) -> None:
        if now - self._policy_at >= POLICY_SECONDS:
            self._policies.refresh()
            self._policy_at = now
        if now - self._pace_at >= PACE_SECONDS:
            self._bucket.pace = schedule.pace(leases.checks_per_second())
            self._pace_at = now
        if now - self._beat_at >= HEARTBEAT_SECONDS:
            self._free_the_ended()
            self.beat()
            if found := leases.due_after_step(_now(), self.settings.confirm_seconds):
                log.warning("The clock was set back: %d monitors are checked now.", found)
                self._due_at = float("-inf")
            self._beat_at = now

    def _free_the_ended(self) -> None:
        """What a checker that was killed here had on its way is due at once, not when its leases
        end: a restart must not postpone checks. What it recorded meanwhile has moved on.
        """
        ended = [token for token in leases.holders() if owner.has_ended(token)]
        if ended:
            leases.free(ended)
            self._due_at = float("-inf")

    def _start_due(self, prober: Prober, now: float) -> None:
        room = min(CLAIM, self._bucket.available(now)) if self._paced else CLAIM
        started = 0
        due = leases.next_due(_now())
        if due is not None and due <= _now() and room > 0:
            for spec in leases.claim(_now(), self.token, room):
                started += 1
                # A check that outlived its lease is still ours: a second one would overtake it.
                if spec.monitor_id is not None and spec.monitor_id not in self._busy:
                    self._busy.add(spec.monitor_id)
                    prober.submit(spec, partial(self._came_back, spec.monitor_id))
            self._bucket.take(started)
            due = None if started < room else _now()
        self._due_at = now + self._pause(due)

    def _pause(self, due: datetime | None) -> float:
        """Seconds until it is worth looking again."""
        if not self._paced and due is not None and due <= _now():
            return 0.0
        left = LOOK_SECONDS if due is None else (due - _now()).total_seconds()
        return min(LOOK_SECONDS, max(LEAST_LOOK_SECONDS, left))

    def _came_back(self, monitor_id: int, outcome: Outcome) -> None:
        self._back.put((monitor_id, outcome))

    def _collect(self, wait: float) -> None:
        """Take what comes back within ``wait`` seconds; soon after the first, it is enough."""
        finished: list[Finished] = []
        until = time.monotonic() + max(0.0, wait)
        while len(finished) + len(self._unrecorded) < BATCH:
            try:
                one = self._back.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            until = min(until, time.monotonic() + BATCH_SECONDS)
            if one is not None:
                finished.append(one)
        now = time.monotonic()
        self._unrecorded += self._network.sort(finished, now) + self._network.collect(now)

    # --- recording

    def _record(self) -> None:
        if self._network.down != self._was_down:
            self._network_changed()
        if not self._unrecorded:
            return
        batch = self._unrecorded[:BATCH]
        try:
            recorder.record(batch, _now(), token=self.token, location=self.settings.location)
        except Exception as fault:
            if unavailable(fault):
                # Kept, and tried again. The oldest go first when the database stays away for long.
                self._forget(len(self._unrecorded) - KEPT_AT_MOST)
                raise
            log.exception("A batch could not be recorded. Recording its results one by one.")
            self._record_singly(batch)
        self._forget(len(batch))
        self._last_check = _now()
        if not self._network.down and any(_was_ours(outcome) for _id, outcome in batch):
            # They were on their way when our network came back, so the return did not see them.
            leases.due_after_outage(_now())

    def _forget(self, count: int) -> None:
        done = self._unrecorded[: max(0, count)]
        self._busy.difference_update(monitor_id for monitor_id, _outcome in done)
        del self._unrecorded[: len(done)]

    def _record_singly(self, batch: list[Finished]) -> None:
        """One result that cannot be recorded must not take the others with it."""
        for one in batch:
            try:
                recorder.record([one], _now(), token=self.token, location=self.settings.location)
            except Exception as fault:
                if unavailable(fault):
                    raise
                log.exception("The result of monitor %s could not be recorded", one[0])

    def _noticed(self) -> bool:
        """Whether our network was down when the checker before us ended."""
        try:
            return noticed(NOTICE_NETWORK)
        except SQLAlchemyError:
            return False

    def _network_changed(self) -> None:
        """Show the notice, or take it down and check again what could not be checked."""
        down, now = self._network.down, _now()
        since = iso(now)
        keep_setting(NOTICE_NETWORK, since if down else None, now)
        if not down:
            log.warning("Our own network works again.")
            leases.due_after_outage(now)
            self._due_at = float("-inf")
        else:
            log.warning("Our own network does not work: every canary fails.")
        self._was_down = down

    def beat(self) -> None:
        """Say that this checker lives, and when it last finished a check."""
        heartbeats.beat(self.name, _now(), self._last_check)

    # --- the end

    def _finish(self, prober: Prober) -> None:
        """Wait a little for what is on its way, record it, and give the rest back."""
        abandoned = prober.close(timeout=STOP_SECONDS)
        with self.app.app_context():
            try:
                while not self._back.empty() or self._unrecorded:
                    self._collect(0.0)
                    self._record()
                self._give_back(abandoned)
                heartbeats.beat(self.name, _now(), self._last_check, ended_at=_now())
            except Exception:
                # Their leases end by themselves; the next checker then takes them.
                log.exception("What was on its way could not be recorded or given back.")
            finally:
                db.session.remove()

    def _give_back(self, abandoned: list[CheckSpec]) -> None:
        ids = {spec.monitor_id for spec in abandoned if spec.monitor_id is not None}
        leases.release(ids | set(self._network.waiting), self.token)
