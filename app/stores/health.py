"""How this installation is: for ``/readyz`` and ``/metrics``, which see no table themselves.

A checker writes a heartbeat while it runs. Before the first one, and where no check was ever due,
there is nothing to complain about: a fresh installation is ready.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from app.db import db, patience
from app.db.clocks import SKEW
from app.db.tables import HeartbeatRow, MonitorStateRow

# A checker beats every few seconds; one that has not for so long is dead or stuck.
CHECKER_SILENT_AFTER = timedelta(seconds=20)
# No monitor waits for longer than its time limit, a lease and a restart together.
CHECKS_LATE_AFTER = timedelta(seconds=150)

ANSWER_SECONDS = 2.0  # who asks whether we are ready does not wait for long

_OF_CHECKERS = HeartbeatRow.name.startswith("checker:")

DATABASE_FAILED = "The database does not answer."
CHECKER_SILENT = "No checker is running."
CHECKS_LATE = "Checks are due, but none has finished for a while."


@dataclass(frozen=True, slots=True)
class Health:
    """``faults`` are sentences, none when all is well. Ages in seconds; None before the first."""

    faults: tuple[str, ...]
    last_check_at: datetime | None = None
    last_check_age: float | None = None
    heartbeat_age: float | None = None


def health(now: datetime, *, checks: bool = True) -> Health:
    """Needs an application context. Never raises for a database that does not answer, and does not
    wait for it long. ``checks``: whether this installation is to check anything; what it once did
    says nothing of now.
    """
    try:
        with patience(ANSWER_SECONDS):
            signs = last_signs(now)
            due = db.session.scalar(select(func.min(MonitorStateRow.next_check_at)))
    except SQLAlchemyError:
        db.session.rollback()
        return Health((DATABASE_FAILED,))
    if not checks:
        return Health(())
    faults = []
    if signs.ever and signs.silent:
        faults.append(CHECKER_SILENT)
    checked = signs.checked_at
    # A check can only be late when one is due; that nothing finished while nothing was due is fine.
    if due and checked and now - max(due, checked) > CHECKS_LATE_AFTER:
        faults.append(CHECKS_LATE)
    return Health(tuple(faults), checked, _age(now, checked), _age(now, signs.at))


@dataclass(frozen=True, slots=True)
class Signs:
    """What the checkers left. ``silent``: none of them lives; ``ever``: there was one once."""

    ever: bool
    silent: bool
    at: datetime | None
    checked_at: datetime | None


def last_signs(now: datetime) -> Signs:
    """Signs of life from the future do not count. A clock that was set back left them, and whoever
    lives gives a new one soon; one that is dead would seem alive until the clock is there again.
    """
    soon = now + SKEW
    at, living, checked = (
        HeartbeatRow.at,
        HeartbeatRow.ended_at.is_(None),
        HeartbeatRow.last_check_at,
    )
    newest = select(func.max(at)).where(_OF_CHECKERS, at <= soon)
    ever, last, last_living, checked_at = db.session.execute(
        select(
            select(func.count()).where(_OF_CHECKERS).scalar_subquery(),
            newest.scalar_subquery(),
            newest.where(living).scalar_subquery(),
            select(func.max(checked)).where(checked <= soon).scalar_subquery(),
        )
    ).one()
    silent = last_living is None or now - last_living > CHECKER_SILENT_AFTER
    return Signs(bool(ever), silent, last, checked_at)


def _age(now: datetime, moment: datetime | None) -> float | None:
    return None if moment is None else max(0.0, (now - moment).total_seconds())
