"""Signs of life: when each process last wrote that it is alive. ``/readyz`` and ``wakeful doctor``
read them. Needs an application context.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, func, or_, select, update

from app.db import db, writing
from app.db.statements import inserting, newest_time_sql
from app.db.tables import SignOfLifeRow
from app.rules.clocks import believable
from app.secret_keys import keys_of, mark_of

CHECKER, WORKER = "checker", "worker"
WEB = "web"  # one row for all web processes: any of them can take pings
DEADLINES = "deadlines"  # the role of the watch over deadlines, for wake-ups only
AGENT = "agent"  # the server that gets the results of the agent writes its row
PROBE = "probe"  # written to test whether the database accepts writes
# A checker writes a sign every 2 s (alone in its place: 5 s), a worker every 15 s. After this time
# without a sign, a process counts as dead or stuck.
SILENT_AFTER = {CHECKER: timedelta(seconds=20), WORKER: timedelta(seconds=45)}
RETENTION = timedelta(days=1)

_COLUMNS: Any = SignOfLifeRow.__table__.c
MAX_HOST = 40  # characters of the host in the name of a process


def process_name(role: str, pid: int | None = None) -> str:
    """The name of a process of this machine, by default of this one: ``checker:hostname:pid``."""
    return f"{role}:{socket.gethostname()[:MAX_HOST]}:{os.getpid() if pid is None else pid}"


_AT = _COLUMNS.at.type
_ALIVE = select(_COLUMNS.name).where(
    SignOfLifeRow.location == bindparam("location"),
    SignOfLifeRow.name.startswith(f"{CHECKER}:"),  # probers and agents own no shards
    SignOfLifeRow.at.between(bindparam("since", type_=_AT), bindparam("until", type_=_AT)),
    SignOfLifeRow.ended_at.is_(None),
)


def write(
    name: str,
    now: datetime,
    last_check_at: datetime | None = None,
    ended_at: datetime | None = None,
    *,
    location: str | None = None,
    version: str | None = None,
    clock_offset_ms: int | None = None,
    checks_per_minute: int | None = None,
) -> None:
    """Store that a process is alive, the time of its last check and, at its end, that it ended.
    ``location``: the place that it checks from. Joins the caller's transaction, if there is one.

    Several web processes write the sign of an agent, each with the last check that it has recorded
    itself. Therefore an older time, or none, does not replace a newer one.
    """
    fields = {
        "name": name,
        "location": location,
        "at": now,
        "last_check_at": last_check_at,
        "ended_at": ended_at,
        "version": version,
        "clock_offset_ms": clock_offset_ms,
        "checks_per_minute": checks_per_minute,
        "keys": ",".join(map(mark_of, keys_of())),
    }
    with writing() as session:
        session.execute(_upsert(db.engine.dialect.name), {"latest": believable(now), **fields})


@cache
def _upsert(_dialect: str) -> Any:
    """Built once: a checker runs it every few seconds."""
    insert = inserting(SignOfLifeRow).values(
        {column.name: bindparam(column.name, type_=column.type) for column in _COLUMNS}
    )
    latest = bindparam("latest", type_=_AT)
    updates = dict(insert.excluded) | {
        name: newest_time_sql(_COLUMNS[name], insert.excluded[name], latest)
        for name in ("at", "last_check_at")
    }
    return insert.on_conflict_do_update(index_elements=["name"], set_=updates)


def names_alive(location: str, now: datetime, within: timedelta) -> set[str]:
    """The names of a place's checkers whose last sign is at most ``within`` before or after now. A
    later sign was written before the clock was set back.
    """
    times = {"since": now - within, "until": now + within}
    return set(db.session.scalars(_ALIVE, {"location": location, **times}))


def note_end(process: str, now: datetime) -> None:
    """Store that a process ended, if it could not do so itself. ``process``: its ``process_name``,
    which is also the beginning of a checker's name.
    """
    of_process = or_(
        SignOfLifeRow.name == process, SignOfLifeRow.name.startswith(f"{process}:", autoescape=True)
    )
    with writing() as session:
        session.execute(update(SignOfLifeRow).where(of_process).values(ended_at=now))


def processes_with_other_keys(now: datetime) -> list[str]:
    """The names of running checkers and alert workers that lack this process's first secret key.
    The keys of web servers are not stored.
    """
    first_key = mark_of(keys_of()[0])
    rows = db.session.execute(
        select(SignOfLifeRow.name, SignOfLifeRow.keys).where(
            or_(*(_lives(role, now) for role in SILENT_AFTER)), SignOfLifeRow.ended_at.is_(None)
        )
    )
    return sorted(name for name, keys in rows if first_key not in (keys or "").split(","))


def _lives(role: str, now: datetime) -> ColumnElement[bool]:
    within = SILENT_AFTER[role]
    of_role = SignOfLifeRow.name.startswith(f"{role}:")
    return of_role & SignOfLifeRow.at.between(now - within, now + within)


def delete_old(now: datetime) -> None:
    """Delete the signs of dead processes."""
    # Signs from the future are deleted too: a clock that was ahead wrote them, and they would stay.
    is_recent = SignOfLifeRow.at.between(now - RETENTION, now + RETENTION)
    with writing() as session:
        # The last sign of a web process stays: it shows since when no ping could arrive.
        session.execute(delete(SignOfLifeRow).where(~is_recent, SignOfLifeRow.name != WEB))


def newest() -> datetime | None:
    """The time of the newest sign of life."""
    return db.session.scalar(select(func.max(SignOfLifeRow.at)))


@dataclass(frozen=True, slots=True)
class RoleSigns:
    """The signs of life of all processes of a role. ``ever``: there has been a process. ``silent``:
    none is alive. ``at``: the time of the newest sign. ``checked_at``: the last check of all roles.
    """

    ever: bool
    silent: bool
    at: datetime | None
    checked_at: datetime | None


@cache
def _signs_query(role: str) -> Any:
    """Built once, because it is run every few seconds."""
    at, checked = SignOfLifeRow.at, SignOfLifeRow.last_check_at
    of_role, soon = SignOfLifeRow.name.startswith(f"{role}:"), bindparam("soon", type_=at.type)
    newest = select(func.max(at)).where(of_role, at <= soon)
    return select(
        select(func.count()).where(of_role).scalar_subquery(),
        newest.scalar_subquery(),
        newest.where(SignOfLifeRow.ended_at.is_(None)).scalar_subquery(),
        select(func.max(checked)).where(checked <= soon).scalar_subquery(),
    )


def signs_of(role: str, now: datetime) -> RoleSigns:
    """The signs of the processes of a role. Signs from the future do not count: they were written
    before the clock was set back. Live processes soon write new ones; a dead process would seem
    alive until that time comes.
    """
    rows = db.session.execute(_signs_query(role), {"soon": believable(now)})
    ever, last, last_living, checked_at = rows.one()
    silent = last_living is None or now - last_living > SILENT_AFTER[role]
    return RoleSigns(bool(ever), silent, last, checked_at)
