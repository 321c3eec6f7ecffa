"""How this installation is: for ``/readyz`` and ``/metrics``, which see no table themselves.

A checker writes a heartbeat while it runs. Before the first one, and where no check was ever due,
there is nothing to complain about: a fresh installation is ready.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from flask import current_app
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from app.db import db, heartbeats, patience, schema, unreadable
from app.db.tables import MonitorStateRow

# No monitor waits for longer than its time limit, a lease and a restart together.
CHECKS_LATE_AFTER = timedelta(seconds=150)

ANSWER_SECONDS = 2.0  # who asks whether we are ready does not wait for long

COUNTED_EVERY = 60.0  # seconds between two counts of what cannot be read
_KEPT = "wakeful.unreadable"

DATABASE_FAILED = "The database does not answer."
CHECKER_SILENT = "No checker is running."
CHECKS_LATE = "Checks are due, but none has finished for a while."


@dataclass(frozen=True, slots=True)
class Health:
    """``faults`` are sentences, none when all is well. Ages in seconds; None before the first.
    ``unreadable``: stored values of monitors and settings that cannot be read. The service does all
    the rest, so this is no fault that another instance would mend.

    ``readable``: whether the database can be asked for more.
    """

    faults: tuple[str, ...]
    last_check_at: datetime | None = None
    last_check_age: float | None = None
    heartbeat_age: float | None = None
    readable: bool = True
    unreadable: int = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        count = self.unreadable
        if not count:
            return ()
        values = "1 stored value" if count == 1 else f"{count:,} stored values"
        return (f"{values} cannot be read. wakeful doctor names each and says what to do.",)


def health(now: datetime, *, checks: bool = True) -> Health:
    """Needs an application context. Never raises for a database that does not answer, and does not
    wait for it long. ``checks``: whether this installation is to check anything; what it once did
    says nothing of now.
    """
    try:
        with patience(ANSWER_SECONDS):
            if sentence := schema.fault():
                return Health((sentence,), readable=False)
            signs = heartbeats.of_checkers(now)
            due = db.session.scalar(select(func.min(MonitorStateRow.next_check_at)))
            broken = _unreadable() if checks else 0
    except SQLAlchemyError:
        db.session.rollback()
        return Health((DATABASE_FAILED,), readable=False)
    if not checks:
        return Health(())
    faults = []
    if signs.ever and signs.silent:
        faults.append(CHECKER_SILENT)
    checked = signs.checked_at
    # A check can only be late when one is due; that nothing finished while nothing was due is fine.
    if due and checked and now - max(due, checked) > CHECKS_LATE_AFTER:
        faults.append(CHECKS_LATE)
    return Health(
        tuple(faults), checked, _age(now, checked), _age(now, signs.at), unreadable=broken
    )


def _unreadable() -> int:
    """How many values cannot be read. They are all read for it, so not for each question."""
    kept: tuple[float, int] | None = current_app.extensions.get(_KEPT)
    if kept is None or time.monotonic() - kept[0] >= COUNTED_EVERY:
        kept = time.monotonic(), sum(1 for _ in unreadable.scan(schema.IN_USE))
        current_app.extensions[_KEPT] = kept
    return kept[1]


def _age(now: datetime, moment: datetime | None) -> float | None:
    return None if moment is None else max(0.0, (now - moment).total_seconds())
