"""Take outcomes of checks, sort out failures of our own network, and record them in batches."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable
from datetime import UTC, datetime

from app.db.faults import passes
from app.engine import recorder
from app.engine.carriers import RemoteNetwork
from app.engine.network import Finished, Network
from app.engine.schedule import Claim, Standing
from app.records import Outcome

log = logging.getLogger(__name__)

BATCH = 200  # results in one transaction
BATCH_SECONDS = 0.05  # how long a result waits for others to be recorded with
KEPT_AT_MOST = 10_000  # results kept in memory while the database is unavailable


class Returns:
    """``told`` is called for each check that was recorded (with its monitor's new standing) or
    dropped (with None). It is not called if a bug keeps a check from being recorded, so that the
    check is not repeated at once. Recording needs an application context.
    """

    def __init__(
        self,
        network: Network | RemoteNetwork,
        location: str,
        told: Callable[[Claim, Standing | None], None],
    ) -> None:
        self._network = network
        self._location = location
        self._told = told
        self._back: queue.SimpleQueue[Finished | None] = queue.SimpleQueue()
        self._unrecorded: list[Finished] = []
        self.last_check_at: datetime | None = None

    def wake(self) -> None:
        """End a wait. Safe from any thread."""
        self._back.put(None)

    def came_back(self, claim: Claim, outcome: Outcome) -> None:
        """Safe from any thread."""
        self._back.put((claim, outcome))

    @property
    def waiting(self) -> bool:
        return bool(self._unrecorded) or not self._back.empty()

    def collect(self, wait: float) -> None:
        """Wait up to ``wait`` seconds for an outcome, then BATCH_SECONDS for more of them."""
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

    def record(self) -> None:
        """Record a batch of the collected outcomes."""
        if not self._unrecorded:
            return
        batch = self._unrecorded[:BATCH]
        try:
            stood = self._recorded(batch)
        except Exception as fault:
            if passes(fault):
                # Kept and retried. If the database is unavailable for long, the oldest are dropped.
                self._forget(len(self._unrecorded) - KEPT_AT_MOST)
                raise
            log.exception("A batch could not be recorded. Recording its results one by one.")
            stood = self._singly(batch)
        del self._unrecorded[: len(batch)]
        if stood:  # /readyz must not count a batch that was dropped as a check
            self.last_check_at = datetime.now(UTC)
        for claim, standing in stood:
            self._told(claim, standing)

    def _recorded(self, batch: list[Finished]) -> list[tuple[Claim, Standing | None]]:
        stood = recorder.record_claimed(batch, datetime.now(UTC), location=self._location)
        return [(claim, stands) for (claim, _outcome), stands in zip(batch, stood, strict=True)]

    def _singly(self, batch: list[Finished]) -> list[tuple[Claim, Standing | None]]:
        """Record one by one, so that a result that cannot be recorded does not lose the others."""
        stood: list[tuple[Claim, Standing | None]] = []
        for one in batch:
            try:
                stood += self._recorded([one])
            except Exception as fault:
                if passes(fault):
                    raise
                log.exception("The result of monitor %s could not be recorded", one[0].monitor_id)
        return stood

    def _forget(self, count: int) -> None:
        for claim, _outcome in self._unrecorded[: max(0, count)]:
            self._told(claim, None)
        del self._unrecorded[: max(0, count)]
