"""Lock the states of monitors, in a statement of its own. Inside ``writing()``.

On PostgreSQL, a statement that waits for a lock goes on with the locked row as it is now, and with
the rows of all other tables as they were before the wait: the recorder opened incidents of monitors
that somebody had just paused. So lock first, and read with the statements that follow. Whoever
changes a monitor locks its state too, so what is read then stays true until the transaction ends.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import BindParameter, bindparam, select

from app.db import AnySession
from app.db.tables import MonitorStateRow

AT_ONCE = 5000  # ids in one statement
_STATES: Any = MonitorStateRow.__table__
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_LOCK = (
    select(_STATES.c.monitor_id)
    .where(_STATES.c.monitor_id.in_(_IDS))
    .order_by(_STATES.c.monitor_id)
    .with_for_update()
)


def lock_states(session: AnySession, ids: Collection[int]) -> None:
    """Keep all others from changing these monitors and their states until the transaction ends.
    SQLite has one writer at a time, so there it does nothing.
    """
    if session.get_bind().dialect.name != "postgresql":
        return
    # Always in the same order: otherwise two who lock several could deadlock.
    ordered = sorted(ids)
    for start in range(0, len(ordered), AT_ONCE):
        session.execute(_LOCK, {"ids": ordered[start : start + AT_ONCE]})
