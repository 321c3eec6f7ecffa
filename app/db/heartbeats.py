"""Heartbeats: when each process was last known to be alive. ``/readyz`` and ``wakeful doctor`` read
them. Needs an application context.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select, update

from app.db import db, writing
from app.db.clocks import SKEW
from app.db.tables import HeartbeatRow

CHECKER, WORKER = "checker", "worker"
# A checker beats every few seconds; one that has not for so long is dead or stuck.
CHECKER_SILENT_AFTER = timedelta(seconds=20)
KEPT = timedelta(days=1)

_OF_CHECKERS = HeartbeatRow.name.startswith(f"{CHECKER}:")


def process_name(role: str, pid: int | None = None) -> str:
    """The name of a process of this machine, by default of this one: ``checker:hostname:pid``."""
    return f"{role}:{socket.gethostname()}:{os.getpid() if pid is None else pid}"


def beat(
    name: str,
    now: datetime,
    last_check_at: datetime | None = None,
    ended_at: datetime | None = None,
    *,
    location: str | None = None,
) -> None:
    """Write that a process is alive, and what it did last; at its end, that it ended. ``location``:
    where a checker checks from. Joins the caller's transaction, where there is one.
    """
    row = HeartbeatRow(
        name=name, location=location, at=now, last_check_at=last_check_at, ended_at=ended_at
    )
    with writing() as session:
        session.merge(row)


def names_alive(location: str, now: datetime, within: timedelta) -> set[str]:
    """The names of a place's checkers whose heartbeat is at most ``within`` from now. One that is
    further ahead was written before the clock was set back.
    """
    its = select(HeartbeatRow.name).where(
        HeartbeatRow.location == location,
        HeartbeatRow.at.between(now - within, now + within),
        HeartbeatRow.ended_at.is_(None),
    )
    return set(db.session.scalars(its))


def note_end(names: str, now: datetime) -> None:
    """Write for the process whose names begin so that it ended, where it could not do so itself."""
    with writing() as session:
        its = update(HeartbeatRow).where(HeartbeatRow.name.startswith(names, autoescape=True))
        session.execute(its.values(ended_at=now))


def forget_old(now: datetime) -> None:
    """Delete those of the dead."""
    # Those of a clock that was ahead would never grow old.
    kept = HeartbeatRow.at.between(now - KEPT, now + KEPT)
    with writing() as session:
        session.execute(delete(HeartbeatRow).where(~kept))


def newest() -> datetime | None:
    """The latest one of all."""
    return db.session.scalar(select(func.max(HeartbeatRow.at)))


@dataclass(frozen=True, slots=True)
class Signs:
    """What the checkers left. ``silent``: none of them lives; ``ever``: there was one once."""

    ever: bool
    silent: bool
    at: datetime | None
    checked_at: datetime | None


def of_checkers(now: datetime) -> Signs:
    """Heartbeats from the future do not count. A clock that was set back left them, and whoever
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
