"""Periodic chores, such as rollups, retention, domain look-ups, canaries and reminders.

Every checker runs them, so each chore is safe to run twice in parallel. A chore that fails is
logged and run again when it is next due.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from flask import Flask
from sqlalchemy import and_, delete, or_, select

from app.access import Access, dashboard_hosts, security_log
from app.access.settings import Policies
from app.alerts.log import forget_deliveries
from app.alerts.subscribers import delete_unconfirmed
from app.checks.expiry.domain import DomainExpiry, domain_expiry
from app.config import Settings
from app.db import (
    assignments,
    changes,
    db,
    faults,
    liveness,
    packed,
    patience,
    places,
    rollups,
    tables,
    writing,
)
from app.db.statements import pieces
from app.db.types import from_ms, to_ms
from app.engine import domains, posts, recorder, report_mails
from app.engine.canaries import Canaries
from app.engine.deadlines import DeadlineWatch
from app.engine.silence_watch import EVERY_SECONDS, SilenceWatch
from app.records import DEFAULT_PLACE_ID, MARKERS_KEPT_DAYS
from app.stats.tally import HOUR_MS

log = logging.getLogger(__name__)

MINUTE, HOUR = 60.0, 3600.0
POSTS_SECONDS = 15.0
MIN_PAUSE_SECONDS = 1.0
MONITORS_PER_TRANSACTION = 20  # whose old results are deleted
# Much longer than a checker's lease: after a longer interruption, a checker reloads everything.
CHANGES_RETENTION = timedelta(hours=2)
MARKERS_RETENTION = timedelta(days=MARKERS_KEPT_DAYS)
CANCELLED_RETENTION = timedelta(days=90)  # after the event's end; calendars have read it by then
LOOK_UP_SECONDS = 15.0
PACK_SECONDS = 5.0  # in each minute, because other tasks wait; there may be years to pack
CHORE_SECONDS = 300.0  # time limit of a statement; some read a year of results


@dataclass(slots=True)
class Chore:
    """A periodic task: ``do`` is called with the time every ``every`` seconds, with an application
    context.
    """

    do: Callable[[datetime], object]
    every: float
    due: float = 0.0


class Housekeeper:
    """Runs the chores. Look-ups in registries, which take long, and the deadlines of heartbeats,
    which must not wait, have separate threads.
    """

    def __init__(
        self,
        app: Flask,
        settings: Settings,
        policies: Policies,
        canaries: Canaries | None = None,
        *,
        look_up: Callable[[str], DomainExpiry] | None = None,
    ) -> None:
        self.app = app
        self.settings = settings
        self._silence_watch = SilenceWatch(datetime.now(UTC))
        self._deadlines = DeadlineWatch()
        self._policies = policies
        self._canaries = canaries or Canaries(settings)
        self._look_up = look_up or self._ask_registry

    def start(self, stop: threading.Event) -> list[threading.Thread]:
        """Run the chores until ``stop`` is set; returns the threads, to be joined."""
        rounds = {
            "housekeeping": [
                # At the start, when the network probably works
                Chore(self._canaries.learn, HOUR),
                Chore(rollups.roll, MINUTE),
                Chore(partial(packed.pack_old, seconds=PACK_SECONDS), MINUTE),
                Chore(repair_unassigned, MINUTE),
                Chore(recorder.remind, MINUTE),
                Chore(posts.write_due, POSTS_SECONDS),
                Chore(self._silence_watch.look, EVERY_SECONDS),
                Chore(report_mails.send, MINUTE),
                Chore(lambda _now: security_log.log_left_out(), MINUTE),
                Chore(self.delete_old, HOUR),
            ],
            "domains": [Chore(self.check_domains, MINUTE)],
        }
        loops = {name: partial(self._run, chores, stop) for name, chores in rounds.items()}
        loops["deadlines"] = partial(self._deadlines.run, self.app, stop)
        threads = [
            threading.Thread(target=run, name=name, daemon=True) for name, run in loops.items()
        ]
        for thread in threads:
            thread.start()
        return threads

    def end(self, stop: threading.Event) -> None:
        """Set ``stop``, and wake the thread that waits for a deadline."""
        stop.set()
        self._deadlines.wake()

    def _run(self, chores: list[Chore], stop: threading.Event) -> None:
        pause = MIN_PAUSE_SECONDS
        while not stop.wait(pause):
            for chore in chores:
                if time.monotonic() >= chore.due and not stop.is_set():
                    self._do(chore)
                    chore.due = time.monotonic() + chore.every
            next_due = min(chore.due for chore in chores)
            pause = max(MIN_PAUSE_SECONDS, next_due - time.monotonic())

    def _do(self, chore: Chore) -> None:
        try:
            with self.app.app_context(), patience(CHORE_SECONDS):
                chore.do(datetime.now(UTC))
        except Exception as fault:
            faults.log_fault(log, "A periodic task failed. Wakeful will retry it.", fault)

    # --- the chores

    def delete_old(self, now: datetime) -> None:
        """Delete what is old: results, pings, deliveries, markers, changes, counters, sessions,
        links, unconfirmed subscribers, cancelled calendar entries, lines of the audit log, and the
        signs of life of processes that have ended.
        """
        horizon = to_ms(now - timedelta(days=self.settings.retention_days))
        ids = list(db.session.scalars(select(tables.MonitorRow.id)))
        # Small transactions: the recorder must not wait until a year of results is deleted.
        for part in pieces(ids, MONITORS_PER_TRANSACTION):
            with writing() as session:
                for table, is_old in (
                    (tables.ResultRow, tables.ResultRow.at < horizon),
                    (tables.PackedHourRow, tables.PackedHourRow.hour < horizon // HOUR_MS),
                    (tables.PingRow, tables.PingRow.at < from_ms(horizon)),
                ):
                    session.execute(delete(table).where(table.monitor_id.in_(part), is_old))
        changes.trim(now - CHANGES_RETENTION, now + CHANGES_RETENTION)
        forget_deliveries(now - timedelta(days=self.settings.retention_days))
        while delete_unconfirmed(now):
            pass
        places.store_signs(now)
        liveness.delete_old(now)
        with writing() as session:
            ended_before, markers_before = now - CANCELLED_RETENTION, now - MARKERS_RETENTION
            session.execute(
                delete(tables.CancelledEventRow).where(
                    tables.CancelledEventRow.end_at < ended_before
                )
            )
            session.execute(delete(tables.MarkerRow).where(tables.MarkerRow.time < markers_before))
        Access().forget_old()
        dashboard_hosts.forget_old(now)

    def check_domains(self, now: datetime) -> None:
        """Ask for the expiry of domains, and alert to those that expire soon."""
        # A configured RDAP bootstrap may also list private top-level domains.
        private = self.settings.rdap_bootstrap is not None
        while domains.name_domains(private=private):
            pass
        until = time.monotonic() + MINUTE
        while time.monotonic() < until and (domain := domains.claim_domain(now)):
            domains.ask(domain, self._look_up)
        domains.alert_expiring(now)

    def _ask_registry(self, domain: str) -> DomainExpiry:
        return domain_expiry(
            domain,
            bootstrap=self.settings.rdap_bootstrap,
            now=datetime.now(UTC),
            network=self.settings.network(self._policies.current()),
            timeout=LOOK_UP_SECONDS,
        )


def repair_unassigned(now: datetime) -> None:
    """Give a state and a place to monitors without one, which would never be checked."""
    states, places = tables.MonitorStateRow.monitor_id, tables.AssignmentRow.monitor_id
    pinged = tables.HeartbeatStateRow.monitor_id  # a heartbeat has no place
    unassigned = (
        select(tables.MonitorRow.id)
        .outerjoin(tables.MonitorStateRow, states == tables.MonitorRow.id)
        .outerjoin(tables.AssignmentRow, places == tables.MonitorRow.id)
        .outerjoin(tables.HeartbeatStateRow, pinged == tables.MonitorRow.id)
        .where(or_(states.is_(None), and_(places.is_(None), pinged.is_(None))))
        .distinct()
    )
    if db.session.scalar(unassigned.limit(1)) is None:
        return
    with writing() as session:
        for id in session.scalars(unassigned).all():
            log.warning("Monitor %s had no state or place and was not checked. Now it is.", id)
            if session.get(tables.MonitorStateRow, id) is None:
                session.add(tables.MonitorStateRow(monitor_id=id, failures=0))
            heartbeat = session.get(tables.HeartbeatStateRow, id)
            if heartbeat is None and not assignments.of_each(session, [id])[id]:
                assignments.assign(session, id, [DEFAULT_PLACE_ID], now)
            changes.note(session, id)
