"""What has to be done now and then: rollups, retention, domain look-ups, canaries, old counters.

Every checker does it; each chore is safe to do twice at once. A chore that fails is logged and
tried again at its next turn, and holds no other one up for long.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from flask import Flask
from sqlalchemy import delete, or_, select

from app.access import Access
from app.access.networks import Policies
from app.alerts.log import forget_deliveries
from app.alerts.subscribers import forget_unconfirmed
from app.checks.expiry.domain import DomainExpiry, domain_expiry
from app.config import Settings
from app.db import assignments, changes, db, faults, heartbeats, patience, rollups, writing
from app.db.tables import (
    AssignmentRow,
    CancelledEventRow,
    MonitorRow,
    MonitorStateRow,
    ResultRow,
)
from app.db.types import to_ms
from app.engine import domains, posts, recorder
from app.engine.canaries import Canaries
from app.records import Location

log = logging.getLogger(__name__)

MINUTE, HOUR = 60.0, 3600.0
POSTS_SECONDS = 15.0
LOOK_SECONDS = 1.0
MONITORS_AT_ONCE = 20  # whose old results go in one transaction
# Much longer than a checker's lease: one that was away for longer reads everything again.
CHANGES_KEPT = timedelta(hours=2)
CANCELLED_KEPT = timedelta(days=90)  # after the end: calendars have read of it long before
LOOK_UP_SECONDS = 15.0
CHORE_SECONDS = 300.0  # for a statement that goes through a year of results


@dataclass(slots=True)
class Chore:
    """``do`` is called every ``every`` seconds, with an application context."""

    do: Callable[[], object]
    every: float
    due: float = 0.0


class Housekeeper:
    """Two threads: look-ups at registries take long, and the rest must not wait for them."""

    def __init__(
        self,
        app: Flask,
        settings: Settings,
        policies: Policies,
        canaries: Canaries | None = None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        look_up: Callable[[str], DomainExpiry] | None = None,
    ) -> None:
        self.app = app
        self.settings = settings
        self.clock = clock
        self._policies = policies
        self._canaries = canaries or Canaries(settings)
        self._look_up = look_up or self._ask_registry

    def start(self, stop: threading.Event) -> list[threading.Thread]:
        """Do all of it until ``stop`` is set; the threads, to be joined."""
        rounds = {
            "housekeeping": [
                Chore(self.ask_canaries, HOUR),
                Chore(self.roll, MINUTE),
                Chore(self.watch_the_unwatched, MINUTE),
                Chore(self.remind, MINUTE),
                Chore(self.tend_posts, POSTS_SECONDS),
                Chore(self.forget_old, HOUR),
            ],
            "domains": [Chore(self.look_after_domains, MINUTE)],
        }
        threads = [
            threading.Thread(target=self._run, args=(chores, stop), name=name, daemon=True)
            for name, chores in rounds.items()
        ]
        for thread in threads:
            thread.start()
        return threads

    def _run(self, chores: list[Chore], stop: threading.Event) -> None:
        while not stop.wait(LOOK_SECONDS):
            for chore in chores:
                if time.monotonic() >= chore.due and not stop.is_set():
                    self._do(chore)
                    chore.due = time.monotonic() + chore.every

    def _do(self, chore: Chore) -> None:
        try:
            with self.app.app_context(), patience(CHORE_SECONDS):
                chore.do()
        except Exception as fault:
            faults.tell(log, "A chore failed; it is tried again later.", fault)

    # --- the chores

    def ask_canaries(self) -> None:
        """Learn which canaries accept connections, while most likely all is well."""
        self._canaries.learn(self.clock())

    def roll(self) -> None:
        """Sum the results of the hours that are complete."""
        rollups.roll(self.clock())

    def watch_the_unwatched(self) -> None:
        """Give a state and a place to monitors without, or they would never be checked."""
        states, places = MonitorStateRow.monitor_id, AssignmentRow.monitor_id
        lost = (
            select(MonitorRow.id)
            .outerjoin(MonitorStateRow, states == MonitorRow.id)
            .outerjoin(AssignmentRow, places == MonitorRow.id)
            .where(or_(states.is_(None), places.is_(None)))
            .distinct()
        )
        if db.session.scalar(lost.limit(1)) is None:
            return
        with writing() as session:
            for id in session.scalars(lost).all():
                log.warning("Monitor %s was not being watched. Now it is.", id)
                if session.get(MonitorStateRow, id) is None:
                    session.add(MonitorStateRow(monitor_id=id, failures=0))
                if not assignments.of_each(session, [id])[id]:
                    assignments.assign(session, id, [Location.DEFAULT], self.clock())
                changes.note(session, id)

    def remind(self) -> None:
        """Tell again of what is down and nobody has acknowledged."""
        recorder.remind(self.clock())

    def tend_posts(self) -> None:
        """Write what status pages write by themselves."""
        posts.tend(self.clock())

    def forget_old(self) -> None:
        """Delete results, deliveries and changes by age, counters that no window needs, sessions
        that are over, subscribers who have not confirmed, cancelled calendar entries, and signs of
        life of the dead.
        """
        now = self.clock()
        horizon = to_ms(now - timedelta(days=self.settings.retention_days))
        ids = list(db.session.scalars(select(MonitorRow.id)))
        for place in range(0, len(ids), MONITORS_AT_ONCE):
            # Small transactions: the recorder must not wait for a year of results to go.
            with writing() as session:
                session.execute(
                    delete(ResultRow).where(
                        ResultRow.monitor_id.in_(ids[place : place + MONITORS_AT_ONCE]),
                        ResultRow.at < horizon,
                    )
                )
        changes.trim(now - CHANGES_KEPT, now + CHANGES_KEPT)
        forget_deliveries(now - timedelta(days=self.settings.retention_days))
        while forget_unconfirmed(now):
            pass
        heartbeats.forget_old(now)
        with writing() as session:
            session.execute(
                delete(CancelledEventRow).where(CancelledEventRow.end_at < now - CANCELLED_KEPT)
            )
        access = Access(self.settings)
        access.forget_old_counts()
        access.forget_old_sessions()

    def look_after_domains(self) -> None:
        # With a bootstrap of one's own, names that the world does not know can be registered there.
        private = self.settings.rdap_bootstrap is not None
        while domains.name_domains(private=private):
            pass
        until = time.monotonic() + MINUTE
        while time.monotonic() < until and (domain := domains.claim_domain(self.clock())):
            domains.ask(domain, self._look_up)
        domains.tell_expiring(self.clock())

    def _ask_registry(self, domain: str) -> DomainExpiry:
        return domain_expiry(
            domain,
            bootstrap=self.settings.rdap_bootstrap,
            now=self.clock(),
            timeout=LOOK_UP_SECONDS,
            policy=self._policies.current(),
        )
