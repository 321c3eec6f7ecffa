"""Lock the states of monitors, and read the results that are newer than a state.

A good check that changes nothing writes only its result. The state's "last checked" and the
assignment's ``scheduled_at`` follow within a minute (``app/engine/recorder/steady.py``), so code
that needs them reads the newest result here, by the key of the results. Needs an application
context.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    ScalarSelect,
    bindparam,
    case,
    or_,
    select,
    type_coerce,
)

from app.db import AnySession, DbSession, db
from app.db.statements import bulk_update, pieces
from app.db.tables import AssignmentRow, MonitorStateRow, ResultRow
from app.db.types import from_ms, to_ms
from app.rules.clocks import believable

IDS_PER_STATEMENT = 5000
_RESULTS: Any = ResultRow.__table__
_STATES: Any = MonitorStateRow.__table__


def newest(column: str, monitor_id: Any, until: Any, place: Any = None) -> ScalarSelect[Any]:
    """The SQL of a column of a monitor's newest result, of one place or of all. Results after
    ``until`` (``last_moment``) and those that cover nothing, as in a pause, are skipped.
    """
    query = (
        select(_RESULTS.c[column])
        .where(
            _RESULTS.c.monitor_id == monitor_id,
            _RESULTS.c.at <= until,
            or_(_RESULTS.c.covers_s.is_(None), _RESULTS.c.covers_s > 0),
        )
        .order_by(_RESULTS.c.at.desc())
        .limit(1)
    )
    if place is not None:
        query = query.where(_RESULTS.c.location_id == place)
    return query.scalar_subquery()


def last_moment(now: datetime) -> int:
    """The latest time (ms) of a result that counts. A wrong clock wrote later results."""
    return to_ms(believable(now))


# Statements are built once: building them takes longer than running them.
UNTIL: BindParameter[int] = bindparam("until", type_=BigInteger)
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
# Always in the same order: otherwise two transactions that lock several could deadlock.
_LOCK = (
    select(_STATES.c.monitor_id)
    .where(_STATES.c.monitor_id.in_(_IDS))
    .order_by(_STATES.c.monitor_id)
    .with_for_update()
)
_LOCK_FREE = _LOCK.with_for_update(skip_locked=True)
# Columns to select with the states of monitors, for ``newer_check``. Needs the parameter ``until``.
NEWEST = (
    newest("at", _STATES.c.monitor_id, UNTIL).label("newest_at"),
    newest("response_time", _STATES.c.monitor_id, UNTIL).label("newest_response_time"),
)
_OF_MONITORS = select(_STATES.c.monitor_id, _STATES.c.checked_at, *NEWEST).where(
    _STATES.c.monitor_id.in_(_IDS)
)
_IN_PLACE = select(
    _STATES.c.monitor_id, newest("at", _STATES.c.monitor_id, UNTIL, bindparam("place"))
).where(_STATES.c.monitor_id.in_(_IDS))


def lock_states(session: AnySession, ids: Collection[int]) -> None:
    """Lock the states of these monitors until the transaction ends, inside ``writing()``. On
    SQLite, which has one writer at a time, it does nothing.

    On PostgreSQL, a statement that has waited for a lock sees the locked row as it is now, but the
    rows of all other tables as they were before the wait: an incident would open for a monitor that
    somebody has just paused. Therefore callers lock first, and read with the next statements. Each
    change of a monitor locks its state too, so what they read stays true until the transaction
    ends.
    """
    if session.get_bind().dialect.name != "postgresql":
        return
    for part in pieces(sorted(ids), IDS_PER_STATEMENT):
        session.execute(_LOCK, {"ids": part})


def lock_free_states(session: AnySession, ids: Collection[int]) -> Collection[int]:
    """Lock those of these states that nobody else has locked; returns their ids. Summing a thousand
    monitors locks their states one after another, for half a minute if the database is distant.
    """
    if session.get_bind().dialect.name != "postgresql":
        return ids
    return set(session.scalars(_LOCK_FREE, {"ids": sorted(ids)}))


def of_monitors(ids: Collection[int], now: datetime) -> dict[int, tuple[datetime, int | None]]:
    """The time and response time (ms) of the last check of each monitor whose state lacks it."""
    if not ids:
        return {}
    rows = db.session.execute(_OF_MONITORS, {"ids": list(ids), "until": last_moment(now)})
    return {row.monitor_id: check for row in rows if (check := newer_check(row))}


def newer_check(row: Any) -> tuple[datetime, int | None] | None:
    """The time and response time (ms) of the last check; None if the state has it already. ``row``
    has ``checked_at`` and ``NEWEST``.
    """
    if row.newest_at is None:
        return None
    at = from_ms(row.newest_at)
    if row.checked_at is not None and at <= row.checked_at:
        return None
    return at, row.newest_response_time


def in_place(ids: Sequence[int], place: int, now: datetime) -> dict[int, int]:
    """The time (ms) of the newest result of each of these monitors in a place."""
    times, until = {}, last_moment(now)
    for part in pieces(ids, IDS_PER_STATEMENT):
        rows = db.session.execute(_IN_PLACE, {"ids": part, "until": until, "place": place})
        times.update({id: at for id, at in rows if at is not None})
    return times


def response_time() -> ColumnElement[int | None]:
    """The SQL of a monitor's last response time, to sort by. The statement must join its state, and
    have the parameter ``until`` (``last_moment``).
    """
    id = _STATES.c.monitor_id
    is_newer = newest("at", id, UNTIL) > type_coerce(_STATES.c.checked_at, BigInteger)
    return case((is_newer, newest("response_time", id, UNTIL)), else_=_STATES.c.response_time)


def later(stored: datetime | None, at: int | None) -> datetime | None:
    """The later of a ``stored`` time and the newest result's time ``at`` (ms)."""
    if at is None:
        return stored
    newest_at = from_ms(at)
    return newest_at if stored is None or newest_at > stored else stored


# A monitor's id, last check (ms), response time, the scheduled time of that check (ms), and
# the generation to which it belongs.
Row = tuple[int, int, int | None, int, int]


def save(session: DbSession, place: int, rows: Sequence[Row]) -> None:
    """Bring the states, and the assignments of a place, up to date with the newest results."""
    if not rows:
        return
    states = [(id, at, response_time) for id, at, response_time, *_rest in rows]
    columns = ("checked_at", "response_time")
    bulk_update(session, MonitorStateRow, ("monitor_id",), columns, states, rising="checked_at")
    assigned = [
        (id, place, generation, at, scheduled_ms)
        for id, at, _response_time, scheduled_ms, generation in rows
    ]
    key = ("monitor_id", "location_id", AssignmentRow.generation.name)
    bulk_update(
        session, AssignmentRow, key, ("checked_at", AssignmentRow.scheduled_at.name), assigned
    )
