"""Results with the verdict ``up`` that change nothing: recorded in batches, without reading or
writing a state.

A monitor is steady while one place checks it, its checks are ``up``, and nothing is open or being
confirmed. The owner of its shard then caches the columns that recording needs, and such a result is
one row of the next batch. All other results go through ``results``, which reads the monitor's rows.
A monitor is found to be steady by its rows: by those that the checker reads when it takes a shard
or when the monitor has changed, and by those that ``results`` has read and written.

The cached columns are valid while the shard's token is, and until the monitor is changed, which the
change feed shows. The transaction that writes a batch checks both. A result whose monitor was
changed since is given back, and goes through ``results``.

States and assignments are brought up to date every ``SAVED_SECONDS``, and when the checker ends.
Code that needs the newest check meanwhile asks ``app/db/latest.py``.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from app.db import AnySession, DbSession, changes, db, journal, latest, shards, writing
from app.db.assignments import Assigned
from app.db.locks import Lock, share_lock
from app.db.types import to_ms
from app.db.windows import MaintenanceTimes
from app.engine.recorder import alerting, evidence
from app.engine.recorder.rows import cover_limit_s, state_of
from app.engine.schedule import Claim, Standing, last_scheduled
from app.judge.verdict import Stage, State
from app.records import Outcome, Verdict, Warn

BATCH = 500  # results in one transaction
BATCH_SECONDS = 3.0  # between two writes of results; a kill loses the results of this time
# Between two writes of the evidence of good checks. Only a failure of their monitor needs it.
EVIDENCE_SECONDS = 10.0
# How old the rows of states and assignments may be; twice that if somebody has them locked.
SAVED_SECONDS = 60.0
# Results of all kinds that may wait in memory while the database is unavailable. With so many, no
# check starts.
MAX_WAITING_RESULTS = 10_000

Finished = tuple[Claim, Outcome]


@dataclass(slots=True)
class SteadyMonitor:
    """The cached columns of a steady monitor, with those that ``MaintenanceTimes`` reads.
    ``notified``: people were notified that its certificate expires. ``saved``: its rows are up to
    date. ``left_steady``: a check has changed something; it and all later ones go through
    ``results``, after the results that still wait.
    """

    id: int
    tags: str
    maintenance_start_at: datetime | None
    maintenance_end_at: datetime | None
    shard: int
    token: int
    generation: int
    interval: int
    scheduled_at: datetime
    checked_ms: int
    response_time: int | None
    covers_s: int
    fingerprint: str | None
    notified: bool
    saved: bool = True
    left_steady: bool = False

    def standing(self, checked_at: datetime) -> Standing:
        return Standing(self.generation, self.scheduled_at, checked_at)

    def fits(self, claim: Claim, outcome: Outcome) -> bool:
        """Whether the outcome of this check changes nothing."""
        result = outcome.result
        return (
            result.verdict is Verdict.UP
            and (claim.generation, claim.token) == (self.generation, self.token)
            and outcome.ssl_fingerprint in (None, self.fingerprint)
            and (self.notified or Warn.TLS_EXPIRING not in result.warnings)
        )


def steady_of(
    claim: Claim, monitor: Any, state: State, standing: Standing | None, columns: Mapping[str, Any]
) -> SteadyMonitor | None:
    """The columns to cache of a monitor that no other place checks; None if its next good check may
    change something.

    ``standing``: of this place. ``columns``: those of its state row. A gap before the next check
    does not matter: it is noted only in incidents, and drops only failures.
    """
    if standing is None or monitor.paused or state.checked_at is None:
        return None
    if state.verdict is not Verdict.UP or state.stage is not Stage.CLEAR or state.slow_since:
        return None
    if standing.scheduled_at is None or standing.is_awaited:
        return None  # a request is one more check for the same scheduled time
    fingerprint = columns["ssl_fingerprint"]
    notified = fingerprint and alerting.was_alerted(columns["alerted_certificates"], fingerprint)
    return SteadyMonitor(
        monitor.id, monitor.tags, monitor.maintenance_start_at, monitor.maintenance_end_at,
        claim.shard, claim.token, standing.generation, monitor.interval, standing.scheduled_at,
        checked_ms=to_ms(state.checked_at), response_time=columns["response_time"],
        covers_s=cover_limit_s(monitor), fingerprint=fingerprint, notified=bool(notified),
    )  # fmt: skip


def steady_as_read(claim: Claim, standing: Standing, assigned: Assigned) -> SteadyMonitor | None:
    """``steady_of`` for the rows of a monitor that the checker has just read."""
    row = assigned.row
    if row.has_other_places or row.place_verdict != Verdict.UP or row.place_failures:
        return None  # the next good check must write the place's row
    state = state_of(row, row)
    state = replace(state, checked_at=latest.later(state.checked_at, assigned.newest))
    return steady_of(claim, row, state, standing, row._mapping)


class Steady:
    """The steady monitors of one checker, and the results that wait to be written."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._monitors: dict[int, SteadyMonitor] = {}
        self._waiting: list[Finished] = []
        self._good: dict[int, Any] = {}  # evidence of results that are written
        self._good_at = float("-inf")  # when that evidence is to be stored (monotonic)
        self._newest_change: int | None = None  # the number of the newest change that was followed
        self._written_at = float("-inf")  # monotonic
        self._save_at = time.monotonic() + SAVED_SECONDS
        self._to_save: list[int] = []

    # --- the steady monitors

    def follow_changes(self) -> None:
        """Must be called before the rows are read that are passed to ``remember``: they contain the
        changes until now, which are not followed later.
        """
        if self._newest_change is None:
            self._newest_change = changes.newest()
        else:
            self._follow(db.session)
            db.session.rollback()

    def remember(self, monitor_id: int, monitor: SteadyMonitor | None) -> None:
        """Cache a steady monitor. None: it is not steady, and is dropped."""
        if monitor is None:
            self._monitors.pop(monitor_id, None)
        else:
            self._monitors[monitor_id] = monitor

    def keep_shards(self, tokens: Mapping[int, int]) -> None:
        """Drop the monitors of all other shards."""
        for id in list(self._monitors):
            if not self._is_valid(id, tokens):
                del self._monitors[id]

    # --- results

    @property
    def waiting(self) -> int:
        """How many results wait to be written."""
        return len(self._waiting)

    def wait(self, clock: float) -> float:
        """The seconds until the next batch is to be written. ``clock`` is monotonic."""
        if len(self._waiting) >= BATCH:
            return 0.0
        due = self._written_at + BATCH_SECONDS
        return max(0.0, due - clock) if self._waiting else float("inf")

    def add_if_steady(self, claim: Claim, outcome: Outcome) -> Standing | None:
        """Add a result that changes nothing, and return its monitor's new standing; None for any
        other result. A second result of one scheduled check is dropped: it returns the standing.
        """
        monitor = self._monitors.get(claim.monitor_id)
        if monitor is None or monitor.left_steady:
            return None
        if not monitor.fits(claim, outcome):
            # Later results of the monitor follow this one, also while it cannot be recorded.
            monitor.left_steady = True
            return None
        result = outcome.result
        at = to_ms(result.checked_at)
        scheduled_at = last_scheduled(claim.monitor_id, monitor.interval, result.checked_at)
        if scheduled_at == monitor.scheduled_at:  # its check counted as lost, and another was made
            return monitor.standing(result.checked_at)
        if scheduled_at < monitor.scheduled_at or at <= monitor.checked_ms:
            return None
        monitor.scheduled_at, monitor.checked_ms = scheduled_at, at
        monitor.response_time = result.response_time
        monitor.saved = False
        self._waiting.append((claim, outcome))
        return monitor.standing(result.checked_at)

    def give_back(self) -> list[Finished]:
        """Return all waiting results, which cannot be written as a batch."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def drop_oldest(self) -> None:
        """Drop the oldest waiting results, if there are more than ``MAX_WAITING_RESULTS``."""
        del self._waiting[: max(0, len(self._waiting) - MAX_WAITING_RESULTS)]

    # --- writing

    def write(self, now: datetime) -> list[Finished]:
        """Write the results that wait; returns the checks of monitors that have changed since,
        which are not written.
        """
        if not self._waiting:
            return []
        batch = self._waiting
        journal.assign_numbers([outcome.result for _claim, outcome in batch])
        place = journal.place_id(self._location)
        with writing() as session:
            tokens = shards.locked(session, place, {claim.shard for claim, _outcome in batch})
            # Changes that commit from here on find these results.
            share_lock(session, Lock.CHANGES)
            self._follow(session)
            given_back = self._insert(session, batch, tokens, place, now)
        self._waiting, self._written_at = [], time.monotonic()
        return given_back

    def save(self, *, all: bool = False) -> None:
        """Store the evidence of good checks, and bring the rows of states and assignments up to
        date: a part of them at each call, or ``all``.

        Its transaction is not the one of ``write``: that would deadlock with a process that has
        locked a state, and that waits at its commit for the end of ``write`` (``Lock.CHANGES``).
        """
        clock = time.monotonic()
        saved = self._next_to_save(clock, all=all)
        if not saved and not (self._good and (all or self._evidence_is_due(clock))):
            return
        place = journal.place_id(self._location)
        with writing() as session:
            monitors = [self._monitors[id] for id in (*saved, *self._good) if id in self._monitors]
            tokens = shards.locked(session, place, {monitor.shard for monitor in monitors})
            self._follow(session)
            good = {id: check for id, check in self._good.items() if self._is_valid(id, tokens)}
            # Neither checks nor a stop may wait. A locked state is saved the next time; until then
            # readers find its newest check in the results.
            free = latest.lock_free_states(
                session, [id for id in saved if self._is_valid(id, tokens)]
            )
            saved = [id for id in saved if id in free]
            latest.save(session, place, [self._columns(id) for id in saved])
            journal.store_evidence("last_good", good)
        self._good, self._good_at = {}, clock + EVIDENCE_SECONDS
        for id in saved:
            self._monitors[id].saved = True

    def _evidence_is_due(self, clock: float) -> bool:
        """Whether to store the evidence now: it is time, or one of its monitors has left steady, so
        that its failure may be compared with the evidence.
        """
        steady = (self._monitors.get(id) for id in self._good)
        return clock >= self._good_at or any(
            monitor is None or monitor.left_steady for monitor in steady
        )

    def _next_to_save(self, clock: float, *, all: bool) -> list[int]:
        """The monitors whose states are stored at this call, in the order of their rows. A round
        over all unsaved monitors starts every ``SAVED_SECONDS``.
        """
        if all or clock >= self._save_at:
            self._save_at = clock + SAVED_SECONDS
            unsaved = (id for id, monitor in self._monitors.items() if not monitor.saved)
            self._to_save = sorted(unsaved, reverse=True)
        first = 0 if all else max(0, len(self._to_save) - BATCH)
        part = self._to_save[first:]
        del self._to_save[first:]
        return [id for id in reversed(part) if id in self._monitors]

    def _is_valid(self, id: int, tokens: Mapping[int, int]) -> bool:
        monitor = self._monitors.get(id)
        return monitor is not None and tokens.get(monitor.shard) == monitor.token

    def _follow(self, session: AnySession) -> None:
        """Drop the monitors that have changed; all of them, if the feed lacks changes, as after the
        restore of a backup.
        """
        changed = changes.following(session, self._newest_change or 0)
        if changed is None:
            self._monitors.clear()
            self._newest_change = changes.newest_of(session)
            return
        for number, monitor_id in changed:
            self._newest_change = number
            self._monitors.pop(monitor_id, None)

    def _insert(
        self,
        session: DbSession,
        batch: Collection[Finished],
        tokens: Mapping[int, int],
        place: int,
        now: datetime,
    ) -> list[Finished]:
        windows, rows, given_back = MaintenanceTimes(session, now), [], []
        for finished in batch:
            claim, outcome = finished
            monitor = self._monitors.get(claim.monitor_id)
            if monitor is None or tokens.get(claim.shard) != claim.token:
                given_back.append(finished)
                continue
            row = journal.row_of(outcome.result, place, monitor.covers_s)
            row["maintenance"] = windows.covers(monitor, outcome.result.checked_at)
            rows.append(row)
            if outcome.evidence is not None:
                # Not every kind of check sets its place.
                result = replace(outcome.result, location=self._location)
                self._good[claim.monitor_id] = evidence.entry_of(replace(outcome, result=result))
        journal.insert_results(rows)
        return given_back

    def _columns(self, id: int) -> tuple[int, int, int | None, int, int]:
        monitor = self._monitors[id]
        scheduled_ms = to_ms(monitor.scheduled_at)
        return id, monitor.checked_ms, monitor.response_time, scheduled_ms, monitor.generation
