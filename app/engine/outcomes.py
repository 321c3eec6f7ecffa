"""Take the outcomes of checks from the carriers, and record them in batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from app.db.assignments import Assigned
from app.db.faults import passes
from app.engine import recorder
from app.engine.carriers import Finished
from app.engine.recorder.steady import MAX_WAITING_RESULTS, steady_as_read
from app.engine.schedule import Claim, Standing

log = logging.getLogger(__name__)

MAX_BATCH = 50  # results that change something, in one transaction
MIN_BATCH = 10
# The time for such a transaction, to which the next one is adapted. To open an incident takes ten
# times as long as to confirm a failure, and on SQLite all other writers wait for it.
TRANSACTION_SECONDS = 0.5


class OutcomeRecorder:
    """Records the outcomes of one checker. ``on_done`` is called for each check that was recorded
    (with its monitor's new standing) or dropped (with None). It is not called for a check that
    cannot be recorded because of a bug: that check would be repeated at once. Recording needs an
    application context.
    """

    def __init__(self, location: str, on_done: Callable[[Claim, Standing | None], None]) -> None:
        self._location = location
        self._on_done = on_done
        self._unrecorded: list[Finished] = []
        self._steady = recorder.Steady(location)
        self._batch = MAX_BATCH
        self.last_check_at: datetime | None = None

    def keep_shards(self, tokens: Mapping[int, int]) -> None:
        """Drop the cached columns of the monitors of all other shards."""
        self._steady.keep_shards(tokens)

    @property
    def full(self) -> bool:
        """Whether ``MAX_WAITING_RESULTS`` wait, because the database is unavailable."""
        return len(self._unrecorded) + self._steady.waiting >= MAX_WAITING_RESULTS

    def unrecorded(self) -> set[int]:
        """The monitors with a result that must be recorded before their next check."""
        return {claim.monitor_id for claim, _outcome in self._unrecorded}

    def wait(self, seconds: float) -> float:
        """How many of these ``seconds`` the checker may wait before it must call ``record``."""
        return 0.0 if self._unrecorded else min(seconds, self._steady.wait(time.monotonic()))

    def add(self, finished: Iterable[Finished]) -> None:
        """Add outcomes to be recorded. Needs no application context."""
        for claim, outcome in finished:
            if (standing := self._steady.add_if_steady(claim, outcome)) is not None:
                self._on_done(claim, standing)
            else:
                self._unrecorded.append((claim, outcome))

    def record(self) -> None:
        """Write all waiting good checks, which are older, and one batch of the other outcomes.

        Only one batch is written: in an outage of thousands of monitors, all outcomes would take
        minutes. If the checker did not renew its shards in that time, another one would take them,
        and the results would be dropped.
        """
        self._write_steady()
        self._record_batch()

    def before_reading(self) -> None:
        """``record`` before rows are read. The rows of the monitors in ``unrecorded`` lack their
        newest results afterwards.
        """
        self.record()
        self._steady.follow_changes()

    def remember(self, claim: Claim, standing: Standing, assigned: Assigned) -> None:
        """Cache the columns of a steady monitor from rows read after ``before_reading``."""
        self._steady.remember(claim.monitor_id, steady_as_read(claim, standing, assigned))

    def flush(self) -> None:
        """Write all waiting results, and the rows of all steady monitors."""
        self._write_steady(all=True)
        while self._unrecorded:
            self._record_batch()

    def _write_steady(self, *, all: bool = False) -> None:
        waited = self._steady.waiting
        try:
            unwritten = self._steady.write(datetime.now(UTC))
        except Exception as fault:
            if passes(fault):
                self._steady.drop_oldest()
                raise
            log.exception("A batch of good checks could not be recorded. Recording them singly.")
            unwritten = self._steady.give_back()
        if waited > len(unwritten):
            self.last_check_at = datetime.now(UTC)
        self._unrecorded = unwritten + self._unrecorded
        self._steady.save(all=all)

    def _record_batch(self) -> None:
        if not self._unrecorded:
            return
        batch = self._unrecorded[: self._batch]
        try:
            began = time.monotonic()
            standings = self._recorded(batch)
            self._batch = _size_of_next(len(batch), time.monotonic() - began)
        except Exception as fault:
            if passes(fault):
                # Kept and retried. If the database is unavailable for long, the oldest are dropped.
                dropped = max(0, len(self._unrecorded) - MAX_WAITING_RESULTS)
                for claim, _outcome in self._unrecorded[:dropped]:
                    self._on_done(claim, None)
                del self._unrecorded[:dropped]
                raise
            log.exception("A batch could not be recorded. Recording its results one by one.")
            standings = self._singly(batch)
        del self._unrecorded[: len(batch)]
        # If all checks of a batch are dropped, /readyz and the place's signs do not count them.
        if any(standing is not None for _claim, standing in standings):
            self.last_check_at = datetime.now(UTC)
        for claim, standing in standings:
            self._on_done(claim, standing)

    def _recorded(self, batch: list[Finished]) -> list[tuple[Claim, Standing | None]]:
        standings = recorder.record_claimed(
            batch, datetime.now(UTC), location=self._location, steady=self._steady
        )
        return [(claim, standing) for (claim, _), standing in zip(batch, standings, strict=True)]

    def _singly(self, batch: list[Finished]) -> list[tuple[Claim, Standing | None]]:
        """Record each check in a separate transaction: one that fails must not undo the others."""
        standings: list[tuple[Claim, Standing | None]] = []
        for finished in batch:
            try:
                standings += self._recorded([finished])
            except Exception as fault:
                if passes(fault):
                    raise
                id = finished[0].monitor_id
                log.exception("The result of monitor %s could not be recorded", id)
        return standings


def _size_of_next(size: int, seconds: float) -> int:
    """The size of the next batch, if a batch of ``size`` results took ``seconds``."""
    fitting = int(size * TRANSACTION_SECONDS / max(seconds, 0.001))
    return max(MIN_BATCH, min(MAX_BATCH, fitting))
