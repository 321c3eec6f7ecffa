"""The checker's loop: gives due checks to a carrier and records their outcomes.

One thread reads and writes schedule and results, one (the prober's) uses the network, and
housekeeping has threads of its own. The schedule of the shards that this checker owns (``shards``)
is computed from the database and cached in memory (``plan``); the change feed updates it
(``changes``). A crash loses the running checks, which the next owner of the shards makes again, and
the results of good checks that wait to be written (``recorder/steady``). "What a restart may lose"
in docs/operate.md has the whole list.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from flask import Flask
from sqlalchemy.exc import SQLAlchemyError

from app.access.settings import Policies
from app.config import PREFIX, Settings
from app.db import (
    assignments,
    changes,
    db,
    latest,
    liveness,
    patience,
    places,
    shards,
    wakeups,
    writing,
)
from app.db.faults import log_fault, passes
from app.db.settings import is_notice_set, store_setting
from app.db.types import record_of
from app.engine import schedule
from app.engine.canaries import Canaries
from app.engine.carriers import CheckCarrier, ProberReport, RemoteNetwork
from app.engine.checking import MAX_IN_TURN, MIN_PAUSE_SECONDS, PlannedLoop, make_prober
from app.engine.housekeeping import Housekeeper
from app.engine.outcomes import OutcomeRecorder
from app.engine.own_shards import LOOK_SECONDS, OwnShards, UnreadShards, make_name
from app.engine.plan import Job, Plan
from app.engine.schedule import Claim, Standing
from app.errors import Conflict
from app.i18n import N_, _
from app.lasting import Lasting
from app.records import Carrier, Notice
from app.rules.time import iso

log = logging.getLogger(__name__)

PACE_SECONDS = 10.0  # how often the pace is adapted to the schedule
POLICY_SECONDS = 5.0
REPORT_SECONDS = 3.0  # how often the reports of probers on a queue are stored
RETRY_SECONDS = 1.0  # between two attempts to use a database that failed
TRY_SECONDS = 1.0  # time limit of such an attempt, because checks wait for it
CHORES_SECONDS = 1.0  # how long a stop waits for a running chore

# The setting that the dashboard shows as a notice. Its value is the time when the network failed.
NOTICE_NETWORK = Notice.NETWORK_DOWN


def _now() -> datetime:
    return datetime.now(UTC)


def _standing(assigned: assignments.Assigned) -> Standing:
    """The standing of a stored assignment, updated by the results that were recorded since."""
    checked_at = latest.later(assigned.checked_at, assigned.newest)
    scheduled_at = schedule.done_until(
        assigned.spec.monitor_id or 0, assigned.interval, assigned.scheduled_at, checked_at
    )
    return record_of(Standing, assigned, scheduled_at=scheduled_at, checked_at=checked_at)


CHECKED_BY = {
    Carrier.LOCAL: N_("a checker on the database (wakeful checker)"),
    Carrier.QUEUE: N_("probers on a queue (wakeful checker --carrier queue)"),
    Carrier.AGENT: N_("an agent (wakeful agent)"),
}


class OtherCarrier(Conflict):
    """The place of this checker has another carrier, which a person or its first checker chose. Two
    checkers with different carriers would share the monitors, but the page of the place shows one
    carrier. The text names the carrier and what to do.
    """


def join(location: str, carrier: Carrier, now: datetime) -> None:
    """Add the place of a checker with its ``carrier``, unless it exists. Raises OtherCarrier if it
    exists with another carrier.
    """
    stored = places.carrier_of(location)
    if stored is None:
        places.add(location, carrier, now)
        stored = places.carrier_of(location)
    if stored != carrier:
        raise OtherCarrier(
            _(
                "The place %(place)s is checked by %(stored)s, not by %(own)s. Set"
                ' %(prefix)sLOCATION to another place, or change "Checked by" of this one under'
                " Settings, Places.",
                place=location,
                stored=_(CHECKED_BY[Carrier(stored)]) if stored in CHECKED_BY else stored,
                own=_(CHECKED_BY[carrier]),
                prefix=PREFIX,
            )
        )


def in_process(settings: Settings, policies: Policies) -> CheckCarrier:
    """The carrier of checks that are made in this process."""
    return make_prober(settings, policies.current)


class Checker:
    """Checks the monitors of its shards until it is stopped. Without ``paced``, all due checks
    start at once (in tests).

    ``carrier`` returns the carrier of the checks. ``remote``: the network of the probers, if other
    processes make the checks.
    """

    def __init__(
        self,
        app: Flask,
        settings: Settings,
        *,
        works: Callable[[], bool] | None = None,
        paced: bool = True,
        carrier: Callable[[Settings, Policies], CheckCarrier] = in_process,
        remote: RemoteNetwork | None = None,
    ) -> None:
        self.app = app
        self.settings = settings
        self._paced = paced
        self._policies = Policies(settings)
        self._canaries = Canaries(settings)
        ask = self._canaries.works if self._canaries.named else None
        self._carrier = carrier
        self._remote = remote
        self._shards = OwnShards(make_name(), settings.location)
        self._feed = changes.Feed()
        self._plan = Plan(timedelta(seconds=settings.confirm_seconds))
        self.checks = PlannedLoop(works or ask, self._plan, _now, remote=remote)
        self._outcomes = OutcomeRecorder(settings.location, self._on_result)
        self._outdated: set[int] = set()  # monitors that the plan must reload
        self._database_down = False  # whether the database could not be used at the last turn
        self._woken = threading.Event()  # another process has noted a change
        # Whether processes that note a change can wake this checker
        self._is_woken: Callable[[], bool] = lambda: False
        self._unread = UnreadShards()
        self._own_carrier = Carrier.LOCAL if remote is None else Carrier.QUEUE
        self._no_start_until = self._shards_at = self._feed_at = float("-inf")
        self._pace_at = self._policy_at = float("-inf")
        self._reported_at = time.monotonic()
        self._log = Lasting(log)
        self._bucket = schedule.Bucket(schedule.MINIMUM_PACE, time.monotonic())

    def run(self, stop: threading.Event) -> None:
        """Check until ``stop`` is set. Then wait for the running checks, record their outcomes and
        release the shards, in 10 s altogether. Raises OtherCarrier.
        """
        with self.app.app_context():
            was_down = False
            with suppress(SQLAlchemyError):  # ``_look_at_shards`` joins later, with a database
                join(self.settings.location, self._own_carrier, _now())
                was_down = is_notice_set(NOTICE_NETWORK)
            self.checks.network.down = self._remote is None and was_down
            self.checks.follow_network()
            self._canaries.recall()
        self.checks.carrier = self._carrier(self.settings, self._policies)
        keeper = Housekeeper(self.app, self.settings, self._policies, self._canaries)
        chores = keeper.start(stop)
        try:
            role, pause = liveness.CHECKER, changes.LOOK_SECONDS
            with wakeups.listening(self.app, role, self._wake, pause) as self._is_woken:
                self.checks.run(lambda: self._try_turn(stop), self._outcomes.add, stop)
        finally:
            keeper.end(stop)  # sets ``stop``, which is not set yet after OtherCarrier
            self._end()
            for chore in chores:
                chore.join(CHORES_SECONDS)

    def _wake(self) -> None:
        """End a wait, because another process has noted a change."""
        self._woken.set()
        self.checks.wake()

    # --- one turn

    def _try_turn(self, stop: threading.Event) -> None:
        """Take a turn. While the database cannot be used, take the part of it that needs none."""
        try:
            if self._database_down:
                self._turn_without_database(stop)
            if not self._database_down or self._database_answers():
                self._turn()
                self._database_down = False
        except OtherCarrier:
            raise
        except Exception as fault:
            log_fault(log, "Results of checks could not be stored. Trying again.", fault)
            self._database_down = passes(fault)
            if not self._database_down:
                stop.wait(RETRY_SECONDS)

    def _turn(self) -> None:
        now = time.monotonic()
        self._notice_step()
        if self._woken.is_set():
            self._woken.clear()  # before the feed is read: a later change wakes again
            self._feed_at = self._policy_at = float("-inf")
        # Most turns only start and collect checks; entering a context would double their cost.
        next_read = min(self._policy_at, self._pace_at, self._shards_at, self._feed_at)
        if now >= next_read or self._unread:
            with self.app.app_context():
                self._refresh_settings(now)
                self._keep_shards(now)
                self._reload_changed(now)
        self._start_due(now)
        next_turn = min(self._start_at, self._shards_at, self._feed_at)
        wait = 0.0 if self._unread else next_turn - time.monotonic()
        self._outcomes.add(self.checks.collect(self._outcomes.wait(wait)))
        if self.checks.network_changed or not self._outcomes.wait(MIN_PAUSE_SECONDS):
            with self.app.app_context():
                if self.checks.network_changed:
                    self._network_changed()
                self._outcomes.record()

    def _turn_without_database(self, stop: threading.Event) -> None:
        """Start checks and keep their results for RETRY_SECONDS, without the database."""
        until = time.monotonic() + RETRY_SECONDS
        while (now := time.monotonic()) < until and not stop.is_set():
            self._notice_step()
            self._start_due(now)
            self._outcomes.add(self.checks.collect(min(self._start_at, until) - now))

    def _database_answers(self) -> bool:
        """Whether the database can be written. It must answer sooner than in a turn, because checks
        wait for it.
        """
        try:
            with self.app.app_context(), patience(TRY_SECONDS):
                liveness.write(liveness.process_name(liveness.PROBE), _now())
        except SQLAlchemyError:
            return False
        return True

    def _notice_step(self) -> None:
        if step := self.checks.notice_step():
            log.warning("The clock was set by %+.0f s.", step)
            self._no_start_until = self._shards_at = float("-inf")

    def _refresh_settings(self, now: float) -> None:
        if now >= self._policy_at:
            self._policies.refresh()
            self._policy_at = now + POLICY_SECONDS
        if now >= self._pace_at:
            self._bucket.pace = schedule.pace(self._plan.checks_per_second)
            self._pace_at = now + PACE_SECONDS

    def _keep_shards(self, now: float) -> None:
        """Keep this checker's part of the shards, and load the assignments of newly taken ones."""
        if now >= self._shards_at:
            self._look_at_shards(now)
        self._read_shards()

    def _look_at_shards(self, now: float) -> None:
        join(self.settings.location, self._own_carrier, _now())
        if self._shards.lapsed(now):
            self._feed = changes.Feed()  # changes that the old feed has not read may be deleted
        self._feed.start()  # before the assignments are read, so that it has later changes
        rate = self.checks.per_minute(now)
        moved = self._shards.look(_now(), now, self._outcomes.last_check_at, rate)
        self._log_duty()
        self._plan.drop_shards(moved.lost)
        if moved.lost:
            self._outcomes.keep_shards(self._shards.tokens)
        self._unread.add(moved.gained)
        self._shards_at = now + (self._shards.pause if self._remote is None else LOOK_SECONDS)
        if self._remote is not None and now - self._reported_at >= REPORT_SECONDS:
            self._report(self._remote.reports(), now)

    def _log_duty(self) -> None:
        place = self.settings.location
        if not self._shards.tokens:
            self._log.info("Standing by: another checker checks for the place %s.", place)
        elif self._remote is None:
            self._log.info("Checking for the place %s.", place)
        else:
            self._log.info("Checking for the place %s: batches for probers go to the queue.", place)

    def _read_shards(self) -> None:
        """Read the next piece of the assignments that are not read yet. If the database fails, the
        next turn reads the piece again.
        """
        self._unread.keep(self._shards.tokens)
        piece = self._unread.next()
        if piece is None:
            return
        self._outcomes.before_reading()
        assigned = assignments.piece(self._shards.place, piece.shards, piece.after_id)
        if not piece.after_id:
            self._plan.drop_shards(piece.shards)
        self._plan_all(assigned)
        self._unread.done(piece, assignments.last_of(assigned))
        self._pace_at = float("-inf")

    def _report(self, reports: Sequence[ProberReport], now: float) -> None:
        """Store the reports of the probers. The number of checks a minute is stored in this
        checker's sign of life, because it gets the outcomes.
        """
        at = _now()
        with writing():
            for report in reports:
                places.store_sign(
                    self.settings.location,
                    at,
                    process=report.process,
                    version=report.version,
                    clock_offset_ms=round(report.clock_offset / timedelta(milliseconds=1)),
                    last_check_at=at if report.checks else None,
                )
        self._reported_at = now

    def _reload_changed(self, now: float) -> None:
        """Reload the monitors that have changed."""
        if now < self._feed_at:
            return
        self._outdated |= self._feed.news()
        own_ids = {id for id in self._outdated if shards.of(id) in self._shards.tokens}
        waiting: set[int] = set()
        if own_ids:
            self._outcomes.before_reading()
            # Monitors with unrecorded outcomes are reloaded later. Until then none of their checks
            # starts.
            waiting = own_ids & self._outcomes.unrecorded()
            assigned = assignments.of_monitors(self._shards.place, own_ids - waiting)
            self._plan.drop(
                own_ids - waiting - {assignment.spec.monitor_id for assignment in assigned}
            )
            self._plan_all(assigned)
        self._outdated = waiting
        rarely = self._is_woken() and not waiting
        self._feed_at = now + (wakeups.POLL_SECONDS if rarely else changes.LOOK_SECONDS)

    def _plan_all(self, assigned: Iterable[assignments.Assigned]) -> None:
        now = _now()
        for assignment in assigned:
            monitor_id = assignment.spec.monitor_id or 0
            shard = shards.of(monitor_id)
            standing = _standing(assignment)
            token = self._shards.tokens[shard]
            job = Job(monitor_id, assignment.spec, assignment.interval, shard, token, standing)
            self._plan.put(job, now)
            self._outcomes.remember(job.claim(), standing, assignment)
        self._no_start_until = float("-inf")

    @property
    def _start_at(self) -> float:
        """When the next checks are to be started (monotonic)."""
        seconds = self.checks.until_due()
        return (
            float("inf")
            if seconds is None
            else max(self._no_start_until, time.monotonic() + seconds)
        )

    def _start_due(self, now: float) -> None:
        """Start the due checks, unless starts pause."""
        if now < self._no_start_until:
            return
        may_start = self._shards.may_start(now) and not self._outcomes.full
        if may_start:
            overdue = -(self.checks.until_due() or 0.0)
            available = self._bucket.available(now, overdue) if self._paced else MAX_IN_TURN
            room = min(MAX_IN_TURN, available)
            # If two results had the same generation, the second would be dropped.
            started = self.checks.start_due(room, without=self._outcomes.unrecorded())
            self._bucket.spend(len(started))
        until_due = self.checks.until_due()
        if until_due is not None and until_due <= 0 and (self._paced or not may_start):
            self._no_start_until = now + MIN_PAUSE_SECONDS

    # --- results

    def _on_result(self, claim: Claim, standing: Standing | None) -> None:
        if self._plan.end(claim, standing, _now()):
            self._outdated.add(claim.monitor_id)
            self._feed_at = float("-inf")

    def _network_changed(self) -> None:
        """Set or remove the notice. When the network is back, the checks that failed because of it
        are repeated.
        """
        down, now = self.checks.network.down, _now()
        if self._remote is None:  # the notice is about the network of this machine
            store_setting(NOTICE_NETWORK, iso(now) if down else None, now)
        self.checks.follow_network()
        if down:
            log.warning("Wakeful's own network does not work: every canary fails.")
        else:
            log.warning("Wakeful's own network works again.")
            self._no_start_until = float("-inf")

    # --- the end

    def _end(self) -> None:
        """Record all outcomes, and give up all shards."""
        with self.app.app_context():
            try:
                self._outcomes.flush()
                self._shards.release_all(_now(), self._outcomes.last_check_at)
            except Exception as fault:
                # The leases expire, and another checker takes the shards.
                log_fault(
                    log, "Running checks could not be recorded, or shards not released.", fault
                )
            finally:
                db.session.remove()
