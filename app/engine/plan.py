"""The schedule of a process's monitors, in memory: which check is due next, and which checks run.

A checker loads it from the database when it takes a shard and when a monitor changes, an agent from
the server's answers. This module uses neither clock nor database: ``now`` is an argument.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.engine.schedule import Claim, Standing, due
from app.records import CheckSpec


@dataclass(slots=True)
class Job:
    """A monitor to check. ``interval`` is in seconds; ``shard`` and ``token`` are 0 in an agent.
    ``due``: when to check it or, while a check runs, when that check counts as lost.
    """

    monitor_id: int
    spec: CheckSpec
    interval: int
    shard: int
    token: int
    standing: Standing
    due: datetime | None = None

    def claim(self) -> Claim:
        return Claim(self.monitor_id, self.shard, self.token, self.standing.generation)


def _is_same(claim: Claim, other: Claim | None) -> bool:
    """Whether two claims of a monitor are for the same check."""
    started = claim.shard, claim.token, claim.generation
    return other is not None and started == (other.shard, other.token, other.generation)


# Checks that are due within the same quarter second, and that nobody waits for, begin together at
# its end.
ROUNDS_A_SECOND = 4
# A running check counts as lost so long after its time limit: it may have waited in the prober, or
# its result may wait to be recorded.
LOST_AFTER = timedelta(seconds=30)


def end_of_round(moment: datetime) -> datetime:
    """When a check that is due at ``moment`` and that nobody waits for begins."""
    rounds = math.ceil(moment.timestamp() * ROUNDS_A_SECOND)
    return datetime.fromtimestamp(rounds / ROUNDS_A_SECOND, UTC)


class Plan:
    """The schedule. ``pause``: the time before an unconfirmed check is repeated."""

    def __init__(self, pause: timedelta) -> None:
        self._pause = pause
        self._jobs: dict[int, Job] = {}
        self._heap: list[tuple[datetime, int]] = []
        self._running: dict[int, Claim] = {}  # checks, by monitor
        self._network = True  # whether Wakeful's own network works

    @property
    def checks_per_second(self) -> float:
        """How many checks a second the schedule needs, on average."""
        return sum(1.0 / job.interval for job in self._jobs.values())

    # --- the monitors

    def put(self, job: Job, now: datetime) -> None:
        """Add a monitor, or replace its job."""
        self._jobs[job.monitor_id] = job
        if not _is_same(job.claim(), self._running.get(job.monitor_id)):
            # The running check was started before a change, so its result is dropped.
            self._running.pop(job.monitor_id, None)
        self._push(job, now)

    def drop(self, monitor_ids: Iterable[int]) -> None:
        for monitor_id in monitor_ids:
            self._jobs.pop(monitor_id, None)

    def drop_shards(self, numbers: Collection[int]) -> None:
        ids = [job.monitor_id for job in self._jobs.values() if job.shard in numbers]
        self.drop(ids)

    # --- due checks

    def begin_due(self, now: datetime, limit: int) -> list[Job]:
        """Up to ``limit`` due monitors, the longest overdue first. Their checks count as running
        until ``end``; a check that never ends is due again after its time limit.
        """
        begun: list[Job] = []
        for job in self._next():
            if job.due is None or job.due > now or len(begun) >= limit:
                break
            heapq.heappop(self._heap)
            if self._request_expired(job, now):
                self._running.pop(job.monitor_id, None)
                self._push(job, now)
                continue
            self._running[job.monitor_id] = job.claim()
            self._push(job, now)
            begun.append(job)
        return begun

    def next(self) -> datetime | None:
        """When the next check is due; None if there is none."""
        return next((job.due for job in self._next()), None)

    def end(self, claim: Claim, standing: Standing | None, now: datetime) -> bool:
        """End a running check. ``standing``: the monitor's new standing; None if the check was
        dropped. Returns whether the monitor must be reloaded.
        """
        job = self._jobs.get(claim.monitor_id)
        if _is_same(claim, self._running.get(claim.monitor_id)):
            del self._running[claim.monitor_id]
        elif standing is None:
            return False  # dropped because of a change that the plan has already loaded
        if job is None:
            return False
        if standing is None:
            return True
        job.standing = standing
        self._push(job, now)
        return False

    # --- changes that affect all due times

    def set_network(self, works: bool, now: datetime) -> None:
        """Note whether the network works: checks that failed because of it wait until it does."""
        if works != self._network:
            self._network = works
            self.rearrange(now)

    def set_confirm_delay(self, pause: timedelta, now: datetime) -> None:
        """Change the pause before the check of an unconfirmed result is repeated."""
        if pause != self._pause:
            self._pause = pause
            self.rearrange(now)

    def rearrange(self, now: datetime) -> None:
        """Compute all due times again, as after the clock was set."""
        self._heap.clear()
        for job in self._jobs.values():
            self._push(job, now)

    def _request_expired(self, job: Job, now: datetime) -> bool:
        """Whether the job was due only because of a request that is now too old."""
        return job.standing.asked_at is not None and self._due(job, now) > now

    def _due(self, job: Job, now: datetime) -> datetime:
        moment = due(
            job.monitor_id, job.interval, job.standing, now, self._pause, network=self._network
        )
        return moment if moment <= now or job.standing.is_awaited else end_of_round(moment)

    def _push(self, job: Job, now: datetime) -> None:
        if job.monitor_id in self._running:
            job.due = now + timedelta(seconds=job.spec.timeout) + LOST_AFTER
        else:
            job.due = self._due(job, now)
        heapq.heappush(self._heap, (job.due, job.monitor_id))
        if len(self._heap) > 100 + 4 * len(self._jobs):
            self._heap = [(job.due, job.monitor_id) for job in self._jobs.values() if job.due]
            heapq.heapify(self._heap)

    def _next(self) -> Iterator[Job]:
        """Yield the first job of the heap repeatedly; entries of former due times are removed."""
        while self._heap:
            moment, monitor_id = self._heap[0]
            job = self._jobs.get(monitor_id)
            if job is None or job.due != moment:
                heapq.heappop(self._heap)
            else:
                yield job
